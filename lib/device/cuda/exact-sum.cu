/* SPDX-License-Identifier: MIT */
/* Exact sums, by the levels of device/cpu/exact-sum.c: additions of integers follow, whose order
 * does not matter. */
#include "device/cuda/elements.cuh"
#include "device/cuda/reduction.cuh"

constexpr int sum_threads = 256;
constexpr int terms = 16;         /* of a thread, at a time: 2^4 */
constexpr int step = 53 - 4 - 2;  /* bits of a level */
constexpr int most_blocks = 1024; /* as many partial sums at most */
constexpr int64_t part = sum_threads * terms;

static __device__ __forceinline__ double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Loads a thread's terms. Those that are not finite are counted, and become 0. Returns the largest
 * magnitude of the floats. */
template <bool SQUARES>
static __device__ __forceinline__ float load(double (&term)[terms], int64_t (&infinities)[2],
                                             const struct dt_cuda_view &x, int64_t first)
{
    constexpr int group = dt_cuda_group<DT_DTYPE_F32>;
    dt_cuda_fetched<DT_DTYPE_F32> of_x[terms / group];
    float most = 0;
#pragma unroll
    for (int i = 0; i < terms / group; i++) /* all in flight */
        of_x[i] = dt_cuda_fetch<DT_DTYPE_F32>(
            x, 0, first + (i * sum_threads + (int64_t)threadIdx.x) * group);
#pragma unroll
    for (int i = 0; i < terms; i++) {
        float v[group];
        dt_cuda_unpack(of_x[i / group], v); /* 0 past the end */
        float own = v[i % group];
        if (own - own != 0) {
            infinities[0] += SQUARES || !(own < 0);
            infinities[1] += !(own > 0) && !(SQUARES && own < 0);
            own = 0;
        }
        term[i] = SQUARES ? (double)own * own : own;
        most = fmaxf(most, fabsf(own));
    }
    return most;
}

/* Adds the terms of all threads, of floats below 2^(exponent + 1), to thread 0's sum. */
template <bool SQUARES>
static __device__ __forceinline__ void add_levels(struct dt_exact_sum *sum, double (&term)[terms],
                                                  int exponent)
{
    int level = (SQUARES ? 2 * exponent + 2 : exponent + 1) + 53 - step, rest;
    do {
        level = max(level, 52 - 298); /* no term has bits below those of the smallest square */
        double start = 1.5 * power_of_two(level), own = start;
        rest = 0;
#pragma unroll
        for (int i = 0; i < terms; i++) {
            double next = own + term[i];
            term[i] -= next - own;
            own = next;
            rest |= term[i] != 0;
        }
        int64_t total = dt_cuda_team_sum_of((int64_t)((own - start) * power_of_two(52 - level)));
        if (threadIdx.x == 0)
            dt_exact_sum_add_scaled(sum, total, level - 52);
        rest = dt_cuda_block_join(rest, 0, [](int a, int b) { return a | b; });
        level -= step;
    } while (rest != 0);
}

/* partial[b]: the sum of block b's parts. */
template <bool SQUARES>
static __global__ void __launch_bounds__(sum_threads)
    sum_parts(struct dt_exact_sum *partial, struct dt_cuda_view x)
{
    DT_SHARED(struct dt_exact_sum, sum, 1);
    int64_t infinities[2] = {};
    if (threadIdx.x == 0)
        memset(sum, 0, sizeof *sum);
    for (int64_t first = blockIdx.x * part; first < x.columns; first += gridDim.x * part) {
        double term[terms];
        float own = load<SQUARES>(term, infinities, x, first);
        float most = dt_cuda_block_join(own, 0.0f, [](float a, float b) { return fmaxf(a, b); });
        uint32_t bits;
        memcpy(&bits, &most, sizeof bits);
        if (most > 0)
            add_levels<SQUARES>(sum, term, (int)(bits >> 23) - 127);
    }
    dt_cuda_team_sum(infinities);
    if (threadIdx.x > 0)
        return;
    sum->infinities[0] = infinities[0];
    sum->infinities[1] = infinities[1];
    dt_exact_sum_normalize(sum);
    partial[blockIdx.x] = *sum;
}

/* sum += the partial sums; without `add` sum = these. */
static __global__ void __launch_bounds__(32)
    add_partial(struct dt_exact_sum *sum, const struct dt_exact_sum *partial, int count, bool add)
{
    int64_t *words = reinterpret_cast<int64_t *>(sum);
    int64_t total = 0;
    if (threadIdx.x < DT_EXACT_SUM_WORDS) {
        for (int i = 0; i < count; i++)
            total += reinterpret_cast<const int64_t *>(partial + i)[threadIdx.x];
        words[threadIdx.x] = add ? words[threadIdx.x] + total : total;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        dt_exact_sum_normalize(sum);
}

/* sum NULL: the sum alone, stored before the partial sums. Returns its address. */
static struct dt_exact_sum *add(struct dt_device *dev, struct dt_exact_sum *sum, const float *x,
                                int64_t n, bool squares)
{
    struct dt_cuda_stream *stream = dt_cuda_of(dev)->stream;
    int64_t parts = (n + part - 1) / part, blocks = parts < most_blocks ? parts : most_blocks;
    struct dt_exact_sum *scratch = static_cast<struct dt_exact_sum *>(
        dt_cuda_scratch(dev, (size_t)(blocks + 1) * sizeof *scratch));
    if (scratch == nullptr)
        return nullptr;
    dt_cuda_launch(stream, dim3((unsigned)blocks), dim3(sum_threads), 0,
                   squares ? sum_parts<true> : sum_parts<false>, scratch + 1,
                   dt_cuda_view_of_floats(x, n));
    dt_cuda_launch(stream, dim3(1), dim3(32), 0, add_partial, sum ? sum : scratch,
                   static_cast<const struct dt_exact_sum *>(scratch + 1), (int)blocks,
                   sum != nullptr);
    return sum ? sum : scratch;
}

void dt_cuda_exact_sum(struct dt_device *dev, struct dt_exact_sum *sum, const float *x, int64_t n,
                       bool squares)
{
    (void)add(dev, sum, x, n, squares);
}

double dt_cuda_sum_squares(struct dt_device *dev, const float *x, int64_t n)
{
    struct dt_exact_sum sum = {};
    const struct dt_exact_sum *there = add(dev, nullptr, x, n, true);
    if (there)
        dt_cuda_download(dev, &sum, there, sizeof sum);
    return dt_exact_sum_round(&sum);
}
