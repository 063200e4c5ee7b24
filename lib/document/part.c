/* SPDX-License-Identifier: MIT */
#include "document/part.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define BLOCK ((size_t)1 << 18)

int dt_document_part_parse(const char *text, struct dt_document_part *part, struct dt_error *err)
{
    char *slash, *end = NULL;
    part->index = strtol(text, &slash, 10);
    part->count = *slash == '/' ? strtol(slash + 1, &end, 10) : 0;
    if (*text < '0' || *text > '9' || *slash != '/' || slash[1] < '0' || slash[1] > '9' || *end ||
        part->count > DT_DOCUMENT_PARTS || part->index >= part->count)
        return dt_fail(err, DT_EINVALID,
                       "'%s' is not I/N, part I of N, counted from 0, as 3/64 of parts 0 to 63",
                       text);
    return 0;
}

/* floor(total * i / n) without overflow. */
static uint64_t bound(uint64_t total, uint64_t i, uint64_t n)
{
    return total / n * i + total % n * i / n;
}

struct dt_document_range dt_document_part_range(struct dt_document_part part, uint64_t total)
{
    if (part.count == 0)
        return (struct dt_document_range){0, total};
    uint64_t i = (uint64_t)part.index, n = (uint64_t)part.count;
    return (struct dt_document_range){bound(total, i, n), bound(total, i + 1, n)};
}

/* The beginning of the first record at or after *at: after a delimiter at or after *at - 1. */
static int next_record(struct dt_input *in, char delimiter, uint64_t size, uint64_t *at,
                       struct dt_error *err)
{
    bool found;
    if (*at == 0 || *at >= size)
        return 0;
    DT_TRY(dt_input_limit(in, *at - 1, size, err));
    DT_TRY(dt_input_skip_until(in, delimiter, &found, err));
    *at += dt_input_consumed(in) - 1;
    return 0;
}

int dt_document_part_cut(const char *path, char delimiter, uint64_t size,
                         struct dt_document_range *range, struct dt_error *err)
{
    struct dt_input *in;
    DT_TRY(dt_input_open_raw(&in, path, err));
    dt_input_set_size(in, size);
    int rc = next_record(in, delimiter, size, &range->first, err);
    rc = rc < 0 ? rc : next_record(in, delimiter, size, &range->end, err);
    dt_input_close(in);
    return rc;
}

/* --- counting --------------------------------------------------------------------------------- */

/* The last line so far is blank: white space only. */
struct counter {
    struct dt_document_before *before;
    char delimiter;
    bool passes_blank, is_blank;
};

static bool is_white(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r'))
        i++;
    return i == size;
}

static void count_block(struct counter *c, const char *block, size_t size)
{
    const char *end = block + size;
    for (const char *line = block, *stop; line < end; line = stop + 1) {
        stop = memchr(line, c->delimiter, (size_t)(end - line));
        c->is_blank = c->is_blank && is_white(line, (size_t)((stop ? stop : end) - line));
        if (stop == NULL)
            return;
        c->before->lines++;
        c->before->records += !(c->passes_blank && c->is_blank);
        c->is_blank = true;
    }
}

int dt_document_part_count(struct dt_input *in, char delimiter, bool passes_blank,
                           struct dt_document_before *before, struct dt_error *err)
{
    struct counter c = {
        .before = before, .delimiter = delimiter, .passes_blank = passes_blank, .is_blank = true};
    char *block = dt_alloc(BLOCK, 1);
    *before = (struct dt_document_before){0};
    int rc = passes_blank ? dt_input_skip_mark(in, err) : 0;
    for (size_t n = 1; rc == 0 && n > 0;) {
        rc = dt_input_read(in, block, BLOCK, &n, err);
        count_block(&c, block, rc == 0 ? n : 0);
    }
    free(block);
    return rc;
}
