/* SPDX-License-Identifier: MIT */
/*
 * What the instructions of lib/device/cuda/ptx.cuh give, word for word: one warp works on
 * numbers that are exact in every sum, and each lane writes down its registers. conformance.cu
 * runs this on a GPU, test-conformance.cpp in the emulator; both compare with
 * conformance-table.h.
 */
#ifndef DT_TEST_CUDA_CONFORMANCE_CUH
#define DT_TEST_CUDA_CONFORMANCE_CUH

#include <stdio.h>

#include "device/cuda/ptx.cuh"

enum {
    LANES = 32,
    REGISTERS = 4, /* that a lane writes in each section */
    WORDS = LANES * REGISTERS
};

enum section {
    LDMATRIX,
    LDMATRIX_TRANS,
    MMA_BF16,
    MMA_F16,
    CP_ASYNC,
    CONVERT,
    TMA, /* from here on of sm_90a: conformance-wgmma.cuh */
    WGMMA_SHARED,
    WGMMA_HELD,
    TMA_PLAIN,
    WGMMA_64,
    WGMMA_F16,
    WGMMA_F16_HELD,
    RING,
    SETMAXNREG,
    SECTIONS
};

static const char *const section_names[SECTIONS] = {"ldmatrix",
                                                    "ldmatrix.trans",
                                                    "mma.bf16",
                                                    "mma.f16",
                                                    "cp.async",
                                                    "conversion to 16 bits",
                                                    "TMA",
                                                    "wgmma of shared memory",
                                                    "wgmma of registers",
                                                    "TMA without swizzle",
                                                    "wgmma of 64 columns",
                                                    "wgmma.f16",
                                                    "wgmma.f16 of registers",
                                                    "a slot used again",
                                                    "setmaxnreg"};

/* A whole number from -8 to 8, another one for nearly every n nearby. */
static __host__ __device__ __forceinline__ float conformance_number(int n)
{
    return (float)(n * n * 5 % 17 - 8 + n % 3 % 2);
}

template <enum dt_dtype TYPE>
static __device__ __forceinline__ void conformance_product(uint32_t *words, int lane)
{
    uint32_t a[4], b[2];
    float sums[4];
    for (int i = 0; i < 4; i++) {
        a[i] = dt_pack<TYPE>(conformance_number(8 * lane + 2 * i),
                             conformance_number(8 * lane + 2 * i + 1));
        sums[i] = (float)(4 * lane + i) / 4;
    }
    for (int i = 0; i < 2; i++)
        b[i] = dt_pack<TYPE>(conformance_number(300 + 4 * lane + 2 * i),
                             conformance_number(301 + 4 * lane + 2 * i));
    dt_multiply_add<TYPE>(sums, a, b[0], b[1]);
    for (int i = 0; i < 4; i++)
        words[REGISTERS * lane + i] = __float_as_uint(sums[i]);
}

/* Rounding: ties to even, carries into the exponent, the largest and least numbers. */
static __device__ __forceinline__ void conformance_conversion(uint32_t *words, int lane)
{
    float x = (1.0f + (float)lane / 4096) * (lane % 2 ? -1.0f : 1.0f);
    float tiny = (float)(lane + 1) * 1.4901161193847656e-8f; /* quarters of fp16's least */
    float large = 65488.0f + 2.0f * (float)lane;             /* about fp16's largest */
    words[REGISTERS * lane] = dt_pack<DT_DTYPE_BF16>(x, 1.0f + (float)lane / 512);
    words[REGISTERS * lane + 1] = dt_pack<DT_DTYPE_F16>(x, 1.0f + (float)lane / 8192);
    words[REGISTERS * lane + 2] = dt_pack<DT_DTYPE_F16>(tiny, large);
    words[REGISTERS * lane + 3] = dt_pack<DT_DTYPE_BF16>(dt_exp2(-INFINITY), dt_exp2(0.0f));
}

/* words: TMA x WORDS; source: 2 WORDS words to copy. One warp. */
__global__ void conformance_kernel(uint32_t *words, const uint32_t *source)
{
    DT_SHARED(uint32_t, tile, WORDS);
    int lane = (int)threadIdx.x;
    uint32_t got[4];
    for (int i = 0; i < REGISTERS; i++) {
        uint32_t element = (uint32_t)(REGISTERS * lane + i) * 2;
        tile[REGISTERS * lane + i] = element | (element + 1) << 16;
    }
    __syncthreads();
    dt_load_matrices(got, tile + REGISTERS * lane);
    for (int i = 0; i < 4; i++)
        words[LDMATRIX * WORDS + REGISTERS * lane + i] = got[i];
    dt_load_transposed(got, tile + REGISTERS * (31 - lane));
    for (int i = 0; i < 4; i++)
        words[LDMATRIX_TRANS * WORDS + REGISTERS * lane + i] = got[i];
    conformance_product<DT_DTYPE_BF16>(words + MMA_BF16 * WORDS, lane);
    conformance_product<DT_DTYPE_F16>(words + MMA_F16 * WORDS, lane);
    __syncthreads();
    /* Two groups: of the second, which may still be on its way, nothing is read at first. */
    if (lane % 2 == 0)
        dt_copy_async(tile + REGISTERS * lane, source + REGISTERS * lane, lane % 4 ? 16 : lane / 4);
    dt_commit_copies();
    if (lane % 2)
        dt_copy_async(tile + REGISTERS * lane, source + WORDS + REGISTERS * lane, 16);
    dt_commit_copies();
    dt_wait_copies<1>();
    for (int i = 0; i < REGISTERS && lane % 2 == 0; i++)
        words[CP_ASYNC * WORDS + REGISTERS * lane + i] = tile[REGISTERS * lane + i];
    dt_wait_copies<0>();
    for (int i = 0; i < REGISTERS && lane % 2; i++)
        words[CP_ASYNC * WORDS + REGISTERS * lane + i] = tile[REGISTERS * lane + i];
    conformance_conversion(words + CONVERT * WORDS, lane);
}

/* words on the host, TMA x WORDS of them; false, with a line printed, if the device
 * could not. */
static bool run_conformance(uint32_t *words)
{
    uint32_t *results, *source, numbers[2 * WORDS];
    for (uint32_t i = 0; i < 2 * WORDS; i++)
        numbers[i] = 0x01020304u * (i % 63 + 1);
    cudaError_t error = cudaMalloc((void **)&results, TMA * WORDS * sizeof *words);
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&source, sizeof numbers);
    if (error == cudaSuccess) {
        (void)cudaMemcpyAsync(source, numbers, sizeof numbers, cudaMemcpyHostToDevice, 0);
        dt_cuda_launch(cudaStream_t(0), dim3(1), dim3(LANES), 0, conformance_kernel, results,
                       source);
        (void)cudaMemcpyAsync(words, results, TMA * WORDS * sizeof *words, cudaMemcpyDeviceToHost,
                              0);
        error = cudaDeviceSynchronize();
    }
    if (error != cudaSuccess)
        printf("conformance: %s\n", cudaGetErrorString(error));
    return error == cudaSuccess;
}

/* The words of conformance-table.h. */
static int dump_table(const uint32_t *words, int sections)
{
    for (int i = 0; i < sections * WORDS; i++)
        printf("%s0x%08x,%s", i % 8 ? " " : "    ", words[i], i % 8 == 7 ? "\n" : "");
    return fflush(stdout);
}

/* The first word that differs in these sections, or -1. */
static int find_difference(const uint32_t *words, const uint32_t *table, int sections)
{
    for (int i = 0; i < sections * WORDS; i++)
        if (words[i] != table[i])
            return i;
    return -1;
}

#endif
