/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/elements.cuh"
#include "device/cuda/random.cuh"

namespace
{
struct drop {
    uint64_t key, sample;
    uint32_t threshold, first, past; /* first: index of row 0 in the batch */
    float kept;
};
} // namespace

template <int TYPE>
static __global__ void dropout(struct dt_cuda_view x, int length, struct drop how, unsigned strips)
{
    constexpr int group = dt_cuda_group<TYPE>;
    int64_t row, column;
    float v[group];
    dt_cuda_place(strips, group, &row, &column);
    if (column >= x.columns)
        return;
    unsigned place = how.first + (unsigned)row, sequence = place / (unsigned)length;
    uint64_t first = (uint64_t)(how.past + place % (unsigned)length) * (uint64_t)x.columns;
    first += (uint64_t)column;
    dt_cuda_load<TYPE>(x, row, column, v);
    uint4 words = {};
#pragma unroll
    for (int i = 0; i < group; i++) {
        uint64_t element = first + (uint64_t)i;
        if (i == 0 || element % 4 == 0)
            words = dt_cuda_random(how.key, how.sample + sequence, element / 4);
        v[i] = dt_cuda_word(words, (int)(element % 4)) >= how.threshold ? v[i] * how.kept : 0.0f;
    }
    dt_cuda_store<TYPE>(x, row, column, v);
}

void dt_cuda_dropout(struct dt_device *dev, struct dt_tensor *x, int64_t length,
                     const struct dt_dropout *how)
{
    assert(how->first >= 0 && how->rate >= 0 && how->rate < 1);
    if (how->rate == 0)
        return;
    const struct drop drop = {how->key,
                              how->sample,
                              dt_cuda_dropout_threshold(how),
                              (uint32_t)how->first,
                              (uint32_t)how->past,
                              1.0f / (1.0f - how->rate)};
    dt_cuda_for_type((int)x->dtype, [&](auto type) {
        struct dt_cuda_cover cover =
            dt_cuda_cover_of(x->rows, x->columns, dt_cuda_group<type.value>);
        dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0, dropout<type.value>,
                       dt_cuda_view_of(x), (int)length, drop, cover.strips);
    });
}
