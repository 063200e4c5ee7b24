/* SPDX-License-Identifier: MIT */
/*
 * What the instructions of lib/device/cuda/wgmma.cuh give: a warpgroup works on boxes of a
 * tensor of small whole numbers, whose sums are exact, and each thread writes down what it
 * has, folded to a word.
 */
#ifndef DT_TEST_CUDA_CONFORMANCE_WGMMA_CUH
#define DT_TEST_CUDA_CONFORMANCE_WGMMA_CUH

#include "conformance.cuh"
#include "device/cuda/attention/attention-tile.cuh"
#include "device/cuda/wgmma.cuh"

/* Of the tensor. The boxes reach over the ends of channels and rows. */
enum { CHANNELS = 72, HEADS = 2, ROWS = 100, SEQUENCES = 2 };
enum { BOX_ROWS = 64, BOX_BYTES = BOX_ROWS * 128, BOXES = 4 };
enum { PLAIN_COLUMNS = 16, PLAIN_BYTES = BOX_ROWS * PLAIN_COLUMNS * 2 }; /* not swizzled */

/* Where all but the tensor is: boxes, two matrices that threads write, a barrier. */
enum { WRITTEN = BOXES * BOX_BYTES, BARRIER = WRITTEN + 2 * BOX_BYTES, BYTES = BARRIER + 8 };

static __device__ __forceinline__ uint32_t conformance_fold(uint32_t so_far, uint32_t word)
{
    return (so_far << 5 | so_far >> 27) + word;
}

template <int COLUMNS>
static __device__ __forceinline__ uint32_t conformance_fold_sums(const float (&sums)[COLUMNS][4])
{
    uint32_t folded = 0;
    for (int i = 0; i < 4 * COLUMNS; i++)
        folded = conformance_fold(folded, __float_as_uint(sums[i / 4][i % 4]));
    return folded;
}

/* Of a box that has arrived, the words of a thread. */
static __device__ __forceinline__ uint32_t conformance_fold_box(const unsigned char *box, int bytes)
{
    uint32_t folded = 0;
    for (int i = (int)threadIdx.x; i < bytes / 4; i += WORDS)
        folded = conformance_fold(folded, ((const uint32_t *)box)[i]);
    return folded;
}

/* Two matrices of 64 x 64 numbers, which TMA and wgmma see. */
template <enum dt_dtype TYPE>
static __device__ __forceinline__ void conformance_write_matrices(unsigned char *memory,
                                                                  int threads)
{
    for (int i = (int)threadIdx.x; i < 2 * BOX_ROWS * DT_MATRIX_COLUMNS; i += threads) {
        int row = i / DT_MATRIX_COLUMNS % BOX_ROWS, column = i % DT_MATRIX_COLUMNS;
        unsigned char *matrix = memory + i / (BOX_ROWS * DT_MATRIX_COLUMNS) * BOX_BYTES;
        ((uint16_t *)dt_chunk<64>(matrix, row, column / 8))[column % 8] =
            (uint16_t)(dt_pack<TYPE>(conformance_number(i), 0) & 0xffff);
    }
    dt_show_shared();
    __syncthreads();
}

/* products (64 x 8 COUNT) = a b', of 64 columns each. */
template <enum dt_dtype TYPE, int COUNT>
static __device__ __forceinline__ void conformance_multiply(float (&products)[COUNT][4],
                                                            const void *left, const void *right)
{
    uint64_t a = dt_matrix(left, 0), b = dt_matrix(right, 0);
    dt_begin_products();
    dt_multiply_rows_async<TYPE, false>(products, a, b);
    for (int i = 1; i < 4; i++)
        dt_multiply_rows_async<TYPE, true>(products, dt_further_matrix(a, 32 * i),
                                           dt_further_matrix(b, 32 * i));
    dt_commit_products();
    dt_wait_products<0>();
    dt_pin(products);
}

/* words: one section. As the kernels of attention: the first warpgroup of three gives its
 * registers, and the others take them and multiply. */
__global__ void __launch_bounds__(3 * WORDS, 1) conformance_registers_kernel(uint32_t *words)
{
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
    DT_DYNAMIC_SHARED(unsigned char, memory);
    DT_SHARED(uint32_t, folded, 2 * WORDS);
    int thread = (int)threadIdx.x;
    conformance_write_matrices<DT_DTYPE_BF16>(memory, 3 * WORDS);
    if (thread < WORDS) {
        dt_give_registers<24>();
    } else {
        dt_take_registers<240>();
        float one[16][4], other[16][4];
        conformance_multiply<DT_DTYPE_BF16>(one, memory, memory);
        conformance_multiply<DT_DTYPE_BF16>(other, memory + BOX_BYTES, memory);
        folded[thread - WORDS] = conformance_fold_sums(one) ^ conformance_fold_sums(other);
    }
    __syncthreads();
    if (thread < WORDS)
        words[thread] = conformance_fold(folded[thread], folded[WORDS + thread]);
#endif
}

/* words: sections TMA to RING; map, plain: of the tensor. Of sm_90a alone. */
__global__ void __launch_bounds__(WORDS, 1)
    conformance_wgmma_kernel(uint32_t *words, const __grid_constant__ CUtensorMap map,
                             const __grid_constant__ CUtensorMap plain)
{
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
    DT_DYNAMIC_SHARED(unsigned char, memory);
    uint64_t *barrier = (uint64_t *)(memory + BARRIER);
    int thread = (int)threadIdx.x;
    if (thread == 0)
        dt_barrier_begin(barrier, 1);
    conformance_write_matrices<DT_DTYPE_BF16>(memory + WRITTEN, WORDS);
    if (thread == 0) {
        dt_barrier_expect(barrier, BOXES * BOX_BYTES);
        dt_copy_box(memory, &map, barrier, 0, 0, 3, 0);
        dt_copy_box(memory + BOX_BYTES, &map, barrier, 0, 1, 20, 1);
        dt_copy_box(memory + 2 * BOX_BYTES, &map, barrier, 0, 1, 84, 1);
        dt_copy_box(memory + 3 * BOX_BYTES, &map, barrier, 64, 0, 0, 1);
    }
    dt_barrier_wait(barrier, 0);
    words[thread] = conformance_fold_box(memory, BOXES * BOX_BYTES);

    float rows[16][4], sums[16][4], narrow[8][4], half[8][4], added[8][4] = {};
    uint32_t held[2][4];
    for (int i = 0; i < 64; i++)
        sums[i / 4][i % 4] = (float)(i + 64 * thread % 1024);
    for (int i = 0; i < 8; i++)
        held[i / 4][i % 4] = dt_pack<DT_DTYPE_BF16>(conformance_number(16 * thread + 2 * i),
                                                    conformance_number(16 * thread + 2 * i + 1));
    uint64_t a = dt_matrix(memory, 0), b = dt_matrix(memory + BOX_BYTES, 0);
    uint64_t v = dt_matrix(memory + WRITTEN, BOX_BYTES);
    dt_pin(sums), dt_pin(held);
    dt_begin_products();
    dt_multiply_rows_async<DT_DTYPE_BF16, false>(rows, a, b);
    for (int i = 1; i < 4; i++)
        dt_multiply_rows_async<DT_DTYPE_BF16, true>(rows, dt_further_matrix(a, 32 * i),
                                                    dt_further_matrix(b, 32 * i));
    dt_commit_products();
    dt_begin_products();
    dt_add_rows_async<DT_DTYPE_BF16>(sums, held[0], v);
    dt_add_rows_async<DT_DTYPE_BF16>(sums, held[1], dt_further_matrix(v, 16 * 128));
    dt_commit_products();
    dt_wait_products<0>();
    dt_pin(rows), dt_pin(sums);
    words[WORDS + thread] = conformance_fold_sums(rows);
    words[2 * WORDS + thread] = conformance_fold_sums(sums);

    conformance_multiply<DT_DTYPE_BF16>(narrow, memory, memory + BOX_BYTES);
    words[4 * WORDS + thread] = conformance_fold_sums(narrow);
    __syncthreads(); /* all boxes were used */
    conformance_write_matrices<DT_DTYPE_F16>(memory + WRITTEN, WORDS);
    conformance_multiply<DT_DTYPE_F16>(half, memory + WRITTEN, memory + WRITTEN + BOX_BYTES);
    words[5 * WORDS + thread] = conformance_fold_sums(half);
    for (int i = 0; i < 4; i++)
        held[0][i] = dt_pack<DT_DTYPE_F16>(conformance_number(16 * thread + 2 * i),
                                           conformance_number(16 * thread + 2 * i + 1));
    dt_pin(added), dt_pin(held);
    dt_begin_products();
    dt_add_rows_async<DT_DTYPE_F16>(added, held[0], dt_matrix(memory + WRITTEN, 0));
    dt_commit_products();
    dt_wait_products<0>();
    dt_pin(added);
    words[6 * WORDS + thread] = conformance_fold_sums(added);

    if (thread == 0) { /* the barrier's second phase, in memory that was used before */
        dt_barrier_expect(barrier, BOX_BYTES + PLAIN_BYTES);
        dt_copy_box(memory, &map, barrier, 0, 1, 40, 1);
        dt_copy_box(memory + BOX_BYTES, &plain, barrier, 64, 1, 5, 0);
    }
    dt_barrier_wait(barrier, 1);
    words[7 * WORDS + thread] = conformance_fold_box(memory, BOX_BYTES);
    words[3 * WORDS + thread] = conformance_fold_box(memory + BOX_BYTES, PLAIN_BYTES);
#endif
}

/* A tensor of HEADS x CHANNELS x ... in device memory, and its maps, with swizzle and without. */
static cudaError_t conformance_map(CUtensorMap *map, CUtensorMap *plain)
{
    typedef CUresult encode_tiled(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                                  const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                                  const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                                  CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    static uint16_t numbers[SEQUENCES * ROWS * HEADS * CHANNELS];
    const cuuint64_t extents[4] = {CHANNELS, HEADS, ROWS, SEQUENCES};
    const cuuint64_t steps[3] = {CHANNELS * 2, HEADS * CHANNELS * 2, ROWS * HEADS * CHANNELS * 2};
    const cuuint32_t box[4] = {DT_MATRIX_COLUMNS, 1, BOX_ROWS, 1}, every[4] = {1, 1, 1, 1};
    const cuuint32_t narrow[4] = {PLAIN_COLUMNS, 1, BOX_ROWS, 1};
    enum cudaDriverEntryPointQueryResult found;
    void *tensor, *encode;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        float x = conformance_number((int)(i % 9973)); /* whose bf16 is its upper half */
        memcpy(&numbers[i], (char *)&x + 2, sizeof *numbers);
    }
    cudaError_t error = cudaMalloc(&tensor, sizeof numbers);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(tensor, numbers, sizeof numbers, cudaMemcpyHostToDevice, 0);
    if (error == cudaSuccess)
        error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000,
                                                 cudaEnableDefault, &found);
    if (error != cudaSuccess)
        return error;
    CUresult result = ((encode_tiled *)encode)(
        map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, tensor, extents, steps, box, every,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result == CUDA_SUCCESS)
        result = ((encode_tiled *)encode)(
            plain, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, tensor, extents, steps, narrow, every,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
            CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

/* As run_conformance, of the sections from TMA on. */
static bool run_wgmma_conformance(uint32_t *words)
{
    CUtensorMap map, plain;
    uint32_t *results;
    const size_t bytes = (SECTIONS - TMA) * WORDS * sizeof *words;
    cudaError_t error = conformance_map(&map, &plain);
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&results, bytes);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(conformance_wgmma_kernel,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    if (error == cudaSuccess)
        error = dt_cuda_launch(cudaStream_t(0), dim3(1), dim3(WORDS), BYTES,
                               conformance_wgmma_kernel, results, map, plain);
    if (error == cudaSuccess)
        error = dt_cuda_launch(cudaStream_t(0), dim3(1), dim3(3 * WORDS), 2 * BOX_BYTES,
                               conformance_registers_kernel, results + (SETMAXNREG - TMA) * WORDS);
    if (error == cudaSuccess) {
        (void)cudaMemcpyAsync(words + TMA * WORDS, results, bytes, cudaMemcpyDeviceToHost, 0);
        error = cudaDeviceSynchronize();
    }
    if (error != cudaSuccess)
        printf("conformance of wgmma: %s\n", cudaGetErrorString(error));
    return error == cudaSuccess;
}

#endif
