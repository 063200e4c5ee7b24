/* SPDX-License-Identifier: MIT */
/* Stable LSD radix sort, 8 bits per pass. Each block counts the digits of a chunk of keys; a
 * prefix sum of these counts, over smaller digits and earlier chunks, gives the output index of
 * each key. Within a chunk, keys are ranked among equal digits, which keeps the sort stable. */
#include "device/cuda/kernel.cuh"
#include "device/cuda/sort.h"

constexpr int digits = 256, digit_bits = 8;
constexpr int chunk_keys = 512, warps = chunk_keys / 32;
constexpr int scan_threads = 1024;

namespace
{
struct pass {
    const int32_t *keys, *places; /* places NULL: 0, 1, ... */
    int32_t *to_keys, *to_places;
    int32_t *counts; /* of digit d in chunk c: d * chunks + c */
    int n, most, shift;
};
} // namespace

static __device__ __forceinline__ int key_of(const struct pass &p, int at)
{
    int key = p.keys[at];
    return key < 0 || key > p.most ? p.most : key;
}

static __device__ __forceinline__ int digit_of(const struct pass &p, int at)
{
    return key_of(p, at) >> p.shift & (digits - 1);
}

/* The rank of this thread's digit among the equal ones before it in the chunk; counts[d]
 * receives the count of digit d in the chunk. Threads without a key have digit -1. */
static __device__ int rank_in_chunk(int digit, int *counts)
{
    DT_SHARED(int, of_warp, warps *digits);
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int i = (int)threadIdx.x; i < warps * digits; i += chunk_keys)
        of_warp[i] = 0;
    __syncthreads();
    unsigned equal = __match_any_sync(~0u, digit);
    int rank = __popc(equal & ((1u << lane) - 1));
    if (rank == 0 && digit >= 0)
        of_warp[warp * digits + digit] = __popc(equal);
    __syncthreads();
    for (int d = (int)threadIdx.x; d < digits; d += chunk_keys) {
        int before = 0;
        for (int w = 0; w < warps; w++) {
            int count = of_warp[w * digits + d];
            of_warp[w * digits + d] = before;
            before += count;
        }
        counts[d] = before;
    }
    __syncthreads();
    return digit >= 0 ? rank + of_warp[warp * digits + digit] : 0;
}

static __global__ void __launch_bounds__(chunk_keys) count_digits(struct pass p)
{
    DT_SHARED(int, counts, digits);
    int at = (int)(blockIdx.x * chunk_keys + threadIdx.x);
    (void)rank_in_chunk(at < p.n ? digit_of(p, at) : -1, counts);
    for (int d = (int)threadIdx.x; d < digits; d += chunk_keys)
        p.counts[d * gridDim.x + blockIdx.x] = counts[d];
}

/* Exclusive prefix sum of the counts. One block. */
static __global__ void __launch_bounds__(scan_threads) sum_counts(int32_t *counts, int n)
{
    DT_SHARED(int, sums, scan_threads);
    int each = (n + scan_threads - 1) / scan_threads, first = (int)threadIdx.x * each;
    int end = first + each < n ? first + each : n, sum = 0;
    for (int i = first; i < end; i++)
        sum += counts[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int distance = 1; distance < scan_threads; distance *= 2) {
        int before = (int)threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    sum = sums[threadIdx.x] - sum;
    for (int i = first; i < end; i++) {
        int count = counts[i];
        counts[i] = sum;
        sum += count;
    }
}

static __global__ void __launch_bounds__(chunk_keys) move_keys(struct pass p)
{
    DT_SHARED(int, counts, digits);
    int at = (int)(blockIdx.x * chunk_keys + threadIdx.x);
    int digit = at < p.n ? digit_of(p, at) : -1, rank = rank_in_chunk(digit, counts);
    if (digit < 0)
        return;
    int to = p.counts[digit * gridDim.x + blockIdx.x] + rank;
    p.to_keys[to] = key_of(p, at);
    p.to_places[to] = p.places ? p.places[at] : at;
}

static int64_t chunks_of(int64_t n)
{
    return (n + chunk_keys - 1) / chunk_keys;
}

size_t dt_cuda_sort_bytes(int64_t n)
{
    return (size_t)(4 * n + digits * chunks_of(n)) * sizeof(int32_t);
}

struct dt_cuda_sorted dt_cuda_sort(struct dt_device *dev, const int32_t *keys, int64_t n,
                                   int64_t most, void *room)
{
    int32_t *of[2][2], *counts = static_cast<int32_t *>(room) + 4 * n;
    dim3 grid((unsigned)chunks_of(n));
    struct dt_cuda_stream *stream = dt_cuda_of(dev)->stream;
    for (int i = 0; i < 4; i++)
        of[i / 2][i % 2] = static_cast<int32_t *>(room) + i * n;
    struct pass p = {keys, nullptr, of[0][0], of[0][1], counts, (int)n, (int)most, 0};
    do {
        dt_cuda_launch(stream, grid, dim3(chunk_keys), 0, count_digits, p);
        dt_cuda_launch(stream, dim3(1), dim3(scan_threads), 0, sum_counts, counts,
                       (int)(digits * chunks_of(n)));
        dt_cuda_launch(stream, grid, dim3(chunk_keys), 0, move_keys, p);
        int next = p.to_keys == of[0][0];
        p.keys = p.to_keys;
        p.places = p.to_places;
        p.to_keys = of[next][0];
        p.to_places = of[next][1];
        p.shift += digit_bits;
    } while (most >= (int64_t)1 << p.shift);
    return {p.keys, p.places};
}
