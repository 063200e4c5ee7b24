/* SPDX-License-Identifier: MIT */
/* Panels of rows (struct dt_tensor). */
#include <assert.h>
#include <omp.h>
#include <stdlib.h>

#include "device/cpu/panels.h"
#include "device/cpu/transpose.h"

/* Rows of the panel that begins at row first. */
static int64_t height(const struct dt_tensor *x, int64_t first)
{
    return x->rows - first < DT_PANEL ? x->rows - first : DT_PANEL;
}

/* to (n x rows) = the transpose of from (rows x n): a panel. */
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

/* The same of bf16: two columns at a time, in pairs of elements (struct dt_tensor). */
static void transpose_halves(const uint16_t *from, int64_t rows, int64_t n, uint16_t *to)
{
    for (int64_t c = 0; c + 2 <= n; c += 2)
        for (int64_t r = 0; r < rows; r++)
            memcpy(to + c * rows + 2 * r, from + r * n + c, 2 * sizeof *to);
    for (int64_t r = 0; n % 2 != 0 && r < rows; r++)
        to[(n - 1) * rows + r] = from[r * n + n - 1];
}

static void store_rows(struct dt_device *dev, const struct dt_tensor *x)
{
    int64_t n = x->columns;
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
}

/* Panel of the columns first .. of a copy of rows of n elements. */
static void gather_floats(const float *from, int64_t rows, int64_t n, int64_t count, float *to)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * count, from + r * n, (size_t)count * sizeof *to);
}

static void gather_halves(const uint16_t *from, int64_t rows, int64_t n, int64_t count,
                          uint16_t *to)
{
    for (int64_t r = 0; r < rows; r++) {
        bool single = r == rows - 1 && rows % 2 != 0;
        uint16_t *pairs = to + r / 2 * 2 * count + r % 2;
        for (int64_t c = 0; c < count; c++)
            pairs[single ? c : 2 * c] = from[r * n + c];
    }
}

static void store_columns(struct dt_device *dev, const struct dt_tensor *x)
{
    int64_t n = x->columns;
    size_t size = dt_dtype_size(x->dtype), bytes = (size_t)(x->rows * n) * size;
    char *copy = malloc(bytes);
    if (copy == NULL && bytes > 0)
        dt_cpu_no_memory("panels of a matrix");
    memcpy(copy, x->data, bytes);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t first = 0; first < n; first += DT_PANEL) {
        int64_t count = n - first < DT_PANEL ? n - first : DT_PANEL;
        const void *from = copy + (size_t)first * size;
        void *panel = (char *)x->data + (size_t)(first * x->rows) * size;
        if (x->dtype == DT_DTYPE_F32)
            gather_floats(from, x->rows, n, count, panel);
        else
            gather_halves(from, x->rows, n, count, panel);
    }
    free(copy);
}

bool dt_cpu_store_panels(struct dt_device *dev, struct dt_tensor *x, bool columns)
{
    assert(x->stride == x->columns && !x->panels);
    if (x->dtype == DT_DTYPE_F16)
        return false;
    if (columns) {
        store_columns(dev, x);
        *x = dt_matrix_of(x->dtype, x->data, x->columns, x->rows);
    } else {
        store_rows(dev, x);
    }
    x->panels = true;
    return true;
}

struct dt_cpu_panel dt_cpu_panel_of(const struct dt_tensor *x, int64_t row)
{
    int64_t first = row / DT_PANEL * DT_PANEL;
    return (struct dt_cpu_panel){dt_cpu_at(x, first, 0), height(x, first), x->columns,
                                 x->dtype == DT_DTYPE_BF16};
}

void dt_cpu_load_from_panel(const struct dt_tensor *x, int64_t row, float *to)
{
    struct dt_cpu_panel p = dt_cpu_panel_of(x, row);
    for (int64_t c = 0; c < x->columns; c++)
        to[c] = dt_cpu_panel_element(&p, c, row % DT_PANEL);
}
