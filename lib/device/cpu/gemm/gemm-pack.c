/* SPDX-License-Identifier: MIT */
/* Packs operands for the tiles of a product, as fp32. */
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/panels.h"
#include "device/cpu/transpose.h"

#define ROWS    DT_CPU_GEMM_ROWS
#define COLUMNS DT_CPU_GEMM_COLUMNS
#define SIDE    DT_CPU_VECTOR

/* Rows row .. of x, columns k .., to floats: straight into the packed rows of A. */
static void pack_rows(const struct dt_tensor *x, int64_t row, int64_t rows, int64_t k,
                      int64_t length, float *to)
{
    for (int64_t i = 0; i < rows; i++, to += DT_CPU_GEMM_A_STRIDE) {
        const float *from = dt_cpu_load(x, row + i, k, length, to);
        if (from != to)
            memcpy(to, from, (size_t)length * sizeof *to);
    }
}

/* Rows of floats into panels of width columns, which are step floats apart. Copies whole vectors:
 * what is too much, the next row overwrites. Missing columns of the last panel become 0. */
DT_CPU_INLINE void copy_panels(const float *from, int64_t stride, int64_t rows, int64_t columns,
                               float *to, int64_t step, int64_t width)
{
    const int64_t whole = (width + SIDE - 1) / SIDE * SIDE;
    int64_t j = 0;
    for (; j + whole <= columns; j += width, to += step)
        for (int64_t i = 0; i < rows; i++)
            DT_CPU_UNROLL
    for (int64_t v = 0; v < whole; v += SIDE)
        dt_cpu_vector_store(to + i * width + v, dt_cpu_vector_load(from + i * stride + j + v));
    for (; j < columns; j += width, to += step)
        for (int64_t i = 0; i < rows; i++) {
            int64_t count = columns - j < width ? columns - j : width;
            memcpy(to + i * width, from + i * stride + j, (size_t)count * sizeof *to);
            memset(to + i * width + count, 0, (size_t)(width - count) * sizeof *to);
        }
}

/* Rows k .. of x, columns column .. + columns, into panels. */
DT_CPU_INLINE void pack_panels(const struct dt_tensor *x, int64_t k, int64_t length, int64_t column,
                               int64_t columns, float *to, int64_t step, int64_t width)
{
    enum { AT_ONCE = 8 };
    const int64_t most = DT_CPU_CHUNK / width * width;
    float wide[AT_ONCE * DT_CPU_CHUNK];
    for (int64_t i = 0; i < length; i += AT_ONCE, to += AT_ONCE * width) {
        int64_t rows = length - i < AT_ONCE ? length - i : AT_ONCE;
        if (x->dtype == DT_DTYPE_F32) {
            copy_panels(dt_cpu_at(x, k + i, column), x->stride, rows, columns, to, step, width);
            continue;
        }
        for (int64_t j = 0; j < columns; j += most) {
            int64_t count = columns - j < most ? columns - j : most;
            dt_cpu_widen_block(x, k + i, rows, column + j, count, wide);
            copy_panels(wide, count, rows, count, to + j / width * step, step, width);
        }
    }
}

void dt_cpu_pack_a(const struct dt_cpu_product *p, const struct dt_cpu_group *g, int64_t row,
                   int64_t rows, float *to)
{
    for (const struct dt_cpu_chunk *chunk = g->chunks; chunk < g->chunks + g->count; chunk++) {
        const struct dt_tensor *a = dt_cpu_pair(p, chunk->pair).a;
        if (p->how->transpose_a) {
            pack_panels(a, chunk->k, chunk->length, row, rows, to, DT_CPU_GEMM_A_PANEL, ROWS);
            to += chunk->length * ROWS;
        } else {
            pack_rows(a, row, rows, chunk->k, chunk->length, to);
            to += chunk->length;
        }
    }
}

/* SIDE rows of B, or fewer, to a panel's columns; missing ones become 0. */
static void pack_transposed(const struct dt_tensor *b, int64_t row, int64_t rows, int64_t k,
                            int64_t length, float *to, float *scratch)
{
    const float *from = scratch;
    int64_t stride = DT_CPU_CHUNK, i = 0;
    if (b->dtype == DT_DTYPE_F32 && rows == SIDE)
        from = dt_cpu_at(b, row, k), stride = b->stride;
    else
        for (int64_t j = 0; j < SIDE; j++) {
            float *wide = scratch + j * DT_CPU_CHUNK;
            const float *in = j < rows ? dt_cpu_load(b, row + j, k, length, wide) : NULL;
            if (in == NULL)
                memset(wide, 0, (size_t)length * sizeof *wide);
            else if (in != wide)
                memcpy(wide, in, (size_t)length * sizeof *wide);
        }
    for (; i + 4 <= length; i += 4) {
        dt_cpu_vector columns[4];
        dt_cpu_transpose(from + i, stride, columns);
        DT_CPU_UNROLL
        for (int j = 0; j < 4; j++)
            dt_cpu_vector_store(to + (i + j) * COLUMNS, columns[j]);
    }
    for (; i < length; i++)
        for (int64_t j = 0; j < SIDE; j++)
            to[i * COLUMNS + j] = from[j * stride + i];
}

/* Rows of a panel of B that are whole vectors, of an even number of columns of bf16. */
static void copy_vectors(const struct dt_cpu_panel *from, int64_t row, int64_t rows, int64_t k,
                         int64_t length, float *to)
{
    typedef uint32_t pairs __attribute__((vector_size(4 * SIDE), aligned(2), may_alias));
    if (!from->pairs) {
        const float *at = (const float *)from->data + k * from->height + row;
        for (int64_t i = 0; i < length; i++)
            for (int64_t j = 0; j < rows; j += SIDE)
                dt_cpu_vector_store(to + i * COLUMNS + j,
                                    dt_cpu_vector_load(at + i * from->height + j));
        return;
    }
    const uint16_t *at = (const uint16_t *)from->data + k * from->height + 2 * row;
    for (int64_t i = 0; i < length; i += 2)
        for (int64_t j = 0; j < rows; j += SIDE) {
            pairs both = *(const pairs *)(const void *)(at + i * from->height + 2 * j);
            dt_cpu_vector_store(to + i * COLUMNS + j, (dt_cpu_vector)(both << 16));
            dt_cpu_vector_store(to + (i + 1) * COLUMNS + j, (dt_cpu_vector)(both & 0xffff0000));
        }
}

/* Rows row .. + rows of B, COLUMNS or fewer, from its panels; missing ones become 0. */
static void pack_from_panel(const struct dt_tensor *b, int64_t row, int64_t rows, int64_t k,
                            int64_t length, float *to)
{
    struct dt_cpu_panel panel = dt_cpu_panel_of(b, row);
    int64_t whole = rows / SIDE * SIDE, i = 0, own = row % DT_PANEL;
    if (!panel.pairs) {
        i = length;
        copy_vectors(&panel, own, whole, k, length, to);
    } else if (k % 2 == 0) {
        i = length / 2 * 2;
        copy_vectors(&panel, own, whole, k, i, to);
    }
    for (int64_t l = 0; l < length; l++)
        for (int64_t j = l < i ? whole : 0; j < COLUMNS; j++)
            to[l * COLUMNS + j] = j < rows ? dt_cpu_panel_element(&panel, k + l, own + j) : 0;
}

bool dt_cpu_reads_in_place(const struct dt_cpu_product *p, int64_t column)
{
    const struct dt_tensor *b = p->first.b;
    return b->panels && b->dtype == DT_DTYPE_F32 && !p->how->transpose_a &&
           column % DT_PANEL + COLUMNS <= dt_cpu_panel_of(b, column).height;
}

void dt_cpu_pack_b(const struct dt_cpu_product *p, const struct dt_cpu_group *g, int64_t column,
                   int64_t columns, float *to, int64_t b_panel, float *scratch)
{
    for (const struct dt_cpu_chunk *chunk = g->chunks; chunk < g->chunks + g->count; chunk++) {
        const struct dt_tensor *b = dt_cpu_pair(p, chunk->pair).b;
        if (b->panels)
            for (int64_t j = 0; j < columns; j += COLUMNS) {
                int64_t rows = columns - j < COLUMNS ? columns - j : COLUMNS;
                if (!dt_cpu_reads_in_place(p, column + j))
                    pack_from_panel(b, column + j, rows, chunk->k, chunk->length,
                                    to + j / COLUMNS * b_panel);
            }
        else if (!p->how->transpose_b)
            pack_panels(b, chunk->k, chunk->length, column, columns, to, b_panel, COLUMNS);
        else
            for (int64_t j = 0; j < (columns + COLUMNS - 1) / COLUMNS * COLUMNS; j += SIDE) {
                int64_t left = columns - j, rows = left < SIDE ? left : SIDE;
                pack_transposed(b, column + j, rows, chunk->k, chunk->length,
                                to + j / COLUMNS * b_panel + j % COLUMNS, scratch);
            }
        to += chunk->length * COLUMNS;
    }
}
