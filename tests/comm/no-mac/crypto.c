/* SPDX-License-Identifier: MIT */
/* Replaces crypto.so to measure a job without authentication: it computes nothing and accepts every
 * MAC. */
#include "comm/crypto.h"

#include <string.h>

static bool make_hmac(const uint8_t key[DT_KEY], const void *data, size_t bytes,
                      uint8_t out[DT_KEY])
{
    (void)key, (void)data, (void)bytes;
    memset(out, 0, DT_KEY);
    return true;
}

static bool are_equal(const void *a, const void *b, size_t bytes)
{
    (void)a, (void)b, (void)bytes;
    return true;
}

static void *open_mac(const uint8_t key[DT_KEY])
{
    static char mac;
    (void)key;
    return &mac;
}

static void close_mac(void *mac)
{
    (void)mac;
}

static void begin(void *mac, uint64_t number)
{
    (void)mac, (void)number;
}

static void add(void *mac, const void *data, size_t bytes)
{
    (void)mac, (void)data, (void)bytes;
}

static bool end(void *mac, uint8_t tag[DT_TAG])
{
    (void)mac;
    memset(tag, 0, DT_TAG);
    return true;
}

extern const struct dt_crypto dt_crypto;
const struct dt_crypto dt_crypto = {DT_CRYPTO_ABI, make_hmac, are_equal, open_mac,
                                    close_mac,     begin,     add,       end};
