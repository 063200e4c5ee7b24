/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <limits.h>

#include "device/cuda/elements.cuh"
#include "device/cuda/functions.cuh"
#include "device/cuda/reduction.cuh"
#include "device/logit-map.h"

constexpr int most_threads = 512;
constexpr int blocks = 2;        /* per multiprocessor, three loads in flight per thread */
constexpr size_t besides = 2048; /* bytes of shared memory of a block in addition to a row */

namespace
{
/* State of one pass over logits (online softmax, Milakov and Gimelshein 2018): the maximum and
 * its first index, the sum of e^(x - maximum), and the sum of x. */
struct found {
    float most, exp_sum, sum;
    int first;
};
} // namespace

/* A row cached in shared memory, as row 0 of a tensor: all its loads are in flight at once, and
 * the gradient pass does not read global memory again. Each thread reads only groups that it has
 * copied itself, so no barrier is needed. It is valid for the lifetime of the block. */
template <int TYPE, bool KEPT>
static __device__ __forceinline__ struct dt_cuda_view view_of_row(const struct dt_cuda_view &x,
                                                                  int64_t row)
{
    struct dt_cuda_view one = x;
    int64_t size = TYPE == DT_DTYPE_F32 ? 4 : 2, bytes = x.columns * size;
    char *from = static_cast<char *>(x.data) + row * x.stride * (x.dtype == DT_DTYPE_F32 ? 4 : 2);
    one.data = from;
    if constexpr (KEPT) {
        DT_DYNAMIC_SHARED(char, kept);
        for (int64_t at = threadIdx.x * 16; at < bytes; at += blockDim.x * 16)
            dt_copy_async(kept + at, from + at, (int)(bytes - at < 16 ? bytes - at : 16));
        dt_commit_copies();
        dt_wait_copies<0>();
        one.data = kept;
    }
    return one;
}

/* The logits of a group of x. */
template <int TYPE>
static __device__ __forceinline__ void logits_of(float (&logits)[dt_cuda_group<TYPE>],
                                                 const dt_cuda_fetched<TYPE> &words,
                                                 struct dt_logit_map map)
{
    dt_cuda_unpack(words, logits);
    if (dt_logit_map_is_identity(map))
        return;
#pragma unroll
    for (float &x : logits)
        x = dt_logit_map_value(map, x);
}

/* What powers are relative to: with none but NaN so far, and in an empty part, any finite number.
 */
static __device__ __forceinline__ float zero_of(float most)
{
    return most == -INFINITY ? 0.0f : most;
}

template <int TYPE>
static __device__ __forceinline__ void look_at(struct found *f, const struct dt_cuda_view &x,
                                               int64_t column, const dt_cuda_fetched<TYPE> &words,
                                               struct dt_logit_map map)
{
    constexpr int group = dt_cuda_group<TYPE>;
    float v[group], most = f->most;
    logits_of<TYPE>(v, words, map);
#pragma unroll
    for (int i = 0; i < group; i++)
        if (column + i < x.columns) {
            if (v[i] > most) {
                most = v[i];
                f->first = (int)column + i;
            }
            f->sum += v[i];
        } else {
            v[i] = -INFINITY;
        }
    const float zero = zero_of(most);
    f->exp_sum *= __expf(f->most - zero);
    f->most = most;
#pragma unroll
    for (int i = 0; i < group; i++)
        f->exp_sum += __expf(v[i] - zero);
}

/* Reduces over all threads of the block. */
static __device__ __forceinline__ void join(struct found *f)
{
    float own = f->most, sums[2];
    f->most = dt_cuda_block_join(own, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
    f->first = dt_cuda_block_join(own == f->most ? f->first : INT_MAX, INT_MAX,
                                  [](int a, int b) { return a < b ? a : b; });
    sums[0] = own == -INFINITY ? f->exp_sum : f->exp_sum * __expf(own - f->most); /* 0 or NaN */
    sums[1] = f->sum;
    dt_cuda_team_sum(sums);
    f->exp_sum = sums[0];
    f->sum = sums[1];
}

/* Groups of a row that a thread has in flight: those at column, column + step, ... */
template <int TYPE> struct several {
    static constexpr int count = 3;
    dt_cuda_fetched<TYPE> words[count];

    __device__ __forceinline__ several(const struct dt_cuda_view &x, int64_t column, int64_t step)
    {
#pragma unroll
        for (int k = 0; k < count; k++)
            if (column + k * step < x.columns)
                words[k] = dt_cuda_fetch<TYPE>(x, 0, column + k * step);
    }
};

/* Row 0 of dx, from row 0 of x, which may be the same. */
template <int TYPE>
static __device__ void set_gradient(const struct dt_cuda_view &dx, const struct dt_cuda_view &x,
                                    int target, float most, float factor, float spread,
                                    float on_target, struct dt_logit_map map)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t step = (int64_t)blockDim.x * group;
    for (int64_t at = (int64_t)threadIdx.x * group; at < x.columns;
         at += several<TYPE>::count * step) {
        const several<TYPE> of_x(x, at, step);
#pragma unroll
        for (int k = 0; k < several<TYPE>::count; k++) {
            int64_t column = at + k * step;
            float v[group];
            if (column >= x.columns)
                continue;
            logits_of<TYPE>(v, of_x.words[k], map);
#pragma unroll
            for (int i = 0; i < group; i++) {
                float slope = dt_logit_map_slope(map, v[i]);
                v[i] = factor == 0 ? 0
                                   : __expf(v[i] - most) * factor - spread -
                                         (column + i == target ? on_target : 0);
                v[i] *= slope;
            }
            dt_cuda_store<TYPE>(dx, 0, column, v);
        }
    }
}

/* One pass of the block over row 0. */
template <int TYPE>
static __device__ struct found look_through(const struct dt_cuda_view &x, struct dt_logit_map map)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t step = (int64_t)blockDim.x * group;
    struct found f = {-INFINITY, 0, 0, INT_MAX};
    for (int64_t column = (int64_t)threadIdx.x * group; column < x.columns;
         column += several<TYPE>::count * step) {
        const several<TYPE> of_x(x, column, step);
#pragma unroll
        for (int k = 0; k < several<TYPE>::count; k++)
            if (column + k * step < x.columns)
                look_at<TYPE>(&f, x, column + k * step, of_x.words[k], map);
    }
    join(&f);
    return f;
}

/* With p = softmax(x), L = log(sum exp x), label smoothing s and z-loss z:
 *     loss = L - (1 - s) x[target] - s mean(x) + z L^2
 *     its gradient = p (1 + 2 z L) - s/n - (1 - s) [j is the target]
 * below: the sum of (maximum - x) over the row. */
static __device__ __forceinline__ float loss_of(float most, float exp_sum, float below,
                                                float columns, float of_target,
                                                const struct dt_cross_entropy &how)
{
    float log_sum = logf(exp_sum) + most, lower = (1.0f - how.label_smoothing) * (most - of_target);
    if (how.label_smoothing != 0)
        lower += how.label_smoothing * (below / columns);
    return logf(exp_sum) + lower + how.z_loss * log_sum * log_sum;
}

template <int TYPE>
static __device__ __forceinline__ void
set_gradient_of(const struct dt_cuda_view &dx, const struct dt_cuda_view &x, int target, float most,
                float exp_sum, float columns, const struct dt_cross_entropy &how)
{
    float log_sum = logf(exp_sum) + most;
    set_gradient<TYPE>(dx, x, target, most,
                       how.scale * (1.0f + 2.0f * how.z_loss * log_sum) / exp_sum,
                       how.scale * how.label_smoothing / columns,
                       how.scale * (1.0f - how.label_smoothing), how.map);
}

/* One block per row: one pass to read, and a second one if the gradient is wanted. */
template <int TYPE, bool KEPT>
static __global__ void __launch_bounds__(most_threads, blocks)
    cross_entropy(float *losses, float *hits, struct dt_cuda_view x, const int32_t *targets,
                  struct dt_cross_entropy how)
{
    int64_t row = blockIdx.x;
    int target = targets[row];
    if (target < 0) {
        const struct dt_cuda_view dx = view_of_row<TYPE, false>(x, row);
        if (how.scale != 0)
            set_gradient<TYPE>(dx, dx, target, 0, 0, 0, 0, how.map);
        if (threadIdx.x == 0) {
            losses[row] = 0;
            if (hits)
                hits[row] = 0;
        }
        return;
    }
    float n = (float)x.columns;
    float of_target = dt_logit_map_value(how.map, dt_cuda_element(x, row, target));
    const struct dt_cuda_view own = view_of_row<TYPE, KEPT>(x, row);
    struct found f = look_through<TYPE>(own, how.map);
    if (threadIdx.x == 0) {
        losses[row] = loss_of(f.most, f.exp_sum, n * f.most - f.sum, n, of_target, how);
        if (hits)
            hits[row] = f.first == target ? 1.0f : 0.0f;
    }
    if (how.scale == 0)
        return;
    __syncthreads(); /* every thread has read the target's logit */
    set_gradient_of<TYPE>(view_of_row<TYPE, false>(x, row), own, target, f.most, f.exp_sum, n, how);
}

/* --- vocabulary-parallel logits
 * ----------------------------------------------------------------- */
namespace
{
/* A row of DT_LOGIT_SUMS. */
struct sums {
    float columns, most, exp_sum, below, target, is_first;
};
} // namespace

template <int TYPE, bool KEPT>
static __global__ void __launch_bounds__(most_threads, blocks)
    logit_sums(float *sums, int64_t stride, struct dt_cuda_view x, const int32_t *targets,
               int first, struct dt_logit_map map)
{
    int64_t row = blockIdx.x;
    int target = targets[row] - first;
    bool there = target >= 0 && target < x.columns;
    struct found f = look_through<TYPE>(view_of_row<TYPE, KEPT>(x, row), map);
    if (threadIdx.x > 0)
        return;
    float n = (float)x.columns;
    float of_target = there ? dt_logit_map_value(map, dt_cuda_element(x, row, target)) : -INFINITY;
    const struct sums s = {n,         f.most,
                           f.exp_sum, n * zero_of(f.most) - f.sum,
                           of_target, there && f.first == target ? 1.0f : 0.0f};
    sums += row * stride;
    sums[0] = s.columns, sums[1] = s.most, sums[2] = s.exp_sum;
    sums[3] = s.below, sums[4] = s.target, sums[5] = s.is_first;
}

/* Combines the sums of a row over the shards, in their order. */
static __device__ struct sums add_up(const struct dt_cuda_view &parts, int64_t row, int64_t rows,
                                     int64_t all_rows)
{
    struct sums all = {0, -INFINITY, 0, 0, -INFINITY, 0};
    for (int64_t r = row; r < all_rows; r += rows) {
        const float *part = static_cast<const float *>(parts.data) + r * parts.stride;
        if (part[1] > all.most) {
            all.most = part[1];
            all.is_first = part[5];
        }
        all.target = fmaxf(all.target, part[4]);
    }
    for (int64_t r = row; r < all_rows; r += rows) {
        const float *part = static_cast<const float *>(parts.data) + r * parts.stride;
        all.columns += part[0];
        all.exp_sum += part[2] * __expf(part[1] - all.most);
        all.below += part[3] + part[0] * (all.most - zero_of(part[1]));
    }
    return all;
}

template <int TYPE, bool KEPT>
static __global__ void __launch_bounds__(most_threads, blocks)
    cross_entropy_of_sums(float *losses, float *hits, struct dt_cuda_view x,
                          struct dt_cuda_view parts, int64_t all_rows, const int32_t *targets,
                          struct dt_cross_entropy how)
{
    int64_t row = blockIdx.x;
    const struct sums s = add_up(parts, row, gridDim.x, all_rows);
    if (threadIdx.x == 0) {
        losses[row] = loss_of(s.most, s.exp_sum, s.below, s.columns, s.target, how);
        if (hits)
            hits[row] = s.is_first;
    }
    if (how.scale != 0)
        set_gradient_of<TYPE>(view_of_row<TYPE, false>(x, row), view_of_row<TYPE, KEPT>(x, row),
                              targets[row], s.most, s.exp_sum, s.columns, how);
}

/* --- launches --------------------------------------------------------------------------------- */
/* One block per row; rows are cached in shared memory if two of them fit into a multiprocessor. */
template <int TYPE, class... Parameters, class... Arguments>
static void launch_rows(struct dt_device *dev, const struct dt_tensor *logits,
                        void (*kernel)(Parameters...), void (*keeping)(Parameters...),
                        Arguments... arguments)
{
    const struct dt_cuda *cuda = dt_cuda_of(dev);
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t groups = (logits->columns + group - 1) / group;
    groups = groups > 0 ? groups : 1; /* a part may be empty */
    dim3 block((unsigned)(groups < most_threads ? (groups + 31) / 32 * 32 : most_threads));
    size_t bytes = (size_t)groups * 16, most = cuda->stream->shared_limit / blocks - besides;
    bool keeps = TYPE != dt_cuda_mixed && dt_cuda_view_of(logits).aligned && bytes <= most;
    if (keeps) /* set to the maximum, since deferred launches may need other widths */
        dt_cuda_allow_shared(cuda->stream, keeping, most);
    dt_cuda_launch(cuda->stream, dim3((unsigned)logits->rows), block, keeps ? bytes : 0,
                   keeps ? keeping : kernel, arguments...);
}

template <int TYPE>
static __global__ void map_logits(struct dt_cuda_view x, struct dt_logit_map map, unsigned strips)
{
    int64_t row, column;
    float v[dt_cuda_group<TYPE>];
    dt_cuda_place(strips, dt_cuda_group<TYPE>, &row, &column);
    if (column >= x.columns)
        return;
    logits_of<TYPE>(v, dt_cuda_fetch<TYPE>(x, row, column), map);
    dt_cuda_store<TYPE>(x, row, column, v);
}

void dt_cuda_map_logits(struct dt_device *dev, struct dt_tensor *x, const struct dt_logit_map *map)
{
    dt_cuda_for_type((int)x->dtype, [&](auto type) {
        struct dt_cuda_cover cover =
            dt_cuda_cover_of(x->rows, x->columns, dt_cuda_group<type.value>);
        dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0, map_logits<type.value>,
                       dt_cuda_view_of(x), *map, cover.strips);
    });
}

void dt_cuda_cross_entropy(struct dt_device *dev, float *losses, float *hits, struct dt_tensor *x,
                           const int32_t *targets, const struct dt_cross_entropy *how)
{
    dt_cuda_for_type((int)x->dtype, [&](auto type) {
        launch_rows<type.value>(dev, x, cross_entropy<type.value, false>,
                                cross_entropy<type.value, true>, losses, hits, dt_cuda_view_of(x),
                                targets, *how);
    });
}

void dt_cuda_logit_sums(struct dt_device *dev, struct dt_tensor *sums, const struct dt_tensor *x,
                        const int32_t *targets, const struct dt_logit_parts *parts,
                        const struct dt_logit_map *map)
{
    int64_t n = x->columns, rows = x->rows;
    assert(sums->columns == DT_LOGIT_SUMS && sums->rows == parts->count * rows);
    assert(n > 0 && n <= parts->count * parts->width);
    for (int64_t p = 0; p < parts->count; p++) {
        int64_t first = p * parts->width < n ? p * parts->width : n, left = n - first;
        struct dt_tensor part =
            dt_tensor_columns(x, first, left < parts->width ? left : parts->width);
        float *of_part = static_cast<float *>(sums->data) + p * rows * sums->stride;
        dt_cuda_for_type((int)x->dtype, [&](auto type) {
            launch_rows<type.value>(dev, &part, logit_sums<type.value, false>,
                                    logit_sums<type.value, true>, of_part, sums->stride,
                                    dt_cuda_view_of(&part), targets, (int)first, *map);
        });
    }
}

void dt_cuda_cross_entropy_of_sums(struct dt_device *dev, float *losses, float *hits,
                                   struct dt_tensor *x, const struct dt_tensor *sums,
                                   const int32_t *targets, const struct dt_logit_parts *parts,
                                   const struct dt_cross_entropy *how)
{
    (void)parts; /* the gradient is relative to the highest logit of all parts */
    assert(sums->columns == DT_LOGIT_SUMS && x->rows > 0 && sums->rows % x->rows == 0);
    dt_cuda_for_type((int)x->dtype, [&](auto type) {
        launch_rows<type.value>(dev, x, cross_entropy_of_sums<type.value, false>,
                                cross_entropy_of_sums<type.value, true>, losses, hits,
                                dt_cuda_view_of(x), dt_cuda_view_of(sums), sums->rows, targets,
                                *how);
    });
}
