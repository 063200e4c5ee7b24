/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"
#include "device/cpu/sums-over-rows.h"

#define COLUMN_UNIT 16

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

/* A row of dy, and the row of the gradient it belongs to. */
struct entry {
    int32_t key, row;
};

/* Sorts n entries by their keys, which are below most, and otherwise keeps their order: radix sort.
 * The result is in entries or in spare. */
static struct entry *sort(struct entry *entries, struct entry *spare, int64_t n, int64_t most)
{
    for (int shift = 0; (most - 1) >> shift > 0; shift += 8) {
        int64_t starts[257] = {0};
        for (int64_t i = 0; i < n; i++)
            starts[(entries[i].key >> shift & 255) + 1]++;
        for (int digit = 0; digit < 256; digit++)
            starts[digit + 1] += starts[digit];
        for (int64_t i = 0; i < n; i++)
            spare[starts[entries[i].key >> shift & 255]++] = entries[i];
        struct entry *sorted = spare;
        spare = entries;
        entries = sorted;
    }
    return entries;
}

/* Sums of rows of dy in a range of columns; parts: of the rows. */
struct range_sums {
    const struct dt_tensor *dy;
    int64_t parts, from, n;
    float *scratch; /* 4 n floats for rows of a 16-bit type, then n per level of the tree */
};

/* Part number of a row: those of dt_cpu_part_start. */
static int64_t part_of(int64_t row, int64_t rows, int64_t parts)
{
    return ((row + 1) * parts - 1) / rows;
}

struct chained {
    const struct range_sums *sums;
    const struct entry *entries;
};

static const float *row_of_entry(const void *context, int64_t i, float *scratch)
{
    const struct chained *c = context;
    return dt_cpu_load(c->sums->dy, c->entries[i].row, c->sums->from, c->sums->n, scratch);
}

/* sum = the rows of entries, at least one, which are in parts first .. first + width - 1: a chain
 * in each part, and a binary tree over the parts that have rows. */
static void sum_entries(const struct range_sums *s, const struct entry *entries, int64_t count,
                        int64_t first, int64_t width, float *sum)
{
    int64_t left = 0, half = width / 2;
    if (width == 1) {
        dt_cpu_chain_rows(sum, row_of_entry, &(struct chained){s, entries}, count, s->n,
                          s->scratch);
        return;
    }
    while (left < count && part_of(entries[left].row, s->dy->rows, s->parts) < first + half)
        left++;
    if (left == 0 || left == count) {
        sum_entries(s, entries, count, left ? first : first + half, half, sum);
        return;
    }
    sum_entries(s, entries, left, first, half, sum);
    sum_entries(s, entries + left, count - left, first + half, half, sum + s->n);
    dt_cpu_add_row(sum, sum + s->n, s->n);
}

/* to += the sum of one or two rows of a part. */
static void add_few(const struct range_sums *s, const struct entry *entries, int64_t count,
                    float *restrict to)
{
    const struct chained c = {s, entries};
    const float *a = row_of_entry(&c, 0, s->scratch);
    const float *b = count > 1 ? row_of_entry(&c, 1, s->scratch + s->n) : NULL;
    for (int64_t j = 0; b && j < s->n; j++)
        to[j] += 0.0f + a[j] + b[j];
    for (int64_t j = 0; b == NULL && j < s->n; j++)
        to[j] += 0.0f + a[j];
}

/* starts[r] = the index of the entry of row r if it is the first of its key, otherwise -1. Keys are
 * taken in the order of these rows, so that dy is read in about the order of its memory. */
static void find_starts(int32_t *starts, int64_t rows, const struct entry *entries, int64_t count)
{
    memset(starts, -1, (size_t)rows * sizeof *starts);
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || entries[i - 1].key != entries[i].key)
            starts[entries[i].row] = (int32_t)i;
}

/* to += the sum of count rows of a key. */
static void add_key(const struct range_sums *s, const struct entry *entries, int64_t count,
                    float *to)
{
    float *sum = s->scratch + 4 * s->n;
    int64_t width = 1;
    if (count == 1 || (count == 2 && s->parts == 1)) {
        add_few(s, entries, count, to);
        return;
    }
    while (width < s->parts)
        width *= 2;
    sum_entries(s, entries, count, 0, width, sum);
    dt_cpu_add_row(to, sum, s->n);
}

/* Threads divide the columns, not the rows: tokens repeat, so rows of the gradient would conflict.
 */
static void backward(struct dt_device *dev, struct dt_tensor *gradient, const struct dt_tensor *dy,
                     const struct entry *entries, int64_t count, int32_t *starts, int parts)
{
    int levels = 1;
    while (1 << (levels - 1) < parts)
        levels++;
    find_starts(starts, dy->rows, entries, count);
#pragma omp parallel num_threads(dev->threads)
    {
        int64_t from, to;
        dt_cpu_share(dy->columns, COLUMN_UNIT, omp_get_thread_num(), omp_get_num_threads(), &from,
                     &to);
        const struct range_sums s = {
            dy, parts > 1 ? parts : 1, from, to - from,
            dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)((4 + levels) * (to - from)))};
        for (int64_t r = 0; r < dy->rows; r++) {
            int64_t start = starts[r], end = start;
            if (start < 0)
                continue;
            while (end < count && entries[end].key == entries[start].key)
                end++;
            add_key(&s, entries + start, end - start,
                    dt_cpu_row(gradient, entries[start].key) + from);
        }
    }
}

void dt_cpu_embedding_backward(struct dt_device *dev, struct dt_tensor *dtokens,
                               struct dt_tensor *dpositions, const struct dt_tensor *dy,
                               const int32_t *ids, int64_t length, int parts)
{
    int64_t rows = dy->rows, count = 0;
    struct entry *entries = (struct entry *)(void *)dt_cpu_shared_scratch(dev, (size_t)(5 * rows));
    int32_t *starts = (int32_t *)(void *)(entries + 2 * rows);
    for (int64_t r = 0; r < rows; r++)
        if (has_row(dtokens, ids[r]))
            entries[count++] = (struct entry){ids[r], (int32_t)r};
    const struct entry *sorted = sort(entries, entries + rows, count, dtokens->rows);
    backward(dev, dtokens, dy, sorted, count, starts, parts);
    if (dpositions == NULL)
        return;
    count = 0;
    for (int64_t t = 0; t < length; t++)
        for (int64_t r = t; r < rows; r += length)
            entries[count++] = (struct entry){(int32_t)t, (int32_t)r};
    backward(dev, dpositions, dy, entries, count, starts, parts);
}
