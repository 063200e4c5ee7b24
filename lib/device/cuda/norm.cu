/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/partial-sums.h"
#include "device/cuda/reduction.cuh"
#include "device/cuda/row-team.cuh"

namespace
{
struct forward {
    struct dt_cuda_summed in;
    struct dt_cuda_view y, weight, bias;
    float *stats;
    int64_t stats_stride;
    float epsilon;
};
} // namespace

template <int TYPE, int PARTS>
static __global__ void __launch_bounds__(dt_cuda_team_threads) norm(struct forward f)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t row = blockIdx.x, n = f.weight.columns;
    float v[PARTS][group] = {}, w[group], sum = 0, squares = 0;
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        int64_t column = dt_cuda_part<TYPE>(part);
        if (column >= n)
            continue;
        dt_cuda_load_summed<TYPE>(f.in, row, column, v[part]);
#pragma unroll
        for (int i = 0; i < group; i++)
            sum += v[part][i]; /* 0 behind the end */
    }
    float mean = dt_cuda_block_sum_of(sum) / (float)n;
#pragma unroll
    for (int part = 0; part < PARTS; part++)
#pragma unroll
        for (int i = 0; i < group; i++)
            if (dt_cuda_part<TYPE>(part) + i < n)
                squares += (v[part][i] - mean) * (v[part][i] - mean);
    float rstd = 1.0f / sqrtf(dt_cuda_block_sum_of(squares) / (float)n + f.epsilon);
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        int64_t column = dt_cuda_part<TYPE>(part);
        float b[group];
        if (column >= n)
            continue;
        dt_cuda_load<TYPE>(f.weight, 0, column, w);
        dt_cuda_load<TYPE>(f.bias, 0, column, b);
#pragma unroll
        for (int i = 0; i < group; i++)
            v[part][i] = (v[part][i] - mean) * rstd * w[i] + b[i];
        dt_cuda_store<TYPE>(f.y, row, column, v[part]);
    }
    if (threadIdx.x == 0) {
        f.stats[row * f.stats_stride] = mean;
        f.stats[row * f.stats_stride + 1] = rstd;
    }
}

void dt_cuda_norm_forward(struct dt_device *dev, struct dt_tensor *y, struct dt_tensor *stats,
                          struct dt_tensor *sum, const struct dt_tensor *x,
                          const struct dt_tensor *add, const struct dt_tensor *weight,
                          const struct dt_tensor *bias, float epsilon)
{
    int64_t n = x->columns;
    assert(y->columns == n && sum->columns == n && weight->columns == n && stats->columns == 2);
    const struct forward f = {dt_cuda_summed_of(x, add, sum, dt_cuda_view_of),
                              dt_cuda_view_of(y),
                              dt_cuda_view_of(weight),
                              dt_cuda_view_of(bias),
                              static_cast<float *>(stats->data),
                              stats->stride,
                              epsilon};
    dt_cuda_for_type(dt_cuda_type_of({y, sum, x, add, weight, bias}), [&](auto type) {
        dt_cuda_for_team<type.value>(dev, n, [&](auto parts, dim3 block) {
            dt_cuda_launch(dt_cuda_of(dev)->stream, dim3((unsigned)x->rows), block, 0,
                           norm<type.value, parts.value>, f);
        });
    });
}

namespace
{
struct backward {
    struct dt_cuda_view dsum, dy, sum, weight;
    const float *stats;
    int64_t stats_stride, rows, chunk_rows;
    float *sums; /* of each chunk: n of dweight, then n of dbias */
};
} // namespace

/* With g = dy * weight and xhat = (x - mean) * rstd:
 *     dx += rstd * (g - mean(g) - xhat * mean(g * xhat)), dweight += dy * xhat, dbias += dy */
template <int TYPE, int PARTS>
static __global__ void __launch_bounds__(dt_cuda_team_threads) norm_backward(struct backward b)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t n = b.dy.columns, first = blockIdx.x * b.chunk_rows, end = first + b.chunk_rows;
    float w[group], dweight[PARTS][group] = {}, dbias[PARTS][group] = {};
    end = end < b.rows ? end : b.rows;
    for (int64_t row = first; row < end; row++) {
        float mean = b.stats[row * b.stats_stride], rstd = b.stats[row * b.stats_stride + 1];
        float dy[PARTS][group] = {}, xhat[PARTS][group] = {}, sums[2] = {0, 0};
        float dx[PARTS][group]; /* on its way while the block adds up */
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            int64_t column = dt_cuda_part<TYPE>(part);
            if (column >= n)
                continue;
            dt_cuda_load<TYPE>(b.dy, row, column, dy[part]);
            dt_cuda_load<TYPE>(b.sum, row, column, xhat[part]);
            dt_cuda_load<TYPE>(b.dsum, row, column, dx[part]);
            dt_cuda_load<TYPE>(b.weight, 0, column, w);
#pragma unroll
            for (int i = 0; i < group; i++) { /* dy is 0 behind the end */
                xhat[part][i] = (xhat[part][i] - mean) * rstd;
                dweight[part][i] += dy[part][i] * xhat[part][i];
                dbias[part][i] += dy[part][i];
                dy[part][i] *= w[i]; /* g */
                sums[0] += dy[part][i];
                sums[1] += dy[part][i] * xhat[part][i];
            }
        }
        dt_cuda_block_sum(sums);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            int64_t column = dt_cuda_part<TYPE>(part);
            if (column >= n)
                continue;
#pragma unroll
            for (int i = 0; i < group; i++)
                dx[part][i] += rstd * (dy[part][i] - sums[0] / (float)n -
                                       xhat[part][i] * (sums[1] / (float)n));
            dt_cuda_store<TYPE>(b.dsum, row, column, dx[part]);
        }
    }
    float *sums = b.sums + (int64_t)blockIdx.x * 2 * n;
#pragma unroll
    for (int part = 0; part < PARTS; part++)
#pragma unroll
        for (int i = 0; i < group; i++) {
            int64_t column = dt_cuda_part<TYPE>(part) + i;
            if (column < n) {
                sums[column] = dweight[part][i];
                sums[n + column] = dbias[part][i];
            }
        }
}

void dt_cuda_norm_backward(struct dt_device *dev, struct dt_tensor *dsum, struct dt_tensor *dweight,
                           struct dt_tensor *dbias, const struct dt_tensor *dy,
                           const struct dt_tensor *sum, const struct dt_tensor *weight,
                           const struct dt_tensor *stats)
{
    int64_t n = dy->columns;
    assert(dsum->columns == n && sum->columns == n && dweight->columns == n);
    struct dt_cuda_chunks chunks = dt_cuda_chunks_of(dy->rows, 8, DT_CUDA_NORM_CHUNKS);
    float *sums =
        static_cast<float *>(dt_cuda_scratch(dev, (size_t)(chunks.count * 2 * n) * sizeof(float)));
    if (sums == nullptr || chunks.count == 0)
        return;
    const struct backward b = {dt_cuda_view_of(dsum),
                               dt_cuda_view_of(dy),
                               dt_cuda_view_of(sum),
                               dt_cuda_view_of(weight),
                               static_cast<const float *>(stats->data),
                               stats->stride,
                               dy->rows,
                               chunks.rows,
                               sums};
    dt_cuda_for_type(dt_cuda_type_of({dsum, dy, sum, weight}), [&](auto type) {
        dt_cuda_for_team<type.value>(dev, n, [&](auto parts, dim3 block) {
            dt_cuda_launch(dt_cuda_of(dev)->stream, dim3((unsigned)chunks.count), block, 0,
                           norm_backward<type.value, parts.value>, b);
        });
    });
    dt_cuda_add_chunks(dev, static_cast<float *>(dweight->data), sums, chunks.count, 2 * n, n);
    dt_cuda_add_chunks(dev, static_cast<float *>(dbias->data), sums + n, chunks.count, 2 * n, n);
}
