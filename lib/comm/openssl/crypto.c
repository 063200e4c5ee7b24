/* SPDX-License-Identifier: MIT */
/* HMAC-SHA256 and AES-256-GMAC by libcrypto of OpenSSL 3. */
#include "comm/crypto.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#define IV 12 /* bytes of GMAC's nonce */

struct mac {
    EVP_CIPHER_CTX *context;
    bool failed;
};

static bool make_hmac(const uint8_t key[DT_KEY], const void *data, size_t bytes,
                      uint8_t out[DT_KEY])
{
    unsigned length = 0;
    return HMAC(EVP_sha256(), key, DT_KEY, data, bytes, out, &length) && length == DT_KEY;
}

static bool are_equal(const void *a, const void *b, size_t bytes)
{
    return CRYPTO_memcmp(a, b, bytes) == 0;
}

static void close_mac(void *state)
{
    struct mac *m = state;
    if (m)
        EVP_CIPHER_CTX_free(m->context); /* clears the key */
    free(m);
}

static void *open_mac(const uint8_t key[DT_KEY])
{
    struct mac *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->context = EVP_CIPHER_CTX_new();
    if (m->context == NULL ||
        EVP_EncryptInit_ex(m->context, EVP_aes_256_gcm(), NULL, key, NULL) != 1) {
        close_mac(m);
        return NULL;
    }
    return m;
}

static void begin(void *state, uint64_t number)
{
    struct mac *m = state;
    uint8_t iv[IV] = {0};
    memcpy(iv, &number, sizeof number);
    m->failed = EVP_EncryptInit_ex(m->context, NULL, NULL, NULL, iv) != 1;
}

/* GMAC is AES-GCM of an empty text; the message is additional authenticated data. */
static void add(void *state, const void *data, size_t bytes)
{
    struct mac *m = state;
    const uint8_t *rest = data;
    int length;
    for (size_t n; bytes > 0; rest += n, bytes -= n) {
        n = bytes < INT_MAX ? bytes : INT_MAX;
        m->failed |= EVP_EncryptUpdate(m->context, NULL, &length, rest, (int)n) != 1;
    }
}

static bool end(void *state, uint8_t tag[DT_TAG])
{
    struct mac *m = state;
    uint8_t none[DT_TAG];
    int length;
    m->failed |= EVP_EncryptFinal_ex(m->context, none, &length) != 1 ||
                 EVP_CIPHER_CTX_ctrl(m->context, EVP_CTRL_AEAD_GET_TAG, DT_TAG, tag) != 1;
    return !m->failed;
}

/* Found by dlsym. */
extern const struct dt_crypto dt_crypto __attribute__((visibility("default")));
const struct dt_crypto dt_crypto = {DT_CRYPTO_ABI, make_hmac, are_equal, open_mac,
                                    close_mac,     begin,     add,       end};
