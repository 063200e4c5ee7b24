/* SPDX-License-Identifier: MIT */
/* With a list of what the compiler made of kernels, launches fail as they would on that GPU. */
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

extern "C" {
#include "test.h"
}

#include "device/cuda/kernel.cuh"
#include "stops.h"

namespace
{
template <int N> __global__ void bounded(float *x)
{
    DT_SHARED(float, one, 1);
    *x = *one = N;
}

struct hidden { /* which makes its kernel one that dladdr does not know */
    float *x;
};

__global__ void unknown(struct hidden h)
{
    *h.x = 0;
}

__global__ void greedy(struct hidden h)
{
    *h.x = 1;
}

/* Of sm_86, what nvcc would say; bounded<2> is for another GPU. */
constexpr char list[] =
    "86 32 128 1024 0 _ZN12_GLOBAL__N_17boundedILi1EEEvPf\n"
    "90 32 128 1024 0 _ZN12_GLOBAL__N_17boundedILi2EEEvPf\n"
    "86 168 0 0 0 _ZN39_GLOBAL__N__9c9155d0_7_sort_cu_9396c1cc6greedyENS_6hiddenE\n";

float *x;

cudaError_t launch(unsigned threads, size_t shared)
{
    return dt_cuda_launch(cudaStream_t(), dim3(1), dim3(threads), shared, bounded<1>, x);
}

void test_launch_bounds(void **)
{
    assert_int_equal(launch(128, 0), cudaSuccess);
    assert_int_equal(launch(129, 0), cudaErrorLaunchOutOfResources);
}

/* 99 KB of a block, of which the kernel has one already. */
void test_shared_memory(void **)
{
    assert_int_equal(
        cudaFuncSetAttribute(bounded<1>, cudaFuncAttributeMaxDynamicSharedMemorySize, 99 << 10),
        cudaSuccess);
    assert_int_equal(launch(32, 98 << 10), cudaSuccess);
    assert_int_equal(launch(32, (98 << 10) + 1), cudaErrorInvalidValue);
}

/* 12 warps with 168 registers fit into 65536, 13 do not. */
void test_registers(void **)
{
    const struct hidden h = {x};
    assert_int_equal(dt_cuda_launch(cudaStream_t(), dim3(1), dim3(384), 0, greedy, h), cudaSuccess);
    assert_int_equal(dt_cuda_launch(cudaStream_t(), dim3(1), dim3(385), 0, greedy, h),
                     cudaErrorLaunchOutOfResources);
}

void test_kernels_that_the_list_lacks(void **)
{
    const struct hidden h = {x};
    assert_true(stops(nullptr, [] { dt_cuda_launch(cudaStream_t(), 1, 1, 0, bounded<2>, x); }));
    assert_true(stops(nullptr, [=] { dt_cuda_launch(cudaStream_t(), 1, 1, 0, unknown, h); }));
}

char path[] = "/tmp/kernels-XXXXXX";

int begin(void **)
{
    char words[64];
    const int fd = mkstemp(path);
    const bool written = fd >= 0 && write(fd, list, sizeof list - 1) == (ssize_t)sizeof list - 1;
    (void)snprintf(words, sizeof words, "sm=86 kernels=%s", path);
    return !written || close(fd) || setenv("CUDA_EMULATOR", words, 1) ||
           cudaMalloc(reinterpret_cast<void **>(&x), sizeof *x) != cudaSuccess;
}

int end(void **)
{
    cudaFree(x);
    return unlink(path);
}
} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launch_bounds),
        cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_kernels_that_the_list_lacks),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
