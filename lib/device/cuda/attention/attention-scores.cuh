/* SPDX-License-Identifier: MIT */
/*
 * What is done to the scores of a tile between its products, whatever multiplies: the mask, the
 * online softmax of forward, weights and gradients of backward, dropout.
 *
 * A thread has `rows` x `columns` of the scores, in one of two layouts, that of accumulators of the
 * tensor cores (mma.sync and wgmma), float[M][N][4], and that of attention-general.cuh,
 * float[M][N]. dt_layout<Scores> says where in the tile each is. Several lanes have a row together.
 */
#ifndef DT_DEVICE_CUDA_ATTENTION_SCORES_CUH
#define DT_DEVICE_CUDA_ATTENTION_SCORES_CUH

#include "device/cuda/attention/attention.cuh"

static __device__ __forceinline__ int dt_lane(void)
{
    return (int)threadIdx.x % 32;
}

template <class Scores> struct dt_layout;

/* Of a warp: rows are its own, 16 M of them. Its powers of two are approximations. */
template <int M, int N> struct dt_layout<float[M][N][4]>
{
    static constexpr int rows = 2 * M, columns = 2 * N, lanes = 4, words = M;

    static __device__ __forceinline__ int row(int r)
    {
        return 8 * r + dt_lane() / 4;
    }
    static __device__ __forceinline__ int column(int c)
    {
        return 8 * (c / 2) + dt_lane() % 4 * 2 + c % 2;
    }
    template <class Scores>
    static __device__ __forceinline__ auto &at(Scores & scores, int r, int c)
    {
        return scores[r / 2][c / 2][r % 2 * 2 + c % 2];
    }
    static __device__ __forceinline__ bool keeps(const uint32_t(&words)[M], int r, int c)
    {
        return words[r / 2] >> (c / 2 * 4 + r % 2 * 2 + c % 2) & 1;
    }
    static __device__ __forceinline__ float power(float x)
    {
        return dt_exp2(x);
    }
    static __device__ __forceinline__ float sum(float x)
    {
        x += __shfl_xor_sync(~0u, x, 1);
        return x + __shfl_xor_sync(~0u, x, 2);
    }
};

/* Of a block of 16 x 16 threads. */
template <int M, int N> struct dt_layout<float[M][N]>
{
    static constexpr int rows = M, columns = N, lanes = 16, words = M;

    static __device__ __forceinline__ int row(int r)
    {
        return (int)threadIdx.x / 16 + 16 * r;
    }
    static __device__ __forceinline__ int column(int c)
    {
        return (int)threadIdx.x % 16 + 16 * c;
    }
    template <class Scores>
    static __device__ __forceinline__ auto &at(Scores & scores, int r, int c)
    {
        return scores[r][c];
    }
    static __device__ __forceinline__ bool keeps(const uint32_t(&words)[M], int r, int c)
    {
        return words[r] >> c & 1;
    }
    static __device__ __forceinline__ float power(float x)
    {
        return exp2f(x);
    }
    static __device__ __forceinline__ float sum(float x)
    {
        for (int offset = 8; offset > 0; offset /= 2)
            x += __shfl_xor_sync(~0u, x, offset);
        return x;
    }
};

/* Calls run(row, column) for each score of a thread. */
template <class Scores, class Run> static __device__ __forceinline__ void dt_each(Run run)
{
#pragma unroll
    for (int r = 0; r < dt_layout<Scores>::rows; r++)
#pragma unroll
        for (int c = 0; c < dt_layout<Scores>::columns; c++)
            run(r, c);
}

template <class Scores> static __device__ __forceinline__ void dt_clear(Scores &scores)
{
    dt_each<Scores>([&](int r, int c) { dt_layout<Scores>::at(scores, r, c) = 0; });
}

/* --- the mask --------------------------------------------------------------------------------- */

/* Sets scores of keys that a query does not see to minus infinity. Rows are queries, whose spans
 * span(row of the thread) gives, columns keys from first on. */
template <class Scores, class Span>
static __device__ __forceinline__ void dt_hide_keys(Scores &scores, Span span, int32_t first)
{
    typedef dt_layout<Scores> of;
#pragma unroll
    for (int r = 0; r < of::rows; r++) {
        const struct dt_span seen = span(r);
#pragma unroll
        for (int c = 0; c < of::columns; c++) {
            const int32_t key = first + of::column(c);
            if (key < seen.begin || key >= seen.end)
                of::at(scores, r, c) = -INFINITY;
        }
    }
}

/* The same where rows are keys from first on and columns queries, whose spans span(column of the
 * thread) gives. */
template <class Scores, class Span>
static __device__ __forceinline__ void dt_hide_queries(Scores &scores, Span span, int32_t first)
{
    typedef dt_layout<Scores> of;
#pragma unroll
    for (int c = 0; c < of::columns; c++) {
        const struct dt_span seen = span(c);
#pragma unroll
        for (int r = 0; r < of::rows; r++) {
            const int32_t key = first + of::row(r);
            if (key < seen.begin || key >= seen.end)
                of::at(scores, r, c) = -INFINITY;
        }
    }
}

/* --- forward: the online softmax -------------------------------------------------------------- */

/* State of a thread's queries: weighted sums of values; per row the largest score so far, and this
 * lane's part of the sum of weights. */
template <class Sums> struct dt_progress {
    static constexpr int rows = dt_layout<Sums>::rows;
    Sums sums;
    float most[rows], total[rows];

    __device__ __forceinline__ void begin()
    {
#pragma unroll
        for (int r = 0; r < rows; r++)
            most[r] = -INFINITY, total[r] = 0;
        dt_clear(sums);
    }
};

/* Replaces scores by weights, 2^(scale (score - most)), and adds them to the total. Sums must then
 * be multiplied by factors, for the new maximum: dt_rescale. */
template <class Sums, class Scores>
static __device__ __forceinline__ void dt_weigh(struct dt_progress<Sums> &p, Scores &scores,
                                                float scale,
                                                float (&factors)[dt_layout<Scores>::rows])
{
    typedef dt_layout<Scores> of;
#pragma unroll
    for (int r = 0; r < of::rows; r++) {
        float most = p.most[r], sum = 0;
#pragma unroll
        for (int c = 0; c < of::columns; c++)
            most = fmaxf(most, of::at(scores, r, c));
#pragma unroll
        for (int offset = 1; offset < of::lanes; offset *= 2)
            most = fmaxf(most, __shfl_xor_sync(~0u, most, offset));
        /* No key seen yet: any finite number. */
        const float zero = most == -INFINITY ? 0.0f : most * scale;
        factors[r] = of::power(p.most[r] * scale - zero);
        p.most[r] = most;
#pragma unroll
        for (int c = 0; c < of::columns; c++) {
            float &score = of::at(scores, r, c);
            score = of::power(fmaf(score, scale, -zero));
            sum += score;
        }
        p.total[r] = p.total[r] * factors[r] + sum;
    }
}

template <class Sums>
static __device__ __forceinline__ void dt_rescale(struct dt_progress<Sums> &p,
                                                  const float (&factors)[dt_layout<Sums>::rows])
{
    dt_each<Sums>([&](int r, int c) { dt_layout<Sums>::at(p.sums, r, c) *= factors[r]; });
}

/* Writes log-sum-exps, and gives the factors of the sums. first: the query of row 0; unit: e^unit
 * is what a score of 1 weighs. */
template <class Sums>
static __device__ __forceinline__ void dt_finish(const struct dt_cuda_attention &a, int sequence,
                                                 int head, const struct dt_progress<Sums> &p,
                                                 int32_t first, float unit,
                                                 float (&factors)[dt_layout<Sums>::rows])
{
    typedef dt_layout<Sums> of;
#pragma unroll
    for (int r = 0; r < of::rows; r++) {
        const int32_t t = first + of::row(r);
        factors[r] = dt_finish_query(a, sequence, t, head, p.most[r] * unit, of::sum(p.total[r]),
                                     t < a.queries && (int)threadIdx.x % of::lanes == 0);
    }
}

/* --- backward --------------------------------------------------------------------------------- */

/* Replaces scores by weights, 2^(scale score - log_sum(row, column)). */
template <class Scores, class LogSum>
static __device__ __forceinline__ void dt_weigh_again(Scores &scores, LogSum log_sum, float scale)
{
    typedef dt_layout<Scores> of;
    dt_each<Scores>([&](int r, int c) {
        float &score = of::at(scores, r, c);
        score = of::power(fmaf(score, scale, -log_sum(r, c)));
    });
}

/* Replaces products, of values and gradients of outputs, by the gradients of the scores. */
template <bool DROPOUT, class Scores, class Delta>
static __device__ __forceinline__ void
dt_differentiate(const struct dt_cuda_attention &a, Scores &products, const Scores &weights,
                 Delta delta, const uint32_t (&kept)[dt_layout<Scores>::words])
{
    typedef dt_layout<Scores> of;
    dt_each<Scores>([&](int r, int c) {
        float &product = of::at(products, r, c);
        if (DROPOUT)
            product = of::keeps(kept, r, c) ? product * a.kept : 0.0f;
        product = of::at(weights, r, c) * (product - delta(r, c));
    });
}

/* --- dropout ---------------------------------------------------------------------------------- */

/* Weights after dropout; kept: a bit for each, as dt_layout<Weights>::keeps reads them. */
template <class Weights>
static __device__ __forceinline__ void dt_drop(const struct dt_cuda_attention &a, Weights &to,
                                               const Weights &weights,
                                               const uint32_t (&kept)[dt_layout<Weights>::words])
{
    typedef dt_layout<Weights> of;
    dt_each<Weights>([&](int r, int c) {
        const float weight = of::at(weights, r, c);
        of::at(to, r, c) = of::keeps(kept, r, c) ? weight * a.kept : 0.0f;
    });
}

#endif
