/* SPDX-License-Identifier: MIT */
/* Deterministic sums over many rows: the number of rows alone determines the chunks, a block
 * sums each chunk, and the partial sums are added in order. The result does not depend on the
 * order in which blocks run. */
#ifndef DT_DEVICE_CUDA_PARTIAL_SUMS_H
#define DT_DEVICE_CUDA_PARTIAL_SUMS_H

#include "device/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_cuda_chunks {
    int64_t rows, count; /* rows of each chunk, and the number of chunks */
};

static inline struct dt_cuda_chunks dt_cuda_chunks_of(int64_t rows, int64_t fewest, int64_t most)
{
    int64_t each = (rows + most - 1) / most;
    each = each < fewest ? fewest : each;
    struct dt_cuda_chunks chunks = {each, (rows + each - 1) / each};
    return chunks;
}

/* Outputs of the sums, for two separate parameters: the second may be NULL. */
struct dt_cuda_totals {
    float *of[2];
};

/* totals.of[i][j] += sum over the chunks c of sums[c * width + i * columns + j], j from 0 to
 * below columns. */
void dt_cuda_add_chunks(struct dt_device *dev, struct dt_cuda_totals totals, const float *sums,
                        int64_t chunks, int64_t width, int64_t columns);

#ifdef __cplusplus
}
#endif
#endif
