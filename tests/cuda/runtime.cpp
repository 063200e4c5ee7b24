/* SPDX-License-Identifier: MIT */
/*
 * Memory, streams and events. A stream is a list of work that is done when the host
 * waits for it, so that a host that does not wait is found out; device memory is
 * closed to the host but while it is done. With "eager" (emulator.h) work is done at
 * once and device memory is open.
 */
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <utility>
#include <vector>

#include "capture.h"
#include "emulator.h"
#include "kernel-table.h"
#include "kernels.h"
#include "profile.h"
#include "settings.h"
#include "toolkit/cuda_runtime.h"

namespace
{
struct stream final : CUstream_st {
    std::deque<std::function<void()>> work;
    uint64_t added = 0;
    std::atomic<uint64_t> done{0}; /* which other threads may ask for, through events */
    bool hurries = false;

    void put(std::function<void()> item) override;
    void finish() override;
    void let_ops_go_on() override;
    uint64_t ops_put() override;
    uint64_t ops_done() override;
};
} // namespace

struct CUevent_st {
    std::atomic<stream *> where;
    std::atomic<uint64_t> place; /* in its stream: what came before it */
    double time;   /* milliseconds, of which a piece of the stream's work takes one: what is timed
                    * must not depend on the machine */
    bool captured; /* the last time that it was recorded */
};

namespace
{
constexpr size_t device_bytes = (size_t)64 << 30;
constexpr unsigned needed_driver = 13000;
stream default_stream;
std::recursive_mutex lock; /* of all below, and of work while it is done */
std::vector<stream *> streams;
std::vector<std::unique_ptr<stream>> destroyed;       /* events may still be of them */
std::vector<std::pair<void *, size_t>> device_memory; /* and its size */
emulator::kernel_table<size_t> shared_limits;
size_t used_bytes;
double passed;
thread_local cudaError_t last_error; /* that a thread was told, until it asks for it */
int opened;                          /* how many times device memory is open, one in the other */
thread_local int opened_here;        /* and that is by this thread, with a key */

/* With "account" the end of the program says how much was taken since it first asked how much
 * there is. */
struct account {
    int device;
    std::atomic<bool> asked;
    std::atomic<size_t> bytes;
    ~account()
    {
        if (emulator::settings().account)
            fprintf(stderr, "cuda emulator: GPU %d: %zu bytes\n", device, (size_t)bytes);
    }
} given;

stream *stream_of(cudaStream_t s)
{
    return s ? static_cast<stream *>(s) : &default_stream;
}

/* The protection key of device memory, which a thread opens for itself without a system call; -1:
 * the processor has none, and memory is opened page by page. */
int memory_key()
{
    static const int key = emulator::settings().pages ? -1 : pkey_alloc(0, PKEY_DISABLE_ACCESS);
    return key;
}

void open_memory(bool open)
{
    if (emulator::settings().eager)
        return;
    int &times = memory_key() < 0 ? opened : opened_here;
    times += open ? 1 : -1;
    if (times > (open ? 1 : 0))
        return;
    if (memory_key() >= 0)
        pkey_set(memory_key(), open ? 0 : PKEY_DISABLE_ACCESS);
    else
        for (auto &block : device_memory)
            mprotect(block.first, block.second, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/* New memory is as open as the rest. */
void protect(void *memory, size_t bytes)
{
    if (emulator::settings().eager)
        return;
    if (memory_key() >= 0)
        pkey_mprotect(memory, bytes, PROT_READ | PROT_WRITE, memory_key());
    else if (opened == 0)
        mprotect(memory, bytes, PROT_NONE);
}

void open_memory_locked(bool open)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    open_memory(open);
}

/* What a stream has to do, up to what was number end; not_yet: it waits for another rank, and so
 * for what other streams may have to do first. */
void work_off(stream *s, uint64_t end)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    if (s->done >= end)
        return;
    open_memory(true);
    while (s->done < end) {
        std::function<void()> work = std::move(s->work.front());
        s->work.pop_front();
        s->done++;
        try {
            work();
        } catch (emulator::not_yet &) {
            s->work.push_front(std::move(work));
            s->done--;
            open_memory(false);
            throw;
        }
    }
    open_memory(false);
}

/* The host waits, and leaves the device to whoever else has it work. Meanwhile it does not touch
 * device memory, which is open all the time: to open it again for each attempt took longer. */
void await(stream *s, uint64_t end)
{
    open_memory_locked(true);
    for (timespec pause = {0, 50000};; nanosleep(&pause, nullptr))
        try {
            work_off(s, end);
            break;
        } catch (emulator::not_yet &) {
            pause.tv_nsec = std::min(2 * pause.tv_nsec, 1000000L);
        }
    open_memory_locked(false);
}

cudaError_t allocate(void **memory, size_t bytes)
{
    *memory = mmap(nullptr, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return *memory == MAP_FAILED ? cudaErrorMemoryAllocation : cudaSuccess;
}

void stream::put(std::function<void()> item)
{
    emulator::enqueue(this, std::move(item));
}

void stream::finish()
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    try {
        work_off(this, added);
    } catch (emulator::not_yet &) {
    }
}
void stream::let_ops_go_on()
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    streams.front()->finish();
}

uint64_t stream::ops_put()
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    return streams.front()->added;
}

uint64_t stream::ops_done()
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    return streams.front()->done;
}
} // namespace

void emulator::pass_time(double seconds)
{
    passed += seconds;
}

cudaError_t emulator::enqueue(cudaStream_t where, std::function<void()> work)
{
    if (is_captured(where))
        return capture(where, std::move(work), false);
    std::lock_guard<std::recursive_mutex> locked(lock);
    stream *s = stream_of(where);
    s->work.push_back(std::move(work));
    s->added++;
    if (settings().eager || s->hurries)
        s->finish();
    return cudaSuccess;
}

const emulator::gpu_profile &emulator::profile()
{
    for (const gpu_profile &p : profiles)
        if (p.capability == settings().sm)
            return p;
    stop("CUDA_EMULATOR: unknown compute capability, sm=%u", settings().sm);
}

cudaError_t emulator::set_shared_limit(const void *kernel, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    if (bytes > profile().most_shared)
        return last_error = cudaErrorInvalidValue;
    shared_limits.set(kernel, bytes);
    return cudaSuccess;
}

/* Whether the threads of a block have registers: a warp takes them 256 at a time. */
static bool has_registers(unsigned threads, unsigned each)
{
    const unsigned lanes = emulator::warp_lanes, warps = (threads + lanes - 1) / lanes;
    return warps * ((each * lanes + 255) / 256 * 256) <= emulator::block_registers;
}

cudaError_t emulator::check_launch(const void *kernel, dim3 grid, dim3 block, size_t shared_bytes)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    const unsigned threads = block.x * block.y * block.z;
    const size_t *asked = shared_limits.find(kernel);
    if (shared_bytes > (asked ? *asked : most_shared_unasked))
        return last_error = cudaErrorInvalidValue;
    if (threads == 0 || threads > most_threads || block.z > 64 || grid.x == 0 || grid.y == 0 ||
        grid.z == 0 || grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535)
        return last_error = cudaErrorInvalidConfiguration;
    const compiled_kernel *made = compiled(kernel);
    if (made && made->shared + shared_bytes > profile().most_shared)
        return last_error = cudaErrorInvalidValue;
    if (made &&
        ((made->threads && threads > made->threads) || !has_registers(threads, made->registers)))
        return last_error = cudaErrorLaunchOutOfResources;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = (int)emulator::settings().gpus;
    if (emulator::settings().driver < needed_driver)
        return last_error = cudaErrorInsufficientDriver;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    given.device = device;
    return device < (int)emulator::settings().gpus ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device)
{
    snprintf(id, (size_t)length, "0000:%02x:00.0", (unsigned)device);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
    *properties = {};
    snprintf(properties->name, sizeof properties->name, "%.31s", emulator::settings().name);
    properties->major = (int)emulator::profile().capability / 10;
    properties->minor = (int)emulator::profile().capability % 10;
    properties->multiProcessorCount = 4;
    properties->sharedMemPerBlockOptin = emulator::profile().most_shared;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
    *value = (int)emulator::profile().capability / 10;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = (int)emulator::settings().driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return std::exchange(last_error, cudaSuccess);
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation       ? "out of memory"
           : error == cudaErrorInvalidValue         ? "invalid argument"
           : error == cudaErrorInvalidConfiguration ? "invalid configuration argument"
           : error == cudaErrorLaunchOutOfResources ? "too many resources requested for launch"
           : error == cudaErrorNoKernelImageForDevice
               ? "no kernel image is available for execution on the device"
           : error == cudaErrorUnsupportedPtxVersion
               ? "the provided PTX was compiled with an unsupported toolchain."
               : "an error";
}

cudaError_t cudaFuncGetName(const char **name, const void *function)
{
    Dl_info info;
    *name = dladdr(function, &info) ? info.dli_sname : nullptr;
    return *name ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *)
{
    if (emulator::settings().foreign)
        return last_error = cudaErrorNoKernelImageForDevice;
    if (emulator::settings().newer)
        return last_error = cudaErrorUnsupportedPtxVersion;
    attributes->binaryVersion = attributes->ptxVersion = (int)emulator::profile().capability;
    return cudaSuccess;
}

cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    if (bytes > device_bytes - used_bytes || allocate(memory, bytes) != cudaSuccess)
        return last_error = cudaErrorMemoryAllocation;
    memset(*memory, 0xff, bytes < ((size_t)1 << 20) ? bytes : (size_t)1 << 20);
    device_memory.emplace_back(*memory, bytes);
    used_bytes += bytes;
    protect(*memory, bytes);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    if (cudaError_t error = emulator::forbid_unsafe())
        return error;
    given.bytes += given.asked ? bytes : 0;
    return cudaMallocAsync(memory, bytes, nullptr);
}

cudaError_t cudaFree(void *memory)
{
    if (memory == nullptr)
        return cudaSuccess;
    if (cudaError_t error = emulator::forbid_unsafe())
        return error;
    cudaDeviceSynchronize(); /* without the lock: others may have to end what it waits for */
    emulator::release(memory);
    return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    return emulator::enqueue(stream, [=] { emulator::release(memory); });
}

void emulator::release(void *memory)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    for (size_t i = 0; i < device_memory.size(); i++)
        if (device_memory[i].first == memory) {
            size_t bytes = device_memory[i].second;
            used_bytes -= bytes;
            munmap(memory, bytes ? bytes : 1);
            device_memory.erase(device_memory.begin() + (long)i);
            return;
        }
    emulator::stop("cudaFree of what cudaMalloc did not give");
}

cudaError_t cudaMallocHost(void **memory, size_t bytes)
{
    if (cudaError_t error = emulator::forbid_unsafe())
        return error;
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
    given.asked = true;
    *available = device_bytes - used_bytes;
    *total = device_bytes;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream)
{
    return emulator::enqueue(stream, [=] { memcpy(to, from, bytes); });
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream)
{
    return emulator::enqueue(stream, [=] {
        for (size_t i = 0; i < height; i++)
            memcpy(static_cast<char *>(to) + i * to_pitch,
                   static_cast<const char *>(from) + i * from_pitch, width);
    });
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    return emulator::enqueue(stream, [=] { memset(to, byte, bytes); });
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int byte, size_t width, size_t height,
                              cudaStream_t stream)
{
    return emulator::enqueue(stream, [=] {
        for (size_t i = 0; i < height; i++)
            memset(static_cast<char *>(to) + i * pitch, byte, width);
    });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *made, unsigned)
{
    stream *s = new stream();
    s->hurries = emulator::settings().hurry && !streams.empty();
    streams.push_back(s);
    *made = s;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = *greatest = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *made, unsigned flags, int)
{
    return cudaStreamCreateWithFlags(made, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t which)
{
    cudaStreamSynchronize(which);
    streams.erase(std::find(streams.begin(), streams.end(), stream_of(which)));
    destroyed.emplace_back(stream_of(which));
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t which)
{
    if (cudaError_t error = emulator::forbid(which))
        return error;
    await(stream_of(which), stream_of(which)->added);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    for (stream *s : streams)
        if (cudaError_t error = emulator::forbid(s))
            return error;
    cudaStreamSynchronize(nullptr);
    for (stream *s : streams)
        cudaStreamSynchronize(s);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t which, cudaEvent_t event, unsigned)
{
    stream *other = event->where;
    uint64_t place = event->place;
    if (event->captured && emulator::is_captured(which))
        return cudaSuccess;
    if (event->captured)
        emulator::stop("a stream that joins a capture: not emulated");
    if (cudaError_t error = emulator::forbid(which, cudaErrorStreamCaptureIsolation))
        return error;
    if (other == nullptr)
        return cudaSuccess;
    return emulator::enqueue(which, [=] { work_off(other, place); });
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

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t which)
{
    event->captured = emulator::is_captured(which);
    if (event->captured)
        return cudaSuccess; /* a dependency, and no node */
    stream *s = stream_of(which);
    emulator::enqueue(which, [=] { event->time = (double)s->done + 1e3 * passed; });
    event->place = s->added;
    event->where = s;
    return cudaSuccess;
}

/* Whether its state may be asked for. */
static cudaError_t ask(cudaEvent_t event)
{
    cudaError_t error = emulator::forbid_unsafe();
    return event->captured ? cudaErrorCapturedEvent : error;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (cudaError_t error = ask(event))
        return error;
    if (event->where)
        await(event->where, event->place);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (cudaError_t error = ask(event))
        return error;
    const stream *s = event->where;
    if (s == nullptr || s->done >= event->place)
        return cudaSuccess;
    return last_error = cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    *milliseconds = (float)(end->time - begin->time);
    return cudaSuccess;
}
