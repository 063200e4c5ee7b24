/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "device/cuda/elements.cuh"

namespace
{
struct update {
    float beta1, beta2, rate, root, keep, epsilon, scale;
};
} // namespace

static __global__ void __launch_bounds__(256)
    adamw(struct dt_cuda_view parameters, struct dt_cuda_view m, struct dt_cuda_view v,
          struct dt_cuda_view gradients, struct update how)
{
    constexpr int group = dt_cuda_group<DT_DTYPE_F32>;
    int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * group;
    float p[group], g[group], first[group], second[group];
    if (at >= parameters.columns)
        return;
    dt_cuda_load<DT_DTYPE_F32>(gradients, 0, at, g);
    dt_cuda_load<DT_DTYPE_F32>(m, 0, at, first);
    dt_cuda_load<DT_DTYPE_F32>(v, 0, at, second);
    dt_cuda_load<DT_DTYPE_F32>(parameters, 0, at, p);
#pragma unroll
    for (int i = 0; i < group; i++) {
        g[i] *= how.scale;
        first[i] = how.beta1 * first[i] + (1.0f - how.beta1) * g[i];
        second[i] = how.beta2 * second[i] + (1.0f - how.beta2) * g[i] * g[i];
        p[i] = p[i] * how.keep - how.rate * first[i] / (sqrtf(second[i]) * how.root + how.epsilon);
    }
    dt_cuda_store<DT_DTYPE_F32>(m, 0, at, first);
    dt_cuda_store<DT_DTYPE_F32>(v, 0, at, second);
    dt_cuda_store<DT_DTYPE_F32>(parameters, 0, at, p);
}

void dt_cuda_adamw(struct dt_device *dev, float *parameters, float *m, float *v,
                   const float *gradients, int64_t n, const struct dt_adamw *how)
{
    const struct update update = {how->beta1,
                                  how->beta2,
                                  how->learning_rate / how->correction1,
                                  1.0f / sqrtf(how->correction2),
                                  1.0f - how->learning_rate * how->weight_decay,
                                  how->epsilon,
                                  how->gradient_scale};
    struct dt_cuda_cover cover = dt_cuda_cover_of(1, n, dt_cuda_group<DT_DTYPE_F32>);
    dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0, adamw,
                   dt_cuda_view_of_floats(parameters, n), dt_cuda_view_of_floats(m, n),
                   dt_cuda_view_of_floats(v, n), dt_cuda_view_of_floats(gradients, n), update);
}
