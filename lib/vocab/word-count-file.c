/* SPDX-License-Identifier: MIT */
#include "vocab/word-count-file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define MAGIC "dt-counts 1 "
#define LIMIT ((size_t)1 << 40) /* of a file, bytes */

/* --- writing ---------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b, void *context)
{
    const struct dt_counted_word *x = a, *y = b;
    const char *bytes = context;
    size_t least = x->length < y->length ? x->length : y->length;
    int order = memcmp(bytes + x->start, bytes + y->start, least);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

static int write_words(const struct dt_word_table *c, const char *kind, struct dt_output *out,
                       struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    uint64_t sum = 0;
    int rc = 0;
    dt_buffer_printf(&text, MAGIC "%s\n", kind);
    for (uint32_t i = 0; rc == 0 && i < c->count; i++) {
        const struct dt_counted_word *w = &c->words[i];
        dt_buffer_printf(&text, "%" PRIu64 " %" PRIu32 " ", w->count, w->length);
        dt_buffer_append(&text, c->bytes.data + w->start, w->length);
        dt_buffer_add_char(&text, '\n');
        sum += w->count;
        rc = dt_output_write(out, text.data, text.size, err);
        dt_buffer_clear(&text);
    }
    dt_buffer_printf(&text, "end %" PRIu32 " %" PRIu64 "\n", c->count, sum);
    rc = rc < 0 ? rc : dt_output_write(out, text.data, text.size, err);
    dt_buffer_release(&text);
    return rc;
}

int dt_word_counts_write(struct dt_word_table *c, const char *kind, const char *path,
                         struct dt_error *err)
{
    struct dt_output out;
    if (c->count > 0)
        qsort_r(c->words, c->count, sizeof *c->words, by_bytes, c->bytes.data);
    DT_TRY(dt_output_open(&out, path, err));
    int rc = write_words(c, kind, &out, err);
    rc = rc < 0 ? rc : dt_output_commit(&out, err);
    dt_output_abandon(&out);
    return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Reads a number of decimal digits that ends with the given byte. */
static bool take_number(const char **p, char end, uint64_t *value)
{
    const char *from = *p;
    *value = 0;
    for (; **p >= '0' && **p <= '9'; ++*p) {
        if (*value > (UINT64_MAX - 9) / 10)
            return false;
        *value = 10 * *value + (uint64_t)(**p - '0');
    }
    return *p > from && *(*p)++ == end;
}

/* The words from p on; whether they end as they must. */
static bool take_words(struct dt_word_table *c, const char *p, const char *end)
{
    uint64_t words = 0, sum = 0, count, length;
    while (p < end && *p != 'e') {
        if (!take_number(&p, ' ', &count) || !take_number(&p, ' ', &length) || count == 0 ||
            count > DT_WORD_MAX_SUM - sum || length > DT_WORD_MAX_BYTES ||
            length >= (uint64_t)(end - p) || p[length] != '\n')
            return false;
        dt_word_counts_add(c, p, (uint32_t)length, count);
        words++;
        sum += count;
        p += length + 1;
    }
    if (end - p < 4 || memcmp(p, "end ", 4) != 0)
        return false;
    p += 4;
    return take_number(&p, ' ', &count) && take_number(&p, '\n', &length) && p == end &&
           count == words && length == sum;
}

int dt_word_counts_read(struct dt_word_table *c, const char *kind, const char *path,
                        struct dt_error *err)
{
    char *data;
    size_t size, magic = strlen(MAGIC), n = strlen(kind);
    DT_TRY(dt_file_read(path, LIMIT, &data, &size, err));
    int rc = 0;
    if (size < magic || memcmp(data, MAGIC, magic) != 0)
        rc = dt_fail(err, DT_EFORMAT, "%s: is not a file of counts of dt-vocab --count", path);
    else if (strncmp(data + magic, kind, n) != 0 || data[magic + n] != '\n')
        rc = dt_fail(err, DT_EFORMAT, "%s: has counts for '%.*s', not for '%s'", path,
                     (int)strcspn(data + magic, "\n"), data + magic, kind);
    else if (!take_words(c, data + magic + n + 1, data + size))
        rc = dt_fail(err, DT_EFORMAT, "%s: is damaged or incomplete", path);
    else if (c->sum > DT_WORD_MAX_SUM)
        rc = dt_fail(err, DT_EINVALID, "%s: with it, more than %" PRIu64 " pieces are counted",
                     path, DT_WORD_MAX_SUM);
    free(data);
    return rc;
}
