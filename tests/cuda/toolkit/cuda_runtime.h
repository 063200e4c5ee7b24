/* SPDX-License-Identifier: MIT */
/* CUDA's language for a C++ compiler: keywords, vectors, and what a thread can call. */
#ifndef DT_TEST_CUDA_RUNTIME_H
#define DT_TEST_CUDA_RUNTIME_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "../emulator.h"
#include "cuda_runtime_api.h"

/* cudaFuncGetName finds those that are not static. */
#pragma GCC diagnostic ignored "-Wattributes"
#define __global__ __attribute__((visibility("default")))
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

#define threadIdx (emulator::current->index)

/* Arrays in shared memory: kernel.cuh. */
#define DT_SHARED(type, name, count)                                                               \
    static const char name##_key = 0;                                                              \
    type *const name =                                                                             \
        static_cast<type *>(emulator::static_shared(&name##_key, sizeof(type) * (count)))
#define DT_DYNAMIC_SHARED(type, name)                                                              \
    type *const name = static_cast<type *>(emulator::dynamic_shared())

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

/* --- launches --------------------------------------------------------------------------------- */
struct cudaLaunchAttribute;
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};

namespace emulator
{
/* In the order of the stream, at once or when the host waits: runtime.cpp. */
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);
/* Memory that cudaMalloc gave. */
void release(void *memory);
/* Of dynamic shared memory that a kernel may ask for. */
cudaError_t set_shared_limit(const void *kernel, size_t bytes);
cudaError_t check_launch(const void *kernel, dim3 grid, dim3 block, size_t shared_bytes);

/* A kernel with a copy of the arguments that begin at these places. */
typedef std::function<void()> (*binder)(const void *kernel, void *const *arguments);

template <class... Parameters>
std::function<void()> bind(const void *kernel, void *const *arguments)
{
    std::tuple<Parameters...> values;
    std::apply([&](auto &...value) { (memcpy((void *)&value, *arguments++, sizeof value), ...); },
               values);
    return [=] {
        std::apply(reinterpret_cast<void (*)(Parameters...)>(const_cast<void *>(kernel)), values);
    };
}

const void *remember(const void *kernel, binder bind);
} // namespace emulator

/* kernel.cuh */
template <class... Parameters> const void *DT_KERNEL(void (*kernel)(Parameters...))
{
    return emulator::remember(reinterpret_cast<const void *>(kernel),
                              emulator::bind<Parameters...>);
}

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                               Arguments &&...arguments)
{
    const void *known = DT_KERNEL(kernel);
    return [&](Parameters... values) {
        void *places[] = {&values..., nullptr};
        return cudaLaunchKernel(known, config->gridDim, config->blockDim, places,
                                config->dynamicSmemBytes, config->stream);
    }(arguments...);
}

template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel *kernel, cudaFuncAttribute, int value)
{
    return emulator::set_shared_limit(reinterpret_cast<const void *>(kernel), (size_t)value);
}

/* --- barriers, shuffles, votes ---------------------------------------------------------------- */
#define __syncthreads() emulator::barrier(__FILE__, __LINE__)

static inline void __syncwarp(unsigned mask = ~0u)
{
    emulator::warp_barrier(mask);
}

namespace emulator
{
template <class T> T shuffle(unsigned mask, T value, unsigned source, const char *what)
{
    struct operand {
        T value;
        unsigned source;
    };
    return collective<operand, T>(
        mask, what, operand{value, source}, [=](const operand *in, T *out, unsigned lanes) {
            for (unsigned i = 0; i < warp_lanes; i++)
                if (lanes >> i & 1) {
                    if (!(lanes >> in[i].source & 1))
                        stop("lane %u reads lane %u in %s, which is not in its mask", i,
                             in[i].source, what);
                    out[i] = in[in[i].source].value;
                }
        });
}
} // namespace emulator

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32)
{
    unsigned part = (unsigned)width - 1;
    return emulator::shuffle(mask, value, (emulator::lane() & ~part) | ((unsigned)source & part),
                             "__shfl_sync");
}

template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32)
{
    unsigned lane = emulator::lane(), source = lane ^ (unsigned)bits;
    bool inside = source < (lane & ~((unsigned)width - 1)) + (unsigned)width;
    return emulator::shuffle(mask, value, inside ? source : lane, "__shfl_xor_sync");
}

static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    return emulator::collective<bool, unsigned>(
        mask, "__ballot_sync", predicate != 0, [](const bool *in, unsigned *out, unsigned) {
            unsigned votes = 0; /* of the lanes that take part; the others' are 0 */
            for (unsigned i = 0; i < emulator::warp_lanes; i++)
                votes |= (unsigned)in[i] << i;
            for (unsigned i = 0; i < emulator::warp_lanes; i++)
                out[i] = votes;
        });
}

/* The lanes that brought the same value. */
template <class T> unsigned __match_any_sync(unsigned mask, T value)
{
    return emulator::collective<T, unsigned>(mask, "__match_any_sync", value,
                                             [](const T *in, unsigned *out, unsigned lanes) {
                                                 for (unsigned i = 0; i < 32; i++)
                                                     for (unsigned j = 0; j < 32; j++)
                                                         if (lanes >> j & 1 && in[i] == in[j])
                                                             out[i] |= 1u << j;
                                             });
}

/* --- arithmetic ------------------------------------------------------------------------------- */
namespace emulator
{
/* y with the largest error of the approximation: up to `units` units in the last place, to either
 * side, by its bits. */
inline float approximate(float y, int units)
{
    uint32_t bits;
    memcpy(&bits, &y, sizeof bits);
    if (y == 0 || !std::isnormal(y))
        return y;
    bits += (bits * 2654435761u >> 16) % (2 * (uint32_t)units + 1) - (uint32_t)units;
    memcpy(&y, &bits, sizeof y);
    return y;
}
} // namespace emulator

/* glibc has functions of these names. Errors are those of the CUDA C++ Programming Guide,
 * "Mathematical Functions"; that of __expf in its product grows with x. */
#define __expf(x)          emulator::approximate(exp2f((x)*1.4426950408889634f), 2)
#define __fmul_rn(x, y)    ((x) * (y))
#define __fmaf_rn(x, y, z) fmaf(x, y, z)
#define __fdividef(x, y)   emulator::approximate((x) / (y), 2)

static inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float __uint_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

template <class T> constexpr T min(T x, T y)
{
    return y < x ? y : x;
}

template <class T> constexpr T max(T x, T y)
{
    return x < y ? y : x;
}

#endif
