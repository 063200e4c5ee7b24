/* SPDX-License-Identifier: MIT */
#include "hash/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define SHORT 240 /* bytes that XXH3 hashes without vectors */

uint64_t dt_hash(const void *data, size_t size)
{
#ifdef __x86_64__
    if (size > SHORT && __builtin_cpu_supports("avx2"))
        return dt_hash_avx2(data, size);
#endif
    return XXH3_64bits(data, size);
}

uint64_t dt_hash_seeded(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size, seed);
}

uint64_t dt_hash_xxh64(const void *data, size_t size)
{
    return XXH64(data, size, 0);
}

struct dt_hash128 dt_hash128(const void *data, size_t size)
{
    XXH128_hash_t hash = XXH3_128bits(data, size);
    return (struct dt_hash128){hash.low64, hash.high64};
}

char *dt_hash_hex(uint64_t hash, char text[DT_HASH_HEX])
{
    snprintf(text, DT_HASH_HEX, "%016" PRIx64, hash);
    return text;
}

bool dt_hash_parse(const char *text, uint64_t *hash)
{
    *hash = strtoull(text, NULL, 16);
    return strlen(text) == DT_HASH_HEX - 1 && strspn(text, "0123456789abcdef") == DT_HASH_HEX - 1;
}
