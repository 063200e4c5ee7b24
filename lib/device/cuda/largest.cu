/* SPDX-License-Identifier: MIT */
/*
 * Top-k by magnitude, a radix select in two phases. The first finds the k-th largest magnitude,
 * byte by byte from the highest: each block counts, in its chunk, the next byte of the numbers with
 * the prefix found so far, and one block sums the counts and chooses the byte. The second computes
 * the output index of each selected number: after those of earlier chunks, of earlier rounds in its
 * chunk, and of earlier threads in its round.
 */
#include <assert.h>

#include "device/cuda/kernel.cuh"
#include "device/cuda/partial-sums.h"
#include "device/cuda/reduction.cuh"

constexpr int threads = 256, warps = threads / 32;
constexpr int bytes = 256; /* values of a byte, one thread each in the block that chooses */
constexpr int64_t fewest = 4096, most_chunks = 1024;

namespace
{
struct search {
    float *x;
    unsigned n, chunk; /* numbers in all, and per block */
    int k;             /* wanted */
    uint32_t *bits;    /* of the magnitude: the prefix found so far */
    int *left;         /* numbers still to be selected among those with the prefix */
    int *counts;       /* of byte b in chunk c: c * bytes + b */
    int *taken;        /* of chunk c: numbers above the magnitude, 2 c, and equal to it, 2 c + 1 */
};
} // namespace

static __device__ __forceinline__ uint32_t magnitude(float x)
{
    return __float_as_uint(x) & 0x7fffffffu;
}

static __device__ __forceinline__ unsigned chunk_end(const struct search &s)
{
    return min((blockIdx.x + 1) * s.chunk, s.n);
}

/* --- the magnitude ---------------------------------------------------------------------------- */

/* Each warp counts in a separate row: of lanes with the same byte the first adds for all. */
static __global__ void __launch_bounds__(threads) count_bytes(struct search s, int shift)
{
    DT_SHARED(int, of_warp, warps *bytes);
    uint32_t known = shift == 24 ? 0 : ~0u << (shift + 8), bits = shift == 24 ? 0 : *s.bits;
    int *own = of_warp + threadIdx.x / 32 * bytes;
    unsigned end = chunk_end(s);
    for (int i = (int)threadIdx.x; i < warps * bytes; i += threads)
        of_warp[i] = 0;
    __syncthreads();
    for (unsigned first = blockIdx.x * s.chunk; first < end; first += threads) {
        unsigned at = first + threadIdx.x;
        uint32_t size = at < end ? magnitude(s.x[at]) : 0;
        int byte = at < end && (size & known) == bits ? (int)(size >> shift & (bytes - 1)) : -1;
        unsigned equal = __match_any_sync(~0u, byte);
        if (byte >= 0 && __ffs((int)equal) - 1 == (int)threadIdx.x % 32)
            own[byte] += __popc(equal);
        __syncwarp();
    }
    __syncthreads();
    int sum = 0;
    for (int w = 0; w < warps; w++)
        sum += of_warp[w * bytes + (int)threadIdx.x];
    s.counts[blockIdx.x * bytes + threadIdx.x] = sum;
}

static __global__ void __launch_bounds__(bytes) choose_byte(struct search s, int chunks, int shift)
{
    DT_SHARED(int, total, bytes);
    int sum = 0;
    for (int c = 0; c < chunks; c++)
        sum += s.counts[c * bytes + (int)threadIdx.x];
    total[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    int left = shift == 24 ? s.k : *s.left, byte = bytes - 1;
    for (; total[byte] < left; byte--)
        left -= total[byte];
    *s.left = left;
    *s.bits = (shift == 24 ? 0 : *s.bits) | (uint32_t)byte << shift;
}

/* --- selected numbers
 * -------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(threads) count_taken(struct search s)
{
    uint32_t least = *s.bits;
    int counts[2] = {};
    for (unsigned at = blockIdx.x * s.chunk + threadIdx.x; at < chunk_end(s); at += threads) {
        uint32_t size = magnitude(s.x[at]);
        counts[0] += size > least;
        counts[1] += size == least;
    }
    dt_cuda_team_sum(counts);
    if (threadIdx.x > 0)
        return;
    s.taken[2 * blockIdx.x] = counts[0];
    s.taken[2 * blockIdx.x + 1] = counts[1];
}

/* before[0]: numbers above the magnitude in earlier threads of this round; before[1]: numbers
 * equal to it. sums: the same over all threads. */
static __device__ __forceinline__ void rank_in_round(bool above, bool same, int (&before)[2],
                                                     int (&sums)[2])
{
    DT_SHARED(int, of_warp, 2 * warps);
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    unsigned votes[2] = {__ballot_sync(~0u, above), __ballot_sync(~0u, same)};
    __syncthreads(); /* of_warp may still be read by the previous round */
    if (lane < 2)
        of_warp[lane * warps + warp] = __popc(lane == 0 ? votes[0] : votes[1]);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        before[i] = __popc(votes[i] & ((1u << lane) - 1));
        sums[i] = 0;
        for (int w = 0; w < warps; w++) {
            before[i] += w < warp ? of_warp[i * warps + w] : 0;
            sums[i] += of_warp[i * warps + w];
        }
    }
}

static __global__ void __launch_bounds__(threads)
    take_chunk(struct search s, int32_t *places, float *values)
{
    uint32_t least = *s.bits;
    int wanted = *s.left, base[2] = {};
    unsigned end = chunk_end(s);
    for (unsigned c = threadIdx.x; c < blockIdx.x; c += threads) {
        base[0] += s.taken[2 * c];
        base[1] += s.taken[2 * c + 1];
    }
    dt_cuda_team_sum(base);
    for (unsigned first = blockIdx.x * s.chunk; first < end; first += threads) {
        unsigned at = first + threadIdx.x;
        int before[2], sums[2];
        float x = at < end ? s.x[at] : 0;
        bool above = magnitude(x) > least, same = at < end && magnitude(x) == least;
        rank_in_round(above, same, before, sums);
        int equals = base[1] + before[1];
        if (above || (same && equals < wanted)) {
            int to = base[0] + before[0] + min(equals, wanted);
            places[to] = (int32_t)at;
            values[to] = x;
            s.x[at] = 0;
        }
        base[0] += sums[0];
        base[1] += sums[1];
    }
}

void dt_cuda_take_largest(struct dt_device *dev, float *x, int64_t n, int64_t k, int32_t *places,
                          float *values)
{
    assert(k > 0 && k <= n && n <= INT32_MAX);
    struct dt_cuda_stream *stream = dt_cuda_of(dev)->stream;
    struct dt_cuda_chunks chunks = dt_cuda_chunks_of(n, fewest, most_chunks);
    int count = (int)chunks.count;
    int *room =
        static_cast<int *>(dt_cuda_scratch(dev, (size_t)(2 + (bytes + 2) * count) * sizeof(int)));
    if (room == nullptr)
        return;
    const struct search s = {
        x,        (unsigned)n, (unsigned)chunks.rows,   (int)k, reinterpret_cast<uint32_t *>(room),
        room + 1, room + 2,    room + 2 + bytes * count};
    dim3 grid((unsigned)count);
    for (int shift = 24; shift >= 0; shift -= 8) {
        dt_cuda_launch(stream, grid, dim3(threads), 0, count_bytes, s, shift);
        dt_cuda_launch(stream, dim3(1), dim3(bytes), 0, choose_byte, s, count, shift);
    }
    dt_cuda_launch(stream, grid, dim3(threads), 0, count_taken, s);
    dt_cuda_launch(stream, grid, dim3(threads), 0, take_chunk, s, places, values);
}
