/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/reduction.cuh"
#include "device/cuda/row-team.cuh"

namespace
{
struct forward {
    struct dt_cuda_summed in;
    struct dt_cuda_view y, weight, bias;
    float *stats;
    int64_t stats_stride, rows;
    float epsilon;
};
} // namespace

template <int TYPE, int PARTS>
static __global__ void __launch_bounds__(dt_cuda_team_threads) norm(struct forward f)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t row = dt_cuda_team_row(), n = row < f.rows ? f.weight.columns : 0;
    float v[PARTS][group] = {}, w[group], sum = 0, squares = 0;
    struct dt_cuda_summands<TYPE> of[PARTS] = {
    };
#pragma unroll
    for (int part = 0; part < PARTS; part++)
        if (dt_cuda_part<TYPE>(part) < n)
            of[part] = dt_cuda_fetch_summed<TYPE>(f.in, row, dt_cuda_part<TYPE>(part));
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        int64_t column = dt_cuda_part<TYPE>(part);
        if (column >= n)
            continue;
        dt_cuda_unpack_summed<TYPE>(f.in, row, column, of[part], v[part]);
#pragma unroll
        for (int i = 0; i < group; i++)
            sum += v[part][i]; /* 0 past the end */
    }
    float mean = dt_cuda_team_sum_of(sum) / (float)n;
#pragma unroll
    for (int part = 0; part < PARTS; part++)
#pragma unroll
        for (int i = 0; i < group; i++)
            if (dt_cuda_part<TYPE>(part) + i < n)
                squares += (v[part][i] - mean) * (v[part][i] - mean);
    float rstd = 1.0f / sqrtf(dt_cuda_team_sum_of(squares) / (float)n + f.epsilon);
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        int64_t column = dt_cuda_part<TYPE>(part);
        float b[group];
        if (column >= n)
            continue;
        auto of_weight = dt_cuda_fetch<TYPE>(f.weight, 0, column);
        auto of_bias = dt_cuda_fetch<TYPE>(f.bias, 0, column);
        dt_cuda_unpack(of_weight, w);
        dt_cuda_unpack(of_bias, b);
#pragma unroll
        for (int i = 0; i < group; i++)
            v[part][i] = (v[part][i] - mean) * rstd * w[i] + b[i];
        dt_cuda_store<TYPE>(f.y, row, column, v[part]);
    }
    if (threadIdx.x == 0 && row < f.rows) {
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
                              x->rows,
                              epsilon};
    dt_cuda_for_type(dt_cuda_type_of({y, sum, x, add, weight, bias}), [&](auto type) {
        dt_cuda_for_team<type.value>(dev, n, [&](auto parts, dim3 block) {
            dt_cuda_launch(dt_cuda_of(dev)->stream, dt_cuda_team_grid(x->rows, block), block, 0,
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
    float *sums; /* per chunk: n of dweight, then n of dbias */
};
} // namespace

/* With g = dy * weight and xhat = (x - mean) * rstd:
 *     dx += rstd * (g - mean(g) - xhat * mean(g * xhat)), dweight += dy * xhat, dbias += dy */
template <int TYPE, int PARTS>
static __global__ void __launch_bounds__(dt_cuda_team_threads) norm_backward(struct backward b)
{
    constexpr int group = dt_cuda_group<TYPE>;
    DT_DYNAMIC_SHARED(float, memory);
    int64_t n = b.dy.columns, first = blockIdx.x * b.chunk_rows, end = first + b.chunk_rows;
    float w[group], dweight[PARTS][group] = {}, dbias[PARTS][group] = {};
    end = end < b.rows ? end : b.rows;
    for (; first < end; first += blockDim.y) {
        int64_t row = first + threadIdx.y;
        bool exists = row < end;
        float mean = exists ? b.stats[row * b.stats_stride] : 0;
        float rstd = exists ? b.stats[row * b.stats_stride + 1] : 0;
        float dy[PARTS][group] = {}, xhat[PARTS][group] = {}, sums[2] = {0, 0};
        dt_cuda_fetched<TYPE> of_dsum[PARTS]; /* in flight during the reduction */
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            int64_t column = dt_cuda_part<TYPE>(part);
            if (column >= n || !exists)
                continue;
            auto of_dy = dt_cuda_fetch<TYPE>(b.dy, row, column);
            auto of_sum = dt_cuda_fetch<TYPE>(b.sum, row, column);
            auto of_weight = dt_cuda_fetch<TYPE>(b.weight, 0, column);
            of_dsum[part] = dt_cuda_fetch<TYPE>(b.dsum, row, column);
            dt_cuda_unpack(of_dy, dy[part]);
            dt_cuda_unpack(of_sum, xhat[part]);
            dt_cuda_unpack(of_weight, w);
#pragma unroll
            for (int i = 0; i < group; i++) { /* dy is 0 past the end */
                xhat[part][i] = (xhat[part][i] - mean) * rstd;
                dweight[part][i] += dy[part][i] * xhat[part][i];
                dbias[part][i] += dy[part][i];
                dy[part][i] *= w[i]; /* g */
                sums[0] += dy[part][i];
                sums[1] += dy[part][i] * xhat[part][i];
            }
        }
        dt_cuda_team_sum(sums);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            int64_t column = dt_cuda_part<TYPE>(part);
            if (column >= n || !exists)
                continue;
            float dx[group];
            dt_cuda_unpack(of_dsum[part], dx);
#pragma unroll
            for (int i = 0; i < group; i++)
                dx[i] += rstd *
                         (dy[part][i] - sums[0] / (float)n - xhat[part][i] * (sums[1] / (float)n));
            dt_cuda_store<TYPE>(b.dsum, row, column, dx);
        }
    }
    float *sums = b.sums + (int64_t)blockIdx.x * 2 * n;
    dt_cuda_add_teams<TYPE>(sums, n, dweight, memory);
    dt_cuda_add_teams<TYPE>(sums + n, n, dbias, memory);
}

void dt_cuda_norm_backward(struct dt_device *dev, struct dt_tensor *dsum, struct dt_tensor *dweight,
                           struct dt_tensor *dbias, const struct dt_tensor *dy,
                           const struct dt_tensor *sum, const struct dt_tensor *weight,
                           const struct dt_tensor *stats, int row_parts)
{
    (void)row_parts;
    int64_t n = dy->columns;
    assert(dsum->columns == n && sum->columns == n && dweight->columns == n);
    if (dy->rows == 0)
        return;
    struct backward b = {dt_cuda_view_of(dsum),
                         dt_cuda_view_of(dy),
                         dt_cuda_view_of(sum),
                         dt_cuda_view_of(weight),
                         static_cast<const float *>(stats->data),
                         stats->stride,
                         dy->rows,
                         0,
                         nullptr};
    const struct dt_cuda_totals totals = {
        {static_cast<float *>(dweight->data), static_cast<float *>(dbias->data)}};
    dt_cuda_for_type(dt_cuda_type_of({dsum, dy, sum, weight}), [&](auto type) {
        dt_cuda_for_team<type.value>(dev, n, [&](auto parts, dim3 block) {
            struct dt_cuda_chunks chunks = dt_cuda_team_chunks(b.rows, block);
            b.chunk_rows = chunks.rows;
            b.sums = static_cast<float *>(
                dt_cuda_scratch(dev, (size_t)(chunks.count * 2 * n) * sizeof(float)));
            if (b.sums == nullptr)
                return;
            dt_cuda_launch(dt_cuda_of(dev)->stream, dim3((unsigned)chunks.count), block,
                           dt_cuda_team_sums_bytes<type.value>(block),
                           norm_backward<type.value, parts.value>, b);
            dt_cuda_add_chunks(dev, totals, b.sums, chunks.count, 2 * n, n);
        });
    });
}
