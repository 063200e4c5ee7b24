/* SPDX-License-Identifier: MIT */
#include "device/cpu/cpu.h"

#define BLOCK 16384 /* elements of a row that a thread adds at once */

void dt_cpu_hash(struct dt_device *dev, struct dt_sum_hash *hash, const struct dt_tensor *x,
                 uint64_t seed, uint64_t first, uint64_t stride)
{
    int64_t blocks = (x->columns + BLOCK - 1) / BLOCK;
    uint64_t sum = 0, other = 0;
#pragma omp parallel for num_threads(dev->threads) schedule(static) reduction(+ : sum, other)
    for (int64_t b = 0; b < x->rows * blocks; b++) {
        int64_t row = b / blocks, from = b % blocks * BLOCK, left = x->columns - from;
        const uint32_t *bits = (const uint32_t *)x->data + row * x->stride + from;
        uint64_t index = first + (uint64_t)row * stride + (uint64_t)from;
        for (int64_t i = 0; i < (left < BLOCK ? left : BLOCK); i++)
            dt_sum_hash_mix(&sum, &other, seed, index + (uint64_t)i, bits[i]);
    }
    dt_sum_hash_merge(hash, &(struct dt_sum_hash){{sum, other}});
}
