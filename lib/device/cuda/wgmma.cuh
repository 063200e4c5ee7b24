/* SPDX-License-Identifier: MIT */
/*
 * Instructions of sm_90a: asynchronous copies of boxes of tensors to shared memory (TMA), barriers
 * that count their bytes (mbarrier), and products by a warpgroup, 4 warps, of matrices in shared
 * memory (wgmma). Sources: NVIDIA's PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix
 * Multiply-Accumulate Instructions", "Parallel Synchronization: mbarrier" and "Data Movement:
 * cp.async.bulk.tensor".
 *
 * A matrix in shared memory has rows of 64 elements, 128 bytes, and begins at a multiple of 1024;
 * chunk c of 16 bytes of row r is at position c xor (r mod 8) of its row, which is the 128-byte
 * swizzle of TMA and dt_place<64>.
 *
 * TMA and wgmma access shared memory through the async proxy: they see the writes of threads, and
 * initialized barriers, only after dt_show_shared (fence.proxy.async).
 *
 * Compilers other than nvcc use tests/cuda/toolkit/emulated-wgmma.h instead;
 * tests/cuda/conformance.cu compares the two on a GPU. No GPU has run them yet.
 */
#ifndef DT_DEVICE_CUDA_WGMMA_CUH
#define DT_DEVICE_CUDA_WGMMA_CUH

#include <cuda.h>

#include "device/cuda/ptx.cuh"

#define DT_MATRIX_COLUMNS 64   /* elements of a row of 128 bytes */
#define DT_MATRIX_ATOM    1024 /* bytes of 8 rows, after which the swizzle repeats itself */

#ifndef __CUDACC__
#include "emulated-wgmma.h"
#else

/* --- barriers --------------------------------------------------------------------------------- */

/* Initializes a barrier. A phase completes when `arrivals` threads and all expected bytes have
 * arrived. */
static __device__ __forceinline__ void dt_barrier_begin(uint64_t *barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(dt_shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

/* Makes the writes of this thread to shared memory visible to TMA and wgmma of threads that a
 * barrier orders after it. */
static __device__ __forceinline__ void dt_show_shared(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

static __device__ __forceinline__ void dt_barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(dt_shared_address(barrier))
                 : "memory");
}

/* Arrives, and adds `bytes` to the bytes that the phase expects. */
static __device__ __forceinline__ void dt_barrier_expect(uint64_t *barrier, unsigned bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(dt_shared_address(barrier)),
        "r"(bytes)
        : "memory");
}

static __device__ __forceinline__ bool dt_barrier_passed(uint64_t *barrier, unsigned parity)
{
    unsigned passed;
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(passed)
                 : "r"(dt_shared_address(barrier)), "r"(parity)
                 : "memory");
    return passed;
}

/* Waits until the phase of this parity is complete; the phase before the first has odd parity.
 * After about ten seconds the kernel fails with an illegal address, so that a mistake is an
 * error instead of a hang. (With a trap instead, ptxas of CUDA 13.0 ignores setmaxnreg.) */
static __device__ __forceinline__ void dt_barrier_wait(uint64_t *barrier, unsigned parity)
{
    if (dt_barrier_passed(barrier, parity))
        return;
    const long long most = 1ll << 34, begin = clock64(); /* clocks */
    while (!dt_barrier_passed(barrier, parity))
        if (clock64() - begin > most)
            asm volatile("st.global.u32 [%0], %1;" ::"l"(0ull), "r"(0) : "memory");
}

/* --- boxes ------------------------------------------------------------------------------------ */

/* Starts the copy of the box of map at these coordinates to shared memory, aligned to 1024; its
 * bytes count towards the barrier. Elements outside of the tensor are 0. */
static __device__ __forceinline__ void dt_copy_box(void *shared, const CUtensorMap *map,
                                                   uint64_t *barrier, int channel, int head,
                                                   int row, int sequence)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(dt_shared_address(shared)),
                 "l"(map), "r"(dt_shared_address(barrier)), "r"(channel), "r"(head), "r"(row),
                 "r"(sequence)
                 : "memory");
}

/* --- products --------------------------------------------------------------------------------- */

/* Sets the registers per thread (setmaxnreg); all warps of a warpgroup call it. */
template <int COUNT> static __device__ __forceinline__ void dt_take_registers(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT> static __device__ __forceinline__ void dt_give_registers(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/* The compiler may not move uses of these registers past this point. */
template <int COUNT> static __device__ __forceinline__ void dt_pin(float (&x)[COUNT][4])
{
#pragma unroll
    for (int i = 0; i < 4 * COUNT; i++)
        asm volatile("" : "+f"(x[i / 4][i % 4])::"memory");
}

template <int COUNT> static __device__ __forceinline__ void dt_pin(uint32_t (&x)[COUNT][4])
{
#pragma unroll
    for (int i = 0; i < 4 * COUNT; i++)
        asm volatile("" : "+r"(x[i / 4][i % 4])::"memory");
}

/* wgmma.fence, required before each group of products: orders accesses to their registers. */
static __device__ __forceinline__ void dt_begin_products(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Commits a group. Until it was waited for, its accumulators must not be accessed, and its left
 * operand in registers and its matrices must not change. */
static __device__ __forceinline__ void dt_commit_products(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most LEFT groups are in flight. */
template <int LEFT> static __device__ __forceinline__ void dt_wait_products(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

/* clang-format off */
#define DT_OF_32(x)                                                                                \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31" x
#define DT_OF_64                                                                                   \
    DT_OF_32(", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "  \
             "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}")
#define DT_SUMS_4(s, n)  "+f"(s[n][0]), "+f"(s[n][1]), "+f"(s[n][2]), "+f"(s[n][3])
#define DT_SUMS_16(s, n) DT_SUMS_4(s, n), DT_SUMS_4(s, n + 1), DT_SUMS_4(s, n + 2), DT_SUMS_4(s, n + 3)
#define DT_SUMS_32(s, n) DT_SUMS_16(s, n), DT_SUMS_16(s, n + 4)
#define DT_SUMS_64(s)    DT_SUMS_32(s, 0), DT_SUMS_32(s, 8)
#define DT_WGMMA(columns, type, sums, operands, adds, transposed)                                  \
    "{\n.reg .pred p;\nsetp.ne.b32 p, " adds ", 0;\n"                                              \
    "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " " sums ", " operands    \
    ", p, 1, 1, " transposed ";\n}"
/* clang-format on */

/* sums (64 x 128), 16 rows per warp in the layout of dt_multiply_add, = or, if ADD, += a (64 x
 * 16) times the transpose of b (128 x 16): 16 columns each of matrices with descriptors of
 * dt_matrix. */
template <enum dt_dtype TYPE, bool ADD>
static __device__ __forceinline__ void dt_multiply_rows_async(float (&sums)[16][4], uint64_t a,
                                                              uint64_t b)
{
    if (TYPE == DT_DTYPE_BF16)
        asm volatile(DT_WGMMA("128", "bf16", DT_OF_64, "%64, %65", "%66", "0, 0")
                     : DT_SUMS_64(sums)
                     : "l"(a), "l"(b), "n"(ADD));
    else
        asm volatile(DT_WGMMA("128", "f16", DT_OF_64, "%64, %65", "%66", "0, 0")
                     : DT_SUMS_64(sums)
                     : "l"(a), "l"(b), "n"(ADD));
}

/* The same for 64 columns. */
template <enum dt_dtype TYPE, bool ADD>
static __device__ __forceinline__ void dt_multiply_rows_async(float (&sums)[8][4], uint64_t a,
                                                              uint64_t b)
{
    if (TYPE == DT_DTYPE_BF16)
        asm volatile(DT_WGMMA("64", "bf16", DT_OF_32("}"), "%32, %33", "%34", "0, 0")
                     : DT_SUMS_32(sums, 0)
                     : "l"(a), "l"(b), "n"(ADD));
    else
        asm volatile(DT_WGMMA("64", "f16", DT_OF_32("}"), "%32, %33", "%34", "0, 0")
                     : DT_SUMS_32(sums, 0)
                     : "l"(a), "l"(b), "n"(ADD));
}

/* sums (64 x 64) += a (64 x 16), in registers in the layout of dt_multiply_add, times 16 rows of
 * b. */
template <enum dt_dtype TYPE>
static __device__ __forceinline__ void dt_add_rows_async(float (&sums)[8][4],
                                                         const uint32_t (&a)[4], uint64_t b)
{
    if (TYPE == DT_DTYPE_BF16)
        asm volatile(DT_WGMMA("64", "bf16", DT_OF_32("}"), "{%32, %33, %34, %35}, %36", "%37", "1")
                     : DT_SUMS_32(sums, 0)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(1));
    else
        asm volatile(DT_WGMMA("64", "f16", DT_OF_32("}"), "{%32, %33, %34, %35}, %36", "%37", "1")
                     : DT_SUMS_32(sums, 0)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(1));
}

/* The same for 128 columns, the second half in a separate matrix. */
template <enum dt_dtype TYPE>
static __device__ __forceinline__ void dt_add_rows_async(float (&sums)[16][4],
                                                         const uint32_t (&a)[4], uint64_t b)
{
    if (TYPE == DT_DTYPE_BF16)
        asm volatile(DT_WGMMA("128", "bf16", DT_OF_64, "{%64, %65, %66, %67}, %68", "%69", "1")
                     : DT_SUMS_64(sums)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(1));
    else
        asm volatile(DT_WGMMA("128", "f16", DT_OF_64, "{%64, %65, %66, %67}, %68", "%69", "1")
                     : DT_SUMS_64(sums)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(1));
}

#endif

/* The descriptor of a matrix, from this row on. next: byte offset of the matrix of the next 64
 * columns, if more than 64 columns are multiplied. */
static __device__ __forceinline__ uint64_t dt_matrix(const void *rows, unsigned next)
{
    const uint64_t swizzled = 1; /* by 128 bytes */
    return (uint64_t)(dt_shared_address(rows) >> 4 & 0x3fff) | (uint64_t)(next >> 4) << 16 |
           (uint64_t)(DT_MATRIX_ATOM >> 4) << 32 | swizzled << 62;
}

/* The same, advanced by bytes: 32 for 16 columns, 2048 for 16 rows. */
static __device__ __forceinline__ uint64_t dt_further_matrix(uint64_t matrix, int bytes)
{
    return matrix + (uint64_t)(bytes >> 4);
}

#endif
