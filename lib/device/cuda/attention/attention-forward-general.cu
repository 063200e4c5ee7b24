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
    constexpr int OWN = shape::own;
    DT_DYNAMIC_SHARED(float, memory);
    float *walked = memory + shape::tile, *weights = memory + TILES * shape::tile;
    int32_t first = (int32_t)(gridDim.x - 1 - blockIdx.x) * shape::rows;
    int head = (int)blockIdx.y, sequence = (int)blockIdx.z, shared = head / a.group;
    int y = (int)threadIdx.x / 16, x = (int)threadIdx.x % 16;
    int64_t base = (int64_t)sequence * a.queries, cache = (int64_t)sequence * a.key_stride;
    struct dt_key_range block = dt_find_range(a, sequence, first, shape::rows);
    struct dt_span spans[OWN];
    float sums[OWN][shape::columns] = {}, most[OWN], total[OWN];
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        spans[i] = dt_find_span(a, sequence, min(first + y + 16 * i, a.queries - 1));
        most[i] = -INFINITY, total[i] = 0;
    }
    dt_read_tile<SIZE, ROWS>(memory, a, a.q, base, head, first, a.queries);
    for (int32_t tile = block.begin / shape::rows * shape::rows; tile < block.end;
         tile += shape::rows) {
        dt_read_tile<SIZE, ROWS>(walked, a, a.k, cache, shared, tile, block.end);
        __syncthreads();
        float scores[OWN][OWN];
        dt_multiply_tiles<SIZE, ROWS>(scores, memory, walked);
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            float highest = most[i], sum = 0;
#pragma unroll
            for (int j = 0; j < OWN; j++) {
                int32_t key = tile + x + 16 * j;
                bool seen = key >= spans[i].begin && key < spans[i].end;
                scores[i][j] = seen ? dt_find_score(a, scores[i][j]).value : -INFINITY;
                highest = fmaxf(highest, scores[i][j]);
            }
            highest = dt_row_maximum(highest);
            float zero = highest == -INFINITY ? 0.0f : highest;
            float factor = exp2f(most[i] - zero);
            most[i] = highest;
#pragma unroll
            for (int j = 0; j < OWN; j++) {
                scores[i][j] = exp2f(scores[i][j] - zero);
                sum += scores[i][j];
                if (a.threshold > 0)
                    scores[i][j] *=
                        dt_weight_factor(a, sequence, head, first + y + 16 * i, tile + x + 16 * j);
            }
            total[i] = total[i] * factor + sum;
#pragma unroll
            for (int c = 0; c < shape::columns; c++)
                sums[i][c] *= factor;
        }
        dt_write_weights<SIZE, ROWS>(weights, scores);
        __syncthreads(); /* all threads are done with the keys */
        dt_read_tile<SIZE, ROWS>(walked, a, a.v, cache, shared, tile, block.end);
        __syncthreads();
        dt_add_tile<SIZE, ROWS>(sums, weights, walked);
        __syncthreads();
    }
    float factors[OWN];
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        float sum = dt_row_sum(total[i]);
        int32_t t = first + y + 16 * i;
        factors[i] =
            dt_finish_query(a, base + t, head, most[i] * DT_LN_2, sum, t < a.queries && x == 0);
    }
    dt_write_rows<SIZE, ROWS>(a, a.y, sequence, head, first, sums, factors);
}

template <int SIZE, int ROWS>
static void launch(const struct dt_cuda_attention *a, struct dt_cuda_stream *stream)
{
    dim3 grid((unsigned)dt_tiles(a->queries, dt_general<SIZE, ROWS>::rows), (unsigned)a->heads,
              (unsigned)a->batch);
    dt_cuda_attention_launch(attention_forward_general<SIZE, ROWS>, grid, DT_GENERAL_THREADS,
                             dt_general_bytes<SIZE, ROWS>(TILES), stream, a);
}

void dt_cuda_attention_forward_general(const struct dt_cuda_attention *a,
                                       struct dt_cuda_stream *stream)
{
    DT_GENERAL_VARIANTS(launch, TILES, a, stream);
}
