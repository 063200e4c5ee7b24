/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"

#define COLUMN_UNIT 16

void dt_cpu_embedding_forward(struct dt_device *dev, struct dt_tensor *y, const int32_t *ids,
                              const struct dt_tensor *tokens, const struct dt_tensor *positions,
                              int64_t length, int64_t past)
{
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t r = 0; r < y->rows; r++) {
        assert(ids[r] >= 0 && ids[r] < tokens->rows);
        const float *restrict token = dt_cpu_row(tokens, ids[r]);
        float *restrict out = dt_cpu_row(y, r);
        if (positions == NULL) {
            memcpy(out, token, (size_t)y->columns * sizeof *out);
            continue;
        }
        const float *restrict position = dt_cpu_row(positions, past + r % length);
        for (int64_t j = 0; j < y->columns; j++)
            out[j] = token[j] + position[j];
    }
}

static void add_part(float *restrict sum, const float *restrict x, int64_t from, int64_t to)
{
    for (int64_t j = from; j < to; j++)
        sum[j] += x[j];
}

/* Tokens repeat, so rows cannot go to threads; columns can. */
void dt_cpu_embedding_backward(struct dt_device *dev, struct dt_tensor *dtokens,
                               struct dt_tensor *dpositions, const struct dt_tensor *dy,
                               const int32_t *ids, int64_t length)
{
#pragma omp parallel num_threads(dev->threads)
    {
        int64_t from, to;
        dt_cpu_share(dy->columns, COLUMN_UNIT, omp_get_thread_num(), omp_get_num_threads(), &from,
                     &to);
        for (int64_t r = 0; r < dy->rows; r++) {
            const float *in = dt_cpu_row(dy, r);
            add_part(dt_cpu_row(dtokens, ids[r]), in, from, to);
            if (dpositions)
                add_part(dt_cpu_row(dpositions, r % length), in, from, to);
        }
    }
}
