/* SPDX-License-Identifier: MIT */
#include "device/cuda/elements.cuh"

static __global__ void __launch_bounds__(256)
    sgd(struct dt_cuda_view parameters, struct dt_cuda_view momentum, struct dt_cuda_view gradients,
        struct dt_sgd how)
{
    constexpr int group = dt_cuda_group<DT_DTYPE_F32>;
    int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * group;
    float p[group], m[group], g[group];
    if (at >= parameters.columns)
        return;
    dt_cuda_load<DT_DTYPE_F32>(gradients, 0, at, g);
    dt_cuda_load<DT_DTYPE_F32>(momentum, 0, at, m);
    dt_cuda_load<DT_DTYPE_F32>(parameters, 0, at, p);
    float keep = 1.0f - how.learning_rate * how.weight_decay;
#pragma unroll
    for (int i = 0; i < group; i++) {
        m[i] = how.momentum * m[i] + g[i] * how.gradient_scale;
        p[i] = p[i] * keep - how.learning_rate * m[i];
    }
    dt_cuda_store<DT_DTYPE_F32>(momentum, 0, at, m);
    dt_cuda_store<DT_DTYPE_F32>(parameters, 0, at, p);
}

void dt_cuda_sgd(struct dt_device *dev, float *parameters, float *momentum, const float *gradients,
                 int64_t n, const struct dt_sgd *how)
{
    struct dt_cuda_cover cover = dt_cuda_cover_of(1, n, dt_cuda_group<DT_DTYPE_F32>);
    dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0, sgd,
                   dt_cuda_view_of_floats(parameters, n), dt_cuda_view_of_floats(momentum, n),
                   dt_cuda_view_of_floats(gradients, n), *how);
}
