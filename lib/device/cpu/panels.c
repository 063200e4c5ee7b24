/* SPDX-License-Identifier: MIT */
/* Panels of rows (struct dt_tensor). */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"
#include "device/cpu/transpose.h"

/* Rows of the panel that begins at row first. */
static int64_t height(const struct dt_tensor *x, int64_t first)
{
    return x->rows - first < DT_PANEL ? x->rows - first : DT_PANEL;
}

/* to (n x rows) = the transpose of from (rows x n). */
static void transpose_floats(const float *from, int64_t rows, int64_t n, float *to)
{
    int64_t whole = rows % DT_CPU_VECTOR == 0 ? n / 4 * 4 : 0;
    for (int64_t c = 0; c < whole; c += 4)
        for (int64_t r = 0; r < rows; r += DT_CPU_VECTOR) {
            dt_cpu_vector columns[4];
            dt_cpu_transpose(from + r * n + c, n, columns);
            DT_CPU_UNROLL
            for (int i = 0; i < 4; i++)
                dt_cpu_vector_store(to + (c + i) * rows + r, columns[i]);
        }
    for (int64_t c = whole; c < n; c++)
        for (int64_t r = 0; r < rows; r++)
            to[c * rows + r] = from[r * n + c];
}

static void transpose_halves(const uint16_t *from, int64_t rows, int64_t n, uint16_t *to)
{
    for (int64_t c = 0; c < n; c++)
        for (int64_t r = 0; r < rows; r++)
            to[c * rows + r] = from[r * n + c];
}

bool dt_cpu_store_panels(struct dt_device *dev, struct dt_tensor *x)
{
    int64_t n = x->columns;
    assert(x->stride == n && !x->panels);
    if (x->dtype == DT_DTYPE_F16)
        return false;
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t first = 0; first < x->rows; first += DT_PANEL) {
        int64_t rows = height(x, first);
        float *copy = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)(DT_PANEL * n));
        void *panel = dt_cpu_at(x, first, 0);
        memcpy(copy, panel, (size_t)(rows * n) * dt_dtype_size(x->dtype));
        if (x->dtype == DT_DTYPE_F32)
            transpose_floats(copy, rows, n, panel);
        else
            transpose_halves((const uint16_t *)(const void *)copy, rows, n, panel);
    }
    x->panels = true;
    return true;
}

void dt_cpu_load_from_panel(const struct dt_tensor *x, int64_t row, float *to)
{
    int64_t first = row / DT_PANEL * DT_PANEL, rows = height(x, first);
    for (int64_t c = 0; c < x->columns; c++) {
        float wide;
        to[c] = *dt_cpu_load(x, first, c * rows + row - first, 1, &wide);
    }
}
