/* SPDX-License-Identifier: MIT */
/*
 * Attention forward on the tensor cores: heads of up to 128 channels, of 16-bit elements.
 *
 * A block of 4 warps has 128 queries, 32 per warp, and iterates over tiles of 64 keys; while it
 * multiplies one tile, the keys and values of the next are copied. With heads of 64 channels
 * queries stay in registers: 32, next to 64 accumulators and 64 scores, with 48 KB of shared
 * memory. With 128 channels the accumulators take 128 registers, so queries are reloaded for each
 * tile; 96 KB. Either way two blocks fit on a multiprocessor of sm_90 (on sm_80, with 164 KB, one
 * block of the second kind, which is slower).
 */
#include "device/cuda/attention/attention-tile.cuh"

#define QUERIES 128
#define THREADS 128
#define KEYS    DT_ATTENTION_TILE

/* Tiles of a block in shared memory. */
template <int SIZE> struct layout {
    static constexpr int tile = dt_tile_bytes<SIZE>(KEYS), keys = dt_tile_bytes<SIZE>(QUERIES),
                         values = keys + 2 * tile, spans = values + 2 * tile,
                         ranges = spans + QUERIES * (int)sizeof(struct dt_span),
                         bytes = ranges + THREADS / 32 * (int)sizeof(struct dt_key_range);
};

template <int SIZE> struct choose_left {
    typedef dt_lying<SIZE, 2> type;
};
template <> struct choose_left<64> {
    typedef dt_held<64, 2> type;
};

/* The first key, or value, of the block's sequence and head: recomputed for each tile, to save
 * registers. */
static __device__ __forceinline__ const uint16_t *cached(const struct dt_cuda_attention &a,
                                                         const struct dt_cuda_rows &x, int column)
{
    return (const uint16_t *)x.data + (int64_t)blockIdx.z * a.key_stride * x.stride + column;
}

template <enum dt_dtype TYPE, int SIZE, bool DROPOUT>
__global__ void __launch_bounds__(THREADS, 2)
    attention_forward(const __grid_constant__ struct dt_cuda_attention a)
{
    DT_DYNAMIC_SHARED(unsigned char, memory);
    typedef layout<SIZE> at;
    unsigned char *keys = memory + at::keys, *values = memory + at::values;
    struct dt_span *spans = (struct dt_span *)(memory + at::spans);
    int32_t first = dt_first_query(QUERIES);
    int head = (int)blockIdx.y, sequence = (int)blockIdx.z, row = (int)threadIdx.x / 32 * 32;
    const uint16_t *q =
        (const uint16_t *)a.q.data + (int64_t)sequence * a.queries * a.q.stride + head * a.size;
    int shared = head / a.group * a.size;
    struct dt_key_range block = dt_find_range(a, sequence, first, QUERIES);
    /* The ranges of the warp's queries, in shared memory to save registers. */
    struct dt_key_range *range = (struct dt_key_range *)(memory + at::ranges) + row / 32;
    struct dt_key_range seen = dt_find_range(a, sequence, first + row, 32);
    if (dt_lane() == 0)
        *range = seen;

    spans[threadIdx.x] = dt_find_span(a, sequence, min(first + (int)threadIdx.x, a.queries - 1));
    int32_t from = block.begin / KEYS * KEYS;
    dt_copy_rows<SIZE, QUERIES, THREADS>(memory, q, a.q.stride, first, a.queries, a.size);
    dt_commit_copies();
    dt_copy_rows<SIZE, KEYS, THREADS>(keys, cached(a, a.k, shared), a.k.stride, from, block.end,
                                      a.size);
    dt_copy_rows<SIZE, KEYS, THREADS>(values, cached(a, a.v, shared), a.v.stride, from, block.end,
                                      a.size);
    dt_commit_copies();

    typedef float products[2][KEYS / 8][4];
    struct dt_progress<float[2][SIZE / 8][4]> p;
    typename choose_left<SIZE>::type queries;
    p.begin();
    dt_wait_copies<1>();
    __syncthreads();
    queries.hold(memory, row);
    int stage = 0;
    for (int32_t tile = from; tile < block.end || tile == from; tile += KEYS, stage ^= at::tile) {
        dt_wait_copies<0>();
        __syncthreads(); /* this tile has arrived; all are done with the previous one */
        if (tile + KEYS < block.end) {
            int other = stage ^ at::tile, again = dt_again(shared);
            dt_copy_rows<SIZE, KEYS, THREADS>(keys + other, cached(a, a.k, again), a.k.stride,
                                              tile + KEYS, block.end, a.size);
            dt_copy_rows<SIZE, KEYS, THREADS>(values + other, cached(a, a.v, again), a.v.stride,
                                              tile + KEYS, block.end, a.size);
            dt_commit_copies();
        }
        struct dt_key_range warp = *range;
        if (!dt_sees(warp, tile, KEYS))
            continue;
        products scores;
        float factors[4];
        dt_multiply_rows<TYPE, SIZE>(scores, queries, keys + stage, 0);
        if (!dt_sees_all(warp, tile, KEYS))
            dt_hide_keys(
                scores, [=](int r) { return spans[row + dt_layout<products>::row(r)]; }, tile);
        dt_weigh(p, scores, a.scale * DT_LOG2_E, factors);
        dt_rescale(p, factors);
        if (DROPOUT) {
            uint32_t kept[2];
            dt_draw<products, false>(a, sequence, head, kept, first + row, tile);
            dt_drop(a, scores, scores, kept);
        }
        dt_add_rows<TYPE, SIZE>(p.sums, scores, values + stage, 0);
    }
    float factors[4];
    dt_finish(a, sequence, head, p, first + row, a.scale, factors);
    dt_store_rows<TYPE, SIZE>(a, a.y, sequence, head, first + row, p.sums, factors, memory, row);
}

void dt_cuda_attention_forward_tensor(const struct dt_cuda_attention *a,
                                      struct dt_cuda_stream *stream)
{
    dt_attention_choose(a, [=](auto type, auto size, auto dropout) {
        constexpr int SIZE = decltype(size)::value;
        dt_cuda_attention_launch(
            attention_forward<decltype(type)::value, SIZE, decltype(dropout)::value>,
            dt_attention_grid(a, a->queries, QUERIES, a->heads), THREADS, layout<SIZE>::bytes,
            stream, a);
    });
}
