/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"

#define COLUMN_UNIT 16

static bool has_row(const struct dt_tensor *tokens, int32_t id)
{
    return id >= 0 && id < tokens->rows;
}

static void add_part(float *restrict sum, const float *restrict x, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        sum[j] += x[j];
}

void dt_cpu_embedding_forward(struct dt_device *dev, struct dt_tensor *y, const int32_t *ids,
                              const struct dt_tensor *tokens, const struct dt_tensor *positions,
                              int64_t length, int64_t past)
{
    int64_t n = y->columns;
    assert(tokens->columns == n && (positions == NULL || positions->columns == n));
#pragma omp parallel for num_threads(dev->threads)                                                 \
    schedule(static) if (y->rows * n > DT_CPU_SMALL_WORK)
    for (int64_t r = 0; r < y->rows; r++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), 2 * (size_t)n);
        float *to = dt_cpu_output(y, r, 0, scratch);
        if (!has_row(tokens, ids[r])) {
            memset(to, 0, (size_t)n * sizeof *to);
        } else {
            const float *token = dt_cpu_load(tokens, ids[r], 0, n, to);
            if (token != to)
                memcpy(to, token, (size_t)n * sizeof *to);
        }
        if (positions)
            add_part(to, dt_cpu_load(positions, past + r % length, 0, n, scratch + n), n);
        dt_cpu_store(y, r, 0, n, to);
    }
}

/* Threads divide the columns, not the rows: tokens repeat, so rows of the gradient would conflict.
 */
void dt_cpu_embedding_backward(struct dt_device *dev, struct dt_tensor *dtokens,
                               struct dt_tensor *dpositions, const struct dt_tensor *dy,
                               const int32_t *ids, int64_t length, int row_parts)
{
    (void)row_parts;
#pragma omp parallel num_threads(dev->threads)
    {
        int64_t from, to;
        dt_cpu_share(dy->columns, COLUMN_UNIT, omp_get_thread_num(), omp_get_num_threads(), &from,
                     &to);
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)dy->columns);
        for (int64_t r = 0; r < dy->rows; r++) {
            const float *part = dt_cpu_load(dy, r, from, to - from, scratch);
            if (has_row(dtokens, ids[r]))
                add_part(dt_cpu_row(dtokens, ids[r]) + from, part, to - from);
            if (dpositions)
                add_part(dt_cpu_row(dpositions, r % length) + from, part, to - from);
        }
    }
}
