/* SPDX-License-Identifier: MIT */
#include "dedup/minhash.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "hash/hash.h"
#include "math/rng.h"

#define LANES 16 /* shingles at a time */
#define GROUP 4  /* functions at a time */

typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t signed_lanes __attribute__((vector_size(4 * LANES)));

struct dt_minhash {
    int bands, rows;
    size_t functions; /* bands * rows, rounded up to a multiple of GROUP */
    uint32_t *a, *b;
};

struct dt_minhash *dt_minhash_new(int bands, int rows, uint64_t seed)
{
    struct dt_minhash *m = dt_alloc(1, sizeof *m);
    struct dt_rng rng;
    m->bands = bands;
    m->rows = rows;
    m->functions = ((size_t)(bands * rows) + GROUP - 1) / GROUP * GROUP;
    m->a = dt_alloc(m->functions, sizeof *m->a);
    m->b = dt_alloc(m->functions, sizeof *m->b);
    dt_rng_init(&rng, seed);
    for (size_t i = 0; i < m->functions; i++) {
        m->a[i] = dt_rng_u32(&rng) | 1;
        m->b[i] = dt_rng_u32(&rng);
    }
    return m;
}

void dt_minhash_free(struct dt_minhash *m)
{
    if (m == NULL)
        return;
    free(m->a);
    free(m->b);
    free(m);
}

void dt_minhash_scratch_release(struct dt_minhash_scratch *scratch)
{
    free(scratch->values);
    *scratch = (struct dt_minhash_scratch){0};
}

/* The minima of GROUP functions over count shingles, a multiple of LANES. Compared as signed
 * numbers, for which SSE2 has an instruction; any order serves. */
static inline __attribute__((always_inline)) void
least(const uint32_t *x, size_t count, const uint32_t *a, const uint32_t *b, uint32_t *minimum)
{
    signed_lanes best[GROUP];
    for (int k = 0; k < GROUP; k++)
        best[k] = (signed_lanes){0} + INT32_MAX;
    for (size_t i = 0; i < count; i += LANES) {
        lanes values;
        memcpy(&values, x + i, sizeof values);
        for (int k = 0; k < GROUP; k++) {
            signed_lanes value = (signed_lanes)(values * a[k] + b[k]);
            signed_lanes smaller = value < best[k];
            best[k] = (value & smaller) | (best[k] & ~smaller);
        }
    }
    for (int k = 0; k < GROUP; k++) {
        int32_t one = INT32_MAX;
        for (int i = 0; i < LANES; i++)
            one = best[k][i] < one ? best[k][i] : one;
        minimum[k] = (uint32_t)one;
    }
}

typedef void least_function(const struct dt_minhash *m, const uint32_t *x, size_t count,
                            uint32_t *minima);

static inline __attribute__((always_inline)) void
all_least(const struct dt_minhash *m, const uint32_t *x, size_t count, uint32_t *minima)
{
    for (size_t i = 0; i < m->functions; i += GROUP)
        least(x, count, m->a + i, m->b + i, minima + i);
}

static void least_generic(const struct dt_minhash *m, const uint32_t *x, size_t count,
                          uint32_t *minima)
{
    all_least(m, x, count, minima);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void
least_avx2(const struct dt_minhash *m, const uint32_t *x, size_t count, uint32_t *minima)
{
    all_least(m, x, count, minima);
}

__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw"))) static void
least_avx512(const struct dt_minhash *m, const uint32_t *x, size_t count, uint32_t *minima)
{
    all_least(m, x, count, minima);
}
#endif

/* All give the same result. */
static least_function *choose(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        return least_avx512;
    if (__builtin_cpu_supports("avx2"))
        return least_avx2;
#endif
    return least_generic;
}

/* Whether the set has one element. */
static bool is_single(const uint64_t *shingles, size_t count)
{
    size_t i = 1;
    while (i < count && shingles[i] == *shingles)
        i++;
    return i == count;
}

void dt_minhash_keys(const struct dt_minhash *m, const uint64_t *shingles, size_t count,
                     struct dt_minhash_scratch *scratch, uint64_t *keys)
{
    uint32_t minima[DT_MINHASH_BANDS * DT_MINHASH_ROWS];
    size_t padded = (count + LANES - 1) / LANES * LANES;
    if (is_single(shingles, count)) {
        for (int band = 0; band < m->bands; band++)
            keys[band] = dt_hash_seeded(shingles, sizeof *shingles, (uint64_t)band);
        return;
    }
    if (padded > scratch->capacity) {
        scratch->capacity = padded + padded / 2;
        scratch->values = dt_realloc(scratch->values, scratch->capacity, sizeof(uint32_t));
    }
    for (size_t i = 0; i < padded; i++)
        scratch->values[i] = (uint32_t)(shingles[i < count ? i : count - 1] >> 32);
    choose()(m, scratch->values, padded, minima);
    size_t rows = (size_t)m->rows;
    for (int band = 0; band < m->bands; band++)
        keys[band] =
            dt_hash_seeded(minima + (size_t)band * rows, rows * sizeof *minima, (uint64_t)band);
}

double dt_minhash_probability(int bands, int rows, double similarity)
{
    return 1 - pow(1 - pow(similarity, rows), bands);
}
