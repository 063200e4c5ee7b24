/* SPDX-License-Identifier: MIT */
/*
 * Tiles of fp32 in shared memory, for tensors of any type, and products of them without tensor
 * cores: for fp32, which tensor cores would round, and for head sizes that they do not support.
 *
 * A block has 16 x 16 threads. Of a product of ROWS x ROWS, thread (y, x) computes rows y, y + 16,
 * ... and columns x, x + 16, ...; of accumulators of ROWS x SIZE it has the same rows and columns 4
 * x .. 4 x + 4, then those 64 further, and so on. Rows of a tile are padded by 4 floats, so that 8
 * threads that read 16 bytes of 8 rows at once use different banks.
 */
#ifndef DT_DEVICE_CUDA_ATTENTION_GENERAL_CUH
#define DT_DEVICE_CUDA_ATTENTION_GENERAL_CUH

#include "device/cuda/attention/attention-scores.cuh"

#define DT_GENERAL_THREADS 256

/* Heads of at most SIZE channels: 64, 128 or 256. ROWS: of a tile, 64, 32 or 16. */
template <int SIZE, int ROWS> struct dt_general {
    static constexpr int rows = ROWS, own = rows / 16, columns = SIZE / 16, stride = SIZE + 4,
                         tile = rows * stride, weight_stride = rows + 4,
                         weights = rows * weight_stride;
    typedef float products[own][own], sums[own][columns], factors[own]; /* of a thread */
    typedef uint32_t bits[own];
};

static __device__ __forceinline__ void dt_set_element(void *to, enum dt_dtype type, int64_t at,
                                                      float value)
{
    if (type == DT_DTYPE_F32)
        ((float *)to)[at] = value;
    else if (type == DT_DTYPE_BF16)
        ((__nv_bfloat16 *)to)[at] = __float2bfloat16_rn(value);
    else
        ((__half *)to)[at] = __float2half_rn(value);
}

/* Loads rows first .. of a head of x, where row 0 of the sequence is row base; zeros from limit
 * on, and in channels from a.size on. */
template <int SIZE, int ROWS>
static __device__ __forceinline__ void dt_read_tile(float *tile, const struct dt_cuda_attention &a,
                                                    const struct dt_cuda_rows &x, int64_t base,
                                                    int head, int32_t first, int32_t limit)
{
    typedef dt_general<SIZE, ROWS> shape;
    for (int i = (int)threadIdx.x; i < shape::rows * SIZE; i += DT_GENERAL_THREADS) {
        int row = i / SIZE, channel = i % SIZE;
        bool exists = first + row < limit && channel < a.size;
        int64_t at = (base + first + row) * x.stride + (int64_t)head * a.size + channel;
        tile[row * shape::stride + channel] = exists ? dt_element(x.data, a.dtype, at) : 0.0f;
    }
}

/* products = rows of left times rows of right. */
template <int SIZE, int ROWS>
static __device__ __forceinline__ void
dt_multiply_tiles(typename dt_general<SIZE, ROWS>::products &products, const float *left,
                  const float *right)
{
    typedef dt_general<SIZE, ROWS> shape;
    int y = (int)threadIdx.x / 16, x = (int)threadIdx.x % 16;
    dt_clear(products);
#pragma unroll 2
    for (int c = 0; c < SIZE; c += 4) {
        float4 l[shape::own], r[shape::own];
#pragma unroll
        for (int i = 0; i < shape::own; i++) {
            l[i] = *(const float4 *)(left + (y + 16 * i) * shape::stride + c);
            r[i] = *(const float4 *)(right + (x + 16 * i) * shape::stride + c);
        }
#pragma unroll
        for (int i = 0; i < shape::own; i++)
#pragma unroll
            for (int j = 0; j < shape::own; j++) {
                products[i][j] = fmaf(l[i].x, r[j].x, products[i][j]);
                products[i][j] = fmaf(l[i].y, r[j].y, products[i][j]);
                products[i][j] = fmaf(l[i].z, r[j].z, products[i][j]);
                products[i][j] = fmaf(l[i].w, r[j].w, products[i][j]);
            }
    }
}

/* Writes each thread's weights to shared memory. */
template <int SIZE, int ROWS>
static __device__ __forceinline__ void
dt_write_weights(float *weights, const typename dt_general<SIZE, ROWS>::products &own)
{
    typedef dt_general<SIZE, ROWS> shape;
    int y = (int)threadIdx.x / 16, x = (int)threadIdx.x % 16;
#pragma unroll
    for (int i = 0; i < shape::own; i++)
#pragma unroll
        for (int j = 0; j < shape::own; j++)
            weights[(y + 16 * i) * shape::weight_stride + x + 16 * j] = own[i][j];
}

/* sums += weights times rows of tile. */
template <int SIZE, int ROWS>
static __device__ __forceinline__ void dt_add_tile(typename dt_general<SIZE, ROWS>::sums &sums,
                                                   const float *weights, const float *tile)
{
    typedef dt_general<SIZE, ROWS> shape;
    int y = (int)threadIdx.x / 16, x = (int)threadIdx.x % 16;
#pragma unroll 2
    for (int k = 0; k < shape::rows; k += 4) {
        float4 w[shape::own];
#pragma unroll
        for (int i = 0; i < shape::own; i++)
            w[i] = *(const float4 *)(weights + (y + 16 * i) * shape::weight_stride + k);
#pragma unroll
        for (int c = 0; c < shape::columns; c += 4) {
            float4 r[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                r[j] = *(const float4 *)(tile + (k + j) * shape::stride + 4 * x + 16 * c);
#pragma unroll
            for (int i = 0; i < shape::own; i++) {
                const float weight[4] = {w[i].x, w[i].y, w[i].z, w[i].w};
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    sums[i][c] = fmaf(weight[j], r[j].x, sums[i][c]);
                    sums[i][c + 1] = fmaf(weight[j], r[j].y, sums[i][c + 1]);
                    sums[i][c + 2] = fmaf(weight[j], r[j].z, sums[i][c + 2]);
                    sums[i][c + 3] = fmaf(weight[j], r[j].w, sums[i][c + 3]);
                }
            }
        }
    }
}

/* Stores the accumulators of a thread, of rows first + y + 16 i of a sequence, times factors[i]. */
template <int SIZE, int ROWS>
static __device__ __forceinline__ void
dt_write_rows(const struct dt_cuda_attention &a, const struct dt_cuda_rows &x, int sequence,
              int head, int32_t first, const typename dt_general<SIZE, ROWS>::sums &sums,
              const typename dt_general<SIZE, ROWS>::factors &factors)
{
    typedef dt_general<SIZE, ROWS> shape;
#pragma unroll
    for (int i = 0; i < shape::own; i++)
#pragma unroll
        for (int c = 0; c < shape::columns; c++) {
            int32_t row = first + (int32_t)threadIdx.x / 16 + 16 * i;
            int channel = 4 * ((int)threadIdx.x % 16) + c / 4 * 64 + c % 4;
            int64_t at = ((int64_t)sequence * x.rows + row) * x.stride + (int64_t)head * a.size;
            if (row < x.rows && channel < a.size)
                dt_set_element(x.data, x.type, at + channel, sums[i][c] * factors[i]);
        }
}

/* A score in units of log2, from the product of a query and a key, and its derivative by the scaled
 * product. */
struct dt_general_score {
    float value, slope;
};

static __device__ __forceinline__ struct dt_general_score
dt_find_score(const struct dt_cuda_attention &a, float product)
{
    if (a.softcap == 0)
        return {product * (a.scale * DT_LOG2_E), 1};
    float x = tanhf(product * a.scale / a.softcap);
    return {a.softcap * DT_LOG2_E * x, 1 - x * x};
}

/* Scores in units of log2, from products of queries and keys. */
template <class Scores>
static __device__ __forceinline__ void dt_score(const struct dt_cuda_attention &a, Scores &scores,
                                                const Scores &products)
{
    typedef dt_layout<Scores> of;
    dt_each<Scores>([&](int r, int c) {
        of::at(scores, r, c) = dt_find_score(a, of::at(products, r, c)).value;
    });
}

/* Multiplies by what a soft cap leaves of the derivative; products: of queries and keys. */
template <class Scores>
static __device__ __forceinline__ void dt_uncap(const struct dt_cuda_attention &a,
                                                Scores &gradients, const Scores &products)
{
    typedef dt_layout<Scores> of;
    if (a.softcap != 0)
        dt_each<Scores>([&](int r, int c) {
            of::at(gradients, r, c) *= dt_find_score(a, of::at(products, r, c)).slope;
        });
}

/* Which of a thread's weights are kept, as dt_drop takes it. TRANSPOSED: rows are keys. t, first:
 * the first query and the first key of the block's. */
template <class Scores, bool TRANSPOSED>
static __device__ __forceinline__ void
dt_draw_each(const struct dt_cuda_attention &a, int32_t sequence, int32_t head,
             uint32_t (&kept)[dt_layout<Scores>::words], int32_t t, int32_t first)
{
    typedef dt_layout<Scores> of;
#pragma unroll
    for (int r = 0; r < of::rows; r++) {
        kept[r] = a.threshold > 0 ? 0 : ~0u;
        for (int c = 0; c < of::columns && a.threshold > 0; c++) {
            const int query = TRANSPOSED ? of::column(c) : of::row(r);
            const int key = TRANSPOSED ? of::row(r) : of::column(c);
            kept[r] |= dt_keeps_weight(a, sequence, head, t + query, first + key) << c;
        }
    }
}

/* The shared memory of a block with `tiles` tiles and the weights. */
template <int SIZE, int ROWS> constexpr size_t dt_general_bytes(int tiles)
{
    typedef dt_general<SIZE, ROWS> shape;
    return (size_t)(tiles * shape::tile + shape::weights) * sizeof(float);
}

/* Calls call(channels, rows of a tile) with constants: the most rows, up to 64 (32 with more than
 * 128 channels), of which `tiles` tiles fit into the shared memory of a block of this GPU. */
template <class Call>
static inline void dt_general_choose(const struct dt_cuda_attention *a, size_t limit, int tiles,
                                     Call call)
{
    const std::integral_constant<int, 64> narrow;
    const std::integral_constant<int, 128> wide;
    const std::integral_constant<int, 256> widest;
    const std::integral_constant<int, 32> half;
    if (a->size <= 64)
        call(narrow, narrow);
    else if (a->size <= 128 && dt_general_bytes<128, 64>(tiles) <= limit)
        call(wide, narrow);
    else if (a->size <= 128)
        call(wide, half);
    else if (dt_general_bytes<256, 32>(tiles) <= limit)
        call(widest, half);
    else
        call(widest, std::integral_constant<int, 16>());
}

#endif
