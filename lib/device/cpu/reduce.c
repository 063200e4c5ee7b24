/* SPDX-License-Identifier: MIT */
/* Sums whose order follows from the shape alone. */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"
#include "device/cpu/sums-over-rows.h"

#define COLUMN_UNIT 64

/* Columns of consecutive rows. */
struct strip {
    const struct dt_tensor *x;
    int64_t row, first, n;
};

static const float *row_of_strip(const void *context, int64_t i, float *scratch)
{
    const struct strip *s = context;
    return dt_cpu_load(s->x, s->row + i, s->first, s->n, scratch);
}

void dt_cpu_bias_backward(struct dt_device *dev, struct dt_tensor *dbias,
                          const struct dt_tensor *dy, int parts)
{
    assert(dbias->columns == dy->columns);
    int64_t n = dy->columns, from, to;
    const struct dt_cpu_sums_over_rows sums = dt_cpu_sums_over_rows(dev, dy->rows, parts, n);
    int64_t blocks = dt_cpu_count_blocks(&sums), strips = blocks < dev->threads ? dev->threads : 1;
#pragma omp parallel num_threads(dev->threads) private(from, to)
    {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), 4 * (size_t)n);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < blocks * strips; i++) {
            struct strip s = {.x = dy};
            float *sum = dt_cpu_find_block(&sums, i / strips, &s.row, &to);
            int64_t rows = to - s.row;
            dt_cpu_share(n, COLUMN_UNIT, i % strips, strips, &s.first, &to);
            s.n = to - s.first;
            if (rows > 0)
                dt_cpu_chain_rows(sum + s.first, row_of_strip, &s, rows, s.n, scratch);
            else
                memset(sum + s.first, 0, (size_t)s.n * sizeof *sum);
        }
        dt_cpu_share(n, COLUMN_UNIT, omp_get_thread_num(), omp_get_num_threads(), &from, &to);
        dt_cpu_add_blocks(&sums, from, to, dt_cpu_row(dbias, 0) + from);
    }
}
