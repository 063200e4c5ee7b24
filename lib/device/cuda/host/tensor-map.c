/* SPDX-License-Identifier: MIT */
#include "device/cuda/host/tensor-map.h"

#include <string.h>

#include "device/cuda/cuda.h"

#define CAPABILITY     90 /* of wgmma, which later architectures do not support */
#define MATRIX_COLUMNS 64

#if CUDART_VERSION < 12050 /* the function without a version is that of the runtime's */
#define cudaGetDriverEntryPointByVersion(symbol, function, version, flags, found)                  \
    cudaGetDriverEntryPoint(symbol, function, flags, found)
#endif

typedef CUresult encode_tiled(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                              const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                              const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                              CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

int dt_cuda_wgmma_open(struct dt_device *dev, struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(dev);
    enum cudaDriverEntryPointQueryResult found;
    if (!dt_cuda_is_set("DT_CUDA_WGMMA", cuda->record.proven[DT_GPU_WGMMA]))
        return 0;
    if (cuda->capability != CAPABILITY)
        return dt_fail(err, DT_EMISSING,
                       "DT_CUDA_WGMMA: the GPU has compute capability %d.%d, needed is 9.0",
                       cuda->capability / 10, cuda->capability % 10);
    /* Found through the runtime: the engine is not linked with the driver. */
    cudaError_t error = cudaGetDriverEntryPointByVersion(
        "cuTensorMapEncodeTiled", &cuda->encode_tensor_map, 12000, cudaEnableDefault, &found);
    if (error != cudaSuccess || found != cudaDriverEntryPointSuccess)
        return dt_fail(err, DT_EMISSING, "DT_CUDA_WGMMA: the driver does not support tensor maps");
    return 0;
}

int dt_cuda_map_heads(struct dt_device *dev, CUtensorMap *map, const struct dt_cuda_heads *x,
                      int box_rows)
{
    encode_tiled *encode;
    const bool matrices = x->extents[0] >= MATRIX_COLUMNS;
    const cuuint32_t columns = matrices ? MATRIX_COLUMNS : (cuuint32_t)x->extents[0];
    const cuuint32_t box[4] = {columns, 1, (cuuint32_t)box_rows, 1}, every[4] = {1, 1, 1, 1};
    cuuint64_t extents[4], steps[3];
    memcpy(&encode, &dt_cuda_of(dev)->encode_tensor_map, sizeof encode);
    for (int i = 0; i < 4; i++)
        extents[i] = (cuuint64_t)x->extents[i];
    for (int i = 0; i < 3; i++)
        steps[i] = (cuuint64_t)x->steps[i];
    CUresult result = encode(map,
                             x->dtype == DT_DTYPE_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                       : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                             4, x->data, extents, steps, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
                             matrices ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
                             CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result == CUDA_SUCCESS)
        return 0;
    dt_cuda_note_text(dev, "the driver rejected a tensor map for attention");
    return -1;
}
