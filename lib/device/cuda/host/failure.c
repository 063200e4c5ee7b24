/* SPDX-License-Identifier: MIT */
/* The first failure of a device, which synchronize() reports; and environment variables. */
#include <ctype.h>
#include <stdio.h>
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

/* The identifier in a C++ linkage name, _ZN3one3twoIiE...: the last of its scopes ("two"); those
 * that compilers add begin with an underscore. */
static void find_identifier(const char *linkage, char *name, size_t size)
{
    const char *at = linkage + strcspn(linkage, "0123456789");
    (void)snprintf(name, size, "%s", linkage);
    while (isdigit((unsigned char)*at)) {
        char *begin;
        size_t length = strtoul(at, &begin, 10);
        if (length == 0 || length > strlen(begin))
            return;
        if (*begin != '_')
            (void)snprintf(name, size, "%.*s", (int)length, begin);
        at = begin + length;
    }
}

void dt_cuda_note_kernel(struct dt_device *dev, const void *kernel, cudaError_t error)
{
    const char *linkage = NULL;
    char name[64] = "?", what[96];
    if (error == cudaSuccess)
        return;
    if (cudaFuncGetName(&linkage, kernel) == cudaSuccess && linkage)
        find_identifier(linkage, name, sizeof name);
    (void)snprintf(what, sizeof what, "launch of %s", name);
    dt_cuda_note(dev, what, error);
}

bool dt_cuda_is_set(const char *variable, bool otherwise)
{
    const char *value = getenv(variable);
    return value && *value ? strcmp(value, "0") != 0 : otherwise;
}
