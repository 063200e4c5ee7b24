/* SPDX-License-Identifier: MIT */
#include "hash/sum-hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hash/hash.h"

uint64_t dt_sum_hash_seed(const char *name)
{
    return dt_hash(name, strlen(name));
}

void dt_sum_hash_add(struct dt_sum_hash *hash, uint64_t seed, uint64_t first,
                     const uint32_t *values, size_t count)
{
    uint64_t sums[2] = {0};
    for (size_t i = 0; i < count; i++)
        dt_sum_hash_mix(&sums[0], &sums[1], seed, first + i, values[i]);
    dt_sum_hash_merge(hash, &(struct dt_sum_hash){{sums[0], sums[1]}});
}

void dt_sum_hash_add_narrow(struct dt_sum_hash *hash, uint64_t seed, uint64_t first,
                            const uint16_t *values, size_t count)
{
    uint64_t sums[2] = {0};
    for (size_t i = 0; i < count; i++)
        dt_sum_hash_mix(&sums[0], &sums[1], seed, first + i, values[i]);
    dt_sum_hash_merge(hash, &(struct dt_sum_hash){{sums[0], sums[1]}});
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
