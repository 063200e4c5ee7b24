/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"
#include "device/cpu/sums-over-rows.h"

#define COLUMN_UNIT 16
#define BLOCK       32 /* positions */

static bool has_row(const struct dt_tensor *tokens, int32_t id)
{
    return id >= 0 && id < tokens->rows;
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
        } else if (tokens->panels) {
            dt_cpu_load_from_panel(tokens, ids[r], to);
        } else {
            const float *token = dt_cpu_load(tokens, ids[r], 0, n, to);
            if (token != to)
                memcpy(to, token, (size_t)n * sizeof *to);
        }
        if (positions)
            dt_cpu_add_row(to, dt_cpu_load(positions, past + r % length, 0, n, scratch + n), n);
        dt_cpu_store(y, r, 0, n, to);
    }
}

/* Rows of dy with the same token are linked in ascending order. */
struct link {
    int32_t next; /* row, or -1 */
    bool first;
};

/* links[r] of all rows whose token is in tokens. last: slots integers, a hash table of the last row
 * of each token; slots is 2^bits, more than the rows. */
static void link_rows(struct link *links, int32_t *last, int bits, const int32_t *ids, int64_t rows,
                      const struct dt_tensor *tokens)
{
    uint32_t slots = (uint32_t)1 << bits;
    memset(last, -1, slots * sizeof *last);
    for (int64_t r = 0; r < rows; r++) {
        links[r] = (struct link){-1, has_row(tokens, ids[r])};
        if (!links[r].first)
            continue;
        uint32_t slot = (uint32_t)ids[r] * 0x9e3779b1u >> (32 - bits);
        while (last[slot] >= 0 && ids[last[slot]] != ids[r])
            slot = (slot + 1) % slots;
        links[r].first = last[slot] < 0;
        if (last[slot] >= 0)
            links[last[slot]].next = (int32_t)r;
        last[slot] = (int32_t)r;
    }
}

/* Sums of rows of dy in a range of columns; parts: of the rows. */
struct range_sums {
    const struct dt_tensor *dy;
    int64_t parts, from, n;
    float *scratch; /* 4 n floats for rows of a 16-bit type, then n per level of the tree */
    int32_t *list;  /* a number for each row */
};

/* Part number of a row: those of dt_cpu_part_start. */
static int64_t part_of(int64_t row, int64_t rows, int64_t parts)
{
    return ((row + 1) * parts - 1) / rows;
}

struct chained {
    const struct range_sums *sums;
    const int32_t *rows;
};

static const float *row_of_chain(const void *context, int64_t i, float *scratch)
{
    const struct chained *c = context;
    return dt_cpu_load(c->sums->dy, c->rows[i], c->sums->from, c->sums->n, scratch);
}

/* sum = count of the rows, at least one, which are in parts first .. first + width - 1: a chain in
 * each part, and a binary tree over the parts that have rows. */
static void sum_rows(const struct range_sums *s, const int32_t *rows, int64_t count, int64_t first,
                     int64_t width, float *sum)
{
    int64_t left = 0, half = width / 2;
    if (width == 1) {
        dt_cpu_chain_rows(sum, row_of_chain, &(struct chained){s, rows}, count, s->n, s->scratch);
        return;
    }
    while (left < count && part_of(rows[left], s->dy->rows, s->parts) < first + half)
        left++;
    if (left == 0 || left == count) {
        sum_rows(s, rows, count, left ? first : first + half, half, sum);
        return;
    }
    sum_rows(s, rows, left, first, half, sum);
    sum_rows(s, rows + left, count - left, first + half, half, sum + s->n);
    dt_cpu_add_row(sum, sum + s->n, s->n);
}

/* to += the sum of one or two rows of a part. */
static void add_few(const struct range_sums *s, const int32_t *rows, int64_t count,
                    float *restrict to)
{
    const struct chained c = {s, rows};
    const float *a = row_of_chain(&c, 0, s->scratch);
    const float *b = count > 1 ? row_of_chain(&c, 1, s->scratch + s->n) : NULL;
    for (int64_t j = 0; b && j < s->n; j++)
        to[j] += 0.0f + a[j] + b[j];
    for (int64_t j = 0; b == NULL && j < s->n; j++)
        to[j] += 0.0f + a[j];
}

/* to += the sum of count rows. */
static void add_rows(const struct range_sums *s, const int32_t *rows, int64_t count, float *to)
{
    float *sum = s->scratch + 4 * s->n;
    int64_t width = 1;
    if (count == 1 || (count == 2 && s->parts == 1)) {
        add_few(s, rows, count, to);
        return;
    }
    while (width < s->parts)
        width *= 2;
    sum_rows(s, rows, count, 0, width, sum);
    dt_cpu_add_row(to, sum, s->n);
}

/* to += the rows of dy from row first on that links connects. */
static void add_token(const struct range_sums *s, const struct link *links, int64_t first,
                      float *to)
{
    int64_t count = 0;
    for (int32_t r = (int32_t)first; r >= 0; r = links[r].next)
        s->list[count++] = r;
    add_rows(s, s->list, count, to + s->from);
}

/* to += the rows of a position. */
static void add_position(const struct range_sums *s, int64_t position, int64_t length, float *to)
{
    int64_t count = 0;
    for (int64_t r = position; r < s->dy->rows; r += length)
        s->list[count++] = (int32_t)r;
    add_rows(s, s->list, count, to + s->from);
}

static void add_block(const struct range_sums *s, const struct link *links, const int32_t *ids,
                      struct dt_tensor *dtokens, struct dt_tensor *dpositions, int64_t first,
                      int64_t length)
{
    for (int64_t t = first; t < first + BLOCK && t < length; t++) {
        for (int64_t r = t; r < s->dy->rows; r += length)
            if (links[r].first)
                add_token(s, links, r, dt_cpu_row(dtokens, ids[r]));
        if (dpositions)
            add_position(s, t, length, dt_cpu_row(dpositions, t));
    }
}

/* Threads divide blocks of positions, where a token belongs to its first row, and, if they are
 * many, the columns: all rows of a token are added by one thread. Most rows of dy are read from
 * memory once for their token and position. */
void dt_cpu_embedding_backward(struct dt_device *dev, struct dt_tensor *dtokens,
                               struct dt_tensor *dpositions, const struct dt_tensor *dy,
                               const int32_t *ids, int64_t length, int parts)
{
    int64_t rows = dy->rows, step = dpositions && length < rows ? length : rows;
    int64_t strips = (dev->threads + 3) / 4, blocks = (step + BLOCK - 1) / BLOCK;
    int bits = 1, levels = 1;
    while ((int64_t)1 << bits < 2 * rows)
        bits++;
    while (1 << (levels - 1) < parts)
        levels++;
    struct link *links = (struct link *)(void *)dt_cpu_shared_scratch(
        dev, (size_t)(2 * rows + ((int64_t)1 << bits)));
    link_rows(links, (int32_t *)(void *)(links + rows), bits, ids, rows, dtokens);
#pragma omp parallel for num_threads(dev->threads) schedule(dynamic)
    for (int64_t i = 0; i < blocks * strips; i++) {
        int64_t from, to;
        dt_cpu_share(dy->columns, COLUMN_UNIT, i % strips, strips, &from, &to);
        int64_t floats = (4 + levels) * (to - from);
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)(floats + rows));
        const struct range_sums s = {dy,      parts > 1 ? parts : 1,
                                     from,    to - from,
                                     scratch, (int32_t *)(void *)(scratch + floats)};
        add_block(&s, links, ids, dtokens, dpositions, i / strips * BLOCK, step);
    }
}
