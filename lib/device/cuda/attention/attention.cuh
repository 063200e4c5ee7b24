/* SPDX-License-Identifier: MIT */
/*
 * Shared by all attention kernels. Scores are computed tile by tile and never stored
 * (FlashAttention: Dao et al. 2022; Dao 2023): a block of threads keeps rows of queries, or of
 * keys, and iterates over tiles of the other side. One thread computes each sum, in an order that
 * depends on the shape alone, so results are bitwise reproducible. Scores are in units of log2:
 * weights are powers of two.
 *
 * The keys that a query attends to are a contiguous range, the span, whatever the mask: causal, a
 * window, documents, padding, the length of a cache. Tiles outside of all spans of a block are
 * skipped; tiles inside of all spans are not masked.
 */
#ifndef DT_DEVICE_CUDA_ATTENTION_CUH
#define DT_DEVICE_CUDA_ATTENTION_CUH

#include <math.h>
#include <type_traits>

#include "device/cuda/ptx.cuh"
#include "device/cuda/random.cuh"

#define DT_ATTENTION_TILE 64 /* rows of a streamed tile */

struct dt_cuda_rows {
    void *data;
    int64_t stride; /* elements from one row to the next */
    int32_t rows;   /* of a sequence */
    enum dt_dtype type;
};

/* What backward reads of each query, 16 bytes: its log-sum-exp in units of log2, the product of
 * its output and the output's gradient, and its span. */
struct alignas(16) dt_query_record {
    float log_sum, delta;
    int32_t begin, end;
};

/* For a tile of queries: the keys that any of them sees, and those that all of them see. */
struct alignas(16) dt_key_range {
    int32_t begin, end, common_begin, common_end;
};

/* struct dt_attention and its operands, as kernel parameters. */
struct dt_cuda_attention {
    struct dt_cuda_rows q, k, v, y, lse;
    struct dt_cuda_rows dy, dq, dk, dv; /* of backward */
    struct dt_query_record *records;    /* batch x heads x queries */
    struct dt_key_range *ranges;        /* batch x tiles of queries */
    int32_t batch, heads, first_head;
    int32_t group;                           /* heads of q that share one of k */
    int32_t queries, past, key_stride, size; /* size: channels of a head */
    int32_t keys, length;                    /* that are attended to; in the whole sequence */
    int32_t before, after;                   /* of struct dt_attention_band, at most keys */
    const int32_t *begins, *ends;
    enum dt_dtype dtype; /* of operands; dk and dv may be fp32 */
    float scale, softcap;
    uint64_t key, sample;
    uint32_t threshold; /* of dropout: the smallest random word that keeps its weight */
    float kept;         /* scale of the weights that dropout keeps */
};

/* *_tensor: on tensor cores, heads of at most 128 channels of 16-bit elements, with rows and
 * heads aligned to 16 bytes, without a soft cap. *_general: any type, up to 256 channels. */
void dt_cuda_attention_forward_tensor(const struct dt_cuda_attention *a,
                                      struct dt_cuda_stream *stream);
void dt_cuda_attention_forward_general(const struct dt_cuda_attention *a,
                                       struct dt_cuda_stream *stream);
void dt_cuda_attention_backward_tensor(const struct dt_cuda_attention *a,
                                       struct dt_cuda_stream *stream);
void dt_cuda_attention_backward_general(const struct dt_cuda_attention *a,
                                        struct dt_cuda_stream *stream);

/* Forward of a single query for each sequence, without dropout; chunks: 16-bit elements, with rows
 * and heads aligned to 16 bytes. */
void dt_cuda_attention_decode(struct dt_device *dev, const struct dt_cuda_attention *a,
                              bool chunks);

/* On the tensor cores of sm_90a: as forward_tensor, for heads of 64 or 128 channels without
 * dropout, if dt_cuda_wgmma_open found support. */
void dt_cuda_attention_forward_wgmma(struct dt_device *dev, const struct dt_cuda_attention *a);
void dt_cuda_attention_backward_wgmma(struct dt_device *dev, const struct dt_cuda_attention *a);

/* Calls call(element type, channels, whether there is dropout) with constants for the values of a.
 */
template <class Call>
static inline void dt_attention_choose(const struct dt_cuda_attention *a, Call call)
{
    const auto choose = [=](auto type, auto size) {
        a->threshold > 0 ? call(type, size, std::true_type()) : call(type, size, std::false_type());
    };
    const auto choose_size = [=](auto type) {
        a->size > 64 ? choose(type, std::integral_constant<int, 128>())
                     : choose(type, std::integral_constant<int, 64>());
    };
    a->dtype == DT_DTYPE_F16 ? choose_size(std::integral_constant<enum dt_dtype, DT_DTYPE_F16>())
                             : choose_size(std::integral_constant<enum dt_dtype, DT_DTYPE_BF16>());
}

typedef void dt_cuda_attention_kernel(const struct dt_cuda_attention a);

template <class Operands>
static inline void dt_cuda_attention_launch(void (*kernel)(const Operands), dim3 grid,
                                            unsigned threads, size_t shared_bytes,
                                            struct dt_cuda_stream *stream, const Operands *operands)
{
    dt_cuda_allow_shared(stream, kernel, shared_bytes);
    dt_cuda_launch(stream, grid, dim3(threads), shared_bytes, kernel, *operands);
}

static __device__ __forceinline__ float dt_element(const void *from, enum dt_dtype type, int64_t at)
{
    return type == DT_DTYPE_F32 ? ((const float *)from)[at]
                                : dt_number(type, ((const uint16_t *)from)[at]);
}

/* A block for each tile of the rows of a head. */
static inline dim3 dt_attention_grid(const struct dt_cuda_attention *a, int32_t rows, int32_t tile,
                                     int32_t heads)
{
    return dim3((unsigned)((rows + tile - 1) / tile), (unsigned)heads, (unsigned)a->batch);
}

#define DT_LOG2_E 1.4426950408889634f
#define DT_LN_2   0.6931471805599453f

static inline __host__ __device__ int32_t dt_tiles(int32_t rows, int32_t tile)
{
    return (rows + tile - 1) / tile;
}

/* The first of a block's rows, of queries: blocks with the most keys run first, so that short ones
 * fill the tail. */
static __device__ __forceinline__ int32_t dt_first_query(int32_t rows)
{
    return (int32_t)(gridDim.x - 1 - blockIdx.x) * rows;
}

/* --- which keys queries see ------------------------------------------------------------------- */
struct dt_span {
    int32_t begin, end;
};

static __device__ __forceinline__ struct dt_span dt_find_span(const struct dt_cuda_attention &a,
                                                              int32_t sequence, int32_t t)
{
    int64_t row = (int64_t)sequence * a.queries + t;
    struct dt_span span = {max(a.past + t - a.before, 0), min(a.past + t + a.after + 1, a.keys)};
    if (a.begins)
        span.begin = max(a.begins[row], span.begin);
    if (a.ends)
        span.end = min(a.ends[row], span.end);
    span.end = max(span.end, 0);
    return span;
}

/* The range of queries first .. first+count, those that exist; all lanes of a warp call it. */
static __device__ __forceinline__ struct dt_key_range
dt_find_range(const struct dt_cuda_attention &a, int32_t sequence, int32_t first, int32_t count)
{
    struct dt_key_range range = {INT32_MAX, 0, 0, INT32_MAX};
    for (int32_t i = (int32_t)threadIdx.x % 32; i < count && first + i < a.queries; i += 32) {
        struct dt_span span = dt_find_span(a, sequence, first + i);
        range.begin = min(range.begin, span.begin);
        range.end = max(range.end, span.end);
        range.common_begin = max(range.common_begin, span.begin);
        range.common_end = min(range.common_end, span.end);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        range.begin = min(range.begin, __shfl_xor_sync(~0u, range.begin, offset));
        range.end = max(range.end, __shfl_xor_sync(~0u, range.end, offset));
        range.common_begin =
            max(range.common_begin, __shfl_xor_sync(~0u, range.common_begin, offset));
        range.common_end = min(range.common_end, __shfl_xor_sync(~0u, range.common_end, offset));
    }
    return range;
}

static __device__ __forceinline__ bool dt_sees(const struct dt_key_range &range, int32_t first,
                                               int32_t count)
{
    return first < range.end && first + count > range.begin;
}

static __device__ __forceinline__ bool dt_sees_all(const struct dt_key_range &range, int32_t first,
                                                   int32_t count)
{
    return first >= range.common_begin && first + count <= range.common_end;
}

/* --- results ---------------------------------------------------------------------------------- */

/* The factor of the sums of query t, from most, its highest score, and total, the sum of
 * e^(score - most). The lane that writes stores the log-sum-exp. */
static __device__ __forceinline__ float dt_finish_query(const struct dt_cuda_attention &a,
                                                        int32_t sequence, int32_t t, int head,
                                                        float most, float total, bool writes)
{
    int64_t row = (int64_t)sequence * a.queries + t;
    if (writes)
        ((float *)a.lse.data)[row * a.lse.stride + head] = most + logf(total);
    if (total > 0)
        return 1.0f / total;
    /* The total is 0 without keys, and where all scores are minus infinity. */
    struct dt_span span = dt_find_span(a, sequence, min(t, a.queries - 1));
    return span.begin < span.end ? 1.0f / total : 0.0f;
}

/* --- dropout ---------------------------------------------------------------------------------- */

/* For four adjacent weights: bit w is set if word w keeps weight w. */
static __device__ __forceinline__ uint32_t dt_keep_bits(const struct dt_cuda_attention &a,
                                                        int32_t sequence, uint64_t block)
{
    uint4 words = dt_cuda_random(a.key, a.sample + (uint64_t)sequence, block);
    return (words.x >= a.threshold) | (words.y >= a.threshold) << 1 |
           (words.z >= a.threshold) << 2 | (words.w >= a.threshold) << 3;
}

/* The index of the weight of query t and the first key. */
static __device__ __forceinline__ uint64_t dt_first_weight(const struct dt_cuda_attention &a,
                                                           int32_t head, int32_t t)
{
    return ((uint64_t)(a.first_head + head) * (uint64_t)a.length + (uint64_t)(a.past + t)) *
           (uint64_t)a.length;
}

static __device__ __forceinline__ uint32_t dt_keeps_weight(const struct dt_cuda_attention &a,
                                                           int32_t sequence, int32_t head,
                                                           int32_t t, int32_t key)
{
    uint64_t element = dt_first_weight(a, head, t) + (uint64_t)key;
    return dt_keep_bits(a, sequence, element / 4) >> element % 4 & 1;
}

#endif
