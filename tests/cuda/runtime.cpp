/* SPDX-License-Identifier: MIT */
/*
 * Memory, streams and events. A stream is a list of work that is done when the host
 * waits for it, so that a host that does not wait is found out; device memory is
 * closed to the host but while it is done. With "eager" (emulator.h) work is done at
 * once and device memory is open.
 */
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <sys/mman.h>
#include <vector>

#include "emulator.h"
#include "settings.h"
#include "toolkit/cuda_runtime.h"

struct CUstream_st {
    std::deque<std::function<void()>> work;
    uint64_t added, done;
};

struct CUevent_st {
    CUstream_st *stream;
    uint64_t place; /* in its stream: what came before it */
    double time;
};

namespace
{
constexpr size_t device_bytes = (size_t)64 << 30;
CUstream_st default_stream;
std::vector<CUstream_st *> streams;
std::vector<std::pair<void *, size_t>> device_memory;       /* and its size */
std::vector<std::pair<const void *, size_t>> shared_limits; /* of kernels */
size_t used_bytes;
int opened; /* how many times device memory is open, one in the other */

double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

CUstream_st *stream_of(cudaStream_t stream)
{
    return stream ? stream : &default_stream;
}

void open_memory(bool open)
{
    opened += open ? 1 : -1;
    if (opened > (open ? 1 : 0) || emulator::settings().eager)
        return;
    for (auto &block : device_memory)
        mprotect(block.first, block.second, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/* What a stream has to do, up to what was number end. */
void work_off(CUstream_st *s, uint64_t end)
{
    if (s->done >= end)
        return;
    open_memory(true);
    while (s->done < end) {
        std::function<void()> work = std::move(s->work.front());
        s->work.pop_front();
        s->done++;
        work();
    }
    open_memory(false);
}

cudaError_t allocate(void **memory, size_t bytes)
{
    *memory = mmap(nullptr, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return *memory == MAP_FAILED ? cudaErrorMemoryAllocation : cudaSuccess;
}
} // namespace

void emulator::enqueue(cudaStream_t stream, std::function<void()> work)
{
    CUstream_st *s = stream_of(stream);
    s->work.push_back(std::move(work));
    s->added++;
    if (settings().eager)
        work_off(s, s->added);
}

void emulator::set_shared_limit(const void *kernel, size_t bytes)
{
    if (bytes > most_shared)
        stop("a kernel is to have %zu bytes of shared memory", bytes);
    shared_limits.emplace_back(kernel, bytes);
}

void emulator::check_shared_limit(const void *kernel, size_t bytes)
{
    size_t limit = most_shared_unasked;
    for (auto &asked : shared_limits)
        limit = asked.first == kernel ? asked.second : limit; /* the last counts */
    if (bytes > limit)
        stop("a launch with %zu bytes of shared memory, of %zu that the kernel may have", bytes,
             limit);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
        *value = 4;
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *value = emulator::settings().older ? 8 : 9;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = 0;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = (int)emulator::most_shared;
        break;
    }
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "an error";
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    if (bytes > device_bytes - used_bytes || allocate(memory, bytes) != cudaSuccess)
        return cudaErrorMemoryAllocation;
    memset(*memory, 0xff, bytes < ((size_t)1 << 20) ? bytes : (size_t)1 << 20);
    device_memory.emplace_back(*memory, bytes);
    used_bytes += bytes;
    if (!emulator::settings().eager && opened == 0)
        mprotect(*memory, bytes, PROT_NONE);
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    if (memory == nullptr)
        return cudaSuccess;
    cudaDeviceSynchronize();
    for (size_t i = 0; i < device_memory.size(); i++)
        if (device_memory[i].first == memory) {
            size_t bytes = device_memory[i].second;
            used_bytes -= bytes;
            munmap(memory, bytes ? bytes : 1);
            device_memory.erase(device_memory.begin() + (long)i);
            return cudaSuccess;
        }
    emulator::stop("cudaFree of what cudaMalloc did not give");
}

cudaError_t cudaMallocHost(void **memory, size_t bytes)
{
    *memory = malloc(bytes ? bytes : 1);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = device_bytes - used_bytes;
    *total = device_bytes;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream)
{
    emulator::enqueue(stream, [=] { memcpy(to, from, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream)
{
    emulator::enqueue(stream, [=] {
        for (size_t i = 0; i < height; i++)
            memcpy(static_cast<char *>(to) + i * to_pitch,
                   static_cast<const char *>(from) + i * from_pitch, width);
    });
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    emulator::enqueue(stream, [=] { memset(to, byte, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int byte, size_t width, size_t height,
                              cudaStream_t stream)
{
    emulator::enqueue(stream, [=] {
        for (size_t i = 0; i < height; i++)
            memset(static_cast<char *>(to) + i * pitch, byte, width);
    });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    *stream = new CUstream_st();
    streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaStreamSynchronize(stream);
    streams.erase(std::find(streams.begin(), streams.end(), stream));
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    work_off(stream_of(stream), stream_of(stream)->added);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    cudaStreamSynchronize(nullptr);
    for (CUstream_st *s : streams)
        cudaStreamSynchronize(s);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    CUstream_st *other = event->stream;
    uint64_t place = event->place;
    if (other != nullptr)
        emulator::enqueue(stream, [=] { work_off(other, place); });
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = new CUevent_st();
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    cudaEventSynchronize(event);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    emulator::enqueue(stream, [=] { event->time = now(); });
    event->stream = stream_of(stream);
    event->place = event->stream->added;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (event->stream)
        work_off(event->stream, event->place);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return event->stream == nullptr || event->stream->done >= event->place ? cudaSuccess
                                                                           : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    *milliseconds = (float)(1e3 * (end->time - begin->time));
    return cudaSuccess;
}
