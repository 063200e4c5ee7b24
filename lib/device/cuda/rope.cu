/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/elements.cuh"

/* Each thread rotates `group` pairs of one head of one row: channels j ... and j + points ... */
template <int TYPE, int TURNS>
static __global__ void rope(struct dt_cuda_view x, struct dt_cuda_view turns, int head_dim,
                            int length, int past, float direction, int rows, int heads, int groups)
{
    constexpr int group = dt_cuda_group<TYPE>;
    unsigned number = blockIdx.x * blockDim.x + threadIdx.x, of_row = (unsigned)(heads * groups);
    if (number >= (unsigned)rows * of_row)
        return;
    int size = (int)turns.columns, points = size / 2;
    int row = (int)(number / of_row), rest = (int)(number % of_row);
    int head = rest / groups, j = rest % groups * group;
    int angle_row = past + row % length;
    int64_t base = (int64_t)head * head_dim;
    struct dt_cuda_view first = x, second = x, cosines = turns;
    first.columns = base + points; /* end of each half of the pairs */
    second.columns = base + size;
    second.aligned = x.aligned && points % group == 0;
    cosines.columns = points;
    float a[group], b[group], cosine[group], sine[group];
    auto of_first = dt_cuda_fetch<TYPE>(first, row, base + j);
    auto of_second = dt_cuda_fetch<TYPE>(second, row, base + points + j);
    auto of_cosine = dt_cuda_fetch<TURNS, group>(cosines, angle_row, j);
    auto of_sine = dt_cuda_fetch<TURNS, group>(turns, angle_row, points + j);
    dt_cuda_unpack(of_first, a);
    dt_cuda_unpack(of_second, b);
    dt_cuda_unpack(of_cosine, cosine);
    dt_cuda_unpack(of_sine, sine);
#pragma unroll
    for (int i = 0; i < group; i++) {
        float turned = a[i] * cosine[i] - b[i] * direction * sine[i];
        b[i] = b[i] * cosine[i] + a[i] * direction * sine[i];
        a[i] = turned;
    }
    dt_cuda_store<TYPE>(first, row, base + j, a);
    dt_cuda_store<TYPE>(second, row, base + points + j, b);
}

void dt_cuda_rope(struct dt_device *dev, struct dt_tensor *x, const struct dt_tensor *turns,
                  int64_t head_dim, int64_t length, int64_t past, bool inverse)
{
    int64_t size = turns->columns, heads = x->columns / head_dim;
    assert(size % 2 == 0 && size <= head_dim && x->columns % head_dim == 0 &&
           past + length <= turns->rows);
    dt_cuda_for_type((int)x->dtype, [&](auto type) {
        constexpr int group = dt_cuda_group<type.value>;
        int64_t groups = (size / 2 + group - 1) / group, total = x->rows * heads * groups;
        assert(total <= INT32_MAX);
        struct dt_cuda_view view = dt_cuda_view_of(x), angles = dt_cuda_view_of(turns);
        /* Heads must be aligned too for accesses of whole groups. */
        view.aligned = view.aligned && head_dim % group == 0;
        angles.aligned = angles.aligned && (size / 2) % group == 0;
        auto kernel = turns->dtype == DT_DTYPE_F32 ? rope<type.value, DT_DTYPE_F32>
                                                   : rope<type.value, dt_cuda_mixed>;
        dt_cuda_launch(dt_cuda_of(dev)->stream, dim3((unsigned)((total + 127) / 128)), dim3(128), 0,
                       kernel, view, angles, (int)head_dim, (int)length, (int)past,
                       inverse ? -1.0f : 1.0f, (int)x->rows, (int)heads, (int)groups);
    });
}
