/* SPDX-License-Identifier: MIT */
/*
 * Shared by the attention backward kernels on tensor cores: rows of heads, the tiles of queries
 * that see a block's keys, and the spans of their queries.
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

/* The span of the query of each column, whose records are in known. */
static __device__ __forceinline__ auto dt_spans_of(const struct dt_query_record *known)
{
    return [=](int c) -> struct dt_span {
        const struct dt_query_record *query = known + dt_layout<float[1][1][4]>::column(c);
        return {query->begin, query->end};
    };
}

#endif
