/* SPDX-License-Identifier: MIT */
/*
 * Exact sums of many floats, at the speed of memory. A block's terms are doubles without rounding
 * (a square has 48 bits). Adding a term to 1.5 * 2^M rounds it to a multiple of 2^(M - 52), which
 * is split off exactly; the accumulators add such multiples without rounding, as long as their sum
 * is below 2^(M - 1). What remains is below 2^(M - 53): the next level (Demmel and Nguyen 2015).
 */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"
#include "math/exact-sum.h"
#include "math/math.h"

#define BLOCK     2048
#define LANES     16
#define LANE_BITS 7  /* an accumulator adds 2^7 terms of a block */
#define STEP      44 /* bits of a level: 53 - LANE_BITS - 2 */
#define LEVELS    4  /* before a block is added term by term */

#ifdef __AVX512F__
#define WIDTH 8
#elif defined __AVX__
#define WIDTH 4
#else
#define WIDTH 2
#endif
#define VECTORS (LANES / WIDTH)

typedef double doubles __attribute__((vector_size(WIDTH * sizeof(double))));
typedef int64_t integers __attribute__((vector_size(WIDTH * sizeof(int64_t))));

_Static_assert(BLOCK == LANES << LANE_BITS, "terms of an accumulator");

/* The bits of the largest magnitude. */
static int32_t largest_of(const float *x)
{
    int32_t most = 0;
    for (int i = 0; i < BLOCK; i++) {
        int32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= 0x7FFFFFFF;
        most = bits > most ? bits : most;
    }
    return most;
}

/* Adds accumulators that began as 1.5 * 2^level. */
static void add_lanes(struct dt_exact_sum *sum, const doubles lanes[VECTORS], int level)
{
    double start = 1.5 * dt_math_power_of_two(level), units = dt_math_power_of_two(52 - level);
    int64_t total = 0;
    for (int v = 0; v < VECTORS; v++)
        for (int i = 0; i < WIDTH; i++)
            total += (int64_t)((lanes[v][i] - start) * units);
    dt_exact_sum_add_scaled(sum, total, level - 52);
}

/* Adds a block in that number of levels, the first of which is `level`. Returns whether this was
 * all of it; if not, the sum stays. */
__attribute__((always_inline)) static inline bool
add_levels(struct dt_exact_sum *sum, const float *x, bool squares, int level, const int levels)
{
    doubles lanes[LEVELS][VECTORS];
    integers rest = {0};
    for (int l = 0; l < levels; l++)
        for (int v = 0; v < VECTORS; v++)
            lanes[l][v] = (doubles){0} + 1.5 * dt_math_power_of_two(level - l * STEP);
    for (int i = 0; i < BLOCK; i += LANES) {
        __builtin_prefetch(x + BLOCK + i); /* the next block */
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++) {
            doubles term;
#pragma GCC unroll 8
            for (int j = 0; j < WIDTH; j++)
                term[j] = (double)x[i + v * WIDTH + j];
            term = squares ? term * term : term;
#pragma GCC unroll 4
            for (int l = 0; l < levels; l++) {
                doubles next = lanes[l][v] + term;
                term -= next - lanes[l][v];
                lanes[l][v] = next;
            }
            rest |= (integers)term;
        }
    }
    for (int i = 0; i < WIDTH; i++)
        if ((uint64_t)rest[i] << 1 != 0) /* but for the sign of a zero */
            return false;
    for (int l = 0; l < levels; l++)
        add_lanes(sum, lanes[l], level - l * STEP);
    return true;
}

static void add_terms(struct dt_exact_sum *sum, const float *x, bool squares)
{
    for (int i = 0; i < BLOCK; i++)
        if (squares)
            dt_exact_sum_add_square(sum, x[i]);
        else
            dt_exact_sum_add(sum, x[i]);
}

/* Adds BLOCK terms. All are below 2^(exponent + 1); the levels have no bits below those of the
 * smallest square. */
static void add_block(struct dt_exact_sum *sum, const float *x, bool squares)
{
    int32_t largest = largest_of(x);
    int exponent = (largest >> 23) - 127, level = LANE_BITS + 2;
    if (largest == 0)
        return;
    level += squares ? 2 * exponent + 2 : exponent + 1;
    level = level < 52 - 298 + (LEVELS - 1) * STEP ? 52 - 298 + (LEVELS - 1) * STEP : level;
    bool added = largest < 0x7F800000 &&
                 (squares ? add_levels(sum, x, true, level, 2) || add_levels(sum, x, true, level, 4)
                          : add_levels(sum, x, false, level, 2));
    if (!added)
        add_terms(sum, x, squares);
}

/* Adds terms from to below end, the last ones padded with zeros. */
static void add_range(struct dt_exact_sum *sum, const float *x, int64_t from, int64_t end,
                      bool squares)
{
    float padded[BLOCK] = {0};
    for (; from + BLOCK <= end; from += BLOCK) {
        add_block(sum, x + from, squares);
        dt_exact_sum_normalize(sum);
    }
    if (from == end)
        return;
    memcpy(padded, x + from, (size_t)(end - from) * sizeof *x);
    add_block(sum, padded, squares);
    dt_exact_sum_normalize(sum);
}

void dt_cpu_exact_sum(struct dt_device *dev, struct dt_exact_sum *sum, const float *x, int64_t n,
                      bool squares)
{
#pragma omp parallel num_threads(n > BLOCK ? dev->threads : 1)
    {
        struct dt_exact_sum own = {0};
        int64_t from, to;
        dt_cpu_share(n, BLOCK, omp_get_thread_num(), omp_get_num_threads(), &from, &to);
        add_range(&own, x, from, to, squares);
#pragma omp critical
        dt_exact_sum_merge(sum, &own);
    }
}

double dt_cpu_sum_squares(struct dt_device *dev, const float *x, int64_t n)
{
    struct dt_exact_sum sum = {0};
    dt_cpu_exact_sum(dev, &sum, x, n, true);
    return dt_exact_sum_round(&sum);
}
