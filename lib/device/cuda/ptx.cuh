/* SPDX-License-Identifier: MIT */
/*
 * Instructions of sm_80 in inline PTX: loads of matrices from shared memory (ldmatrix), products on
 * tensor cores (mma), asynchronous copies (cp.async), powers of two (ex2).
 *
 * The layout of fragments is that of NVIDIA's PTX ISA 8.5, "Warp-level matrix instructions". Below,
 * lane = 4 group + place; a register of 32 bits holds two elements of 16, the lower one first. Of
 * an 8 x 8 matrix a lane holds row group, columns 2 place and 2 place + 1.
 *
 * Compilers other than nvcc use tests/cuda/toolkit/emulated-ptx.h instead;
 * tests/cuda/conformance.cu compares the two on a GPU.
 */
#ifndef DT_DEVICE_CUDA_PTX_CUH
#define DT_DEVICE_CUDA_PTX_CUH

#include <string.h>

#include "device/cuda/kernel.cuh"
#include "device/device.h"

#ifndef __CUDACC__
#include "emulated-ptx.h"
#else

static __device__ __forceinline__ uint32_t dt_shared_address(const void *memory)
{
    return (uint32_t)__cvta_generic_to_shared(memory);
}

/* Loads four 8 x 8 matrices of 16-bit elements; lane i passes the address of row i mod 8 of
 * matrix i / 8, 16 bytes in shared memory. Register m of a lane receives its two elements of
 * matrix m. */
static __device__ __forceinline__ void dt_load_matrices(uint32_t (&to)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(dt_shared_address(row))
                 : "memory");
}

/* The same, each matrix transposed. */
static __device__ __forceinline__ void dt_load_transposed(uint32_t (&to)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(dt_shared_address(row))
                 : "memory");
}

/* sums (16 x 8, fp32) += a (16 x 16) b (16 x 8), of 16-bit elements. Registers of a: rows 0-7
 * and 8-15 of columns 0-7, then of columns 8-15; of b, which is stored transposed: rows 0-7,
 * rows 8-15; of sums: row group, row group + 8, two columns each. */
template <enum dt_dtype TYPE>
static __device__ __forceinline__ void dt_multiply_add(float (&sums)[4], const uint32_t (&a)[4],
                                                       uint32_t b0, uint32_t b1)
{
    if (TYPE == DT_DTYPE_BF16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* 2^x to 2 ulp; 0 for minus infinity. */
static __device__ __forceinline__ float dt_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Returns x (32 bits) opaquely to the compiler, so that values derived from it are recomputed
 * instead of kept in registers throughout a loop. */
template <class T> static __device__ __forceinline__ T dt_again(T x)
{
    asm volatile("" : "+r"(x));
    return x;
}

/* __syncthreads for count threads, whole warps, by named barrier 1 to 15. */
static __device__ __forceinline__ void dt_barrier_threads(int barrier, int count)
{
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(count) : "memory");
}

/* Starts an asynchronous copy of 16 bytes to shared memory: the first `filled` (0 to 16) of
 * source, then zeros. Both addresses are multiples of 16; the copy bypasses the L1 cache. */
static __device__ __forceinline__ void dt_copy_async(void *shared, const void *source, int filled)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dt_shared_address(shared)),
                 "l"(source), "r"(filled)
                 : "memory");
}

/* Commits this thread's copies as a group. */
static __device__ __forceinline__ void dt_commit_copies(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most LEFT groups of this thread are in flight. */
template <int LEFT> static __device__ __forceinline__ void dt_wait_copies(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

#endif

/* Rounds two numbers to nearest even, as the 16-bit elements of one register. */
template <enum dt_dtype TYPE>
static __device__ __forceinline__ uint32_t dt_pack(float lower, float upper)
{
    uint32_t pair;
    if (TYPE == DT_DTYPE_BF16) {
        __nv_bfloat162 x = __floats2bfloat162_rn(lower, upper);
        memcpy(&pair, &x, sizeof pair);
    } else {
        __half2 x = __floats2half2_rn(lower, upper);
        memcpy(&pair, &x, sizeof pair);
    }
    return pair;
}

static __device__ __forceinline__ float dt_number(enum dt_dtype type, uint16_t bits)
{
    return type == DT_DTYPE_BF16 ? __bfloat162float(__ushort_as_bfloat16(bits))
                                 : __half2float(__ushort_as_half(bits));
}

#endif
