/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/elements.cuh"

/* Where b is 0, y is not read: it may be uninitialized or NaN. */
template <int TYPE>
static __global__ void combine(struct dt_cuda_view y, float b, struct dt_cuda_view x, float a,
                               unsigned strips)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t row, column;
    float from[group], sum[group];
    dt_cuda_place(strips, group, &row, &column);
    if (column >= y.columns)
        return;
    dt_cuda_fetched<TYPE> of_x = dt_cuda_fetch<TYPE>(x, row, column), of_y = {};
    if (b != 0)
        of_y = dt_cuda_fetch<TYPE>(y, row, column);
    dt_cuda_unpack(of_x, from);
    dt_cuda_unpack(of_y, sum);
#pragma unroll
    for (int i = 0; i < group; i++)
        sum[i] = b != 0 ? __fmaf_rn(a, from[i], b * sum[i]) : a * from[i];
    dt_cuda_store<TYPE>(y, row, column, sum);
}

void dt_cuda_combine(struct dt_device *dev, struct dt_tensor *y, float b, const struct dt_tensor *x,
                     float a)
{
    assert(x->rows == y->rows && x->columns == y->columns);
    bool flat = dt_cuda_is_flat({x, y});
    struct dt_tensor to = flat ? dt_cuda_flat(y) : *y, from = flat ? dt_cuda_flat(x) : *x;
    dt_cuda_for_type(dt_cuda_type_of({x, y}), [&](auto type) {
        constexpr int group = dt_cuda_group<type.value>;
        struct dt_cuda_cover cover = dt_cuda_cover_of(to.rows, to.columns, group);
        dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0, combine<type.value>,
                       dt_cuda_view_of(&to), b, dt_cuda_view_of(&from), a, cover.strips);
    });
}
