/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/elements.cuh"
#include "device/cuda/epilogue.h"
#include "device/cuda/functions.cuh"

/* y = activation(x + bias). kept, unless its data is NULL, receives x + bias for backward. */
template <int TYPE, int ACTIVATION>
static __global__ void activate(struct dt_cuda_view y, struct dt_cuda_view x,
                                struct dt_cuda_view bias, struct dt_cuda_view kept, unsigned strips)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t row, column;
    float v[group], b[group];
    dt_cuda_place(strips, group, &row, &column);
    if (column >= y.columns)
        return;
    dt_cuda_fetched<TYPE> of_x = dt_cuda_fetch<TYPE>(x, row, column), of_bias = {};
    if (bias.data)
        of_bias = dt_cuda_fetch<TYPE>(bias, 0, column);
    dt_cuda_unpack(of_x, v);
    if (bias.data) {
        dt_cuda_unpack(of_bias, b);
#pragma unroll
        for (int i = 0; i < group; i++)
            v[i] += b[i];
    }
    if (kept.data) {
        dt_cuda_store<TYPE>(kept, row, column, v);
        dt_cuda_as_stored<TYPE>(kept, v);
    }
#pragma unroll
    for (int i = 0; i < group; i++)
        v[i] = dt_cuda_activation<ACTIVATION>::value(v[i]);
    dt_cuda_store<TYPE>(y, row, column, v);
}

template <int TYPE, int ACTIVATION>
static __global__ void activate_backward(struct dt_cuda_view dx, struct dt_cuda_view x,
                                         unsigned strips)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t row, column;
    float d[group], v[group];
    dt_cuda_place(strips, group, &row, &column);
    if (column >= dx.columns)
        return;
    auto of_dx = dt_cuda_fetch<TYPE>(dx, row, column);
    auto of_x = dt_cuda_fetch<TYPE>(x, row, column);
    dt_cuda_unpack(of_dx, d);
    dt_cuda_unpack(of_x, v);
#pragma unroll
    for (int i = 0; i < group; i++)
        d[i] *= dt_cuda_activation<ACTIVATION>::derivative(v[i]);
    dt_cuda_store<TYPE>(dx, row, column, d);
}

void dt_cuda_bias_activation(struct dt_device *dev, const struct dt_tensor *y,
                             const struct dt_tensor *x, const struct dt_tensor *bias,
                             const struct dt_tensor *kept, enum dt_activation activation)
{
    assert(x->rows == y->rows && x->columns == y->columns);
    bool flat = bias == nullptr && dt_cuda_is_flat({y, x, kept});
    struct dt_tensor to = flat ? dt_cuda_flat(y) : *y, from = flat ? dt_cuda_flat(x) : *x;
    struct dt_cuda_view b = {}, k = {};
    if (bias)
        b = dt_cuda_view_of(bias);
    if (kept) {
        struct dt_tensor keep = flat ? dt_cuda_flat(kept) : *kept;
        k = dt_cuda_view_of(&keep);
    }
    dt_cuda_for_type(dt_cuda_type_of({y, x, bias, kept}), [&](auto type) {
        constexpr int group = dt_cuda_group<type.value>;
        struct dt_cuda_cover cover = dt_cuda_cover_of(to.rows, to.columns, group);
        dt_cuda_for_activation(activation, [&](auto act) {
            dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0,
                           activate<type.value, act.value>, dt_cuda_view_of(&to),
                           dt_cuda_view_of(&from), b, k, cover.strips);
        });
    });
}

void dt_cuda_activation_forward(struct dt_device *dev, struct dt_tensor *y,
                                const struct dt_tensor *x, enum dt_activation activation)
{
    dt_cuda_bias_activation(dev, y, x, nullptr, nullptr, activation);
}

void dt_cuda_activation_backward(struct dt_device *dev, struct dt_tensor *dx,
                                 const struct dt_tensor *x, enum dt_activation activation)
{
    assert(x->rows == dx->rows && x->columns == dx->columns);
    bool flat = dt_cuda_is_flat({dx, x});
    struct dt_tensor to = flat ? dt_cuda_flat(dx) : *dx, from = flat ? dt_cuda_flat(x) : *x;
    dt_cuda_for_type(dt_cuda_type_of({dx, x}), [&](auto type) {
        constexpr int group = dt_cuda_group<type.value>;
        struct dt_cuda_cover cover = dt_cuda_cover_of(to.rows, to.columns, group);
        dt_cuda_for_activation(activation, [&](auto act) {
            dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0,
                           activate_backward<type.value, act.value>, dt_cuda_view_of(&to),
                           dt_cuda_view_of(&from), cover.strips);
        });
    });
}
