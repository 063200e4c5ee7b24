/* SPDX-License-Identifier: MIT */
/*
 * Cryptography of the tcp transport: HMAC, and a fast MAC for messages.
 *
 * It is a plug-in, crypto.so (comm/openssl), so that programs run without OpenSSL on one rank and
 * over MPI.
 */
#ifndef DT_COMM_CRYPTO_H
#define DT_COMM_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define DT_CRYPTO_ABI 1
#define DT_KEY        32 /* bytes of a key, a nonce and an HMAC */
#define DT_TAG        16 /* bytes of a message's MAC */

struct dt_crypto {
    int abi;
    /* HMAC-SHA256; false: the library failed. */
    bool (*hmac)(const uint8_t key[DT_KEY], const void *data, size_t bytes, uint8_t out[DT_KEY]);
    /* Whether the bytes are equal, in constant time. */
    bool (*equal)(const void *a, const void *b, size_t bytes);
    /* AES-256-GMAC under one key; NULL: the library failed. */
    void *(*open)(const uint8_t key[DT_KEY]);
    void (*close)(void *mac); /* NULL is fine */
    /* The MAC of one message: begin, add any number of times, end. number: the nonce, used once
     * per key. end returns false if any of the calls failed. */
    void (*begin)(void *mac, uint64_t number);
    void (*add)(void *mac, const void *data, size_t bytes);
    bool (*end)(void *mac, uint8_t tag[DT_TAG]);
};

/* Loads the plug-in; DT_EMISSING if it or OpenSSL is not installed. */
int dt_crypto_load(const struct dt_crypto **crypto, struct dt_error *err) DT_MUST_CHECK;

#endif
