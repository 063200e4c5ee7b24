/* SPDX-License-Identifier: MIT */
/*
 * Attention backward on the tensor cores, as attention-forward-tensor.cu.
 *
 * Two kernels recompute the weights from the log-sum-exp: one keeps queries and iterates over keys,
 * for dq; the other keeps keys and iterates over the queries of all heads that share them, for dk
 * and dv. That is seven products per pair of tiles. A single kernel would need five, but would
 * accumulate dq across blocks, with atomics (no fixed order) or serialized.
 *
 * Both keep 128 rows: 4 warps of 32 for heads of 64 channels (64 KB of shared memory, two blocks
 * per multiprocessor), 8 warps of 16 for 128 channels (128 KB, one block), since accumulators and
 * resident operands use all registers. The other side is streamed in tiles of 64 rows,
 * double-buffered; scores are computed for 32 rows at a time. GPUs that give a block 99 KB, those
 * of sm_86, sm_89 and sm_120, stream 128 channels in tiles of 32 rows (97 KB).
 */
#include "device/cuda/attention/attention-backward.cuh"

#define KEPT DT_ATTENTION_KEPT
#define PART 32 /* rows of scores computed at a time */

/* Warps, and 16-row fragments per warp. */
template <int SIZE> struct cut {
    static constexpr int rows = SIZE == 64 ? 2 : 1, warps = KEPT / 16 / rows, threads = 32 * warps,
                         blocks = SIZE == 64 ? 2 : 1; /* per multiprocessor */
};

/* Where the resident keys and values are: with 64 channels registers do not suffice, so they are
 * read from shared memory. */
template <int SIZE> struct choose_kept {
    typedef dt_held<SIZE, 1> type;
};
template <> struct choose_kept<64> {
    typedef dt_lying<64, 2> type;
};

/* Shared memory of a block: two resident tiles, two stages of two streamed tiles of WALKED rows,
 * and the record of each query. */
template <int SIZE, int WALKED> struct layout {
    static constexpr int tile = dt_tile_bytes<SIZE>(WALKED), second = dt_tile_bytes<SIZE>(KEPT),
                         walked_first = 2 * second, walked_second = walked_first + 2 * tile,
                         known = walked_second + 2 * tile,
                         bytes = known + 2 * WALKED * (int)sizeof(struct dt_query_record);
    static_assert(2 * WALKED * sizeof(struct dt_query_record) >= KEPT * sizeof(struct dt_span),
                  "the spans of resident queries have the place of the records");
};

/* --- queries ---------------------------------------------------------------------------------- */

template <enum dt_dtype TYPE, int SIZE, bool DROPOUT, int WALKED>
__global__ void __launch_bounds__(cut<SIZE>::threads, cut<SIZE>::blocks)
    attention_backward_queries(const __grid_constant__ struct dt_cuda_attention a)
{
    DT_DYNAMIC_SHARED(unsigned char, memory);
    typedef layout<SIZE, WALKED> at;
    constexpr int ROWS = cut<SIZE>::rows, THREADS = cut<SIZE>::threads;
    unsigned char *keys = memory + at::walked_first, *values = memory + at::walked_second;
    struct dt_span *spans = (struct dt_span *)(memory + at::known);
    int32_t first = dt_first_query(KEPT);
    int head = (int)blockIdx.y, sequence = (int)blockIdx.z;
    int row = (int)threadIdx.x / 32 * 16 * ROWS, thread = (int)threadIdx.x;
    const uint16_t *k = dt_head_rows(a.k, a, sequence, head / a.group);
    const uint16_t *v = dt_head_rows(a.v, a, sequence, head / a.group);
    struct dt_key_range block = dt_find_range(a, sequence, first, KEPT);
    struct dt_key_range warp = dt_find_range(a, sequence, first + row, 16 * ROWS);

    if (thread < KEPT)
        spans[thread] = dt_find_span(a, sequence, min(first + thread, a.queries - 1));
    int32_t from = block.begin / WALKED * WALKED;
    dt_copy_rows<SIZE, KEPT, THREADS>(memory, dt_head_rows(a.q, a, sequence, head), a.q.stride,
                                      first, a.queries, a.size);
    dt_copy_rows<SIZE, KEPT, THREADS>(memory + at::second, dt_head_rows(a.dy, a, sequence, head),
                                      a.dy.stride, first, a.queries, a.size);
    dt_commit_copies();
    dt_copy_rows<SIZE, WALKED, THREADS>(keys, k, a.k.stride, from, block.end, a.size);
    dt_copy_rows<SIZE, WALKED, THREADS>(values, v, a.v.stride, from, block.end, a.size);
    dt_commit_copies();

    typedef float products_of_warp[ROWS][PART / 8][4];
    typedef dt_layout<products_of_warp> of;
    float log_sums[of::rows], deltas[of::rows], sums[ROWS][SIZE / 8][4];
    const struct dt_query_record *records =
        a.records + ((int64_t)sequence * a.heads + head) * a.queries;
#pragma unroll
    for (int r = 0; r < of::rows; r++) {
        int32_t t = min(first + row + of::row(r), a.queries - 1);
        log_sums[r] = records[t].log_sum;
        deltas[r] = records[t].delta;
    }
    dt_clear(sums);
    dt_wait_copies<1>();
    __syncthreads();
    dt_held<SIZE, ROWS> queries, gradients;
    queries.hold(memory, row);
    gradients.hold(memory + at::second, row);
    int stage = 0;
    for (int32_t tile = from; tile < block.end || tile == from; tile += WALKED, stage ^= at::tile) {
        dt_wait_copies<0>();
        __syncthreads(); /* this tile has arrived; all are done with the previous one */
        if (tile + WALKED < block.end) {
            int other = stage ^ at::tile;
            dt_copy_rows<SIZE, WALKED, THREADS>(keys + other, k, a.k.stride, tile + WALKED,
                                                block.end, a.size);
            dt_copy_rows<SIZE, WALKED, THREADS>(values + other, v, a.v.stride, tile + WALKED,
                                                block.end, a.size);
            dt_commit_copies();
        }
#pragma unroll 1
        for (int part = 0; part < WALKED; part += PART) {
            if (!dt_sees(warp, tile + part, PART))
                continue;
            products_of_warp scores, products;
            uint32_t kept[ROWS] = {};
            dt_multiply_rows<TYPE, SIZE>(scores, queries, keys + stage, part);
            if (!dt_sees_all(warp, tile + part, PART))
                dt_hide_keys(
                    scores, [=](int r) { return spans[row + of::row(r)]; }, tile + part);
            dt_multiply_rows<TYPE, SIZE>(products, gradients, values + stage, part);
            if (DROPOUT)
                dt_draw<products_of_warp, false>(a, sequence, head, kept, first + row, tile + part);
            dt_weigh_again(
                scores, [&](int r, int) { return log_sums[r]; }, a.scale * DT_LOG2_E);
            dt_differentiate<DROPOUT>(
                a, products, scores, [&](int r, int) { return deltas[r]; }, kept);
            dt_add_rows<TYPE, SIZE>(sums, products, keys + stage, part);
        }
    }
    dt_store_rows<TYPE, SIZE>(a, a.dq, sequence, head, first + row, sums, a.scale, memory, row);
}

/* --- keys and values -------------------------------------------------------------------------- */

/* The records of a tile of queries. */
template <int SIZE, int WALKED>
static __device__ __forceinline__ void copy_queries(const struct dt_cuda_attention &a,
                                                    unsigned char *memory, int stage, int sequence,
                                                    int head, int32_t tile)
{
    typedef layout<SIZE, WALKED> at;
    constexpr int THREADS = cut<SIZE>::threads;
    int32_t first = tile * WALKED, thread = (int32_t)threadIdx.x;
    sequence = dt_again(sequence);
    dt_copy_rows<SIZE, WALKED, THREADS>(memory + at::walked_first + stage * at::tile,
                                        dt_head_rows(a.q, a, sequence, head), a.q.stride, first,
                                        a.queries, a.size);
    dt_copy_rows<SIZE, WALKED, THREADS>(memory + at::walked_second + stage * at::tile,
                                        dt_head_rows(a.dy, a, sequence, head), a.dy.stride, first,
                                        a.queries, a.size);
    const struct dt_query_record *records =
        a.records + ((int64_t)sequence * a.heads + head) * a.queries;
    struct dt_query_record *known = (struct dt_query_record *)(memory + at::known);
    bool exists = first + thread < a.queries;
    if (thread < WALKED)
        dt_copy_async(known + stage * WALKED + thread, exists ? records + first + thread : records,
                      exists ? 16 : 0);
}

/* values (16 ROWS x SIZE) += weights, after dropout, times gradients of outputs. */
template <enum dt_dtype TYPE, int SIZE, int ROWS, bool DROPOUT>
static __device__ __forceinline__ void
add_values(const struct dt_cuda_attention &a, float (&values)[ROWS][SIZE / 8][4],
           const float (&weights)[ROWS][PART / 8][4], const uint32_t (&kept)[ROWS],
           unsigned char *gradients, int part)
{
    if constexpr (DROPOUT) {
        float left[ROWS][PART / 8][4];
        dt_drop(a, left, weights, kept);
        dt_add_rows<TYPE, SIZE>(values, left, gradients, part);
    } else {
        dt_add_rows<TYPE, SIZE>(values, weights, gradients, part);
    }
}

template <enum dt_dtype TYPE, int SIZE, bool DROPOUT, int WALKED>
__global__ void __launch_bounds__(cut<SIZE>::threads, cut<SIZE>::blocks)
    attention_backward_keys(const __grid_constant__ struct dt_cuda_attention a)
{
    DT_DYNAMIC_SHARED(unsigned char, memory);
    typedef layout<SIZE, WALKED> at;
    constexpr int ROWS = cut<SIZE>::rows, THREADS = cut<SIZE>::threads;
    int32_t first = (int32_t)blockIdx.x * KEPT;
    int shared = (int)blockIdx.y, sequence = (int)blockIdx.z;
    int row = (int)threadIdx.x / 32 * 16 * ROWS;

    dt_copy_rows<SIZE, KEPT, THREADS>(memory, dt_head_rows(a.k, a, sequence, shared), a.k.stride,
                                      first, a.keys, a.size);
    dt_copy_rows<SIZE, KEPT, THREADS>(memory + at::second, dt_head_rows(a.v, a, sequence, shared),
                                      a.v.stride, first, a.keys, a.size);
    dt_commit_copies();
    dt_walk<WALKED> w;
    w.begin(a, sequence, shared, first);
    int32_t tile = w.next();
    if (tile >= 0)
        copy_queries<SIZE, WALKED>(a, memory, 0, sequence, w.head, tile);
    dt_commit_copies();
    dt_wait_copies<1>();
    __syncthreads();

    float dk[ROWS][SIZE / 8][4], dv[ROWS][SIZE / 8][4];
    dt_clear(dk), dt_clear(dv);
    typename choose_kept<SIZE>::type keys;
    dt_lying<SIZE, ROWS> values;
    keys.hold(memory, row);
    values.hold(memory + at::second, row);
    for (int stage = 0; tile >= 0; stage ^= 1) {
        int32_t head = w.head, t = tile * WALKED;
        bool seen = dt_sees(w.range(tile), first + row, 16 * ROWS);
        bool hidden = !dt_sees_all(w.range(tile), first + row, 16 * ROWS);
        dt_wait_copies<0>();
        __syncthreads(); /* this tile has arrived; all are done with the previous one */
        tile = w.next();
        if (tile >= 0)
            copy_queries<SIZE, WALKED>(a, memory, stage ^ 1, sequence, w.head, tile);
        dt_commit_copies();
        if (!seen)
            continue;
        unsigned char *queries = memory + at::walked_first + stage * at::tile;
        unsigned char *gradients = memory + at::walked_second + stage * at::tile;
        const struct dt_query_record *known =
            (const struct dt_query_record *)(memory + at::known) + stage * WALKED;
#pragma unroll 1
        for (int part = 0; part < WALKED; part += PART) {
            if (a.past + t + part + PART + a.after <= first + row)
                continue;
            typedef float products_of_warp[ROWS][PART / 8][4];
            typedef dt_layout<products_of_warp> of;
            products_of_warp weights, products;
            const struct dt_query_record *query = known + part;
            uint32_t kept[ROWS] = {};
            if (DROPOUT)
                dt_draw<products_of_warp, true>(a, sequence, head, kept, t + part, first + row);
            dt_multiply_rows<TYPE, SIZE>(weights, keys, queries, part);
            if (hidden)
                dt_hide_queries(weights, dt_spans_of(query), first + row);
            dt_weigh_again(
                weights, [=](int, int c) { return query[of::column(c)].log_sum; },
                a.scale * DT_LOG2_E);
            add_values<TYPE, SIZE, ROWS, DROPOUT>(a, dv, weights, kept, gradients, part);
            dt_multiply_rows<TYPE, SIZE>(products, values, gradients, part);
            dt_differentiate<DROPOUT>(
                a, products, weights, [=](int, int c) { return query[of::column(c)].delta; }, kept);
            dt_add_rows<TYPE, SIZE>(dk, products, queries, part);
        }
    }
    dt_store_rows<TYPE, SIZE>(a, a.dk, sequence, shared, first + row, dk, a.scale, memory, row);
    dt_store_rows<TYPE, SIZE>(a, a.dv, sequence, shared, first + row, dv, 1, memory + at::second,
                              row);
}

template <enum dt_dtype TYPE, int SIZE, bool DROPOUT, int WALKED>
static void launch(const struct dt_cuda_attention *a, struct dt_cuda_stream *stream)
{
    dt_cuda_attention_launch(attention_backward_keys<TYPE, SIZE, DROPOUT, WALKED>,
                             dt_attention_grid(a, a->key_stride, KEPT, a->heads / a->group),
                             cut<SIZE>::threads, layout<SIZE, WALKED>::bytes, stream, a);
    dt_cuda_attention_launch(attention_backward_queries<TYPE, SIZE, DROPOUT, WALKED>,
                             dt_attention_grid(a, a->queries, KEPT, a->heads), cut<SIZE>::threads,
                             layout<SIZE, WALKED>::bytes, stream, a);
}

void dt_cuda_attention_backward_tensor(const struct dt_cuda_attention *a,
                                       struct dt_cuda_stream *stream)
{
    dt_attention_choose(a, [=](auto type, auto size, auto dropout) {
        constexpr enum dt_dtype TYPE = decltype(type)::value;
        constexpr int SIZE = decltype(size)::value, NARROW = SIZE == 64 ? DT_ATTENTION_TILE : 32;
        constexpr bool DROPOUT = decltype(dropout)::value;
        if ((size_t)layout<SIZE, DT_ATTENTION_TILE>::bytes <= stream->shared_limit)
            launch<TYPE, SIZE, DROPOUT, DT_ATTENTION_TILE>(a, stream);
        else
            launch<TYPE, SIZE, DROPOUT, NARROW>(a, stream);
    });
}
