/* SPDX-License-Identifier: MIT */
/* The emulator of what is asynchronous on sm_90a: right kernels run, wrong ones are found. */
#include <cmath>

extern "C" {
#include "test.h"
}

#include "device/cuda/wgmma.cuh"
#include "stops.h"

namespace
{
enum { MATRIX = 64 * 128, TENSOR_ROWS = 40, THREADS = 128 };
cudaStream_t stream;
CUtensorMap map; /* of one head of 64 channels, all of them 1 */

enum mistake {
    NONE,
    NOT_SHOWN,      /* what threads wrote, and the barrier */
    SHOWN_TOO_SOON, /* before it was written */
    SHOWN_BY_OTHER, /* by a warp that no barrier orders after the writing */
    FEWER_BYTES,
    MORE_BYTES,
    WRONG_PHASE,
    NO_FENCE,
    READ_EARLY, /* before the wait */
    NO_WAIT,
    CHANGED_EARLY, /* the left operand */
    DIFFERENT_WARPS,
    NOT_SWIZZLED,
    NOT_ALIGNED,
    TWO_ARRIVALS
};

/* y[thread] = a sum of 16 products of ones, of which it has two of 40 rows; held: of the left
 * operand that registers hold. */
template <mistake MISTAKE> __global__ void multiply(float *y, CUtensorMap tensor)
{
    DT_DYNAMIC_SHARED(unsigned char, memory);
    uint64_t *barrier = (uint64_t *)(memory + 2 * MATRIX);
    float sums[8][4], more[8][4] = {};
    uint32_t ones = dt_pack<DT_DTYPE_BF16>(1, 1), held[1][4] = {{ones, ones, ones, ones}};
    if (threadIdx.x == 0)
        dt_barrier_begin(barrier, 1);
    if (MISTAKE == SHOWN_TOO_SOON && threadIdx.x == 0)
        dt_show_shared();
    for (unsigned i = threadIdx.x; i < MATRIX / 4; i += THREADS)
        ((uint32_t *)memory)[i] = ones;
    if (MISTAKE == SHOWN_BY_OTHER && threadIdx.x < 32)
        dt_show_shared();
    __syncthreads();
    if (MISTAKE != NOT_SHOWN && MISTAKE != SHOWN_TOO_SOON && MISTAKE != SHOWN_BY_OTHER)
        dt_show_shared();
    __syncthreads();
    if (threadIdx.x == 0) {
        dt_barrier_expect(barrier,
                          MATRIX + 16 * (MISTAKE == MORE_BYTES) - 16 * (MISTAKE == FEWER_BYTES));
        dt_copy_box(memory + MATRIX + 128 * (MISTAKE == NOT_ALIGNED), &tensor, barrier, 0, 0, 0, 0);
        if (MISTAKE == TWO_ARRIVALS)
            dt_barrier_arrive(barrier);
    }
    dt_barrier_wait(barrier, MISTAKE == WRONG_PHASE);
    uint64_t a = dt_matrix(memory, 0), b = dt_matrix(memory + MATRIX, 0);
    if (MISTAKE == DIFFERENT_WARPS && threadIdx.x >= 64)
        a = dt_further_matrix(a, 32);
    if (MISTAKE == NOT_SWIZZLED)
        b ^= (uint64_t)1 << 62;
    if (MISTAKE != NO_FENCE)
        dt_begin_products();
    dt_multiply_rows_async<DT_DTYPE_BF16, false>(sums, a, b);
    dt_add_rows_async<DT_DTYPE_BF16>(more, held[0], b);
    dt_commit_products();
    if (MISTAKE == READ_EARLY)
        y[threadIdx.x] = sums[0][0];
    if (MISTAKE == CHANGED_EARLY)
        held[0][0] = held[0][1] = 0;
    if (MISTAKE != NO_WAIT)
        dt_wait_products<0>();
    if (MISTAKE != READ_EARLY)
        y[threadIdx.x] = sums[0][0] + sums[5][0] + more[0][0];
}

template <mistake MISTAKE> void launch(float *y)
{
    dt_cuda_launch(stream, 1, THREADS, 2 * MATRIX + 16, multiply<MISTAKE>, y, map);
}

/* What the kernel gives for thread 5: three sums of 16 ones, but that column 5 x 8 and on is
 * of rows that the tensor does not have. */
template <mistake MISTAKE> float answer(float *y)
{
    float got;
    launch<MISTAKE>(y);
    cudaMemcpyAsync(&got, y + 5, sizeof got, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    return got;
}

float *make_map()
{
    const cuuint64_t extents[4] = {64, 1, TENSOR_ROWS, 1}, steps[3] = {128, 128, 128 * TENSOR_ROWS};
    const cuuint32_t box[4] = {64, 1, 64, 1}, every[4] = {1, 1, 1, 1};
    static const uint16_t one = 0x3f80;
    cudaDriverEntryPointQueryResult found;
    void *encode, *tensor, *y;
    CUresult (*function)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                         const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
                         CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                         CUtensorMapFloatOOBfill);
    cudaMalloc(&tensor, 128 * TENSOR_ROWS);
    cudaMalloc(&y, THREADS * sizeof(float));
    for (int i = 0; i < 64 * TENSOR_ROWS; i++)
        cudaMemcpyAsync((uint16_t *)tensor + i, &one, sizeof one, cudaMemcpyHostToDevice, stream);
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault,
                                     &found);
    assert_int_equal(found, cudaDriverEntryPointSuccess);
    function = reinterpret_cast<decltype(function)>(encode);
    auto encoded = [&](void *data, cuuint32_t columns) {
        const cuuint32_t boxes[4] = {columns, box[1], box[2], box[3]};
        return function(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, data, extents, steps, boxes,
                        every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    };
    assert_int_equal(encoded((char *)tensor + 8, 64), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(encoded(tensor, 128), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(encoded(tensor, 64), CUDA_SUCCESS);
    return (float *)y;
}

void test_mistakes_are_found(void **)
{
    float *y = make_map();
    /* 16 + 0, and 16 of the operand in registers. */
    assert_true(answer<NONE>(y) == 32);
    assert_true(stops(stream, [=] { launch<NOT_SHOWN>(y); }));
    assert_true(stops(stream, [=] { launch<SHOWN_TOO_SOON>(y); }));
    assert_true(stops(stream, [=] { launch<SHOWN_BY_OTHER>(y); }));
    assert_true(stops(stream, [=] { launch<FEWER_BYTES>(y); }));
    assert_true(stops(stream, [=] { launch<MORE_BYTES>(y); }));
    assert_true(stops(stream, [=] { launch<NO_FENCE>(y); }));
    assert_true(stops(stream, [=] { launch<NO_WAIT>(y); }));
    assert_true(stops(stream, [=] { launch<DIFFERENT_WARPS>(y); }));
    assert_true(stops(stream, [=] { launch<NOT_SWIZZLED>(y); }));
    assert_true(stops(stream, [=] { launch<NOT_ALIGNED>(y); }));
    assert_true(stops(stream, [=] { launch<TWO_ARRIVALS>(y); }));
    assert_true(std::isnan(answer<WRONG_PHASE>(y)));
    assert_true(std::isnan(answer<READ_EARLY>(y)));
    assert_true(answer<CHANGED_EARLY>(y) != 32);
}

int open_stream(void **)
{
    return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess;
}

int close_stream(void **)
{
    return cudaStreamDestroy(stream) != cudaSuccess;
}
} // namespace

int main()
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mistakes_are_found)};
    return cmocka_run_group_tests(tests, open_stream, close_stream);
}
