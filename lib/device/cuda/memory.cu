/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/elements.cuh"

template <int TO, int FROM>
static __global__ void convert(struct dt_cuda_view to, struct dt_cuda_view from, unsigned strips)
{
    int64_t row, column;
    float v[8];
    dt_cuda_place(strips, 8, &row, &column);
    if (column >= to.columns)
        return;
    dt_cuda_load<FROM>(from, row, column, v);
    dt_cuda_store<TO>(to, row, column, v);
}

/* Rows of one type: as bytes. A row that stands for many is no copy of the hardware's. */
static bool copy_bytes(struct dt_device *dev, const struct dt_tensor *to,
                       const struct dt_tensor *from)
{
    size_t size = dt_dtype_size(to->dtype), width = (size_t)to->columns * size;
    cudaStream_t stream = dt_cuda_of(dev)->stream;
    if (to->dtype != from->dtype || (from->rows > 1 && from->stride < from->columns))
        return false;
    if (dt_cuda_is_flat({to, from}))
        dt_cuda_note(dev, "copy",
                     cudaMemcpyAsync(to->data, from->data, (size_t)to->rows * width,
                                     cudaMemcpyDefault, stream));
    else
        dt_cuda_note(dev, "copy",
                     cudaMemcpy2DAsync(to->data, (size_t)to->stride * size, from->data,
                                       (size_t)from->stride * size, width, (size_t)to->rows,
                                       cudaMemcpyDefault, stream));
    return true;
}

void dt_cuda_copy(struct dt_device *dev, struct dt_tensor *to, const struct dt_tensor *from)
{
    assert(to->rows == from->rows && to->columns == from->columns);
    if (to->rows == 0 || to->columns == 0 || copy_bytes(dev, to, from))
        return;
    bool flat = dt_cuda_is_flat({to, from});
    struct dt_tensor t = flat ? dt_cuda_flat(to) : *to, f = flat ? dt_cuda_flat(from) : *from;
    struct dt_cuda_cover cover = dt_cuda_cover_of(t.rows, t.columns, 8);
    dt_cuda_for_type((int)t.dtype, [&](auto to_type) {
        dt_cuda_for_type((int)f.dtype, [&](auto from_type) {
            dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0,
                           convert<to_type.value, from_type.value>, dt_cuda_view_of(&t),
                           dt_cuda_view_of(&f), cover.strips);
        });
    });
}

void dt_cuda_zero(struct dt_device *dev, struct dt_tensor *x)
{
    size_t size = dt_dtype_size(x->dtype), width = (size_t)x->columns * size;
    cudaStream_t stream = dt_cuda_of(dev)->stream;
    if (x->rows == 0 || x->columns == 0)
        return;
    if (dt_cuda_is_flat({x}))
        dt_cuda_note(dev, "zero", cudaMemsetAsync(x->data, 0, (size_t)x->rows * width, stream));
    else
        dt_cuda_note(dev, "zero",
                     cudaMemset2DAsync(x->data, (size_t)x->stride * size, 0, width, (size_t)x->rows,
                                       stream));
}
