/* SPDX-License-Identifier: MIT */
/*
 * Attention forward on the tensor cores of sm_90a: heads of 64 or 128 channels of 16-bit elements,
 * without dropout, after Shah et al. 2024 ("FlashAttention-3").
 *
 * A block has 128 queries and iterates over tiles of 128 keys; the ring of attention-wgmma.cuh
 * receives keys 0, keys 1, values 0, keys 2, values 1, ... The product of the weights and values of
 * a tile runs while the warpgroup computes the softmax of the next tile; products of the other
 * warpgroup fill the remaining gaps.
 *
 * Scores, accumulators and weights take 64, SIZE / 2 and 32 registers per thread; a multiprocessor
 * runs one block, with 82 or 162 KB of shared memory.
 */
#include "device/cuda/attention/attention-wgmma.cuh"

#define QUERIES (DT_MULTIPLIERS * DT_WGMMA_ROWS)
#define KEYS    128
#define THREADS (DT_WARPGROUP * (1 + DT_MULTIPLIERS))

/* Kernel parameters. */
struct forward_operands {
    CUtensorMap q, k, v;
    struct dt_cuda_attention a;
};

/* Shared memory of a block. */
template <int SIZE> struct forward_layout {
    static constexpr int slots = dt_tile_bytes<SIZE>(QUERIES), slot = dt_tile_bytes<SIZE>(KEYS),
                         spans = slots + DT_SLOTS * slot,
                         ring = spans + QUERIES * (int)sizeof(struct dt_span),
                         bytes = ring + (int)sizeof(struct dt_ring);
};

/* The work of a block; key: the first key of its first tile. */
struct work {
    int sequence, head, tiles;
    int32_t first, key;
};

/* --- the producer warpgroup ------------------------------------------------------------------- */
template <int SIZE>
static __device__ __forceinline__ void fetch_tile(unsigned char *memory, struct dt_ring *ring,
                                                  struct dt_ring_place &to, const CUtensorMap *map,
                                                  int head, int32_t first, int sequence)
{
    typedef forward_layout<SIZE> at;
    int slot = dt_next_slot(ring, to, at::slot);
    dt_fetch<SIZE, KEYS>(memory + at::slots + slot * at::slot, map, &ring->full[slot], head, first,
                         sequence);
}

/* Fetches all tiles of a block, in the order of their use. */
template <int SIZE>
static __device__ __forceinline__ void fetch_all(const struct forward_operands &o,
                                                 const struct work &w, unsigned char *memory,
                                                 struct dt_ring *ring)
{
    int shared = w.head / o.a.group;
    int32_t key = w.key;
    struct dt_ring_place to = {0, 1};
    dt_barrier_expect(&ring->kept, dt_tile_bytes<SIZE>(QUERIES));
    dt_fetch_kept<SIZE>(memory, &o.q, ring, w.head, w.first, w.sequence);
    fetch_tile<SIZE>(memory, ring, to, &o.k, shared, key, w.sequence);
    for (int i = 1; i < w.tiles; i++, key += KEYS) {
        fetch_tile<SIZE>(memory, ring, to, &o.k, shared, key + KEYS, w.sequence);
        fetch_tile<SIZE>(memory, ring, to, &o.v, shared, key, w.sequence);
    }
    fetch_tile<SIZE>(memory, ring, to, &o.v, shared, key, w.sequence);
}

/* --- the consumer warpgroups ------------------------------------------------------------------ */

typedef float products[1][KEYS / 8][4]; /* of a warp */

/* Replaces the scores of a tile by weights. spans, range: of the warp's 16 queries. */
template <class Sums>
static __device__ __forceinline__ void weigh(struct dt_progress<Sums> &p, products &scores,
                                             float (&factors)[2], const struct dt_key_range &range,
                                             const struct dt_span *spans, int32_t key, float scale)
{
    if (!dt_sees_all(range, key, KEYS))
        dt_hide_keys(
            scores, [=](int r) { return spans[dt_layout<products>::row(r)]; }, key);
    dt_weigh(p, scores, scale * DT_LOG2_E, factors);
}

/* Outputs of a warp's 16 queries, from this row of the block. */
template <enum dt_dtype TYPE, int SIZE>
static __device__ __forceinline__ void multiply(const struct dt_cuda_attention &a,
                                                const struct work &w, unsigned char *memory,
                                                struct dt_ring *ring, int row)
{
    typedef forward_layout<SIZE> at;
    const struct dt_span *spans = (const struct dt_span *)(memory + at::spans) + row;
    unsigned char *slots = memory + at::slots;
    unsigned char *queries = memory + row / DT_WGMMA_ROWS * dt_tile_bytes<SIZE>(DT_WGMMA_ROWS);
    const struct dt_key_range range = dt_find_range(a, w.sequence, w.first + row, 16);
    struct dt_progress<float[1][SIZE / 8][4]> p;
    products scores;
    float factors[2];
    uint32_t weights[KEYS / 16][4];
    struct dt_ring_place from = {0, 0};
    int32_t key = w.key;
    p.begin();
    dt_barrier_wait(&ring->kept, 0);
    int keys = dt_await_slot(ring, from), values;
    dt_multiply_tiles<TYPE, SIZE>(scores, queries, slots + keys * at::slot);
    dt_wait_products<0>();
    dt_pin(scores[0]);
    dt_release_slot(ring, keys);
    weigh(p, scores, factors, range, spans, key, a.scale);
    dt_pack_left<TYPE>(weights, scores);
    for (int tile = 1; tile < w.tiles; tile++) {
        key += KEYS;
        keys = dt_await_slot(ring, from);
        dt_multiply_tiles<TYPE, SIZE>(scores, queries, slots + keys * at::slot);
        values = dt_await_slot(ring, from);
        dt_add_tile<TYPE>(p.sums, weights, slots + values * at::slot);
        dt_wait_products<1>();
        dt_pin(scores[0]);
        dt_release_slot(ring, keys);
        weigh(p, scores, factors, range, spans, key, a.scale);
        dt_wait_products<0>();
        dt_pin(p.sums[0]), dt_pin(weights);
        dt_release_slot(ring, values);
        dt_rescale(p, factors);
        dt_pack_left<TYPE>(weights, scores);
    }
    values = dt_await_slot(ring, from);
    dt_add_tile<TYPE>(p.sums, weights, slots + values * at::slot);
    dt_wait_products<0>();
    dt_pin(p.sums[0]);
    dt_await_warpgroup(row);
    dt_finish(a, w.sequence, w.head, p, w.first + row, a.scale, factors);
    dt_store_rows<TYPE, SIZE>(a, a.y, w.sequence, w.head, w.first + row, p.sums, factors, queries,
                              row % DT_WGMMA_ROWS);
}

/* --- the block -------------------------------------------------------------------------------- */
template <enum dt_dtype TYPE, int SIZE>
__global__ void __launch_bounds__(THREADS, 1)
    attention_forward(const __grid_constant__ struct forward_operands o)
{
    DT_DYNAMIC_SHARED(unsigned char, memory);
    typedef forward_layout<SIZE> at;
    const struct dt_cuda_attention &a = o.a;
    struct dt_ring *ring = (struct dt_ring *)(memory + at::ring);
    struct dt_span *spans = (struct dt_span *)(memory + at::spans);
    struct work w = {(int)blockIdx.z, (int)blockIdx.y, 1, dt_first_query(QUERIES), 0};
    int thread = (int)threadIdx.x;
    int warp = __shfl_sync(~0u, thread / 32, 0) - DT_WARPGROUP / 32; /* among the consumer warps */
    struct dt_key_range block = dt_find_range(a, w.sequence, w.first, QUERIES);
    w.key = block.begin / KEYS * KEYS;
    w.tiles = max(1, dt_tiles(block.end - w.key, KEYS));
    if (thread == 0)
        dt_begin_ring(ring);
    if (thread < QUERIES)
        spans[thread] = dt_find_span(a, w.sequence, min(w.first + thread, a.queries - 1));
    __syncthreads();
    if (warp < 0) {
        dt_give_registers<DT_FETCHER>();
        if (thread == 0)
            fetch_all<SIZE>(o, w, memory, ring);
    } else {
        dt_take_registers<DT_MULTIPLIER>();
        multiply<TYPE, SIZE>(a, w, memory, ring, warp * 16);
    }
}

void dt_cuda_attention_forward_wgmma(struct dt_device *dev, const struct dt_cuda_attention *a)
{
    struct forward_operands o;
    struct dt_cuda_stream *stream = dt_cuda_of(dev)->stream;
    int32_t keys = a->keys, shared = a->heads / a->group;
    o.a = *a;
    if (dt_cuda_map_rows(dev, &o.q, a, &a->q, a->heads, a->queries, a->queries, 64) < 0 ||
        dt_cuda_map_rows(dev, &o.k, a, &a->k, shared, a->key_stride, keys, KEYS) < 0 ||
        dt_cuda_map_rows(dev, &o.v, a, &a->v, shared, a->key_stride, keys, KEYS) < 0)
        return;
    dt_attention_choose(a, [=](auto type, auto size, auto) {
        constexpr int SIZE = decltype(size)::value;
        dt_cuda_attention_launch(attention_forward<decltype(type)::value, SIZE>,
                                 dt_attention_grid(a, a->queries, QUERIES, a->heads), THREADS,
                                 forward_layout<SIZE>::bytes, stream, &o);
    });
}
