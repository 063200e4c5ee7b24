/* SPDX-License-Identifier: MIT */
#include "shard/rows.h"

#include <stdlib.h>
#include <string.h>

/* A row being filled. */
struct open_row {
    uint32_t *ids;
    uint32_t used;
    struct dt_shard_document *pieces;
    uint32_t count, capacity;
};

struct dt_rows {
    uint32_t row, padding_id;
    bool pack;
    uint32_t *padding; /* [row] padding ids, marked DT_NO_LOSS */
    struct open_row open[DT_OPEN_ROWS];
    int count, max_open;
};

struct dt_rows *dt_rows_new(uint32_t row, uint32_t padding_id, bool pack)
{
    struct dt_rows *r = dt_alloc(1, sizeof *r);
    r->row = row;
    r->padding_id = padding_id;
    r->pack = pack;
    r->max_open = row <= DT_OPEN_IDS / DT_OPEN_ROWS ? DT_OPEN_ROWS : (int)(DT_OPEN_IDS / row);
    r->padding = dt_alloc(row, sizeof *r->padding);
    for (uint32_t i = 0; i < row; i++)
        r->padding[i] = padding_id | DT_NO_LOSS;
    return r;
}

void dt_rows_free(struct dt_rows *r)
{
    if (r == NULL)
        return;
    for (int i = 0; i < DT_OPEN_ROWS; i++) {
        free(r->open[i].ids);
        free(r->open[i].pieces);
    }
    free(r->padding);
    free(r);
}

uint64_t dt_rows_open(const struct dt_rows *r)
{
    return (uint64_t)r->count * r->row;
}

uint64_t dt_rows_needed(uint32_t row, uint64_t tokens)
{
    return tokens <= row ? row : row * (1 + (tokens - 2) / (row - 1));
}

uint64_t dt_rows_prorate_bytes(const struct dt_shard_document *d, uint64_t count)
{
    if (d->tokens == 0)
        return d->bytes;
    return d->bytes / d->tokens * count + d->bytes % d->tokens * count / d->tokens;
}

/* Appends a piece to a row. */
static void append_piece(struct dt_rows *r, struct open_row *to, const uint32_t *ids, uint32_t n,
                         const struct dt_shard_document *piece)
{
    if (to->ids == NULL)
        to->ids = dt_alloc(r->row, sizeof *to->ids);
    if (n > 0)
        memcpy(to->ids + to->used, ids, n * sizeof *ids);
    if (n > 0 && to->used == 0)
        to->ids[0] |= DT_NO_LOSS;
    to->used += n;
    DT_GROW(to->pieces, to->count, to->capacity);
    to->pieces[to->count++] = *piece;
}

/* Writes a row and empties it. */
static int write_row(struct dt_rows *r, struct open_row *from, struct dt_shard_writer *w,
                     struct dt_error *err)
{
    const uint32_t *ids = from->ids;
    uint32_t left = r->row - from->used;
    for (uint32_t i = 0; i < from->count; i++) {
        DT_TRY(dt_shard_write(w, ids, &from->pieces[i], err));
        ids += from->pieces[i].tokens & ~DT_KINDS;
    }
    from->used = from->count = 0;
    if (left == 0)
        return 0;
    return dt_shard_write(w, r->padding, &(struct dt_shard_document){.tokens = left | DT_PADDING},
                          err);
}

/* The open row with the least space left for n ids; NULL if none fits. */
static struct open_row *find_best(struct dt_rows *r, uint32_t n)
{
    struct open_row *best = NULL;
    for (int i = 0; i < r->count; i++)
        if (r->row - r->open[i].used >= n && (best == NULL || r->open[i].used > best->used))
            best = &r->open[i];
    return best;
}

/* Writes open row i and removes it from the list. */
static int close_row(struct dt_rows *r, int i, struct dt_shard_writer *w, struct dt_error *err)
{
    struct open_row done = r->open[i];
    int rc = write_row(r, &done, w, err);
    r->count--;
    memmove(&r->open[i], &r->open[i + 1], (size_t)(r->count - i) * sizeof *r->open);
    r->open[r->count] = done;
    return rc;
}

static int fullest(const struct dt_rows *r)
{
    int max_open = 0;
    for (int i = 1; i < r->count; i++)
        if (r->open[i].used > r->open[max_open].used)
            max_open = i;
    return max_open;
}

static int add_piece(struct dt_rows *r, struct dt_shard_writer *w, const uint32_t *ids, uint32_t n,
                     const struct dt_shard_document *piece, struct dt_error *err)
{
    struct open_row *to = r->pack ? find_best(r, n) : NULL;
    if (to == NULL && r->count == r->max_open)
        DT_TRY(close_row(r, fullest(r), w, err));
    if (to == NULL)
        to = &r->open[r->count++];
    append_piece(r, to, ids, n, piece);
    if (!r->pack || to->used == r->row)
        return close_row(r, (int)(to - r->open), w, err);
    return 0;
}

int dt_rows_add(struct dt_rows *r, struct dt_shard_writer *w, const uint32_t *ids,
                const struct dt_shard_document *document, struct dt_error *err)
{
    uint64_t done = 0;
    while (done < document->tokens) {
        uint64_t from = done > 0 ? done - 1 : 0, n = document->tokens - from;
        n = n < r->row ? n : r->row;
        struct dt_shard_document piece = {
            .hash = document->hash,
            .tokens = n | (done > 0 ? DT_CONTINUES : 0),
            .bytes = dt_rows_prorate_bytes(document, from + n) -
                     (done > 0 ? dt_rows_prorate_bytes(document, done) : 0)};
        DT_TRY(add_piece(r, w, ids + from, (uint32_t)n, &piece, err));
        done = from + n;
    }
    return 0;
}

int dt_rows_flush(struct dt_rows *r, struct dt_shard_writer *w, struct dt_error *err)
{
    while (r->count > 0)
        DT_TRY(close_row(r, 0, w, err));
    return 0;
}
