/* SPDX-License-Identifier: MIT */
/*
 * Streams that are captured, and graphs. What is captured is not done; arguments are copied
 * then, and when they are set. A graph that was launched keeps what it had, whatever is set, or
 * destroyed, before it is done.
 */
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "capture.h"
#include "emulator.h"
#include "kernel-table.h"
#include "settings.h"
#include "toolkit/cuda_runtime.h"

struct CUgraphNode_st {
    std::shared_ptr<const std::function<void()>> work;
    bool is_kernel;
};

struct CUgraph_st {
    std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};

struct CUgraphExec_st {
    cudaGraph_t graph;
    std::vector<std::shared_ptr<const std::function<void()>>> work;
};

namespace
{
struct ongoing {
    cudaStreamCaptureMode mode;
    std::thread::id thread;
    std::unique_ptr<CUgraph_st> graph;
    cudaGraphNode_t last;
    bool spoilt;
};

/* Said in the end, if settings want it. */
struct counts {
    unsigned made, launched, set;
    ~counts()
    {
        if (emulator::settings().count)
            fprintf(stderr, "emulator: %u graphs made, %u launched, %u nodes set\n", made, launched,
                    set);
    }
};

std::recursive_mutex lock; /* of all below */
std::map<cudaStream_t, ongoing> captures;
std::vector<cudaGraph_t> graphs;
emulator::kernel_table<emulator::binder> kernels;
counts count;

bool is_thread_local(const ongoing &c)
{
    return c.mode != cudaStreamCaptureModeRelaxed && c.thread == std::this_thread::get_id();
}

/* The place of a node in what was instantiated, if its graph is there still. */
size_t place_of(cudaGraphExec_t executable, cudaGraphNode_t node)
{
    if (std::find(graphs.begin(), graphs.end(), executable->graph) == graphs.end())
        return executable->work.size();
    const auto &nodes = executable->graph->nodes;
    auto found = std::find_if(nodes.begin(), nodes.end(),
                              [=](const auto &n) { return n.get() == node && n->is_kernel; });
    return (size_t)(found - nodes.begin());
}

emulator::binder binder_of(const void *function)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    const emulator::binder *bind = kernels.find(function);
    if (bind == nullptr)
        emulator::stop("a launch of a function that is not known as DT_KERNEL");
    return *bind;
}

std::function<void()> launch_of(const void *function, dim3 grid, dim3 block, void *const *arguments,
                                size_t shared_bytes)
{
    auto bound = binder_of(function)(function, arguments);
    return [=] { emulator::run(grid, block, shared_bytes, bound); };
}
} // namespace

const void *emulator::remember(const void *kernel, binder bind)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    kernels.set(kernel, bind);
    return kernel;
}

bool emulator::is_captured(cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    return captures.count(stream) > 0;
}

cudaError_t emulator::capture(cudaStream_t stream, std::function<void()> work, bool is_kernel)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    ongoing &c = captures.at(stream);
    if (c.spoilt)
        return cudaErrorStreamCaptureInvalidated;
    auto shared = std::make_shared<const std::function<void()>>(std::move(work));
    c.graph->nodes.emplace_back(new CUgraphNode_st{shared, is_kernel});
    c.last = c.graph->nodes.back().get();
    return cudaSuccess;
}

cudaError_t emulator::forbid(cudaStream_t stream, cudaError_t error)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    auto found = captures.find(stream);
    if (found == captures.end())
        return cudaSuccess;
    found->second.spoilt = true;
    return error;
}

cudaError_t emulator::forbid_unsafe()
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    cudaError_t error = cudaSuccess;
    for (auto &c : captures)
        if (c.second.mode == cudaStreamCaptureModeGlobal || is_thread_local(c.second))
            error = forbid(c.first);
    return error;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream)
{
    cudaError_t error = emulator::check_launch(function, grid, block, shared_bytes);
    if (error != cudaSuccess)
        return error;
    auto work = launch_of(function, grid, block, arguments, shared_bytes);
    if (emulator::is_captured(stream))
        return emulator::capture(stream, work, true);
    return emulator::enqueue(stream, work);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    if (stream == nullptr)
        return cudaErrorStreamCaptureUnsupported;
    if (emulator::is_captured(stream))
        return cudaErrorInvalidValue;
    captures[stream] = {mode, std::this_thread::get_id(), std::make_unique<CUgraph_st>(), nullptr,
                        false};
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    auto found = captures.find(stream);
    *graph = nullptr;
    if (found == captures.end())
        return cudaErrorInvalidValue;
    ongoing &c = found->second;
    if (c.mode != cudaStreamCaptureModeRelaxed && c.thread != std::this_thread::get_id())
        return cudaErrorStreamCaptureWrongThread;
    bool spoilt = c.spoilt;
    if (!spoilt)
        graphs.push_back(*graph = c.graph.release());
    captures.erase(found);
    return spoilt ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                     unsigned long long *, cudaGraph_t *,
                                     const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *most)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    auto found = captures.find(stream);
    *status = found == captures.end() ? cudaStreamCaptureStatusNone
              : found->second.spoilt  ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
    if (*status != cudaStreamCaptureStatusActive)
        return cudaSuccess;
    *dependencies = &found->second.last;
    *edges = nullptr;
    *most = found->second.last ? 1 : 0;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    if (std::find(graphs.begin(), graphs.end(), graph) == graphs.end())
        return cudaErrorInvalidValue;
    *executable = new CUgraphExec_st{graph, {}};
    for (const auto &node : graph->nodes)
        (*executable)->work.push_back(node->work);
    count.made++;
    return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams *p)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    size_t place = executable ? place_of(executable, node) : 0;
    if (executable == nullptr || place == executable->work.size())
        return cudaErrorInvalidValue;
    cudaError_t error = emulator::check_launch(p->func, p->gridDim, p->blockDim, p->sharedMemBytes);
    if (error != cudaSuccess)
        return error;
    executable->work[place] = std::make_shared<const std::function<void()>>(
        launch_of(p->func, p->gridDim, p->blockDim, p->kernelParams, p->sharedMemBytes));
    count.set++;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    if (executable == nullptr)
        return cudaErrorInvalidValue;
    count.launched++;
    return emulator::enqueue(stream, [work = executable->work] {
        for (const auto &item : work)
            (*item)();
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    delete executable;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    std::lock_guard<std::recursive_mutex> locked(lock);
    auto found = std::find(graphs.begin(), graphs.end(), graph);
    if (found == graphs.end())
        return cudaErrorInvalidValue;
    graphs.erase(found);
    delete graph;
    return cudaSuccess;
}
