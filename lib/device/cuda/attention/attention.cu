/* SPDX-License-Identifier: MIT */
/* The attention ops: selection of kernels, and the preprocessing of backward. */
#include <assert.h>

#include "device/cuda/attention/attention.cuh"
#include "device/cuda/cuda.h"

#define THREADS 128

static struct dt_cuda_rows rows_of(const struct dt_tensor *x, int64_t rows)
{
    return {x->data, x->stride, (int32_t)rows, x->dtype};
}

static struct dt_cuda_attention describe(const struct dt_tensor *q, const struct dt_tensor *k,
                                         const struct dt_tensor *v, const struct dt_tensor *y,
                                         const struct dt_tensor *lse,
                                         const struct dt_attention *how)
{
    struct dt_cuda_attention a = {};
    assert(q->columns % how->heads == 0 && q->rows == how->batch * how->queries);
    assert(how->heads % how->kv_heads == 0 && q->columns / how->heads <= DT_CUDA_HEAD_CHANNELS);
    assert(k->dtype == q->dtype && v->dtype == q->dtype);
    a.q = rows_of(q, how->queries), a.y = rows_of(y, how->queries);
    a.k = rows_of(k, how->key_stride), a.v = rows_of(v, how->key_stride);
    a.lse = rows_of(lse, how->queries);
    a.batch = (int32_t)how->batch, a.heads = (int32_t)how->heads;
    a.first_head = (int32_t)how->first_head;
    a.group = (int32_t)(how->heads / how->kv_heads);
    a.queries = (int32_t)how->queries, a.past = (int32_t)how->past;
    a.key_stride = (int32_t)how->key_stride, a.size = (int32_t)(q->columns / how->heads);
    a.length = (int32_t)(how->length > 0 ? how->length : how->past + how->queries);
    a.keys = how->bidirectional ? a.length : (int32_t)(how->past + how->queries);
    struct dt_attention_band band = dt_attention_band_of(how);
    a.before = (int32_t)(band.before < a.keys ? band.before : a.keys);
    a.after = (int32_t)(band.after < a.keys ? band.after : a.keys);
    a.begins = how->begins, a.ends = how->ends;
    a.dtype = q->dtype;
    a.scale = dt_attention_scale(how, a.size), a.softcap = how->softcap;
    a.key = how->dropout.key, a.sample = how->dropout.sample;
    a.threshold = dt_cuda_dropout_threshold(&how->dropout);
    a.kept = 1.0f / (1.0f - how->dropout.rate);
    return a;
}

/* Whether rows can be read and written 16 bytes at a time. */
static bool lies_in_chunks(const struct dt_cuda_rows *x)
{
    return (uintptr_t)x->data % 16 == 0 && x->stride % 8 == 0;
}

/* The kernels on tensor cores have no soft cap: attention with one uses the general kernels. */
static bool fits_tensor_cores(const struct dt_cuda_attention *a)
{
    return a->softcap == 0 && a->dtype != DT_DTYPE_F32 && a->size <= 128 && a->size % 8 == 0 &&
           lies_in_chunks(&a->q) && lies_in_chunks(&a->k) && lies_in_chunks(&a->v) &&
           lies_in_chunks(&a->y) && lies_in_chunks(&a->dy) && lies_in_chunks(&a->dq) &&
           lies_in_chunks(&a->dk) && lies_in_chunks(&a->dv);
}

static bool decodes_in_chunks(const struct dt_cuda_attention *a)
{
    return a->dtype != DT_DTYPE_F32 && a->size % 8 == 0 && lies_in_chunks(&a->q) &&
           lies_in_chunks(&a->k) && lies_in_chunks(&a->v);
}

static bool fits_wgmma(struct dt_device *dev, const struct dt_cuda_attention *a)
{
    return dt_cuda_of(dev)->encode_tensor_map && fits_tensor_cores(a) &&
           (a->size == 64 || a->size == 128) && a->threshold == 0;
}

extern "C" void dt_cuda_attention_forward(struct dt_device *dev, struct dt_tensor *y,
                                          struct dt_tensor *lse, const struct dt_tensor *q,
                                          const struct dt_tensor *k, const struct dt_tensor *v,
                                          const struct dt_attention *how)
{
    struct dt_cuda_attention a = describe(q, k, v, y, lse, how);
    assert(y->dtype == q->dtype);
    if (a.queries == 1 && a.threshold == 0)
        dt_cuda_attention_decode(dev, &a, decodes_in_chunks(&a));
    else if (fits_wgmma(dev, &a))
        dt_cuda_attention_forward_wgmma(dev, &a);
    else if (fits_tensor_cores(&a))
        dt_cuda_attention_forward_tensor(&a, dt_cuda_of(dev)->stream);
    else
        dt_cuda_attention_forward_general(&a, dt_cuda_of(dev)->stream);
}

/* --- backward --------------------------------------------------------------------------------- */

/* Dot product of 8 channels of y and dy. */
template <bool CHUNKS>
static __device__ __forceinline__ float multiply_channels(const struct dt_cuda_attention &a,
                                                          int64_t row, int head, int channel)
{
    float sum = 0;
    int64_t y = row * a.y.stride + head * a.size + channel;
    int64_t dy = row * a.dy.stride + head * a.size + channel;
    if constexpr (CHUNKS) {
        uint4 left = *(const uint4 *)((const uint16_t *)a.y.data + y);
        uint4 right = *(const uint4 *)((const uint16_t *)a.dy.data + dy);
        const uint32_t l[4] = {left.x, left.y, left.z, left.w};
        const uint32_t r[4] = {right.x, right.y, right.z, right.w};
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int shift = i % 2 * 16;
            sum += dt_number(a.dtype, (uint16_t)(l[i / 2] >> shift)) *
                   dt_number(a.dtype, (uint16_t)(r[i / 2] >> shift));
        }
    } else {
        for (int i = 0; i < 8 && channel + i < a.size; i++)
            sum += dt_element(a.y.data, a.dtype, y + i) * dt_element(a.dy.data, a.dtype, dy + i);
    }
    return sum;
}

/* Computes the records of a tile of queries of one head, LANES threads per query; blocks of the
 * first head also compute the range of the tile. CHUNKS: see lies_in_chunks. */
template <int LANES, bool CHUNKS>
__global__ void __launch_bounds__(THREADS)
    attention_prepare(const __grid_constant__ struct dt_cuda_attention a)
{
    int32_t first = (int32_t)blockIdx.x * DT_ATTENTION_TILE;
    int head = (int)blockIdx.y, sequence = (int)blockIdx.z, lane = (int)threadIdx.x % LANES;
    struct dt_query_record *records = a.records + ((int64_t)sequence * a.heads + head) * a.queries;
    for (int i = (int)threadIdx.x / LANES; i < DT_ATTENTION_TILE; i += THREADS / LANES) {
        int32_t t = min(first + i, a.queries - 1);
        int64_t row = (int64_t)sequence * a.queries + t;
        float delta = 0;
        if (lane * 8 < a.size)
            delta = multiply_channels<CHUNKS>(a, row, head, lane * 8);
#pragma unroll
        for (int offset = LANES / 2; offset > 0; offset /= 2)
            delta += __shfl_xor_sync(~0u, delta, offset);
        if (lane == 0 && first + i < a.queries) {
            float log_sum = ((const float *)a.lse.data)[row * a.lse.stride + head];
            struct dt_span span = dt_find_span(a, sequence, t);
            /* A query without visible keys: its log-sum-exp is minus infinity and is not used. */
            records[t] = {log_sum == -INFINITY ? 0.0f : log_sum * DT_LOG2_E, delta, span.begin,
                          span.end};
        }
    }
    if (head > 0 || threadIdx.x >= 32)
        return;
    struct dt_key_range range = dt_find_range(a, sequence, first, DT_ATTENTION_TILE);
    if (first + DT_ATTENTION_TILE > a.queries)
        range.common_end = 0; /* rows past the last query see no keys */
    if (threadIdx.x == 0)
        a.ranges[(int64_t)sequence * gridDim.x + blockIdx.x] = range;
}

static void prepare(const struct dt_cuda_attention *a, bool chunks, struct dt_cuda_stream *stream)
{
    dim3 grid((unsigned)dt_tiles(a->queries, DT_ATTENTION_TILE), (unsigned)a->heads,
              (unsigned)a->batch);
    dt_cuda_attention_kernel *kernel = chunks && a->size <= 64 ? attention_prepare<8, true>
                                       : chunks                ? attention_prepare<16, true>
                                                               : attention_prepare<32, false>;
    dt_cuda_launch(stream, grid, dim3(THREADS), 0, kernel, *a);
}

extern "C" void dt_cuda_attention_backward(struct dt_device *dev, struct dt_tensor *dq,
                                           struct dt_tensor *dk, struct dt_tensor *dv,
                                           const struct dt_tensor *dy, const struct dt_tensor *y,
                                           const struct dt_tensor *lse, const struct dt_tensor *q,
                                           const struct dt_tensor *k, const struct dt_tensor *v,
                                           const struct dt_attention *how)
{
    struct dt_cuda_attention a = describe(q, k, v, y, lse, how);
    struct dt_cuda_stream *stream = dt_cuda_of(dev)->stream;
    assert(a.keys <= a.key_stride);
    assert(y->dtype == q->dtype && dy->dtype == q->dtype && dq->dtype == q->dtype);
    assert((dk->dtype == q->dtype || dk->dtype == DT_DTYPE_F32) && dv->dtype == dk->dtype);
    a.dy = rows_of(dy, how->queries), a.dq = rows_of(dq, how->queries);
    a.dk = rows_of(dk, how->key_stride), a.dv = rows_of(dv, how->key_stride);
    size_t records = (size_t)(how->batch * how->heads * how->queries) * sizeof *a.records;
    size_t ranges =
        (size_t)(how->batch * dt_tiles(a.queries, DT_ATTENTION_TILE)) * sizeof *a.ranges;
    char *scratch = (char *)dt_cuda_scratch(dev, records + ranges);
    if (scratch == NULL)
        return;
    a.records = (struct dt_query_record *)scratch;
    a.ranges = (struct dt_key_range *)(scratch + records);
    bool tensor = fits_tensor_cores(&a);
    prepare(&a, tensor, stream);
    if (fits_wgmma(dev, &a))
        dt_cuda_attention_backward_wgmma(dev, &a);
    else if (tensor)
        dt_cuda_attention_backward_tensor(&a, stream);
    else
        dt_cuda_attention_backward_general(&a, stream);
}
