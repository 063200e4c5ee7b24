/* SPDX-License-Identifier: MIT */
/*
 * Attention forward of a single query for each sequence: decoding. Its time is that of reading the
 * keys and values, so they are split over the multiprocessors ("Flash-Decoding": Dao et al. 2023):
 * a block has a part of the keys of a head, a second kernel combines the parts. The split depends
 * on shape and GPU alone. A group of lanes has a key, each lane 8 of its channels.
 */
#include "device/cuda/attention/attention-general.cuh"
#include "device/cuda/cuda.h"

#define THREADS 128
#define WARPS   (THREADS / 32)
#define AHEAD   4 /* keys and values that a lane loads before it uses one */
#define EIGHT   8 /* channels of a lane */

/* Kernel parameters. A state, of a warp, is the weighted sum of values, a float per channel, then
 * the highest score and the sum of weights. */
struct decoding {
    struct dt_cuda_attention a;
    float *states;       /* batch x heads x parts x WARPS x (size + 2) */
    int32_t parts, keys; /* keys of a part */
};

struct state {
    float sums[EIGHT], most, total;
};

/* CHUNKS: 16-bit elements, 16 bytes at a time. */
template <bool CHUNKS>
static __device__ __forceinline__ void fetch(float (&to)[EIGHT], const struct dt_cuda_attention &a,
                                             const struct dt_cuda_rows &x, int64_t row, int head,
                                             int channel)
{
    int64_t at = row * x.stride + (int64_t)head * a.size + channel;
    if constexpr (CHUNKS) {
        uint4 words = make_uint4(0, 0, 0, 0);
        if (channel < a.size)
            words = *(const uint4 *)((const uint16_t *)x.data + at);
        const uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            to[i] = dt_number(a.dtype, (uint16_t)(pairs[i / 2] >> i % 2 * 16));
    } else {
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            to[i] = channel + i < a.size ? dt_element(x.data, a.dtype, at + i) : 0.0f;
    }
}

/* Adds sums with another highest score. */
static __device__ __forceinline__ void add(struct state &s, const float (&sums)[EIGHT], float most,
                                           float total)
{
    float highest = fmaxf(s.most, most), zero = highest == -INFINITY ? 0.0f : highest;
    float mine = exp2f(s.most - zero), other = exp2f(most - zero);
    s.most = highest;
    s.total = s.total * mine + total * other;
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        s.sums[i] = s.sums[i] * mine + sums[i] * other;
}

/* Adds the states of the other groups of the warp. */
template <int LANES> static __device__ __forceinline__ void add_groups(struct state &s)
{
    for (int offset = LANES; offset < 32; offset *= 2) {
        struct state other;
        other.most = __shfl_xor_sync(~0u, s.most, offset);
        other.total = __shfl_xor_sync(~0u, s.total, offset);
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            other.sums[i] = __shfl_xor_sync(~0u, s.sums[i], offset);
        add(s, other.sums, other.most, other.total);
    }
}

/* LANES: of a group. */
template <int LANES, bool CHUNKS>
__global__ void __launch_bounds__(THREADS)
    attention_decode(const __grid_constant__ struct decoding d)
{
    constexpr int GROUPS = THREADS / LANES;
    const struct dt_cuda_attention &a = d.a;
    const int part = (int)blockIdx.x, head = (int)blockIdx.y, sequence = (int)blockIdx.z;
    const int group = (int)threadIdx.x / LANES, channel = (int)threadIdx.x % LANES * EIGHT;
    const struct dt_span span = dt_find_span(a, sequence, 0);
    const int32_t begin = max(span.begin, part * d.keys), end = min(span.end, (part + 1) * d.keys);
    float q[EIGHT], k[AHEAD][EIGHT], v[AHEAD][EIGHT];
    struct state s = {{}, -INFINITY, 0};
    fetch<CHUNKS>(q, a, a.q, sequence, head, channel);
    for (int32_t base = begin; base < end; base += GROUPS * AHEAD) {
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            int64_t row =
                (int64_t)sequence * a.key_stride + min(base + group + i * GROUPS, end - 1);
            fetch<CHUNKS>(k[i], a, a.k, row, head / a.group, channel);
            fetch<CHUNKS>(v[i], a, a.v, row, head / a.group, channel);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            float product = 0;
#pragma unroll
            for (int c = 0; c < EIGHT; c++)
                product = fmaf(q[c], k[i][c], product);
            for (int offset = LANES / 2; offset > 0; offset /= 2)
                product += __shfl_xor_sync(~0u, product, offset);
            if (base + group + i * GROUPS < end)
                add(s, v[i], dt_find_score(a, product).value, 1);
        }
    }
    add_groups<LANES>(s);
    if (threadIdx.x % 32 >= LANES)
        return;
    int64_t index = (((int64_t)sequence * a.heads + head) * d.parts + part) * WARPS;
    float *to = d.states + (index + threadIdx.x / 32) * (a.size + 2);
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        if (channel + i < a.size)
            to[channel + i] = s.sums[i];
    if (channel == 0)
        to[a.size] = s.most, to[a.size + 1] = s.total;
}

/* The output of a head from the states of its parts, in their order. */
__global__ void __launch_bounds__(THREADS)
    attention_combine(const __grid_constant__ struct decoding d)
{
    const struct dt_cuda_attention &a = d.a;
    const int head = (int)blockIdx.x, sequence = (int)blockIdx.y, count = d.parts * WARPS;
    const int32_t stride = a.size + 2;
    const float *states = d.states + ((int64_t)sequence * a.heads + head) * count * stride;
    float most = -INFINITY, total = 0;
    for (int i = 0; i < count; i++)
        most = fmaxf(most, states[i * stride + a.size]);
    const float zero = most == -INFINITY ? 0.0f : most;
    for (int i = 0; i < count; i++)
        total += states[i * stride + a.size + 1] * exp2f(states[i * stride + a.size] - zero);
    float factor = dt_finish_query(a, sequence, 0, head, most * DT_LN_2, total, threadIdx.x == 0);
    for (int channel = (int)threadIdx.x; channel < a.size; channel += THREADS) {
        float sum = 0;
        for (int i = 0; i < count; i++)
            sum += states[i * stride + channel] * exp2f(states[i * stride + a.size] - zero);
        int64_t at = (int64_t)sequence * a.y.stride + (int64_t)head * a.size + channel;
        dt_set_element(a.y.data, a.y.type, at, sum * factor);
    }
}

template <bool CHUNKS> static void launch(const struct decoding *d, struct dt_cuda_stream *stream)
{
    const struct dt_cuda_attention *a = &d->a;
    dim3 grid((unsigned)d->parts, (unsigned)a->heads, (unsigned)a->batch);
    void (*kernel)(const struct decoding) = a->size <= 64    ? attention_decode<8, CHUNKS>
                                            : a->size <= 128 ? attention_decode<16, CHUNKS>
                                                             : attention_decode<32, CHUNKS>;
    dt_cuda_launch(stream, grid, dim3(THREADS), 0, kernel, *d);
}

void dt_cuda_attention_decode(struct dt_device *dev, const struct dt_cuda_attention *a, bool chunks)
{
    struct decoding d;
    const int32_t blocks = a->batch * a->heads, tiles = dt_tiles(a->keys, DT_ATTENTION_TILE);
    const int32_t wanted = dt_tiles(4 * dt_cuda_of(dev)->processors, blocks);
    d.a = *a;
    d.keys = dt_tiles(tiles, wanted < tiles ? wanted : tiles) * DT_ATTENTION_TILE;
    d.parts = dt_tiles(a->keys, d.keys);
    size_t count = (size_t)blocks * (size_t)d.parts * WARPS * ((size_t)a->size + 2);
    d.states = (float *)dt_cuda_scratch(dev, count * sizeof(float));
    if (d.states == NULL)
        return;
    struct dt_cuda_stream *stream = dt_cuda_of(dev)->stream;
    chunks ? launch<true>(&d, stream) : launch<false>(&d, stream);
    dt_cuda_launch(stream, dim3((unsigned)a->heads, (unsigned)a->batch), dim3(THREADS), 0,
                   attention_combine, d);
}
