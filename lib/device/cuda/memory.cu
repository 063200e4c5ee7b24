/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/elements.cuh"
#include "device/cuda/rows.h"

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

/* Copies rows of one type as bytes. Broadcast rows (stride 0) and deferred copies use a kernel:
 * cudaMemcpy2D does not support the former, and operands of a kernel can be updated in a graph. */
static bool copy_bytes(struct dt_device *dev, const struct dt_tensor *to,
                       const struct dt_tensor *from)
{
    size_t size = dt_dtype_size(to->dtype), width = (size_t)to->columns * size;
    const struct dt_cuda_stream *s = dt_cuda_of(dev)->stream;
    if (to->dtype != from->dtype || (from->rows > 1 && from->stride < from->columns))
        return false;
    if (s->recording)
        dt_cuda_copy_rows(dev, to, from);
    else if (dt_cuda_is_flat({to, from}))
        dt_cuda_note(dev, "copy",
                     cudaMemcpyAsync(to->data, from->data, (size_t)to->rows * width,
                                     cudaMemcpyDefault, s->stream));
    else
        dt_cuda_note(dev, "copy",
                     cudaMemcpy2DAsync(to->data, (size_t)to->stride * size, from->data,
                                       (size_t)from->stride * size, width, (size_t)to->rows,
                                       cudaMemcpyDefault, s->stream));
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

namespace
{
struct zeros {
    void *data;
    size_t pitch, width, rows; /* bytes; one row if contiguous */
};
} // namespace

static void put_zeros(struct dt_device *dev, cudaStream_t stream, const void *context)
{
    const struct zeros *z = static_cast<const struct zeros *>(context);
    dt_cuda_note(dev, "zero",
                 z->rows == 1 ? cudaMemsetAsync(z->data, 0, z->width, stream)
                              : cudaMemset2DAsync(z->data, z->pitch, 0, z->width, z->rows, stream));
}

void dt_cuda_zero(struct dt_device *dev, struct dt_tensor *x)
{
    struct dt_tensor t = dt_cuda_is_flat({x}) ? dt_cuda_flat(x) : *x;
    size_t size = dt_dtype_size(t.dtype);
    const struct zeros zeros = {t.data, (size_t)t.stride * size, (size_t)t.columns * size,
                                (size_t)t.rows};
    if (zeros.width > 0 && zeros.rows > 0)
        dt_cuda_put(dev, put_zeros, &zeros, sizeof zeros);
}

const void *dt_cuda_any_kernel(void)
{
    return DT_KERNEL((convert<DT_DTYPE_F32, DT_DTYPE_F32>));
}
