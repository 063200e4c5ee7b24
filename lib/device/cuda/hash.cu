/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/elements.cuh"
#include "device/cuda/reduction.cuh"

constexpr int hash_threads = 256;
constexpr int64_t most_blocks = 1024, fewest_elements = 4096; /* of a block */

struct hash_input {
    const uint32_t *bits;
    int64_t rows, columns, pitch;
    uint64_t seed, first, stride;
};

/* Each block adds its elements, and stores both sums. */
static __global__ void __launch_bounds__(hash_threads)
    hash_elements(uint64_t *sums, struct hash_input x)
{
    uint64_t own[2] = {};
    int64_t count = x.rows * x.columns, step = (int64_t)gridDim.x * hash_threads;
    for (int64_t i = (int64_t)blockIdx.x * hash_threads + threadIdx.x; i < count; i += step) {
        int64_t row = x.rows == 1 ? 0 : i / x.columns, column = i - row * x.columns;
        dt_sum_hash_mix(&own[0], &own[1], x.seed,
                        x.first + (uint64_t)row * x.stride + (uint64_t)column,
                        x.bits[row * x.pitch + column]);
    }
    dt_cuda_team_sum(own);
    if (threadIdx.x == 0) {
        sums[2 * blockIdx.x] = own[0];
        sums[2 * blockIdx.x + 1] = own[1];
    }
}

void dt_cuda_hash(struct dt_device *dev, struct dt_sum_hash *hash, const struct dt_tensor *x,
                  uint64_t seed, uint64_t first, uint64_t stride)
{
    int64_t count = x->rows * x->columns, blocks = (count + fewest_elements - 1) / fewest_elements;
    struct dt_sum_hash sums[most_blocks];
    blocks = blocks < most_blocks ? blocks : most_blocks;
    size_t bytes = (size_t)blocks * sizeof *sums;
    assert(x->dtype == DT_DTYPE_F32);
    uint64_t *there = static_cast<uint64_t *>(dt_cuda_scratch(dev, bytes));
    if (there == nullptr || count == 0)
        return;
    dt_cuda_launch(dt_cuda_of(dev)->stream, dim3((unsigned)blocks), dim3(hash_threads), 0,
                   hash_elements, there,
                   hash_input{static_cast<const uint32_t *>(x->data), x->rows, x->columns,
                              x->stride, seed, first, stride});
    dt_cuda_download(dev, sums, there, bytes);
    for (int64_t i = 0; i < blocks; i++)
        dt_sum_hash_merge(hash, &sums[i]);
}
