/* SPDX-License-Identifier: MIT */
/*
 * What ranks that meet over TCP use of a library of cryptography: HMAC, and a fast MAC for
 * messages.
 *
 * It is a plug-in, crypto.so (comm/openssl), so that programs start without that library, and run
 * without it where ranks meet through MPI or there is one rank.
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
    /* HMAC-SHA256; false: the library has failed. */
    bool (*hmac)(const uint8_t key[DT_KEY], const void *data, size_t bytes, uint8_t out[DT_KEY]);
    /* Whether the bytes are equal, in a time that does not tell where they differ. */
    bool (*equal)(const void *a, const void *b, size_t bytes);
    /* AES-256-GMAC under one key; NULL: the library has failed. */
    void *(*open)(const uint8_t key[DT_KEY]);
    void (*close)(void *mac); /* NULL is fine */
    /* The MAC of one message: begin, add as often as needed, end. number is the nonce, and is
     * used once under a key. end is false if any of the calls has failed. */
    void (*begin)(void *mac, uint64_t number);
    void (*add)(void *mac, const void *data, size_t bytes);
    bool (*end)(void *mac, uint8_t tag[DT_TAG]);
};

/* The plug-in; DT_EMISSING where it, or its library, is not here. */
int dt_crypto_load(const struct dt_crypto **crypto, struct dt_error *err) DT_MUST_CHECK;

#endif
