/* SPDX-License-Identifier: MIT */
/* The part of NVIDIA's driver that the engine uses: tensor maps. Answered by
 * tests/cuda/asynchronous.cpp; the values of constants, and what a map holds, are our own. */
#ifndef DT_TEST_CUDA_DRIVER_H
#define DT_TEST_CUDA_DRIVER_H

#include <stdint.h>

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;

typedef enum { CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE } CUresult;
typedef enum {
    CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
} CUtensorMapDataType;
typedef enum { CU_TENSOR_MAP_INTERLEAVE_NONE } CUtensorMapInterleave;
typedef enum { CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_128B } CUtensorMapSwizzle;
typedef enum { CU_TENSOR_MAP_L2_PROMOTION_L2_128B } CUtensorMapL2promotion;
typedef enum { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE } CUtensorMapFloatOOBfill;

typedef struct CUtensorMap_st {
    const void *data;
    cuuint32_t rank, box[5];
    cuuint64_t extents[5], steps[4]; /* of dimension 1 and on, bytes */
    CUtensorMapSwizzle swizzle;
} CUtensorMap;

#endif
