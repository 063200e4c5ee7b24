/* SPDX-License-Identifier: MIT */
/* Replaces crypto.so to measure a job without authentication: it computes nothing and accepts every
 * MAC. */
#include "../zero-crypto.h"

static bool are_equal(const void *a, const void *b, size_t bytes)
{
    (void)a, (void)b, (void)bytes;
    return true;
}

static void add(void *cipher, void *to, const void *data, size_t bytes)
{
    (void)cipher;
    if (to && to != data)
        memcpy(to, data, bytes);
}

static int verify(void *cipher, const uint8_t tag[DT_TAG])
{
    (void)cipher, (void)tag;
    return 1;
}

extern const struct dt_crypto dt_crypto;
const struct dt_crypto dt_crypto = {DT_CRYPTO_ABI, make_hmac, are_equal, open_cipher, close_cipher,
                                    begin,         add,       end,       verify};
