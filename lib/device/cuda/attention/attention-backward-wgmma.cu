/* SPDX-License-Identifier: MIT */
/*
 * Attention backward on the tensor cores of sm_90a: heads of 64 or 128 channels of 16-bit elements,
 * without dropout. The two kernels are those of attention-backward-tensor.cu: a block keeps 128
 * queries, or keys, and iterates over tiles of 64 of the other side.
 *
 * A slot of the ring holds two tiles and the records of its queries. Scores, and products of values
 * and gradients of outputs, read their operands from shared memory; weights and gradients of scores
 * stay in registers as left operands, so that no computed value passes through shared memory before
 * the epilogue: where keys are kept, scores are computed transposed. While one warpgroup computes
 * exponentials, the products of the other run.
 */
#include "device/cuda/attention/attention-backward.cuh"
#include "device/cuda/attention/attention-wgmma.cuh"

#define KEPT    DT_ATTENTION_KEPT
#define WALKED  DT_ATTENTION_TILE
#define THREADS (DT_WARPGROUP * (1 + DT_MULTIPLIERS))

/* Kernel parameters; records: of queries. */
struct backward_operands {
    CUtensorMap q, k, v, dy, records;
    struct dt_cuda_attention a;
};

/* Shared memory of a block: two resident tiles, then slots of two tiles each. */
template <int SIZE> struct backward_layout {
    static constexpr int tile = dt_tile_bytes<SIZE>(WALKED), second = dt_tile_bytes<SIZE>(KEPT),
                         slots = 2 * second, known = WALKED * (int)sizeof(struct dt_query_record),
                         slot = 2 * tile + known, spans = slots + DT_SLOTS * slot,
                         ring = spans + KEPT * (int)sizeof(struct dt_span),
                         bytes = ring + (int)sizeof(struct dt_ring);
};

/* Fetches the next pair of streamed tiles of a head into the next slot, whose barrier expects
 * `more` bytes in addition. */
template <int SIZE>
static __device__ __forceinline__ int fetch_tiles(unsigned char *memory, struct dt_ring *ring,
                                                  struct dt_ring_place &to, const CUtensorMap *one,
                                                  const CUtensorMap *other, int head, int32_t first,
                                                  int sequence, int more)
{
    typedef backward_layout<SIZE> at;
    int slot = dt_next_slot(ring, to, 2 * at::tile + more);
    unsigned char *tiles = memory + at::slots + slot * at::slot;
    dt_fetch<SIZE, WALKED>(tiles, one, &ring->full[slot], head, first, sequence);
    dt_fetch<SIZE, WALKED>(tiles + at::tile, other, &ring->full[slot], head, first, sequence);
    return slot;
}

template <int SIZE>
static __device__ __forceinline__ void fetch_kept(unsigned char *memory, struct dt_ring *ring,
                                                  const CUtensorMap *one, const CUtensorMap *other,
                                                  int head, int32_t first, int sequence)
{
    typedef backward_layout<SIZE> at;
    dt_barrier_expect(&ring->kept, at::slots);
    dt_fetch_kept<SIZE>(memory, one, ring, head, first, sequence);
    dt_fetch_kept<SIZE>(memory + at::second, other, ring, head, first, sequence);
}

typedef float products_of_warp[1][WALKED / 8][4];
typedef dt_layout<products_of_warp> of;

/* --- queries ---------------------------------------------------------------------------------- */

/* The work of a block: tiles from key on. */
struct queries_work {
    int sequence, head;
    int32_t first, key, end;
};

template <int SIZE>
static __device__ __forceinline__ void fetch_keys(const struct backward_operands &o,
                                                  const struct queries_work &w,
                                                  unsigned char *memory, struct dt_ring *ring)
{
    struct dt_ring_place to = {0, 1};
    int shared = w.head / o.a.group;
    fetch_kept<SIZE>(memory, ring, &o.q, &o.dy, w.head, w.first, w.sequence);
    for (int32_t key = w.key; key < w.end; key += WALKED)
        fetch_tiles<SIZE>(memory, ring, to, &o.k, &o.v, shared, key, w.sequence, 0);
}

/* Gradients of a warp's 16 queries, from this row of the block. */
template <enum dt_dtype TYPE, int SIZE>
static __device__ __forceinline__ void
multiply_keys(const struct dt_cuda_attention &a, const struct queries_work &w,
              unsigned char *memory, struct dt_ring *ring, int row)
{
    typedef backward_layout<SIZE> at;
    const struct dt_span *spans = (const struct dt_span *)(memory + at::spans) + row;
    unsigned char *queries = memory + row / DT_WGMMA_ROWS * at::tile;
    unsigned char *gradients = queries + at::second;
    const struct dt_key_range range =
        dt_find_range(a, w.sequence, w.first + row / DT_WGMMA_ROWS * DT_WGMMA_ROWS, DT_WGMMA_ROWS);
    products_of_warp scores, products;
    float log_sums[of::rows], deltas[of::rows], sums[1][SIZE / 8][4];
    const uint32_t none[1] = {0};
    uint32_t left[WALKED / 16][4];
    struct dt_ring_place from = {0, 0};
#pragma unroll
    for (int r = 0; r < of::rows; r++) {
        int32_t t = min(w.first + row + of::row(r), a.queries - 1);
        const struct dt_query_record *record =
            a.records + ((int64_t)w.sequence * a.heads + w.head) * a.queries + t;
        log_sums[r] = record->log_sum, deltas[r] = record->delta;
    }
    dt_clear(sums);
    dt_barrier_wait(&ring->kept, 0);
    for (int32_t key = w.key; key < w.end; key += WALKED) {
        int slot = dt_await_slot(ring, from);
        const unsigned char *keys = memory + at::slots + slot * at::slot;
        if (dt_sees(range, key, WALKED)) {
            dt_multiply_tiles<TYPE, SIZE>(scores, queries, keys);
            dt_multiply_tiles<TYPE, SIZE>(products, gradients, keys + at::tile);
            dt_wait_products<1>();
            dt_pin(scores[0]);
            if (!dt_sees_all(range, key, WALKED))
                dt_hide_keys(
                    scores, [=](int r) { return spans[of::row(r)]; }, key);
            dt_weigh_again(
                scores, [&](int r, int) { return log_sums[r]; }, a.scale * DT_LOG2_E);
            dt_wait_products<0>();
            dt_pin(products[0]);
            dt_differentiate<false>(
                a, products, scores, [&](int r, int) { return deltas[r]; }, none);
            dt_pack_left<TYPE>(left, products);
            dt_add_tile<TYPE>(sums, left, keys);
            dt_wait_products<0>();
            dt_pin(sums[0]);
        }
        dt_release_slot(ring, slot);
    }
    dt_await_warpgroup(row);
    dt_store_rows<TYPE, SIZE>(a, a.dq, w.sequence, w.head, w.first + row, sums, a.scale, queries,
                              row % DT_WGMMA_ROWS);
}

template <enum dt_dtype TYPE, int SIZE>
__global__ void __launch_bounds__(THREADS, 1)
    attention_backward_queries(const __grid_constant__ struct backward_operands o)
{
    DT_DYNAMIC_SHARED(unsigned char, memory);
    typedef backward_layout<SIZE> at;
    const struct dt_cuda_attention &a = o.a;
    struct dt_ring *ring = (struct dt_ring *)(memory + at::ring);
    struct dt_span *spans = (struct dt_span *)(memory + at::spans);
    struct queries_work w = {(int)blockIdx.z, (int)blockIdx.y, dt_first_query(KEPT), 0, 0};
    int thread = (int)threadIdx.x;
    int warp = __shfl_sync(~0u, thread / 32, 0) - DT_WARPGROUP / 32; /* among the consumer warps */
    struct dt_key_range block = dt_find_range(a, w.sequence, w.first, KEPT);
    w.key = block.begin / WALKED * WALKED, w.end = block.end;
    if (thread == 0)
        dt_begin_ring(ring);
    if (thread < KEPT)
        spans[thread] = dt_find_span(a, w.sequence, min(w.first + thread, a.queries - 1));
    __syncthreads();
    if (warp < 0) {
        dt_give_registers<DT_FETCHER>();
        if (thread == 0)
            fetch_keys<SIZE>(o, w, memory, ring);
    } else {
        dt_take_registers<DT_MULTIPLIER>();
        multiply_keys<TYPE, SIZE>(a, w, memory, ring, warp * 16);
    }
}

/* --- keys and values -------------------------------------------------------------------------- */

/* The work of a block; shared: the head of its keys. */
struct keys_work {
    int sequence, shared;
    int32_t first;
};

/* Fetches a tile of queries and their records. */
template <int SIZE>
static __device__ __forceinline__ void
fetch_queries(const struct backward_operands &o, unsigned char *memory, struct dt_ring *ring,
              struct dt_ring_place &to, int head, int32_t first, int sequence)
{
    typedef backward_layout<SIZE> at;
    int slot = fetch_tiles<SIZE>(memory, ring, to, &o.q, &o.dy, head, first, sequence, at::known);
    unsigned char *known = memory + at::slots + slot * at::slot + 2 * at::tile;
    dt_copy_box(known, &o.records, &ring->full[slot], 0, 0, first, sequence * o.a.heads + head);
}

/* All lanes of a warp call it. */
template <int SIZE>
static __device__ __forceinline__ void fetch_all(const struct backward_operands &o,
                                                 const struct keys_work &w, unsigned char *memory,
                                                 struct dt_ring *ring)
{
    struct dt_ring_place to = {0, 1};
    dt_walk<WALKED> walk;
    walk.begin(o.a, w.sequence, w.shared, w.first);
    if (dt_lane() == 0)
        fetch_kept<SIZE>(memory, ring, &o.k, &o.v, w.shared, w.first, w.sequence);
    for (int32_t tile; (tile = walk.next()) >= 0;)
        if (dt_lane() == 0)
            fetch_queries<SIZE>(o, memory, ring, to, walk.head, tile * WALKED, w.sequence);
}

/* Gradients of a warp's 16 keys and values, from this row of the block. */
template <enum dt_dtype TYPE, int SIZE>
static __device__ __forceinline__ void
multiply_queries(const struct dt_cuda_attention &a, const struct keys_work &w,
                 unsigned char *memory, struct dt_ring *ring, int row)
{
    typedef backward_layout<SIZE> at;
    const int32_t warpgroup = w.first + row / DT_WGMMA_ROWS * DT_WGMMA_ROWS;
    unsigned char *keys = memory + row / DT_WGMMA_ROWS * at::tile, *values = keys + at::second;
    products_of_warp weights, products;
    float dk[1][SIZE / 8][4], dv[1][SIZE / 8][4];
    uint32_t left[WALKED / 16][4], more[WALKED / 16][4];
    const uint32_t none[1] = {0};
    struct dt_ring_place from = {0, 0};
    dt_walk<WALKED> walk;
    walk.begin(a, w.sequence, w.shared, w.first);
    dt_clear(dk), dt_clear(dv);
    dt_barrier_wait(&ring->kept, 0);
    for (int32_t tile; (tile = walk.next()) >= 0;) {
        int slot = dt_await_slot(ring, from);
        const unsigned char *queries = memory + at::slots + slot * at::slot;
        const unsigned char *gradients = queries + at::tile;
        const struct dt_query_record *known =
            (const struct dt_query_record *)(gradients + at::tile);
        if (dt_sees(walk.range(tile), warpgroup, DT_WGMMA_ROWS)) {
            dt_multiply_tiles<TYPE, SIZE>(weights, keys, queries);
            dt_multiply_tiles<TYPE, SIZE>(products, values, gradients);
            dt_wait_products<1>();
            dt_pin(weights[0]);
            if (!dt_sees_all(walk.range(tile), warpgroup, DT_WGMMA_ROWS))
                dt_hide_queries(weights, dt_spans_of(known), w.first + row);
            dt_weigh_again(
                weights, [=](int, int c) { return known[of::column(c)].log_sum; },
                a.scale * DT_LOG2_E);
            dt_pack_left<TYPE>(left, weights);
            dt_add_tile<TYPE>(dv, left, gradients);
            dt_wait_products<1>();
            dt_pin(products[0]);
            dt_differentiate<false>(
                a, products, weights, [=](int, int c) { return known[of::column(c)].delta; }, none);
            dt_pack_left<TYPE>(more, products);
            dt_add_tile<TYPE>(dk, more, queries);
            dt_wait_products<0>();
            dt_pin(dv[0]), dt_pin(dk[0]);
        }
        dt_release_slot(ring, slot);
    }
    dt_await_warpgroup(row);
    dt_store_rows<TYPE, SIZE>(a, a.dk, w.sequence, w.shared, w.first + row, dk, a.scale, keys,
                              row % DT_WGMMA_ROWS);
    dt_store_rows<TYPE, SIZE>(a, a.dv, w.sequence, w.shared, w.first + row, dv, 1, values,
                              row % DT_WGMMA_ROWS);
}

template <enum dt_dtype TYPE, int SIZE>
__global__ void __launch_bounds__(THREADS, 1)
    attention_backward_keys(const __grid_constant__ struct backward_operands o)
{
    DT_DYNAMIC_SHARED(unsigned char, memory);
    typedef backward_layout<SIZE> at;
    const struct dt_cuda_attention &a = o.a;
    struct dt_ring *ring = (struct dt_ring *)(memory + at::ring);
    const struct keys_work w = {(int)blockIdx.z, (int)blockIdx.y, (int32_t)blockIdx.x * KEPT};
    int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0) - DT_WARPGROUP / 32;
    if (threadIdx.x == 0)
        dt_begin_ring(ring);
    __syncthreads();
    if (warp < 0) {
        dt_give_registers<DT_FETCHER>();
        if (threadIdx.x < 32)
            fetch_all<SIZE>(o, w, memory, ring);
    } else {
        dt_take_registers<DT_MULTIPLIER>();
        multiply_queries<TYPE, SIZE>(a, w, memory, ring, warp * 16);
    }
}

/* --- the host --------------------------------------------------------------------------------- */
/* A tensor map of the records, as rows of a few channels, each head as a sequence. */
static int map_records(struct dt_device *dev, CUtensorMap *map, const struct dt_cuda_attention *a)
{
    const int64_t bytes = sizeof *a->records;
    const struct dt_cuda_heads records = {a->records,
                                          a->dtype,
                                          {bytes / 2, 1, a->queries, a->batch * a->heads},
                                          {bytes, bytes, a->queries * bytes}};
    return dt_cuda_map_heads(dev, map, &records, WALKED);
}

void dt_cuda_attention_backward_wgmma(struct dt_device *dev, const struct dt_cuda_attention *a)
{
    struct backward_operands o;
    struct dt_cuda_stream *stream = dt_cuda_of(dev)->stream;
    int32_t t = a->queries, step = a->key_stride, shared = a->heads / a->group;
    o.a = *a;
    if (dt_cuda_map_rows(dev, &o.q, a, &a->q, a->heads, t, t, WALKED) < 0 ||
        dt_cuda_map_rows(dev, &o.dy, a, &a->dy, a->heads, t, t, WALKED) < 0 ||
        dt_cuda_map_rows(dev, &o.k, a, &a->k, shared, step, a->keys, WALKED) < 0 ||
        dt_cuda_map_rows(dev, &o.v, a, &a->v, shared, step, a->keys, WALKED) < 0 ||
        map_records(dev, &o.records, a) < 0)
        return;
    dt_attention_choose(a, [=](auto type, auto size, auto) {
        constexpr enum dt_dtype TYPE = decltype(type)::value;
        constexpr int SIZE = decltype(size)::value;
        dt_cuda_attention_launch(attention_backward_keys<TYPE, SIZE>,
                                 dt_attention_grid(a, a->key_stride, KEPT, shared), THREADS,
                                 backward_layout<SIZE>::bytes, stream, &o);
        dt_cuda_attention_launch(attention_backward_queries<TYPE, SIZE>,
                                 dt_attention_grid(a, a->queries, KEPT, a->heads), THREADS,
                                 backward_layout<SIZE>::bytes, stream, &o);
    });
}
