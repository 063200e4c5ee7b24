/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cuda/elements.cuh"
#include "device/cuda/rows.h"

/* Copies rows in words of type UNIT: y[r] = x[rows[r]] to gather, y[rows[r]] = x[r] to scatter.
 * rows NULL: 0, 1, ... */
template <class UNIT, bool SCATTER>
static __global__ void move_rows(UNIT *y, int64_t y_stride, const UNIT *x, int64_t x_stride,
                                 const int32_t *rows, int64_t words, unsigned strips)
{
    int64_t row, word;
    dt_cuda_place(strips, 1, &row, &word);
    if (word >= words)
        return;
    int64_t named = rows ? rows[row] : row;
    y[(SCATTER ? named : row) * y_stride + word] = x[(SCATTER ? row : named) * x_stride + word];
}

template <class UNIT, bool SCATTER>
static void launch_moves(struct dt_device *dev, const struct dt_tensor *y,
                         const struct dt_tensor *x, const int32_t *rows)
{
    int64_t size = (int64_t)dt_dtype_size(y->dtype), unit = (int64_t)sizeof(UNIT);
    int64_t words = y->columns * size / unit;
    struct dt_cuda_cover cover = dt_cuda_cover_of(SCATTER ? x->rows : y->rows, words, 1);
    dt_cuda_launch(dt_cuda_of(dev)->stream, cover.grid, cover.block, 0, move_rows<UNIT, SCATTER>,
                   static_cast<UNIT *>(y->data), y->stride * size / unit,
                   static_cast<const UNIT *>(x->data), x->stride * size / unit, rows, words,
                   cover.strips);
}

template <bool SCATTER>
static void move(struct dt_device *dev, const struct dt_tensor *y, const struct dt_tensor *x,
                 const int32_t *rows)
{
    size_t size = dt_dtype_size(y->dtype), width = (size_t)y->columns * size;
    assert(y->columns == x->columns && y->dtype == x->dtype);
    size_t together = reinterpret_cast<uintptr_t>(y->data) | reinterpret_cast<uintptr_t>(x->data) |
                      width | (size_t)y->stride * size | (size_t)x->stride * size;
    if (together % sizeof(uint4) == 0)
        launch_moves<uint4, SCATTER>(dev, y, x, rows);
    else if (together % sizeof(uint32_t) == 0)
        launch_moves<uint32_t, SCATTER>(dev, y, x, rows);
    else
        launch_moves<uint16_t, SCATTER>(dev, y, x, rows);
}

void dt_cuda_gather(struct dt_device *dev, struct dt_tensor *y, const struct dt_tensor *x,
                    const int32_t *rows)
{
    move<false>(dev, y, x, rows);
}

void dt_cuda_scatter(struct dt_device *dev, struct dt_tensor *y, const struct dt_tensor *x,
                     const int32_t *rows)
{
    move<true>(dev, y, x, rows);
}

void dt_cuda_copy_rows(struct dt_device *dev, const struct dt_tensor *y, const struct dt_tensor *x)
{
    bool flat = dt_cuda_is_flat({y, x});
    struct dt_tensor to = flat ? dt_cuda_flat(y) : *y, from = flat ? dt_cuda_flat(x) : *x;
    move<false>(dev, &to, &from, nullptr);
}
