/* SPDX-License-Identifier: MIT */
/* The first failure of a device, which synchronize() reports; and environment variables. */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda.h"

void dt_cuda_note_text(struct dt_device *dev, const char *text)
{
    struct dt_error *failure = &dt_cuda_of(dev)->failure;
    if (failure->code == DT_OK)
        (void)dt_fail(failure, DT_EIO, "%s", text);
}

void dt_cuda_note(struct dt_device *dev, const char *what, cudaError_t error)
{
    struct dt_error *failure = &dt_cuda_of(dev)->failure;
    if (error != cudaSuccess && failure->code == DT_OK)
        (void)dt_fail(failure, error == cudaErrorMemoryAllocation ? DT_ENOMEM : DT_EIO,
                      "the GPU failed (%s): %s", what, cudaGetErrorString(error));
}

bool dt_cuda_is_set(const char *variable, bool otherwise)
{
    const char *value = getenv(variable);
    return value && *value ? strcmp(value, "0") != 0 : otherwise;
}
