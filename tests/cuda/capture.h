/* SPDX-License-Identifier: MIT */
/* What a stream that is captured takes, and what it forbids: graphs.cpp. A call that is
 * forbidden fails, and spoils the capture. */
#ifndef DT_TEST_CUDA_CAPTURE_H
#define DT_TEST_CUDA_CAPTURE_H

#include <functional>

#include "toolkit/cuda_runtime_api.h"

namespace emulator
{
bool is_captured(cudaStream_t stream);

/* A node of its graph more. */
cudaError_t capture(cudaStream_t stream, std::function<void()> work, bool is_kernel);

/* For calls that wait for the stream, or for what is not in its graph. */
cudaError_t forbid(cudaStream_t stream, cudaError_t error = cudaErrorStreamCaptureUnsupported);

/* For calls that might: allocation, events. They spoil captures of this thread, and those of any
 * that began as cudaStreamCaptureModeGlobal. */
cudaError_t forbid_unsafe();
} // namespace emulator

#endif
