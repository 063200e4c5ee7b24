/* SPDX-License-Identifier: MIT */
/* The emulator runs correct kernels and stops at wrong ones. */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern "C" {
#include "test.h"
}

#include "device/cuda/kernel.cuh"
#include "stops.h"

namespace
{
constexpr int threads = 96, most = 1000;
cudaStream_t stream;

/* y[block] = the sum of x, through every kind of memory. */
__global__ void sum_kernel(float *y, const float *x, int n)
{
    DT_SHARED(float, part, threads / 32);
    DT_DYNAMIC_SHARED(float, row);
    for (int i = (int)threadIdx.x; i < n; i += threads)
        row[i] = x[i];
    __syncthreads();
    float sum = 0;
    for (int i = (int)threadIdx.x; i < n; i += threads)
        sum += row[n - 1 - i];
    for (int bit = 16; bit > 0; bit /= 2)
        sum += __shfl_xor_sync(~0u, sum, bit);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = part[0] + part[1] + part[2];
}

__global__ void divergent_barrier()
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}

__global__ void left_before_barrier()
{
    if (threadIdx.x != 5)
        __syncthreads();
}

__global__ void half_a_warp()
{
    if (threadIdx.x < 16)
        (void)__shfl_xor_sync(~0u, 1, 1);
}

__global__ void outside_mask()
{
    (void)__shfl_xor_sync(0x0000ffffu, 1, 16);
}

__global__ void different_collectives()
{
    if (threadIdx.x % 2)
        (void)__shfl_xor_sync(~0u, 1, 1);
    else
        (void)__ballot_sync(~0u, 1);
}

__global__ void copy_in_flight(float *x)
{
    DT_SHARED(float, tile, 4);
    emulator::copy_async(tile, x, 16, 16);
    emulator::commit_async();
}

/* What is read before the wait is NaN; after the filled bytes are zeros. */
__global__ void copy_waited(float *y, const float *x)
{
    DT_SHARED(float, tile, 4);
    emulator::copy_async(tile, x, 16, 8);
    emulator::commit_async();
    y[0] = tile[0];
    emulator::wait_async(0);
    for (int i = 0; i < 4; i++)
        y[1 + i] = tile[i];
}

__global__ void uninitialized(float *y)
{
    DT_SHARED(float, x, 1);
    y[0] = x[0];
}

void test_correct_kernel(void **)
{
    float *x, *y, sums[3], numbers[most];
    cudaMalloc(reinterpret_cast<void **>(&x), sizeof numbers);
    cudaMalloc(reinterpret_cast<void **>(&y), sizeof sums);
    for (int i = 0; i < most; i++)
        numbers[i] = (float)(i % 7);
    cudaMemcpyAsync(x, numbers, sizeof numbers, cudaMemcpyHostToDevice, stream);
    dt_cuda_launch(stream, 3, threads, sizeof numbers, sum_kernel, y, x, most);
    cudaMemcpyAsync(sums, y, sizeof sums, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    for (float sum : sums)
        assert_true(sum == 2997);
    cudaFree(x);
    cudaFree(y);
}

void test_wrong_synchronization(void **)
{
    float *x = nullptr;
    cudaMalloc(reinterpret_cast<void **>(&x), 64);
    assert_true(stops(stream, [] { dt_cuda_launch(stream, 1, 64, 0, divergent_barrier); }));
    assert_true(stops(stream, [] { dt_cuda_launch(stream, 1, 64, 0, left_before_barrier); }));
    assert_true(stops(stream, [] { dt_cuda_launch(stream, 1, 32, 0, half_a_warp); }));
    assert_true(stops(stream, [] { dt_cuda_launch(stream, 1, 32, 0, outside_mask); }));
    assert_true(stops(stream, [] { dt_cuda_launch(stream, 1, 32, 0, different_collectives); }));
    assert_true(stops(stream, [=] { dt_cuda_launch(stream, 1, 1, 0, copy_in_flight, x); }));
    cudaFree(x);
}

void test_impossible_launches(void **)
{
    float *y = nullptr;
    int blocks = 1 << 16;
    assert_int_equal(dt_cuda_launch(stream, 1, 1025, 0, uninitialized, y),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(dt_cuda_launch(stream, dim3(1, 0), 32, 0, uninitialized, y),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(dt_cuda_launch(stream, dim3(1, blocks), 1, 0, uninitialized, y),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(dt_cuda_launch(stream, 1, 1, 48 * 1024 + 1, uninitialized, y),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaFuncSetAttribute(uninitialized,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize, 228 * 1024),
                     cudaErrorInvalidValue);
    (void)cudaGetLastError();
}

void test_what_is_not_there_yet_is_no_number(void **)
{
    float *x, *y, got[5], numbers[4] = {1, 2, 3, 4};
    cudaMalloc(reinterpret_cast<void **>(&x), sizeof numbers);
    cudaMalloc(reinterpret_cast<void **>(&y), sizeof got);
    cudaMemcpyAsync(x, numbers, sizeof numbers, cudaMemcpyHostToDevice, stream);
    dt_cuda_launch(stream, 1, 1, 0, copy_waited, y, x);
    cudaMemcpyAsync(got, y, sizeof got, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    assert_true(std::isnan(got[0]));
    assert_true(got[1] == 1 && got[2] == 2 && got[3] == 0 && got[4] == 0);
    dt_cuda_launch(stream, 1, 1, 0, uninitialized, y);
    cudaMemcpyAsync(got, y, sizeof *got, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    assert_true(std::isnan(got[0]));
    cudaFree(x);
    cudaFree(y);
}

/* A stream's work waits for the host to wait, and the device's memory is closed to it. */
void test_host_that_does_not_wait(void **)
{
    float *x, got = -1, one = 1;
    cudaMalloc(reinterpret_cast<void **>(&x), sizeof *x);
    cudaMemcpyAsync(x, &one, sizeof one, cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(&got, x, sizeof got, cudaMemcpyDeviceToHost, stream);
    assert_true(got == -1);
    cudaStreamSynchronize(stream);
    assert_true(got == 1);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, [](int) { _exit(42); });
        _exit(*reinterpret_cast<volatile float *>(x) == 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    cudaFree(x);
}

/* Events order streams, and the host waits for one. */
void test_events(void **)
{
    cudaStream_t other;
    cudaEvent_t done;
    float *x, got = 0, one = 1, two = 2;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    cudaMalloc(reinterpret_cast<void **>(&x), sizeof *x);
    cudaMemcpyAsync(x, &one, sizeof one, cudaMemcpyHostToDevice, other);
    cudaEventRecord(done, other);
    cudaMemcpyAsync(x, &two, sizeof two, cudaMemcpyHostToDevice, other);
    assert_int_equal(cudaEventQuery(done), cudaErrorNotReady);
    cudaStreamWaitEvent(stream, done, 0);
    cudaMemcpyAsync(&got, x, sizeof got, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    assert_int_equal(cudaEventQuery(done), cudaSuccess);
    assert_true(got == 1);
    cudaStreamDestroy(other);
    cudaEventDestroy(done);
    cudaFree(x);
}

/* Another digit: so the order of launches shows. */
__global__ void add_digit(float *x, float digit)
{
    x[0] = 10 * x[0] + digit;
}

float read_number(const float *x)
{
    float got;
    cudaMemcpyAsync(&got, x, sizeof got, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    return got;
}

/* A copy and two launches of digits, captured; the nodes of the launches. */
cudaGraph_t capture_digits(float *x, const float *from, cudaGraphNode_t *nodes)
{
    const cudaGraphNode_t *last;
    const cudaGraphEdgeData *edges;
    cudaStreamCaptureStatus status;
    cudaGraph_t graph;
    size_t count;
    float digit = 1;
    void *arguments[] = {&x, &digit};
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    cudaMemcpyAsync(x, from, sizeof *from, cudaMemcpyHostToDevice, stream);
    for (int i = 0; i < 2; i++, digit++) {
        cudaLaunchKernel(DT_KERNEL(add_digit), dim3(1), dim3(1), arguments, 0, stream);
        cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, &edges, &count);
        assert_true(status == cudaStreamCaptureStatusActive && count == 1);
        nodes[i] = last[0];
    }
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    return graph;
}

cudaError_t set_digit(cudaGraphExec_t executable, cudaGraphNode_t node, float *x, float digit)
{
    void *arguments[] = {&x, &digit};
    const cudaKernelNodeParams p = {
        const_cast<void *>(DT_KERNEL(add_digit)), dim3(1), dim3(1), 0, arguments, nullptr};
    return cudaGraphExecKernelNodeSetParams(executable, node, &p);
}

/* What is captured is done when its graph is launched, with what it was given before that. */
void test_graphs(void **)
{
    cudaGraphNode_t nodes[2];
    cudaGraphExec_t executable;
    float *x, begin = 7, zero = 0;
    cudaMalloc(reinterpret_cast<void **>(&x), sizeof *x);
    cudaMemcpyAsync(x, &zero, sizeof zero, cudaMemcpyHostToDevice, stream);
    cudaGraph_t graph = capture_digits(x, &begin, nodes);
    assert_true(read_number(x) == 0);
    assert_int_equal(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    cudaGraphLaunch(executable, stream);
    assert_true(read_number(x) == 712);
    cudaGraphLaunch(executable, stream);
    dt_cuda_launch(stream, 1, 1, 0, add_digit, x, 9.0f);
    assert_int_equal(set_digit(executable, nodes[1], x, 5), cudaSuccess);
    assert_true(read_number(x) == 7129);
    cudaGraphLaunch(executable, stream);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
    assert_int_equal(set_digit(executable, nodes[1], x, 6), cudaErrorInvalidValue);
    cudaGraphExecDestroy(executable);
    assert_true(read_number(x) == 715);
    cudaFree(x);
}

/* Whether call fails in a capture, and spoils it. */
bool spoils(cudaStreamCaptureMode mode, const std::function<cudaError_t()> &call)
{
    cudaGraph_t graph;
    float *x = nullptr;
    assert_int_equal(cudaStreamBeginCapture(stream, mode), cudaSuccess);
    bool failed = call() != cudaSuccess;
    bool refused = cudaMemsetAsync(x, 0, 4, stream) == cudaErrorStreamCaptureInvalidated;
    bool ended = cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated;
    assert_true(failed == refused && refused == ended && (graph == nullptr) == ended);
    if (graph)
        cudaGraphDestroy(graph);
    return failed;
}

void test_what_a_capture_forbids(void **)
{
    const auto global = cudaStreamCaptureModeGlobal, local = cudaStreamCaptureModeThreadLocal;
    cudaEvent_t event, inside;
    cudaGraph_t graph;
    void *memory;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&inside, cudaEventDisableTiming);
    cudaEventRecord(event, stream);
    cudaStreamSynchronize(stream);
    const auto query = [=] { return cudaEventQuery(event); };
    const auto elsewhere = [=] {
        cudaError_t error;
        std::thread([&] { error = query(); }).join();
        return error;
    };
    assert_true(spoils(local, [] { return cudaStreamSynchronize(stream); }));
    assert_true(spoils(local, [] { return cudaDeviceSynchronize(); }));
    assert_true(spoils(local, [&] { return cudaMalloc(&memory, 1); }));
    assert_true(spoils(local, [=] { return cudaStreamWaitEvent(stream, event, 0); }));
    assert_true(spoils(local, query));
    assert_true(spoils(global, elsewhere));
    assert_false(spoils(local, elsewhere));
    assert_false(spoils(local, [=] { return cudaEventRecord(inside, stream); }));
    assert_int_equal(cudaEventQuery(inside), cudaErrorCapturedEvent);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorInvalidValue);
    cudaEventRecord(inside, stream);
    cudaEventDestroy(event);
    cudaEventDestroy(inside);
}

/* What a call returned stays the thread's last error until it asks. */
void test_errors_are_kept(void **)
{
    void *memory;
    cudaEvent_t event;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    assert_int_equal(cudaMalloc(&memory, (size_t)1 << 50), cudaErrorMemoryAllocation);
    std::thread([] { assert_int_equal(cudaGetLastError(), cudaSuccess); }).join();
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    cudaEventRecord(event, stream);
    assert_int_equal(cudaEventQuery(event), cudaErrorNotReady);
    assert_int_equal(cudaGetLastError(), cudaErrorNotReady);
    cudaEventDestroy(event);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_correct_kernel),
        cmocka_unit_test(test_wrong_synchronization),
        cmocka_unit_test(test_impossible_launches),
        cmocka_unit_test(test_what_is_not_there_yet_is_no_number),
        cmocka_unit_test(test_host_that_does_not_wait),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_errors_are_kept),
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_what_a_capture_forbids),
    };
    return cmocka_run_group_tests(tests, open_stream, close_stream);
}
