/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/reduction.cuh"
#include "device/cuda/row-team.cuh"

namespace
{
struct forward {
    struct dt_cuda_summed in;
    struct dt_cuda_view y, weight;
    float *rstd;
    int64_t rstd_stride, norms; /* of all rows */
    float weight_offset, epsilon;
    unsigned groups; /* norms of a row */
};
} // namespace

/* The view of a row, up to the end of its group. */
static __device__ __forceinline__ struct dt_cuda_view up_to(struct dt_cuda_view x, int64_t end)
{
    x.columns = end;
    return x;
}

static __device__ __forceinline__ struct dt_cuda_summed up_to(struct dt_cuda_summed s, int64_t end)
{
    s.x.columns = s.add.columns = s.sum.columns = end;
    return s;
}

template <int TYPE, int PARTS>
static __global__ void __launch_bounds__(dt_cuda_team_threads) rms_norm(struct forward f)
{
    constexpr int group = dt_cuda_group<TYPE>;
    unsigned norm = (unsigned)dt_cuda_team_row(), number = norm % f.groups;
    int64_t row = norm / f.groups, n = norm < f.norms ? f.weight.columns : 0;
    int64_t begin = number * n, end = begin + n;
    float v[PARTS][group] = {}, w[group], squares = 0;
    struct dt_cuda_summed in = up_to(f.in, end);
    struct dt_cuda_summands<TYPE> of[PARTS] = {
    };
#pragma unroll
    for (int part = 0; part < PARTS; part++)
        if (dt_cuda_part<TYPE>(part) < n)
            of[part] = dt_cuda_fetch_summed<TYPE>(in, row, begin + dt_cuda_part<TYPE>(part));
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        int64_t column = dt_cuda_part<TYPE>(part);
        if (column >= n)
            continue;
        dt_cuda_unpack_summed<TYPE>(in, row, begin + column, of[part], v[part]);
#pragma unroll
        for (int i = 0; i < group; i++)
            squares += v[part][i] * v[part][i]; /* 0 past the end */
    }
    float rstd = 1.0f / sqrtf(dt_cuda_team_sum_of(squares) / (float)n + f.epsilon);
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        int64_t column = dt_cuda_part<TYPE>(part);
        if (column >= n)
            continue;
        dt_cuda_load<TYPE>(f.weight, 0, column, w);
#pragma unroll
        for (int i = 0; i < group; i++)
            v[part][i] *= rstd * (f.weight_offset + w[i]);
        dt_cuda_store<TYPE>(up_to(f.y, end), row, begin + column, v[part]);
    }
    if (threadIdx.x == 0 && norm < f.norms)
        f.rstd[row * f.rstd_stride + number] = rstd;
}

/* A view whose vector accesses do not cross the start of a norm within a row. */
static struct dt_cuda_view view_of_groups(const struct dt_tensor *x, int64_t n)
{
    struct dt_cuda_view view = dt_cuda_view_of(x);
    view.aligned = view.aligned && (n % 8 == 0 || n == x->columns);
    return view;
}

void dt_cuda_rms_norm_forward(struct dt_device *dev, struct dt_tensor *y, struct dt_tensor *rstd,
                              struct dt_tensor *sum, const struct dt_tensor *x,
                              const struct dt_tensor *add, const struct dt_tensor *weight,
                              float weight_offset, float epsilon)
{
    int64_t n = weight->columns, groups = x->columns / n;
    assert(groups * n == x->columns && rstd->columns == groups);
    assert(y->columns == x->columns && sum->columns == x->columns);
    auto view_of = [&](const struct dt_tensor *t) { return view_of_groups(t, n); };
    const struct forward f = {dt_cuda_summed_of(x, add, sum, view_of),
                              view_of(y),
                              dt_cuda_view_of(weight),
                              static_cast<float *>(rstd->data),
                              rstd->stride,
                              x->rows * groups,
                              weight_offset,
                              epsilon,
                              (unsigned)groups};
    dt_cuda_for_type(dt_cuda_type_of({y, sum, x, add, weight}), [&](auto type) {
        dt_cuda_for_team<type.value>(dev, n, [&](auto parts, dim3 block) {
            dt_cuda_launch(dt_cuda_of(dev)->stream, dt_cuda_team_grid(f.norms, block), block, 0,
                           rms_norm<type.value, parts.value>, f);
        });
    });
}

namespace
{
struct backward {
    struct dt_cuda_view dsum, dy, sum, weight;
    const float *rstd;
    int64_t rstd_stride, norms, chunk_norms; /* in all rows, and per block */
    float weight_offset;
    unsigned groups;
    float *sums; /* of dweight, per chunk */
};
} // namespace

/* With g = dy * (offset + weight) and xhat = x * rstd:
 *     dx += rstd * (g - xhat * mean(g * xhat)), dweight += dy * xhat */
template <int TYPE, int PARTS>
static __global__ void __launch_bounds__(dt_cuda_team_threads) rms_norm_backward(struct backward b)
{
    constexpr int group = dt_cuda_group<TYPE>;
    DT_DYNAMIC_SHARED(float, memory);
    int64_t n = b.weight.columns, first = blockIdx.x * b.chunk_norms, last = first + b.chunk_norms;
    float w[group], dweight[PARTS][group] = {};
    last = last < b.norms ? last : b.norms;
    for (; first < last; first += blockDim.y) {
        int64_t norm = first + threadIdx.y;
        bool exists = norm < last;
        int64_t row = norm / b.groups, number = norm % b.groups, begin = number * n;
        int64_t end = begin + n;
        float rstd = exists ? b.rstd[row * b.rstd_stride + number] : 0;
        float dy[PARTS][group] = {}, xhat[PARTS][group] = {}, sum = 0;
        dt_cuda_fetched<TYPE> of_dsum[PARTS]; /* in flight during the reduction */
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            int64_t column = dt_cuda_part<TYPE>(part);
            if (column >= n || !exists)
                continue;
            auto of_dy = dt_cuda_fetch<TYPE>(up_to(b.dy, end), row, begin + column);
            auto of_sum = dt_cuda_fetch<TYPE>(up_to(b.sum, end), row, begin + column);
            auto of_weight = dt_cuda_fetch<TYPE>(b.weight, 0, column);
            of_dsum[part] = dt_cuda_fetch<TYPE>(up_to(b.dsum, end), row, begin + column);
            dt_cuda_unpack(of_dy, dy[part]);
            dt_cuda_unpack(of_sum, xhat[part]);
            dt_cuda_unpack(of_weight, w);
#pragma unroll
            for (int i = 0; i < group; i++) {
                xhat[part][i] *= rstd;
                dweight[part][i] += dy[part][i] * xhat[part][i];
                dy[part][i] *= b.weight_offset + w[i]; /* g */
                sum += dy[part][i] * xhat[part][i];
            }
        }
        float mean = dt_cuda_team_sum_of(sum) / (float)n;
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            int64_t column = dt_cuda_part<TYPE>(part);
            if (column >= n || !exists)
                continue;
            float dx[group];
            dt_cuda_unpack(of_dsum[part], dx);
#pragma unroll
            for (int i = 0; i < group; i++)
                dx[i] += rstd * (dy[part][i] - xhat[part][i] * mean);
            dt_cuda_store<TYPE>(up_to(b.dsum, end), row, begin + column, dx);
        }
    }
    dt_cuda_add_teams<TYPE>(b.sums + (int64_t)blockIdx.x * n, n, dweight, memory);
}

void dt_cuda_rms_norm_backward(struct dt_device *dev, struct dt_tensor *dsum,
                               struct dt_tensor *dweight, const struct dt_tensor *dy,
                               const struct dt_tensor *sum, const struct dt_tensor *weight,
                               float weight_offset, const struct dt_tensor *rstd, int row_parts)
{
    (void)row_parts;
    int64_t n = weight->columns, groups = dy->columns / n, norms = dy->rows * groups;
    assert(dy->columns == n * rstd->columns && dweight->columns == n);
    assert(dsum->columns == dy->columns && sum->columns == dy->columns);
    if (norms == 0)
        return;
    struct backward b = {view_of_groups(dsum, n),
                         view_of_groups(dy, n),
                         view_of_groups(sum, n),
                         dt_cuda_view_of(weight),
                         static_cast<const float *>(rstd->data),
                         rstd->stride,
                         norms,
                         0,
                         weight_offset,
                         (unsigned)groups,
                         nullptr};
    dt_cuda_for_type(dt_cuda_type_of({dsum, dy, sum, weight}), [&](auto type) {
        dt_cuda_for_team<type.value>(dev, n, [&](auto parts, dim3 block) {
            struct dt_cuda_chunks chunks = dt_cuda_team_chunks(norms, block);
            b.chunk_norms = chunks.rows;
            b.sums = static_cast<float *>(
                dt_cuda_scratch(dev, (size_t)(chunks.count * n) * sizeof(float)));
            if (b.sums == nullptr)
                return;
            dt_cuda_launch(dt_cuda_of(dev)->stream, dim3((unsigned)chunks.count), block,
                           dt_cuda_team_sums_bytes<type.value>(block),
                           rms_norm_backward<type.value, parts.value>, b);
            dt_cuda_add_chunks(dev, {{static_cast<float *>(dweight->data)}}, b.sums, chunks.count,
                               n, n);
        });
    });
}
