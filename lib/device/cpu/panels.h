/* SPDX-License-Identifier: MIT */
/* Panels of the rows of a matrix (struct dt_tensor). */
#ifndef DT_DEVICE_CPU_PANELS_H
#define DT_DEVICE_CPU_PANELS_H

#include "device/cpu/cpu.h"

struct dt_cpu_panel {
    const void *data;
    int64_t height; /* rows of the matrix */
    int64_t length; /* columns of the matrix */
    bool pairs;     /* of bf16 */
};

/* The panel with this row. */
struct dt_cpu_panel dt_cpu_panel_of(const struct dt_tensor *x, int64_t row);

/* Element of a row of the panel and a column k of the matrix. */
static inline float dt_cpu_panel_element(const struct dt_cpu_panel *p, int64_t k, int64_t row)
{
    if (!p->pairs)
        return ((const float *)p->data)[k * p->height + row];
    bool single = k == p->length - 1 && k % 2 == 0;
    int64_t at = k / 2 * 2 * p->height + (single ? row : 2 * row + k % 2);
    uint32_t word = (uint32_t)((const uint16_t *)p->data)[at] << 16;
    float wide;
    memcpy(&wide, &word, sizeof wide);
    return wide;
}

#endif
