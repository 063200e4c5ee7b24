/* SPDX-License-Identifier: MIT */
/* The cuda engine: one NVIDIA GPU, by our kernels and cuBLASLt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "device/cuda/canonical/canonical.h"
#include "device/cuda/cuda.h"
#include "device/cuda/host/blas.h"
#include "device/cuda/host/links.h"
#include "device/cuda/host/staging.h"
#include "device/cuda/host/tensor-map.h"

#define LEAST_CAPABILITY 80 /* bf16 and asynchronous copies */
#define LEAST_SHARED     (99 << 10)
#define LEAST_DRIVER     (CUDART_VERSION < 13000 ? 525 : 580) /* by CUDA's release notes */

/* dt_engine is found by dlsym; the engine is built with hidden symbols otherwise. */
extern const struct dt_engine dt_engine __attribute__((visibility("default")));

/* The rank within its machine: ranks take GPUs round-robin. */
static int local_rank(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                            "SLURM_LOCALID", "LOCAL_RANK"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return atoi(value);
    }
    return 0;
}

static int no_device(cudaError_t error, struct dt_error *err)
{
    int driver = 0, needed = 0;
    if (error == cudaErrorInsufficientDriver) {
        cudaDriverGetVersion(&driver);
        cudaRuntimeGetVersion(&needed);
        if (driver == 0)
            return dt_fail(err, DT_EMISSING, "no NVIDIA driver is installed, needed is %d or later",
                           LEAST_DRIVER);
        return dt_fail(
            err, DT_EMISSING,
            "the NVIDIA driver supports CUDA %d.%d; the engine is built with CUDA %d.%d, "
            "which needs driver %d or later",
            driver / 1000, driver % 1000 / 10, needed / 1000, needed % 1000 / 10, LEAST_DRIVER);
    }
    if (error == cudaErrorNoDevice || error == cudaSuccess)
        return dt_fail(err, DT_EMISSING, "no NVIDIA GPU found");
    return dt_fail(err, DT_EMISSING, "the GPU cannot be used: %s", cudaGetErrorString(error));
}

/* The build has code for the GPU, or PTX that the driver can compile. */
static int has_code(const struct dt_cuda *cuda, struct dt_error *err)
{
    struct cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, dt_cuda_any_kernel());
    if (error == cudaSuccess)
        return 0;
    (void)cudaGetLastError(); /* clears the error */
    return dt_fail(err, DT_EMISSING, "the engine has no code for the GPU %s: %s; %s", cuda->isa,
                   cudaGetErrorString(error),
                   error == cudaErrorUnsupportedPtxVersion
                       ? "install a driver as new as the CUDA that compiled the engine"
                       : "build it with this compute capability in CUDA_ARCHITECTURES");
}

static int choose_device(struct dt_cuda *cuda, struct dt_error *err)
{
    int count = 0, device;
    struct cudaDeviceProp gpu;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0)
        return no_device(error, err);
    cuda->device = device = local_rank() % count;
    error = cudaSetDevice(device);
    error = error == cudaSuccess ? cudaGetDeviceProperties(&gpu, device) : error;
    if (error != cudaSuccess)
        return no_device(error, err);
    cuda->processors = gpu.multiProcessorCount;
    cuda->capability = 10 * gpu.major + gpu.minor;
    cuda->stream->shared_limit = gpu.sharedMemPerBlockOptin;
    snprintf(cuda->isa, sizeof cuda->isa, "%.48s (sm_%d)", gpu.name, cuda->capability);
    if (cuda->capability < LEAST_CAPABILITY)
        return dt_fail(err, DT_EMISSING,
                       "the GPU (%s) has compute capability %d.%d, needed is 8.0 or more", gpu.name,
                       gpu.major, gpu.minor);
    if (cuda->stream->shared_limit < LEAST_SHARED)
        return dt_fail(err, DT_EMISSING,
                       "the GPU (%s) gives a block %zu bytes of shared memory, needed are %d",
                       gpu.name, cuda->stream->shared_limit, LEAST_SHARED);
    DT_TRY(has_code(cuda, err));
    return dt_gpu_record_load(&cuda->record, gpu.name, &dt_engine, err);
}

static void close_engine(struct dt_device *dev)
{
    struct dt_cuda *cuda = dt_cuda_of(dev);
    if (cuda->stream->stream)
        cudaStreamSynchronize(cuda->stream->stream);
    dt_cuda_blas_close(dev);
    dt_cuda_staging_close(dev);
    cudaFree(cuda->scratch);
    free(cuda->links); /* already closed */
    dt_cuda_stream_close(dev);
    free(cuda);
}

static int open_engine(struct dt_device *dev, struct dt_error *err)
{
    struct dt_cuda *cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL)
        return dt_fail(err, DT_ENOMEM, "no memory for the cuda engine");
    dev->state = cuda;
    dev->isa = cuda->isa;
    cuda->stream = dt_alloc(1, sizeof *cuda->stream);
    int rc = choose_device(cuda, err);
    rc = rc < 0 ? rc : dt_cuda_stream_open(dev, err);
    rc = rc < 0 ? rc : dt_cuda_wgmma_open(dev, err);
    rc = rc < 0 ? rc : dt_cuda_staging_open(dev, err);
    rc = rc < 0 ? rc : dt_cuda_blas_open(dev, err);
    if (rc < 0)
        close_engine(dev);
    return rc;
}

static const struct dt_ops ops = {
    .allocate = dt_cuda_allocate,
    .release = dt_cuda_release,
    .upload = dt_cuda_upload,
    .download = dt_cuda_download,
    .available = dt_cuda_available,
    .synchronize = dt_cuda_synchronize,
    .copy = dt_cuda_copy,
    .zero = dt_cuda_zero,
    .combine = dt_cuda_combine,
    .matmul = dt_cuda_matmul,
    .dropout = dt_cuda_dropout,
    .activation_forward = dt_cuda_activation_forward,
    .activation_backward = dt_cuda_activation_backward,
    .bias_backward = dt_cuda_bias_backward,
    .embedding_forward = dt_cuda_embedding_forward,
    .embedding_backward = dt_cuda_embedding_backward,
    .gather = dt_cuda_gather,
    .scatter = dt_cuda_scatter,
    .norm_forward = dt_cuda_norm_forward,
    .norm_backward = dt_cuda_norm_backward,
    .rms_norm_forward = dt_cuda_rms_norm_forward,
    .rms_norm_backward = dt_cuda_rms_norm_backward,
    .rope = dt_cuda_rope,
    .gated_forward = dt_cuda_gated_forward,
    .gated_backward = dt_cuda_gated_backward,
    .attention_forward = dt_cuda_attention_forward,
    .attention_backward = dt_cuda_attention_backward,
    .map_logits = dt_cuda_map_logits,
    .cross_entropy = dt_cuda_cross_entropy,
    .logit_sums = dt_cuda_logit_sums,
    .cross_entropy_of_sums = dt_cuda_cross_entropy_of_sums,
    .sum_squares = dt_cuda_sum_squares,
    .exact_sum = dt_cuda_exact_sum,
    .take_largest = dt_cuda_take_largest,
    .orthonormalize = dt_cuda_orthonormalize,
    .update = dt_cuda_update,
    .hash = dt_cuda_hash,
};

/* Ops whose fast kernels have the bits of the definition, and canonical kernels. */
static const struct dt_ops canonical = {
    .allocate = dt_cuda_allocate,
    .release = dt_cuda_release,
    .upload = dt_cuda_upload,
    .download = dt_cuda_download,
    .available = dt_cuda_available,
    .synchronize = dt_cuda_synchronize,
    .copy = dt_cuda_copy,
    .zero = dt_cuda_zero,
    .combine = dt_cuda_combine,
    .matmul = dt_cuda_canonical_matmul,
    .dropout = dt_cuda_dropout,
    .activation_forward = dt_cuda_canonical_activation_forward,
    .activation_backward = dt_cuda_canonical_activation_backward,
    .bias_backward = dt_cuda_canonical_bias_backward,
    .embedding_forward = dt_cuda_embedding_forward,
    .embedding_backward = dt_cuda_canonical_embedding_backward,
    .gather = dt_cuda_gather,
    .scatter = dt_cuda_scatter,
    .norm_forward = dt_cuda_canonical_norm_forward,
    .norm_backward = dt_cuda_canonical_norm_backward,
    .rms_norm_forward = dt_cuda_canonical_rms_norm_forward,
    .rms_norm_backward = dt_cuda_canonical_rms_norm_backward,
    .rope = dt_cuda_canonical_rope,
    .gated_forward = dt_cuda_canonical_gated_forward,
    .gated_backward = dt_cuda_canonical_gated_backward,
    .attention_forward = dt_cuda_canonical_attention_forward,
    .attention_backward = dt_cuda_canonical_attention_backward,
    .map_logits = dt_cuda_canonical_map_logits,
    .cross_entropy = dt_cuda_canonical_cross_entropy,
    .logit_sums = dt_cuda_canonical_logit_sums,
    .cross_entropy_of_sums = dt_cuda_canonical_cross_entropy_of_sums,
    .sum_squares = dt_cuda_sum_squares,
    .exact_sum = dt_cuda_exact_sum,
    .take_largest = dt_cuda_take_largest,
    .orthonormalize = dt_cuda_canonical_orthonormalize,
    .update = dt_cuda_update,
    .hash = dt_cuda_hash,
};

const struct dt_engine dt_engine = {
    .abi = DT_ENGINE_ABI,
    .name = "cuda",
    .own_memory = true,
    .head_channels = DT_CUDA_HEAD_CHANNELS,
    .links = &dt_cuda_links,
    .ops = &ops,
    .canonical = &canonical,
    .open = open_engine,
    .close = close_engine,
};
