/* SPDX-License-Identifier: MIT */
/* The online softmax of attention forward, one tile of keys at a time; scores and accumulators
 * have the register layout of dt_multiply_add. */
#ifndef DT_DEVICE_CUDA_ATTENTION_SOFTMAX_CUH
#define DT_DEVICE_CUDA_ATTENTION_SOFTMAX_CUH

#include "device/cuda/attention/attention-tile.cuh"

/* State of a warp's 16 ROWS queries. Per row: the largest score so far, and this lane's part of
 * the sum of weights. */
template <int ROWS, int SIZE> struct dt_progress {
    float sums[ROWS][SIZE / 8][4], most[ROWS][2], total[ROWS][2];

    __device__ __forceinline__ void begin()
    {
#pragma unroll
        for (int m = 0; m < ROWS; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                most[m][i / 2] = -INFINITY, total[m][i / 2] = 0;
#pragma unroll
                for (int n = 0; n < SIZE / 8; n++)
                    sums[m][n][i] = 0;
            }
    }
};

/* Replaces scores by weights, 2^(scale (score - most)), and adds them to the total. Accumulators
 * must then be multiplied by factors, for the new maximum: dt_rescale. */
template <int ROWS, int SIZE, int COLUMNS>
static __device__ __forceinline__ void dt_weigh(struct dt_progress<ROWS, SIZE> &p,
                                                float (&scores)[ROWS][COLUMNS][4], float scale,
                                                float (&factors)[ROWS][2])
{
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int side = 0; side < 2; side++) {
            float most = p.most[m][side], sum = 0;
#pragma unroll
            for (int n = 0; n < COLUMNS; n++)
                most = fmaxf(most, fmaxf(scores[m][n][2 * side], scores[m][n][2 * side + 1]));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
            /* No key seen yet: any finite number. */
            float zero = most == -INFINITY ? 0.0f : most * scale;
            factors[m][side] = dt_exp2(p.most[m][side] * scale - zero);
            p.most[m][side] = most;
#pragma unroll
            for (int n = 0; n < COLUMNS; n++)
#pragma unroll
                for (int i = 2 * side; i < 2 * side + 2; i++) {
                    scores[m][n][i] = dt_exp2(fmaf(scores[m][n][i], scale, -zero));
                    sum += scores[m][n][i];
                }
            p.total[m][side] = p.total[m][side] * factors[m][side] + sum;
        }
}

template <int ROWS, int SIZE>
static __device__ __forceinline__ void dt_rescale(struct dt_progress<ROWS, SIZE> &p,
                                                  const float (&factors)[ROWS][2])
{
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int n = 0; n < SIZE / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                p.sums[m][n][i] *= factors[m][i / 2];
}

/* Writes outputs and log-sum-exps; first: the first query of the warp. tile: as for
 * dt_store_rows. */
template <enum dt_dtype TYPE, int ROWS, int SIZE>
static __device__ __forceinline__ void dt_finish(const struct dt_cuda_attention &a, int sequence,
                                                 int head, const struct dt_progress<ROWS, SIZE> &p,
                                                 int32_t first, unsigned char *tile, int row)
{
    float factors[ROWS][2];
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int side = 0; side < 2; side++) {
            float total = p.total[m][side];
            total += __shfl_xor_sync(~0u, total, 1);
            total += __shfl_xor_sync(~0u, total, 2);
            int32_t t = first + 16 * m + 8 * side + dt_lane() / 4;
            factors[m][side] = dt_finish_query(a, (int64_t)sequence * a.queries + t, head,
                                               p.most[m][side] * a.scale, total,
                                               t < a.queries && dt_lane() % 4 == 0);
        }
    dt_store_rows<TYPE, SIZE, ROWS>(a, a.y, sequence, head, first, p.sums, factors, tile, row);
}

#endif
