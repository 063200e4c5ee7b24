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
        const float *restrict position = dt_cpu_row(positions, past + r % length);
        float *restrict out = dt_cpu_row(y, r);
        for (int64_t j = 0; j < y->columns; j++)
            out[j] = token[j] + position[j];
    }
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
            const float *restrict in = dt_cpu_row(dy, r);
            float *restrict token = dt_cpu_row(dtokens, ids[r]);
            float *restrict position = dt_cpu_row(dpositions, r % length);
            for (int64_t j = from; j < to; j++) {
                token[j] += in[j];
                position[j] += in[j];
            }
        }
    }
}
