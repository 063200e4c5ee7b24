/* SPDX-License-Identifier: MIT */
/*
 * The part of NCCL that the engine uses, from the documentation of version 2.17 and later. The
 * library is loaded when ranks use links: a build needs neither it nor its header. If nccl.h is
 * included first, its types are used: tests/cuda/nccl.bats compares the two.
 */
#ifndef DT_DEVICE_CUDA_NCCL_H
#define DT_DEVICE_CUDA_NCCL_H

#include <cuda_runtime_api.h>
#include <limits.h>
#include <stddef.h>

#ifndef NCCL_H_
typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;
typedef enum { ncclSuccess = 0, ncclInternalError = 3, ncclInProgress = 7 } ncclResult_t;
typedef enum { ncclUint8 = 1, ncclFloat32 = 7, ncclBfloat16 = 9 } ncclDataType_t;
typedef enum { ncclSum = 0 } ncclRedOp_t;
/* The fields of version 2.17; the library reads size and version. */
typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking, cgaClusterSize, minCTAs, maxCTAs;
    const char *netName;
} ncclConfig_t;
#endif

#define DT_NCCL_LIBRARY        "libnccl.so.2"
#define DT_NCCL_CONFIG_MAGIC   0xcafebeefu
#define DT_NCCL_CONFIG_VERSION 21700u
#define DT_NCCL_UNDEFINED      INT_MIN /* of a config: the default of NCCL */

/* Result type, name without the prefix "nccl", parameters. */
#define DT_NCCL_FUNCTIONS(X)                                                                       \
    X(ncclResult_t, GetVersion, (int *version))                                                    \
    X(const char *, GetErrorString, (ncclResult_t result))                                         \
    X(const char *, GetLastError, (ncclComm_t comm))                                               \
    X(ncclResult_t, GetUniqueId, (ncclUniqueId * id))                                              \
    X(ncclResult_t, CommInitRankConfig,                                                            \
      (ncclComm_t * comm, int size, ncclUniqueId id, int rank, ncclConfig_t *config))              \
    X(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t * result))                   \
    X(ncclResult_t, CommFinalize, (ncclComm_t comm))                                               \
    X(ncclResult_t, CommDestroy, (ncclComm_t comm))                                                \
    X(ncclResult_t, CommAbort, (ncclComm_t comm))                                                  \
    X(ncclResult_t, GroupStart, (void))                                                            \
    X(ncclResult_t, GroupEnd, (void))                                                              \
    X(ncclResult_t, Send,                                                                          \
      (const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,             \
       cudaStream_t stream))                                                                       \
    X(ncclResult_t, Recv,                                                                          \
      (void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,                   \
       cudaStream_t stream))                                                                       \
    X(ncclResult_t, AllGather,                                                                     \
      (const void *own, void *all, size_t count, ncclDataType_t type, ncclComm_t comm,             \
       cudaStream_t stream))                                                                       \
    X(ncclResult_t, ReduceScatter,                                                                 \
      (const void *all, void *own, size_t count, ncclDataType_t type, ncclRedOp_t op,              \
       ncclComm_t comm, cudaStream_t stream))                                                      \
    X(ncclResult_t, Broadcast,                                                                     \
      (const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,   \
       cudaStream_t stream))                                                                       \
    X(ncclResult_t, Reduce,                                                                        \
      (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,    \
       ncclComm_t comm, cudaStream_t stream))

#define DT_NCCL_POINTER(result, name, parameters) result(*name) parameters;
struct dt_nccl {
    DT_NCCL_FUNCTIONS(DT_NCCL_POINTER)
};
#undef DT_NCCL_POINTER

#endif
