/* SPDX-License-Identifier: MIT */
/* Fingerprints: XXH3-64 (xxhash) of bytes, and their text form. Not for secrets. */
#ifndef DT_HASH_HASH_H
#define DT_HASH_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t dt_hash(const void *data, size_t size);
/* The same hash, for processors with AVX2: dt_hash() calls it there. */
uint64_t dt_hash_avx2(const void *data, size_t size);
uint64_t dt_hash_seeded(const void *data, size_t size, uint64_t seed);
/* XXH64 with seed 0: what zstd's frame and seek-table checksums are made of. */
uint64_t dt_hash_xxh64(const void *data, size_t size);

/* XXH3-128: for sets so large that 64 bits would collide. */
struct dt_hash128 {
    uint64_t low, high;
};
struct dt_hash128 dt_hash128(const void *data, size_t size);

#define DT_HASH_HEX 17 /* 16 digits and the final 0 */
char *dt_hash_hex(uint64_t hash, char text[DT_HASH_HEX]);
/* The inverse: false if text is not 16 digits, of which letters are small. */
bool dt_hash_parse(const char *text, uint64_t *hash);

#endif
