/* SPDX-License-Identifier: MIT */
/*
 * Cryptography of the tcp transport: HMAC, and a fast cipher that authenticates messages.
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

#define DT_CRYPTO_ABI 2
#define DT_KEY        32 /* bytes of a key, a nonce and an HMAC */
#define DT_TAG        16 /* bytes of a message's MAC */

struct dt_crypto {
    int abi;
    /* HMAC-SHA256; false: the library failed. */
    bool (*hmac)(const uint8_t key[DT_KEY], const void *data, size_t bytes, uint8_t out[DT_KEY]);
    /* Whether the bytes are equal, in constant time. */
    bool (*equal)(const void *a, const void *b, size_t bytes);
    /* AES-256-GCM under one key, of messages that are sent or received; NULL: the library
     * failed. */
    void *(*open)(const uint8_t key[DT_KEY], bool receives);
    void (*close)(void *cipher); /* NULL is fine */
    /* One message: begin, add any number of times, then end or verify. number: the nonce, used
     * once per key. */
    void (*begin)(void *cipher, uint64_t number);
    /* Authenticates data and, unless to is NULL, writes it encrypted or decrypted to `to`, which
     * may be data itself. A message is encrypted as a whole or not at all. */
    void (*add)(void *cipher, void *to, const void *data, size_t bytes);
    /* The MAC of a message that is sent; false if any of the calls failed. */
    bool (*end)(void *cipher, uint8_t tag[DT_TAG]);
    /* Whether that is the MAC of a message that is received, in constant time; -1 if an earlier
     * call failed. */
    int (*verify)(void *cipher, const uint8_t tag[DT_TAG]);
};

/* Loads the plug-in at the first call; DT_EMISSING if it or OpenSSL is not installed. That call is
 * the main thread's: glibc keeps a lock of another one that runs out of memory while it loads, and
 * then the program would wait for it at its end. */
int dt_crypto_load(const struct dt_crypto **crypto, struct dt_error *err) DT_MUST_CHECK;

#endif
