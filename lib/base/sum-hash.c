/* SPDX-License-Identifier: MIT */
#include "base/sum-hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

uint64_t dt_sum_hash_seed(const char *name)
{
    return dt_hash(name, strlen(name));
}

/* The multipliers are those of MurmurHash3 and 2^64 divided by the golden ratio. */
static inline void add_element(uint64_t sums[2], uint64_t seed, uint64_t index, uint32_t bits)
{
    uint64_t z = seed + (index << 32 | index >> 32) + bits;
    z = (z ^ z >> 33) * 0xff51afd7ed558ccd;
    z = (z ^ z >> 33) * 0xc4ceb9fe1a85ec53;
    sums[0] += z ^ z >> 33;
    sums[1] += (z ^ z >> 29) * 0x9e3779b97f4a7c15;
}

void dt_sum_hash_add(struct dt_sum_hash *hash, uint64_t seed, uint64_t first,
                     const uint32_t *values, size_t count)
{
    uint64_t sums[2] = {0};
    for (size_t i = 0; i < count; i++)
        add_element(sums, seed, first + i, values[i]);
    dt_sum_hash_merge(hash, &(struct dt_sum_hash){{sums[0], sums[1]}});
}

void dt_sum_hash_add_narrow(struct dt_sum_hash *hash, uint64_t seed, uint64_t first,
                            const uint16_t *values, size_t count)
{
    uint64_t sums[2] = {0};
    for (size_t i = 0; i < count; i++)
        add_element(sums, seed, first + i, values[i]);
    dt_sum_hash_merge(hash, &(struct dt_sum_hash){{sums[0], sums[1]}});
}

void dt_sum_hash_merge(struct dt_sum_hash *hash, const struct dt_sum_hash *other)
{
    hash->sums[0] += other->sums[0];
    hash->sums[1] += other->sums[1];
}

bool dt_sum_hash_equal(const struct dt_sum_hash *a, const struct dt_sum_hash *b)
{
    return a->sums[0] == b->sums[0] && a->sums[1] == b->sums[1];
}

char *dt_sum_hash_hex(const struct dt_sum_hash *hash, char text[DT_SUM_HASH_HEX])
{
    snprintf(text, DT_SUM_HASH_HEX, "%016" PRIx64 "%016" PRIx64, hash->sums[0], hash->sums[1]);
    return text;
}
