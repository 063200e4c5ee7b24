/* SPDX-License-Identifier: MIT */
/*
 * The instructions of sm_90a: boxes of tensors that arrive in shared memory by themselves
 * (TMA), barriers that count their bytes (mbarrier), and products of a warpgroup, 4 warps,
 * whose matrices lie there (wgmma). Sources: NVIDIA's PTX ISA 9.0, "Asynchronous Warpgroup
 * Level Matrix Multiply-Accumulate Instructions", "Parallel Synchronization: mbarrier" and
 * "Data Movement: cp.async.bulk.tensor".
 *
 * A matrix in shared memory has rows of 64 elements, 128 bytes, and begins at a multiple of
 * 1024; chunk c of 16 bytes of row r lies at place c xor (r mod 8) of its row, as TMA's
 * 128-byte swizzle puts it and as dt_place<64> says.
 *
 * What is asynchronous sees shared memory by a proxy of its own: what threads wrote there, and
 * barriers that they began, it sees after dt_show_shared alone.
 *
 * Where no nvcc compiles this, tests/cuda/toolkit/emulated-wgmma.h stands for the instructions;
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

/* A phase ends when so many threads have arrived, and the bytes that they expected have. */
static __device__ __forceinline__ void dt_barrier_begin(uint64_t *barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(dt_shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

/* What this thread wrote to shared memory is seen by TMA and wgmma, of those threads that a
 * barrier orders behind it. */
static __device__ __forceinline__ void dt_show_shared(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

static __device__ __forceinline__ void dt_barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(dt_shared_address(barrier))
                 : "memory");
}

/* Arrives, and has the phase wait for so many bytes. */
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

/* Waits until the phase of this parity has ended; the one before the first counts as odd. In
 * some ten seconds it must, or the kernel fails with an illegal address: a hang is no work.
 * (With a trap in its place ptxas of CUDA 13.0 gives no warpgroup more registers.) */
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

/* Begins to bring the box of map that begins at these elements: to shared memory, at a
 * multiple of 1024; its bytes count for the barrier. What is outside of the tensor is 0. */
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

/* Registers of this thread from now on; all warps of a warpgroup together. */
template <int COUNT> static __device__ __forceinline__ void dt_take_registers(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT> static __device__ __forceinline__ void dt_give_registers(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/* The compiler may not move what uses these registers past here. */
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

/* Comes before each group of products: registers are then as the thread left them. */
static __device__ __forceinline__ void dt_begin_products(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Ends a group. Until it was waited for, nobody may touch its sums, nor change the left
 * operand in registers or the matrices. */
static __device__ __forceinline__ void dt_commit_products(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most LEFT groups are under way. */
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

/* sums (64 x 128), of each warp 16 rows as of dt_multiply_add, = or, if ADD, += a (64 x 16)
 * times the transpose of b (128 x 16): 16 columns each of matrices that dt_matrix describes. */
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

/* The same of 64 columns. */
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

/* sums (64 x 64) += a (64 x 16), in registers as of dt_multiply_add, times 16 rows of b. */
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

/* The same of 128 columns, the second half in a matrix of its own. */
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

/* The descriptor of a matrix, from this row on. next: bytes from it to the matrix of the 64
 * columns that follow, where rows are multiplied by more of them. */
static __device__ __forceinline__ uint64_t dt_matrix(const void *rows, unsigned next)
{
    const uint64_t swizzled = 1; /* by 128 bytes */
    return (uint64_t)(dt_shared_address(rows) >> 4 & 0x3fff) | (uint64_t)(next >> 4) << 16 |
           (uint64_t)(DT_MATRIX_ATOM >> 4) << 32 | swizzled << 62;
}

/* The same, so many bytes further on: 16 columns are 32, 16 rows 2048. */
static __device__ __forceinline__ uint64_t dt_further_matrix(uint64_t matrix, int bytes)
{
    return matrix + (uint64_t)(bytes >> 4);
}

#endif
