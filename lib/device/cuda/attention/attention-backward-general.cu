/* SPDX-License-Identifier: MIT */
/* Attention backward of any element type and up to 256 channels: two kernels, as
 * attention-backward-tensor.cu, with the products of attention-general.cuh. */
#include "device/cuda/attention/attention-general.cuh"

#define TILES 4 /* in shared memory, before the weights: two resident, two streamed */

static __device__ __forceinline__ const struct dt_query_record *
head_records(const struct dt_cuda_attention &a, int sequence, int head)
{
    return a.records + ((int64_t)sequence * a.heads + head) * a.queries;
}

/* The record of query t, which sees no key if it is past the last. */
static __device__ __forceinline__ struct dt_query_record
record_of(const struct dt_cuda_attention &a, const struct dt_query_record *records, int32_t t)
{
    struct dt_query_record query = records[min(t, a.queries - 1)];
    if (t >= a.queries)
        query.end = 0;
    return query;
}

template <int SIZE, int ROWS>
__global__ void __launch_bounds__(DT_GENERAL_THREADS, 1)
    attention_backward_queries_general(const __grid_constant__ struct dt_cuda_attention a)
{
    typedef dt_general<SIZE, ROWS> shape;
    typedef typename shape::products products_of_thread;
    typedef dt_layout<products_of_thread> of;
    DT_DYNAMIC_SHARED(float, memory);
    float *gradients = memory + shape::tile;
    float *keys = memory + 2 * shape::tile;
    float *values = memory + 3 * shape::tile;
    float *weights = memory + TILES * shape::tile;
    int32_t first = dt_first_query(shape::rows);
    int head = (int)blockIdx.y, sequence = (int)blockIdx.z, shared = head / a.group;
    int64_t base = (int64_t)sequence * a.queries, cache = (int64_t)sequence * a.key_stride;
    const struct dt_query_record *records = head_records(a, sequence, head);
    struct dt_key_range block = dt_find_range(a, sequence, first, shape::rows);
    struct dt_query_record query[of::rows];
    typename shape::sums sums = {};
    typename shape::factors scales;
#pragma unroll
    for (int r = 0; r < of::rows; r++) {
        query[r] = record_of(a, records, first + of::row(r));
        scales[r] = a.scale;
    }
    dt_read_tile<SIZE, ROWS>(memory, a, a.q, base, head, first, a.queries);
    dt_read_tile<SIZE, ROWS>(gradients, a, a.dy, base, head, first, a.queries);
    for (int32_t tile = block.begin / shape::rows * shape::rows; tile < block.end;
         tile += shape::rows) {
        dt_read_tile<SIZE, ROWS>(keys, a, a.k, cache, shared, tile, block.end);
        dt_read_tile<SIZE, ROWS>(values, a, a.v, cache, shared, tile, block.end);
        __syncthreads();
        products_of_thread raw, scores, products;
        typename shape::bits kept;
        dt_multiply_tiles<SIZE, ROWS>(raw, memory, keys);
        dt_multiply_tiles<SIZE, ROWS>(products, gradients, values);
        dt_score(a, scores, raw);
        dt_hide_keys(
            scores,
            [&](int r) -> struct dt_span {
                return {query[r].begin, query[r].end};
            },
            tile);
        dt_weigh_again(
            scores, [&](int r, int) { return query[r].log_sum; }, 1);
        dt_draw_each<products_of_thread, false>(a, sequence, head, kept, first, tile);
        dt_differentiate<true>(
            a, products, scores, [&](int r, int) { return query[r].delta; }, kept);
        dt_uncap(a, products, raw);
        dt_write_weights<SIZE, ROWS>(weights, products);
        __syncthreads();
        dt_add_tile<SIZE, ROWS>(sums, weights, keys);
        __syncthreads(); /* all threads are done with this tile */
    }
    dt_write_rows<SIZE, ROWS>(a, a.dq, sequence, head, first, sums, scales);
}

template <int SIZE, int ROWS>
__global__ void __launch_bounds__(DT_GENERAL_THREADS, 1)
    attention_backward_keys_general(const __grid_constant__ struct dt_cuda_attention a)
{
    typedef dt_general<SIZE, ROWS> shape;
    typedef typename shape::products products_of_thread;
    typedef dt_layout<products_of_thread> of;
    DT_DYNAMIC_SHARED(float, memory);
    float *values = memory + shape::tile;
    float *queries = memory + 2 * shape::tile;
    float *gradients = memory + 3 * shape::tile;
    float *weights = memory + TILES * shape::tile;
    int32_t first = (int32_t)blockIdx.x * shape::rows;
    int shared = (int)blockIdx.y, sequence = (int)blockIdx.z;
    int64_t base = (int64_t)sequence * a.queries, cache = (int64_t)sequence * a.key_stride;
    int32_t tiles = dt_tiles(a.queries, DT_ATTENTION_TILE);
    const struct dt_key_range *ranges = a.ranges + (int64_t)sequence * tiles;
    typename shape::sums dk = {}, dv = {};
    typename shape::factors scales, ones;
#pragma unroll
    for (int r = 0; r < of::rows; r++)
        scales[r] = a.scale, ones[r] = 1;
    dt_read_tile<SIZE, ROWS>(memory, a, a.k, cache, shared, first, a.keys);
    dt_read_tile<SIZE, ROWS>(values, a, a.v, cache, shared, first, a.keys);
    for (int head = shared * a.group; head < (shared + 1) * a.group; head++) {
        const struct dt_query_record *records = head_records(a, sequence, head);
        for (int32_t tile = 0; tile < a.queries; tile += shape::rows) {
            if (!dt_sees(ranges[tile / DT_ATTENTION_TILE], first, shape::rows))
                continue;
            dt_read_tile<SIZE, ROWS>(queries, a, a.q, base, head, tile, a.queries);
            dt_read_tile<SIZE, ROWS>(gradients, a, a.dy, base, head, tile, a.queries);
            __syncthreads();
            products_of_thread raw, scores, products;
            typename shape::bits kept;
            struct dt_query_record query[of::columns];
#pragma unroll
            for (int c = 0; c < of::columns; c++)
                query[c] = record_of(a, records, tile + of::column(c));
            dt_multiply_tiles<SIZE, ROWS>(raw, memory, queries);
            dt_multiply_tiles<SIZE, ROWS>(products, values, gradients);
            dt_score(a, scores, raw);
            dt_hide_queries(
                scores,
                [&](int c) -> struct dt_span {
                    return {query[c].begin, query[c].end};
                },
                first);
            dt_weigh_again(
                scores, [&](int, int c) { return query[c].log_sum; }, 1);
            dt_draw_each<products_of_thread, true>(a, sequence, head, kept, tile, first);
            dt_differentiate<true>(
                a, products, scores, [&](int, int c) { return query[c].delta; }, kept);
            dt_uncap(a, products, raw);
            dt_drop(a, scores, scores, kept);
            dt_write_weights<SIZE, ROWS>(weights, scores);
            __syncthreads();
            dt_add_tile<SIZE, ROWS>(dv, weights, gradients);
            __syncthreads();
            dt_write_weights<SIZE, ROWS>(weights, products);
            __syncthreads();
            dt_add_tile<SIZE, ROWS>(dk, weights, queries);
            __syncthreads(); /* all threads are done with this tile */
        }
    }
    dt_write_rows<SIZE, ROWS>(a, a.dk, sequence, shared, first, dk, scales);
    dt_write_rows<SIZE, ROWS>(a, a.dv, sequence, shared, first, dv, ones);
}

void dt_cuda_attention_backward_general(const struct dt_cuda_attention *a,
                                        struct dt_cuda_stream *stream)
{
    dt_general_choose(a, stream->shared_limit, TILES, [=](auto size, auto rows) {
        constexpr int SIZE = decltype(size)::value, ROWS = decltype(rows)::value;
        const size_t bytes = dt_general_bytes<SIZE, ROWS>(TILES);
        dt_cuda_attention_launch(attention_backward_keys_general<SIZE, ROWS>,
                                 dt_attention_grid(a, a->key_stride, ROWS, a->heads / a->group),
                                 DT_GENERAL_THREADS, bytes, stream, a);
        dt_cuda_attention_launch(attention_backward_queries_general<SIZE, ROWS>,
                                 dt_attention_grid(a, a->queries, ROWS, a->heads),
                                 DT_GENERAL_THREADS, bytes, stream, a);
    });
}
