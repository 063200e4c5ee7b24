/* SPDX-License-Identifier: MIT */
/* Deterministic sums: the shape alone determines their order. */
#include <assert.h>

#include "device/cuda/elements.cuh"
#include "device/cuda/partial-sums.h"

constexpr int columns_of_block = 32; /* in the sum of chunks */
constexpr int chunk_lines = 32;      /* chunks that a block sums in parallel */
constexpr int lines = 16;            /* rows that a block sums in parallel */

/* --- sums of chunks --------------------------------------------------------------------------- */
static __global__ void __launch_bounds__(columns_of_block *chunk_lines)
    add_chunks(struct dt_cuda_totals totals, const float *sums, int64_t chunks, int64_t width,
               int64_t columns)
{
    DT_SHARED(float, part, chunk_lines *columns_of_block);
    int64_t column = (int64_t)blockIdx.x * columns_of_block + threadIdx.x;
    float sum = 0;
    sums += blockIdx.y * columns;
    if (column < columns)
#pragma unroll 8 /* loads in flight */
        for (int64_t chunk = threadIdx.y; chunk < chunks; chunk += chunk_lines)
            sum += sums[chunk * width + column];
    part[threadIdx.y * columns_of_block + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || column >= columns)
        return;
    for (int line = 1; line < chunk_lines; line++)
        sum += part[line * columns_of_block + threadIdx.x];
    (blockIdx.y ? totals.of[1] : totals.of[0])[column] += sum;
}

void dt_cuda_add_chunks(struct dt_device *dev, struct dt_cuda_totals totals, const float *sums,
                        int64_t chunks, int64_t width, int64_t columns)
{
    dim3 grid((unsigned)((columns + columns_of_block - 1) / columns_of_block),
              totals.of[1] ? 2 : 1);
    dt_cuda_launch(dt_cuda_of(dev)->stream, grid, dim3(columns_of_block, chunk_lines), 0,
                   add_chunks, totals, sums, chunks, width, columns);
}

/* --- bias ------------------------------------------------------------------------------------- */
/* A warp sums 32 groups of columns, over every lines-th row of the chunk. */
template <int TYPE>
static __global__ void __launch_bounds__(32 * lines)
    sum_columns(float *sums, struct dt_cuda_view dy, int64_t rows, int64_t chunk_rows)
{
    constexpr int group = dt_cuda_group<TYPE>;
    DT_SHARED(float, part, lines * 32 * group);
    int64_t column = ((int64_t)blockIdx.x * 32 + threadIdx.x) * group;
    int64_t first = blockIdx.y * chunk_rows, end = first + chunk_rows;
    float sum[group] = {};
    end = end < rows ? end : rows;
    if (column < dy.columns)
        dt_cuda_sum_rows<TYPE>(sum, dy, column, first + threadIdx.y, end, lines);
#pragma unroll
    for (int i = 0; i < group; i++)
        part[(threadIdx.y * group + i) * 32 + threadIdx.x] = sum[i];
    __syncthreads();
    for (int i = threadIdx.y; i < group; i += lines)
        if (column + i < dy.columns) {
            float total = 0;
            for (int line = 0; line < lines; line++)
                total += part[(line * group + i) * 32 + threadIdx.x];
            sums[blockIdx.y * dy.columns + column + i] = total;
        }
}

void dt_cuda_bias_backward(struct dt_device *dev, struct dt_tensor *dbias,
                           const struct dt_tensor *dy, int row_parts)
{
    (void)row_parts;
    int64_t n = dy->columns;
    assert(dbias->columns == n && dbias->dtype == DT_DTYPE_F32);
    struct dt_cuda_chunks chunks = dt_cuda_chunks_of(dy->rows, 128, 256);
    float *sums =
        static_cast<float *>(dt_cuda_scratch(dev, (size_t)(chunks.count * n) * sizeof(float)));
    if (sums == nullptr || chunks.count == 0)
        return;
    dt_cuda_for_type((int)dy->dtype, [&](auto type) {
        constexpr int columns = 32 * dt_cuda_group<type.value>;
        dim3 grid((unsigned)((n + columns - 1) / columns), (unsigned)chunks.count);
        dt_cuda_launch(dt_cuda_of(dev)->stream, grid, dim3(32, lines), 0, sum_columns<type.value>,
                       sums, dt_cuda_view_of(dy), dy->rows, chunks.rows);
    });
    dt_cuda_add_chunks(dev, {{static_cast<float *>(dbias->data)}}, sums, chunks.count, n, n);
}
