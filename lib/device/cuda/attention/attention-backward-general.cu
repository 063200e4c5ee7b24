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

/* Whether query t sees the key; t may be past the last query. */
static __device__ __forceinline__ bool pair_counts(const struct dt_cuda_attention &a,
                                                   const struct dt_query_record &query, int32_t t,
                                                   int32_t key)
{
    return t < a.queries && key >= query.begin && key < query.end;
}

template <int SIZE, int ROWS>
__global__ void __launch_bounds__(DT_GENERAL_THREADS, 1)
    attention_backward_queries_general(const __grid_constant__ struct dt_cuda_attention a)
{
    typedef dt_general<SIZE, ROWS> shape;
    constexpr int OWN = shape::own;
    DT_DYNAMIC_SHARED(float, memory);
    float *gradients = memory + shape::tile;
    float *keys = memory + 2 * shape::tile;
    float *values = memory + 3 * shape::tile;
    float *weights = memory + TILES * shape::tile;
    int32_t first = (int32_t)(gridDim.x - 1 - blockIdx.x) * shape::rows;
    int head = (int)blockIdx.y, sequence = (int)blockIdx.z, shared = head / a.group;
    int y = (int)threadIdx.x / 16, x = (int)threadIdx.x % 16;
    int64_t base = (int64_t)sequence * a.queries, cache = (int64_t)sequence * a.key_stride;
    const struct dt_query_record *records = head_records(a, sequence, head);
    struct dt_key_range block = dt_find_range(a, sequence, first, shape::rows);
    struct dt_query_record query[OWN];
    float sums[OWN][shape::columns] = {};
    float scales[OWN];
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        query[i] = records[min(first + y + 16 * i, a.queries - 1)];
        scales[i] = a.scale;
    }
    dt_read_tile<SIZE, ROWS>(memory, a, a.q, base, head, first, a.queries);
    dt_read_tile<SIZE, ROWS>(gradients, a, a.dy, base, head, first, a.queries);
    for (int32_t tile = block.begin / shape::rows * shape::rows; tile < block.end;
         tile += shape::rows) {
        dt_read_tile<SIZE, ROWS>(keys, a, a.k, cache, shared, tile, block.end);
        dt_read_tile<SIZE, ROWS>(values, a, a.v, cache, shared, tile, block.end);
        __syncthreads();
        float scores[OWN][OWN], products[OWN][OWN];
        dt_multiply_tiles<SIZE, ROWS>(scores, memory, keys);
        dt_multiply_tiles<SIZE, ROWS>(products, gradients, values);
#pragma unroll
        for (int i = 0; i < OWN; i++)
#pragma unroll
            for (int j = 0; j < OWN; j++) {
                int32_t t = first + y + 16 * i, key = tile + x + 16 * j;
                struct dt_general_score score = dt_find_score(a, scores[i][j]);
                float weight = exp2f(score.value - query[i].log_sum);
                if (a.threshold > 0)
                    products[i][j] *= dt_weight_factor(a, sequence, head, t, key);
                scores[i][j] = pair_counts(a, query[i], t, key)
                                   ? weight * (products[i][j] - query[i].delta) * score.slope
                                   : 0.0f;
            }
        dt_write_weights<SIZE, ROWS>(weights, scores);
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
    constexpr int OWN = shape::own;
    DT_DYNAMIC_SHARED(float, memory);
    float *values = memory + shape::tile;
    float *queries = memory + 2 * shape::tile;
    float *gradients = memory + 3 * shape::tile;
    float *weights = memory + TILES * shape::tile;
    int32_t first = (int32_t)blockIdx.x * shape::rows;
    int shared = (int)blockIdx.y, sequence = (int)blockIdx.z;
    int y = (int)threadIdx.x / 16, x = (int)threadIdx.x % 16;
    int64_t base = (int64_t)sequence * a.queries, cache = (int64_t)sequence * a.key_stride;
    int32_t tiles = dt_tiles(a.queries, DT_ATTENTION_TILE);
    const struct dt_key_range *ranges = a.ranges + (int64_t)sequence * tiles;
    float dk[OWN][shape::columns] = {}, dv[OWN][shape::columns] = {};
    float scales[OWN], ones[OWN];
#pragma unroll
    for (int i = 0; i < OWN; i++)
        scales[i] = a.scale, ones[i] = 1;
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
            float scores[OWN][OWN], products[OWN][OWN];
            dt_multiply_tiles<SIZE, ROWS>(scores, memory, queries);
            dt_multiply_tiles<SIZE, ROWS>(products, values, gradients);
#pragma unroll
            for (int j = 0; j < OWN; j++) {
                int32_t t = tile + x + 16 * j;
                struct dt_query_record query = records[min(t, a.queries - 1)];
#pragma unroll
                for (int i = 0; i < OWN; i++) {
                    int32_t key = first + y + 16 * i;
                    struct dt_general_score score = dt_find_score(a, scores[i][j]);
                    float weight = exp2f(score.value - query.log_sum);
                    float factor = 1;
                    if (a.threshold > 0)
                        factor = dt_weight_factor(a, sequence, head, t, key);
                    if (!pair_counts(a, query, t, key))
                        weight = 0;
                    scores[i][j] = weight * factor;
                    products[i][j] = weight * (products[i][j] * factor - query.delta) * score.slope;
                }
            }
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

template <int SIZE, int ROWS>
static void launch(const struct dt_cuda_attention *a, struct dt_cuda_stream *stream)
{
    const int32_t rows = dt_general<SIZE, ROWS>::rows;
    dim3 queries((unsigned)dt_tiles(a->queries, rows), (unsigned)a->heads, (unsigned)a->batch);
    dim3 keys((unsigned)dt_tiles(a->key_stride, rows), (unsigned)(a->heads / a->group),
              (unsigned)a->batch);
    const size_t bytes = dt_general_bytes<SIZE, ROWS>(TILES);
    dt_cuda_attention_launch(attention_backward_keys_general<SIZE, ROWS>, keys, DT_GENERAL_THREADS,
                             bytes, stream, a);
    dt_cuda_attention_launch(attention_backward_queries_general<SIZE, ROWS>, queries,
                             DT_GENERAL_THREADS, bytes, stream, a);
}

void dt_cuda_attention_backward_general(const struct dt_cuda_attention *a,
                                        struct dt_cuda_stream *stream)
{
    DT_GENERAL_VARIANTS(launch, TILES, a, stream);
}
