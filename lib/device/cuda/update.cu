/* SPDX-License-Identifier: MIT */
#include "device/cuda/elements.cuh"

template <int RULE>
static __global__ void __launch_bounds__(256)
    update(struct dt_cuda_view parameters, struct dt_cuda_view state0, struct dt_cuda_view state1,
           struct dt_cuda_view gradients, struct dt_update_factors how)
{
    constexpr enum dt_update_rule rule = static_cast<enum dt_update_rule>(RULE);
    constexpr bool two = dt_update_slots(rule) > 1;
    constexpr int group = dt_cuda_group<DT_DTYPE_F32>;
    int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * group;
    float p[group], g[group], first[group], second[group];
    if (at >= parameters.columns)
        return;
    dt_cuda_load<DT_DTYPE_F32>(gradients, 0, at, g);
    dt_cuda_load<DT_DTYPE_F32>(state0, 0, at, first);
    if constexpr (two)
        dt_cuda_load<DT_DTYPE_F32>(state1, 0, at, second);
    dt_cuda_load<DT_DTYPE_F32>(parameters, 0, at, p);
#pragma unroll
    for (int i = 0; i < group; i++) {
        struct dt_update_element x = {p[i], {first[i], 0}};
        if constexpr (two)
            x.state[1] = second[i];
        dt_update_apply(rule, &x, g[i], &how);
        p[i] = x.parameter;
        first[i] = x.state[0];
        if constexpr (two)
            second[i] = x.state[1];
    }
    dt_cuda_store<DT_DTYPE_F32>(state0, 0, at, first);
    if constexpr (two)
        dt_cuda_store<DT_DTYPE_F32>(state1, 0, at, second);
    dt_cuda_store<DT_DTYPE_F32>(parameters, 0, at, p);
}

#define ENTRY(NAME, name, slots) update<DT_UPDATE_RULE_##NAME>,
static void (*const kernels[])(struct dt_cuda_view, struct dt_cuda_view, struct dt_cuda_view,
                               struct dt_cuda_view,
                               struct dt_update_factors) = {DT_UPDATE_RULES(ENTRY)};

void dt_cuda_update(struct dt_device *dev, float *parameters, float *const *state,
                    const float *gradients, int64_t n, const struct dt_update *how)
{
    struct dt_cuda_cover cover = dt_cuda_cover_of(1, n, dt_cuda_group<DT_DTYPE_F32>);
    const float *second = dt_update_slots(how->rule) > 1 ? state[1] : state[0];
    dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0, kernels[how->rule],
                   dt_cuda_view_of_floats(parameters, n), dt_cuda_view_of_floats(state[0], n),
                   dt_cuda_view_of_floats(second, n), dt_cuda_view_of_floats(gradients, n),
                   dt_update_factors_of(how));
}
