/* SPDX-License-Identifier: MIT */
/* What device/cuda/host/nccl.h says of NCCL, or with BUILT_WITH 1 what NCCL's own header does; then
 * a function that is declared otherwise does not compile. */
#include <stddef.h>
#include <stdio.h>

#if BUILT_WITH
#define __CUDA_BF16_TYPES_EXIST__ 1 /* older ones of nccl.h declare bf16 with it alone */
#include <nccl.h>
#endif
#include "device/cuda/host/nccl.h"

#if BUILT_WITH
#define SAME(result, name, parameters)                                                             \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&nccl##name),                           \
                                                __typeof__(((struct dt_nccl *)0)->name)),          \
                   #name);
DT_NCCL_FUNCTIONS(SAME)
#endif

int main(void)
{
    printf("values %d %d %d %d\n", ncclSuccess, ncclInternalError, ncclInProgress, ncclUint8);
    printf("sums %d %d %d\n", ncclFloat32, ncclBfloat16, ncclSum);
    printf("types %zu %zu %zu\n", sizeof(ncclUniqueId), sizeof(ncclResult_t),
           sizeof(ncclDataType_t));
    printf("size %zu\n", offsetof(ncclConfig_t, size));
    printf("magic %zu\n", offsetof(ncclConfig_t, magic));
    printf("version %zu\n", offsetof(ncclConfig_t, version));
    printf("blocking %zu\n", offsetof(ncclConfig_t, blocking));
    printf("most blocks %zu\n", offsetof(ncclConfig_t, maxCTAs));
    printf("network %zu\n", offsetof(ncclConfig_t, netName));
#if BUILT_WITH
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    printf("magic is %x\n", config.magic);
    printf("version is %d\n", NCCL_VERSION(2, 17, 0));
    printf("undefined is %d\n", NCCL_CONFIG_UNDEF_INT);
#else
    printf("magic is %x\n", DT_NCCL_CONFIG_MAGIC);
    printf("version is %u\n", DT_NCCL_CONFIG_VERSION);
    printf("undefined is %d\n", DT_NCCL_UNDEFINED);
#endif
}
