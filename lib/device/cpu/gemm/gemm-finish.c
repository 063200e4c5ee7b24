/* SPDX-License-Identifier: MIT */
/* From the sums of a product to the elements of C. */
#include "device/cpu/gemm/gemm.h"

/* to = from + bias; each may be the same memory as another. */
static void add_bias(float *to, const float *from, const float *bias, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        to[j] = from[j] + bias[j];
}

/* The activation is applied to aux as stored, after rounding, so that backward can recompute it. */
static void finish_row(const struct dt_matmul *how, int64_t row, int64_t column, int64_t columns,
                       float *y, float *scratch)
{
    bool keeps = how->activation != DT_ACTIVATION_NONE && !how->derivative;
    float *x = keeps ? dt_cpu_output(how->aux, row, column, scratch) : y;
    if (how->bias)
        add_bias(x, y, dt_cpu_load(how->bias, 0, column, columns, scratch), columns);
    else if (keeps)
        memcpy(x, y, (size_t)columns * sizeof *x);
    if (keeps)
        dt_cpu_store(how->aux, row, column, columns, x);
    if (how->activation == DT_ACTIVATION_NONE)
        return;
    const float *aux = dt_cpu_load(how->aux, row, column, columns, scratch);
    if (how->derivative)
        dt_cpu_activate_backward(y, aux, columns, how->activation);
    else
        dt_cpu_activate(y, aux, columns, how->activation);
}

void dt_cpu_finish(const struct dt_cpu_product *p, const struct dt_cpu_area *area, float *sums,
                   int64_t stride, float *scratch)
{
    bool in_place = sums == dt_cpu_at(p->c, area->row, area->column);
    if (in_place && p->how->bias == NULL && p->how->activation == DT_ACTIVATION_NONE)
        return;
    for (int64_t i = 0; i < area->rows; i++) {
        float *y = sums + i * stride;
        finish_row(p->how, area->row + i, area->column, area->columns, y, scratch);
        dt_cpu_store(p->c, area->row + i, area->column, area->columns, y);
    }
}

void dt_cpu_widen_block(const struct dt_tensor *x, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, float *to)
{
    for (int64_t i = 0; i < rows; i++) {
        float *out = to + i * columns;
        const float *in = dt_cpu_load(x, row + i, column, columns, out);
        if (in != out)
            memcpy(out, in, (size_t)columns * sizeof *out);
    }
}
