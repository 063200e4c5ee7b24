/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"
#include "device/cpu/random.h"

#define GROUP (4 * DT_CPU_LANES) /* elements per call of dt_cpu_random */

/* Random words of the elements first .. first+GROUP-1; first is a multiple of 4. */
static void draw(const struct dt_dropout *how, uint64_t index, uint64_t first, uint32_t *drawn)
{
    uint64_t counters[DT_CPU_LANES];
    uint32_t words[4][DT_CPU_LANES];
    for (int i = 0; i < DT_CPU_LANES; i++)
        counters[i] = first / 4 + (uint64_t)i;
    dt_cpu_random(how->key, index, counters, words);
    for (int i = 0; i < DT_CPU_LANES; i++)
        for (int w = 0; w < 4; w++)
            drawn[4 * i + w] = words[w][i];
}

/* x: elements first .. first+n-1 of a sequence. */
static void drop(float *x, int64_t n, uint64_t first, uint64_t index, const struct dt_dropout *how)
{
    uint32_t threshold = dt_cpu_dropout_threshold(how), drawn[GROUP];
    float kept = 1.0f / (1.0f - how->rate);
    int64_t skip = (int64_t)(first % 4);
    for (int64_t at = -skip; at < n; at += GROUP) {
        draw(how, index, (uint64_t)((int64_t)first + at), drawn);
        int64_t from = at < 0 ? 0 : at, to = n - at < GROUP ? n : at + GROUP;
        for (int64_t j = from; j < to; j++)
            x[j] = drawn[j - at] >= threshold ? x[j] * kept : 0;
    }
}

void dt_cpu_dropout(struct dt_device *dev, struct dt_tensor *x, int64_t length,
                    const struct dt_dropout *how)
{
    assert(how->first >= 0 && how->rate >= 0 && how->rate < 1);
    if (how->rate == 0)
        return;
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t r = 0; r < x->rows; r++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)x->columns);
        float *row = dt_cpu_output(x, r, 0, scratch);
        dt_cpu_load(x, r, 0, x->columns, scratch);
        int64_t row_index = how->first + r;
        drop(row, x->columns, (uint64_t)((how->past + row_index % length) * x->columns),
             how->sample + (uint64_t)(row_index / length), how);
        dt_cpu_store(x, r, 0, x->columns, row);
    }
}
