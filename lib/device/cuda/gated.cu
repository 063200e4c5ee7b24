/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/elements.cuh"
#include "device/cuda/functions.cuh"

template <int TYPE, int ACTIVATION>
static __global__ void gated(struct dt_cuda_view y, struct dt_cuda_view gate,
                             struct dt_cuda_view up, unsigned strips)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t row, column;
    float g[group], u[group];
    dt_cuda_place(strips, group, &row, &column);
    if (column >= y.columns)
        return;
    auto of_gate = dt_cuda_fetch<TYPE>(gate, row, column);
    auto of_up = dt_cuda_fetch<TYPE>(up, row, column);
    dt_cuda_unpack(of_gate, g);
    dt_cuda_unpack(of_up, u);
#pragma unroll
    for (int i = 0; i < group; i++)
        g[i] = dt_cuda_activation<ACTIVATION>::value(g[i]) * u[i];
    dt_cuda_store<TYPE>(y, row, column, g);
}

template <int TYPE, int ACTIVATION>
static __global__ void gated_backward(struct dt_cuda_view dgate, struct dt_cuda_view dy,
                                      struct dt_cuda_view gate, struct dt_cuda_view up,
                                      unsigned strips)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t row, column;
    float d[group], g[group], u[group];
    dt_cuda_place(strips, group, &row, &column);
    if (column >= dy.columns)
        return;
    auto of_dy = dt_cuda_fetch<TYPE>(dy, row, column);
    auto of_gate = dt_cuda_fetch<TYPE>(gate, row, column);
    auto of_up = dt_cuda_fetch<TYPE>(up, row, column);
    dt_cuda_unpack(of_dy, d);
    dt_cuda_unpack(of_gate, g);
    dt_cuda_unpack(of_up, u);
#pragma unroll
    for (int i = 0; i < group; i++) {
        u[i] *= d[i] * dt_cuda_activation<ACTIVATION>::derivative(g[i]);
        d[i] *= dt_cuda_activation<ACTIVATION>::value(g[i]);
    }
    dt_cuda_store<TYPE>(dgate, row, column, u);
    dt_cuda_store<TYPE>(dy, row, column, d);
}

void dt_cuda_gated_forward(struct dt_device *dev, struct dt_tensor *y, const struct dt_tensor *gate,
                           const struct dt_tensor *up, enum dt_activation activation)
{
    assert(gate->columns == y->columns && up->columns == y->columns);
    bool flat = dt_cuda_is_flat({y, gate, up});
    struct dt_tensor t[3] = {*y, *gate, *up};
    for (struct dt_tensor &x : t)
        x = flat ? dt_cuda_flat(&x) : x;
    dt_cuda_for_type(dt_cuda_type_of({y, gate, up}), [&](auto type) {
        constexpr int group = dt_cuda_group<type.value>;
        struct dt_cuda_cover cover = dt_cuda_cover_of(t[0].rows, t[0].columns, group);
        dt_cuda_for_activation(activation, [&](auto act) {
            dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0,
                           gated<type.value, act.value>, dt_cuda_view_of(&t[0]),
                           dt_cuda_view_of(&t[1]), dt_cuda_view_of(&t[2]), cover.strips);
        });
    });
}

void dt_cuda_gated_backward(struct dt_device *dev, struct dt_tensor *dgate, struct dt_tensor *dy,
                            const struct dt_tensor *gate, const struct dt_tensor *up,
                            enum dt_activation activation)
{
    assert(gate->columns == dy->columns && up->columns == dy->columns);
    assert(dgate->columns == dy->columns);
    bool flat = dt_cuda_is_flat({dgate, dy, gate, up});
    struct dt_tensor t[4] = {*dgate, *dy, *gate, *up};
    for (struct dt_tensor &x : t)
        x = flat ? dt_cuda_flat(&x) : x;
    dt_cuda_for_type(dt_cuda_type_of({dgate, dy, gate, up}), [&](auto type) {
        constexpr int group = dt_cuda_group<type.value>;
        struct dt_cuda_cover cover = dt_cuda_cover_of(t[0].rows, t[0].columns, group);
        dt_cuda_for_activation(activation, [&](auto act) {
            dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0,
                           gated_backward<type.value, act.value>, dt_cuda_view_of(&t[0]),
                           dt_cuda_view_of(&t[1]), dt_cuda_view_of(&t[2]), dt_cuda_view_of(&t[3]),
                           cover.strips);
        });
    });
}
