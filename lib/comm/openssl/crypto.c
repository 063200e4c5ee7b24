/* SPDX-License-Identifier: MIT */
/* HMAC-SHA256 and AES-256-GCM by libcrypto of OpenSSL 3. */
#include "comm/crypto.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define IV 12 /* bytes of GCM's nonce */

struct cipher {
    EVP_CIPHER_CTX *context;
    bool failed;
};

/* --- memory ------------------------------------------------------------------------------------
 * OpenSSL 3.0 uses a null lock where memory for it was exhausted: dt ends instead, with its line.
 */

static void *take(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return size > 0 ? dt_checked(malloc(size)) : NULL;
}

static void give_back(void *p, const char *file, int line)
{
    (void)file, (void)line;
    free(p);
}

static void *take_again(void *p, size_t size, const char *file, int line)
{
    if (size > 0)
        return dt_checked(realloc(p, size));
    give_back(p, file, line);
    return NULL;
}

/* Without effect where another library has used OpenSSL before. At the end of the program OpenSSL
 * would allocate, and where memory is exhausted a second line would follow that of the error. */
__attribute__((constructor)) static void check_memory(void)
{
    CRYPTO_set_mem_functions(take, take_again, give_back);
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

/* --- HMAC and cipher -------------------------------------------------------------------------- */

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

static void close_cipher(void *state)
{
    struct cipher *c = state;
    if (c)
        EVP_CIPHER_CTX_free(c->context); /* clears the key */
    free(c);
}

static void *open_cipher(const uint8_t key[DT_KEY], bool receives)
{
    struct cipher *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->context = EVP_CIPHER_CTX_new();
    if (c->context == NULL ||
        EVP_CipherInit_ex(c->context, EVP_aes_256_gcm(), NULL, key, NULL, !receives) != 1) {
        close_cipher(c);
        return NULL;
    }
    return c;
}

static void begin(void *state, uint64_t number)
{
    struct cipher *c = state;
    uint8_t iv[IV] = {0};
    memcpy(iv, &number, sizeof number);
    c->failed = EVP_CipherInit_ex(c->context, NULL, NULL, NULL, iv, -1) != 1;
}

/* Without encryption the message is additional authenticated data of an empty text. */
static void add(void *state, void *to, const void *data, size_t bytes)
{
    struct cipher *c = state;
    const uint8_t *rest = data;
    uint8_t *out = to;
    int length;
    for (size_t n; bytes > 0; rest += n, bytes -= n) {
        n = bytes < INT_MAX ? bytes : INT_MAX;
        c->failed |= EVP_CipherUpdate(c->context, out, &length, rest, (int)n) != 1;
        out = out ? out + n : NULL;
    }
}

static bool end(void *state, uint8_t tag[DT_TAG])
{
    struct cipher *c = state;
    uint8_t none[DT_TAG];
    int length;
    c->failed |= EVP_CipherFinal_ex(c->context, none, &length) != 1 ||
                 EVP_CIPHER_CTX_ctrl(c->context, EVP_CTRL_AEAD_GET_TAG, DT_TAG, tag) != 1;
    return !c->failed;
}

static int verify(void *state, const uint8_t tag[DT_TAG])
{
    struct cipher *c = state;
    uint8_t expected[DT_TAG], none[DT_TAG];
    int length;
    memcpy(expected, tag, DT_TAG);
    c->failed |= EVP_CIPHER_CTX_ctrl(c->context, EVP_CTRL_AEAD_SET_TAG, DT_TAG, expected) != 1;
    return c->failed ? -1 : EVP_CipherFinal_ex(c->context, none, &length) == 1;
}

/* Found by dlsym. */
extern const struct dt_crypto dt_crypto __attribute__((visibility("default")));
const struct dt_crypto dt_crypto = {DT_CRYPTO_ABI, make_hmac, are_equal, open_cipher, close_cipher,
                                    begin,         add,       end,       verify};
