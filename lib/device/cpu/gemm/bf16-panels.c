/* SPDX-License-Identifier: MIT */
/* Each thread multiplies all of A with some panels of B; sums of an element stay in registers for
 * all of K. */
#include "device/cpu/gemm/bf16-panels.h"

#if DT_CPU_BF16_PANELS
#include <omp.h>

#include "device/cpu/panels.h"

#define MOST_ROWS 32 /* of a kernel's call */
#define UNIT      16 /* more rows are padded to a multiple of these */
#define DEPTH     DT_CPU_BF16_DEPTH

const struct dt_cpu_bf16_kernel *dt_cpu_bf16_kernel_open(void)
{
    static const struct dt_cpu_bf16_kernel *const all[] = {&dt_cpu_amx_kernel,
                                                           &dt_cpu_dpbf16_kernel};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->is_supported())
            return all[i];
    return NULL;
}

bool dt_cpu_bf16_panels_support(const struct dt_cpu_product *p)
{
    return p->first.b->panels && p->first.b->dtype == DT_DTYPE_BF16 && !p->how->transpose_a &&
           !p->how->accumulate && p->how->more_count == 0 && p->c->rows > 0 && p->c->columns > 0;
}

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

struct dt_cpu_bf16_right dt_cpu_bf16_right(const struct dt_cpu_panel *b, int64_t number,
                                           uint32_t *copy)
{
    int64_t k = number * DEPTH;
    if (b->height == DT_PANEL && k + DEPTH <= b->length)
        return (struct dt_cpu_bf16_right){(const char *)b->data + k * DT_PANEL * 2, 4 * DT_PANEL};
    memset(copy, 0, DEPTH / 2 * DT_PANEL * sizeof *copy);
    for (int64_t i = 0; i < DEPTH && k + i < b->length; i++)
        for (int64_t j = 0; j < b->height; j++) {
            float wide = dt_cpu_panel_element(b, k + i, j);
            uint32_t word;
            memcpy(&word, &wide, sizeof word);
            copy[i / 2 * DT_PANEL + j] |= i % 2 ? word : word >> 16;
        }
    return (struct dt_cpu_bf16_right){(const char *)copy, 4 * DT_PANEL};
}

/* Columns of C that one panel gives. */
static void multiply_panel(const struct dt_cpu_product *p, const struct dt_cpu_bf16_kernel *kernel,
                           const struct dt_cpu_bf16_left *a, int64_t column, float *scratch)
{
    struct dt_cpu_panel b = dt_cpu_panel_of(p->first.b, column);
    float *sums = scratch + DT_PANEL;
    uint32_t *copy = (uint32_t *)(sums + MOST_ROWS * DT_PANEL);
    for (int64_t row = 0; row < a->rows; row += kernel->rows) {
        int64_t rows = a->rows - row < kernel->rows ? a->rows - row : kernel->rows;
        kernel->multiply(a, row, rows, &b, copy, sums);
        struct dt_cpu_area area = {row, rows, column, b.height};
        dt_cpu_finish(p, &area, sums, DT_PANEL, scratch);
    }
}

static struct dt_cpu_bf16_left pack(struct dt_device *dev, const struct dt_tensor *a)
{
    int64_t depth = round_up(a->columns, DEPTH), stride = depth + DEPTH;
    int64_t rows = a->rows <= UNIT ? a->rows : round_up(a->rows, UNIT);
    uint16_t *to = (uint16_t *)dt_cpu_shared_scratch(dev, (size_t)(rows * stride / 2));
    for (int64_t i = 0; i < rows; i++) {
        int64_t some = i < a->rows ? a->columns : 0;
        memcpy(to + i * stride, dt_cpu_at(a, some > 0 ? i : 0, 0), (size_t)some * sizeof *to);
        memset(to + i * stride + some, 0, (size_t)(depth - some) * sizeof *to);
    }
    return (struct dt_cpu_bf16_left){to, a->rows, stride, depth / DEPTH};
}

void dt_cpu_bf16_panels(struct dt_device *dev, const struct dt_cpu_product *p,
                        const struct dt_cpu_bf16_kernel *kernel)
{
    struct dt_cpu_bf16_left a = pack(dev, p->first.a);
#pragma omp parallel num_threads(dev->threads)
    {
        int64_t from, to;
        float *scratch =
            dt_cpu_scratch(dev, omp_get_thread_num(), DT_PANEL * (1 + MOST_ROWS + DEPTH / 2));
        dt_cpu_share(p->c->columns, DT_PANEL, omp_get_thread_num(), omp_get_num_threads(), &from,
                     &to);
        if (kernel->begin)
            kernel->begin(a.rows);
        for (int64_t column = from; column < to; column += DT_PANEL)
            multiply_panel(p, kernel, &a, column, scratch);
        if (kernel->end)
            kernel->end();
    }
}

#else

const struct dt_cpu_bf16_kernel *dt_cpu_bf16_kernel_open(void)
{
    return NULL;
}

bool dt_cpu_bf16_panels_support(const struct dt_cpu_product *p)
{
    (void)p;
    return false;
}

void dt_cpu_bf16_panels(struct dt_device *dev, const struct dt_cpu_product *p,
                        const struct dt_cpu_bf16_kernel *kernel)
{
    (void)dev, (void)p, (void)kernel;
}

#endif
