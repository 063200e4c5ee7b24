/* SPDX-License-Identifier: MIT */
/*
 * SHA-256, by Nettle: a small library that neither allocates nor needs to be initialized, and uses
 * the processor's instructions for SHA. For records that others must be able to check; where only
 * damage matters, XXH3 (hash/hash.h) is ten times faster.
 */
#ifndef DT_HASH_SHA256_H
#define DT_HASH_SHA256_H

#include <nettle/sha2.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dt_sha256_thread;

struct dt_sha256 {
    struct sha256_ctx state;
    uint64_t bytes;                  /* added so far */
    struct dt_sha256_thread *thread; /* that hashes; NULL: the caller does */
};

#define DT_SHA256     32 /* bytes */
#define DT_SHA256_HEX 65 /* 64 digits and the final 0 */

void dt_sha256_init(struct dt_sha256 *s);
/* From here on a thread hashes copies of what is added, once that is more than 256 KiB. It ends
 * with dt_sha256_finish() or dt_sha256_release(). */
void dt_sha256_use_thread(struct dt_sha256 *s);
void dt_sha256_add(struct dt_sha256 *s, const void *data, size_t size);
/* The hash of what was added, as hexadecimal digits; returns text. Then s starts again. */
char *dt_sha256_finish(struct dt_sha256 *s, char text[DT_SHA256_HEX]);
/* Discards what was added; fine on an all-zero one. */
void dt_sha256_release(struct dt_sha256 *s);

/* Those digits of a hash; returns text. */
char *dt_sha256_hex(const uint8_t hash[DT_SHA256], char text[DT_SHA256_HEX]);
/* HMAC of a text; mac may be the key. */
void dt_sha256_hmac(const void *key, size_t size, const char *text, uint8_t mac[DT_SHA256]);

/* Reads a regular file: its size and hash. Errors are those of dt_file_open(). */
int dt_sha256_file(const char *path, uint64_t *bytes, char text[DT_SHA256_HEX],
                   struct dt_error *err) DT_MUST_CHECK;

#endif
