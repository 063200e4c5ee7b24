/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cpu/cpu.h"

/* Magnitudes compare as their bits do; NaNs are the largest. */
static uint32_t magnitude(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & INT32_MAX;
}

/* The magnitude of the k-th largest of n numbers, by radix select: a histogram of the next byte of
 * those with the same leading bytes. *k becomes the number of equal ones among the k largest. */
static uint32_t find_magnitude(struct dt_device *dev, const float *x, int64_t n, int64_t *k)
{
    uint32_t bits = 0, known = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        int64_t counts[256] = {0};
        uint32_t byte = 255;
#pragma omp parallel for num_threads(dev->threads) schedule(static) reduction(+ : counts)
        for (int64_t i = 0; i < n; i++)
            if ((magnitude(x[i]) & known) == bits)
                counts[magnitude(x[i]) >> shift & 255]++;
        for (; counts[byte] < *k; byte--)
            *k -= counts[byte];
        bits |= byte << shift;
        known |= 255u << shift;
    }
    return bits;
}

void dt_cpu_take_largest(struct dt_device *dev, float *x, int64_t n, int64_t k, int32_t *indices,
                         float *values)
{
    assert(k > 0 && k <= n && n <= INT32_MAX);
    int64_t equal = k, taken = 0;
    uint32_t least = find_magnitude(dev, x, n, &equal);
    for (int64_t i = 0; i < n && taken < k; i++) {
        uint32_t size = magnitude(x[i]);
        if (size < least || (size == least && equal-- <= 0))
            continue;
        indices[taken] = (int32_t)i;
        values[taken++] = x[i];
        x[i] = 0;
    }
}
