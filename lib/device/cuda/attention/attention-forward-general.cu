/* SPDX-License-Identifier: MIT */
/* Attention forward of any element type and up to 256 channels, with the tiles of
 * attention-general.cuh: a block keeps a tile of queries and iterates over the keys. */
#include "device/cuda/attention/attention-general.cuh"

#define TILES 2 /* in shared memory, before the weights: one resident, one streamed */

template <int SIZE, int ROWS>
__global__ void __launch_bounds__(DT_GENERAL_THREADS, 1)
    attention_forward_general(const __grid_constant__ struct dt_cuda_attention a)
{
    typedef dt_general<SIZE, ROWS> shape;
    typedef dt_layout<typename shape::products> of;
    DT_DYNAMIC_SHARED(float, memory);
    float *walked = memory + shape::tile, *weights = memory + TILES * shape::tile;
    int32_t first = dt_first_query(shape::rows);
    int head = (int)blockIdx.y, sequence = (int)blockIdx.z, shared = head / a.group;
    int64_t base = (int64_t)sequence * a.queries, cache = (int64_t)sequence * a.key_stride;
    struct dt_key_range block = dt_find_range(a, sequence, first, shape::rows);
    struct dt_span spans[of::rows];
    typename shape::factors factors;
    struct dt_progress<typename shape::sums> p;
    p.begin();
#pragma unroll
    for (int r = 0; r < of::rows; r++)
        spans[r] = dt_find_span(a, sequence, min(first + of::row(r), a.queries - 1));
    dt_read_tile<SIZE, ROWS>(memory, a, a.q, base, head, first, a.queries);
    for (int32_t tile = block.begin / shape::rows * shape::rows; tile < block.end;
         tile += shape::rows) {
        dt_read_tile<SIZE, ROWS>(walked, a, a.k, cache, shared, tile, block.end);
        __syncthreads();
        typename shape::products scores;
        typename shape::bits kept;
        dt_multiply_tiles<SIZE, ROWS>(scores, memory, walked);
        dt_score(a, scores, scores);
        dt_hide_keys(
            scores, [&](int r) { return spans[r]; }, tile);
        dt_weigh(p, scores, 1, factors);
        dt_rescale(p, factors);
        dt_draw_each<typename shape::products, false>(a, sequence, head, kept, first, tile);
        dt_drop(a, scores, scores, kept);
        dt_write_weights<SIZE, ROWS>(weights, scores);
        __syncthreads(); /* all threads are done with the keys */
        dt_read_tile<SIZE, ROWS>(walked, a, a.v, cache, shared, tile, block.end);
        __syncthreads();
        dt_add_tile<SIZE, ROWS>(p.sums, weights, walked);
        __syncthreads();
    }
    dt_finish(a, sequence, head, p, first, DT_LN_2, factors);
    dt_write_rows<SIZE, ROWS>(a, a.y, sequence, head, first, p.sums, factors);
}

void dt_cuda_attention_forward_general(const struct dt_cuda_attention *a,
                                       struct dt_cuda_stream *stream)
{
    dt_general_choose(a, stream->shared_limit, TILES, [=](auto size, auto rows) {
        constexpr int SIZE = decltype(size)::value, ROWS = decltype(rows)::value;
        dt_cuda_attention_launch(
            attention_forward_general<SIZE, ROWS>, dt_attention_grid(a, a->queries, ROWS, a->heads),
            DT_GENERAL_THREADS, dt_general_bytes<SIZE, ROWS>(TILES), stream, a);
    });
}
