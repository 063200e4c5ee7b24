/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/cuda.h"
#include "device/cuda/kernel.cuh"
#include "device/cuda/reduction.cuh"

constexpr int threads = 512;
constexpr double nothing = 1e-30; /* squared norm below which a row is only rounding error */

/* Every thread gets the sum. */
static __device__ __forceinline__ double dot(const float *x, const float *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += threads)
        sum += (double)x[i] * (double)y[i];
    return dt_cuda_team_sum_of(sum);
}

/* One step of Gram-Schmidt: each block takes a row after row `done` (done < 0: none yet), and
 * subtracts its projection onto that row. The first of these rows is then normalized. Each
 * thread accesses only its elements. */
static __global__ void __launch_bounds__(threads)
    project_rows(float *x, int64_t stride, int64_t n, int done)
{
    const float *unit = x + (done < 0 ? 0 : done) * stride;
    float *own = x + (done + 1 + (int64_t)blockIdx.x) * stride;
    if (done >= 0) {
        float part = (float)dot(unit, own, n);
        for (int64_t i = threadIdx.x; i < n; i += threads)
            own[i] -= part * unit[i];
    }
    if (blockIdx.x > 0)
        return;
    double squares = dot(own, own, n);
    float scale = squares > nothing ? (float)(1 / sqrt(squares)) : 0;
    for (int64_t i = threadIdx.x; i < n; i += threads)
        own[i] *= scale;
}

void dt_cuda_orthonormalize(struct dt_device *dev, struct dt_tensor *x)
{
    assert(x->dtype == DT_DTYPE_F32 && x->rows <= x->columns);
    for (int done = -1; done + 1 < x->rows; done++)
        dt_cuda_launch(dt_cuda_of(dev)->stream, dim3(done < 0 ? 1 : (unsigned)(x->rows - 1 - done)),
                       dim3(threads), 0, project_rows, static_cast<float *>(x->data), x->stride,
                       x->columns, done);
}
