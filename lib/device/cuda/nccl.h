/* SPDX-License-Identifier: MIT */
/*
 * What the engine uses of NCCL, by its documentation of version 2.17 and later. The library
 * is opened when ranks ask for links: neither it nor its header is needed to build. Behind
 * NCCL's own header the types are that one's: tests/cuda/nccl.bats has a compiler compare.
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
typedef enum { ncclUint8 = 1 } ncclDataType_t;
/* As far as 2.17 had it: size and version tell the library. */
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
#define DT_NCCL_UNDEFINED      INT_MIN /* of a config: as NCCL likes */

/* Result, name behind "nccl", parameters. */
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
       cudaStream_t stream))

#define DT_NCCL_POINTER(result, name, parameters) result(*name) parameters;
struct dt_nccl {
    DT_NCCL_FUNCTIONS(DT_NCCL_POINTER)
};
#undef DT_NCCL_POINTER

#endif
