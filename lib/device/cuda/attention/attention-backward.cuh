/* SPDX-License-Identifier: MIT */
/*
 * Shared by the attention backward kernels on tensor cores. Scores, weights and their gradients, 16
 * ROWS by 8 COLUMNS per warp, have the register layout of the accumulators of dt_multiply_add.
 */
#ifndef DT_DEVICE_CUDA_ATTENTION_BACKWARD_CUH
#define DT_DEVICE_CUDA_ATTENTION_BACKWARD_CUH

#include "device/cuda/attention/attention-tile.cuh"

#define DT_ATTENTION_KEPT 128 /* rows of a block, which iterates over tiles of the other side */

/* The rows of one head of one sequence in a tensor. */
static __device__ __forceinline__ uint16_t *dt_head_rows(const struct dt_cuda_rows &x,
                                                         const struct dt_cuda_attention &a,
                                                         int sequence, int head)
{
    return (uint16_t *)x.data + (int64_t)sequence * x.rows * x.stride + head * a.size;
}

template <int ROWS, int SIZE>
static __device__ __forceinline__ void dt_clear(float (&sums)[ROWS][SIZE][4])
{
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int n = 0; n < SIZE; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sums[m][n][i] = 0;
}

/* Replaces scores by their gradients; products: dy times values. Rows are queries from t on,
 * columns keys from first on. */
template <bool DROPOUT, int ROWS, int COLUMNS>
static __device__ __forceinline__ void
dt_differentiate_queries(const struct dt_cuda_attention &a, int sequence, int head,
                         float (&scores)[ROWS][COLUMNS][4], float (&products)[ROWS][COLUMNS][4],
                         const float (&log_sums)[ROWS][2], const float (&deltas)[ROWS][2],
                         int32_t t, int32_t first)
{
    float scale = a.scale * DT_LOG2_E;
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            uint32_t bits = 0;
            if (DROPOUT)
                bits = dt_keep_keys(a, sequence, head, t + 16 * m + dt_lane() / 4,
                                    first + 8 * n + dt_lane() % 4 * 2);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float weight = dt_exp2(fmaf(scores[m][n][i], scale, -log_sums[m][i / 2]));
                if (DROPOUT)
                    products[m][n][i] = bits >> i & 1 ? products[m][n][i] * a.kept : 0.0f;
                scores[m][n][i] = weight * (products[m][n][i] - deltas[m][i / 2]);
            }
        }
}

/* --- keys and values -------------------------------------------------------------------------- */

/* Iterator over the tiles of WALKED queries, in all heads that share the keys from `first` on, that
 * may see any of a block's keys. It tests 32 tiles at a time, one bit each. */
template <int WALKED> struct dt_walk {
    const struct dt_key_range *ranges; /* of tiles of DT_ATTENTION_TILE queries */
    int32_t first, last_head;
    int32_t tiles, start; /* of queries, and the first that may see the keys */
    int32_t head, base;   /* of the current tile, and of the bits */
    uint32_t bits;        /* tiles base .. base+32 that remain */

    /* Before the first tile of the first head. */
    __device__ __forceinline__ void begin(const struct dt_cuda_attention &a, int sequence,
                                          int shared, int32_t first_key)
    {
        ranges = a.ranges + (int64_t)sequence * dt_tiles(a.queries, DT_ATTENTION_TILE);
        first = first_key;
        head = shared * a.group, last_head = head + a.group - 1;
        tiles = dt_tiles(a.queries, WALKED), start = max(first - a.past - a.after, 0) / WALKED;
        base = start;
        look_ahead();
    }

    /* The range of a tile, or of the larger one that it is part of. */
    __device__ __forceinline__ const struct dt_key_range &range(int32_t tile) const
    {
        return ranges[tile * WALKED / DT_ATTENTION_TILE];
    }

    __device__ __forceinline__ void look_ahead()
    {
        int32_t tile = base + dt_lane();
        bits = __ballot_sync(
            ~0u, tile < tiles && dt_sees(range(min(tile, tiles - 1)), first, DT_ATTENTION_KEPT));
    }

    /* The next tile, or -1 at the end of the last head. */
    __device__ __forceinline__ int32_t next()
    {
        while (bits == 0) {
            base += 32;
            if (base >= tiles) {
                if (head == last_head)
                    return -1;
                head++;
                base = start;
            }
            look_ahead();
        }
        int32_t tile = base + __ffs((int)bits) - 1;
        bits &= bits - 1;
        return tile;
    }
};

/* Sets scores of queries that do not see a key to minus infinity. Rows are keys from first on,
 * columns the queries whose records are in known. */
template <int ROWS, int COLUMNS>
static __device__ __forceinline__ void dt_hide_queries(float (&scores)[ROWS][COLUMNS][4],
                                                       const struct dt_query_record *known,
                                                       int32_t first)
{
#pragma unroll
    for (int n = 0; n < COLUMNS; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const struct dt_query_record *query = known + 8 * n + dt_lane() % 4 * 2 + i;
            struct dt_span span = {query->begin, query->end};
#pragma unroll
            for (int m = 0; m < 2 * ROWS; m++) {
                int32_t key = first + 8 * m + dt_lane() / 4;
                if (key < span.begin || key >= span.end)
                    scores[m / 2][n][m % 2 * 2 + i] = -INFINITY;
            }
        }
}

/* Replaces scores by weights. */
template <int ROWS, int COLUMNS>
static __device__ __forceinline__ void
dt_weigh_keys(float (&scores)[ROWS][COLUMNS][4], const struct dt_query_record *known, float scale)
{
#pragma unroll
    for (int n = 0; n < COLUMNS; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float log_sum = known[8 * n + dt_lane() % 4 * 2 + i].log_sum;
#pragma unroll
            for (int m = 0; m < 2 * ROWS; m++) {
                float &score = scores[m / 2][n][m % 2 * 2 + i];
                score = dt_exp2(fmaf(score, scale, -log_sum));
            }
        }
}

/* Replaces products, of values and gradients of outputs, by the gradients of the scores. */
template <bool DROPOUT, int ROWS, int COLUMNS>
static __device__ __forceinline__ void
dt_differentiate_keys(const struct dt_cuda_attention &a, float (&products)[ROWS][COLUMNS][4],
                      const float (&weights)[ROWS][COLUMNS][4], const uint32_t (&bits)[ROWS],
                      const struct dt_query_record *known)
{
#pragma unroll
    for (int n = 0; n < COLUMNS; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float delta = known[8 * n + dt_lane() % 4 * 2 + i].delta;
#pragma unroll
            for (int m = 0; m < ROWS; m++)
#pragma unroll
                for (int side = 0; side < 2; side++) {
                    float &product = products[m][n][2 * side + i];
                    if (DROPOUT)
                        product = bits[m] >> (4 * n + 2 * side + i) & 1 ? product * a.kept : 0.0f;
                    product = weights[m][n][2 * side + i] * (product - delta);
                }
        }
}

#endif
