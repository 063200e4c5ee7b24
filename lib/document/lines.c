/* SPDX-License-Identifier: MIT */
#include "document/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"

#define BLOCK ((size_t)1 << 18) /* bytes read at once */
#define KEPT  ((size_t)1 << 20) /* of a buffer that is used again */

struct record {
    const char *bytes;
    size_t size;
    uint64_t line;
    bool whole;                   /* its delimiter was read */
    enum dt_code failed;          /* not 0: it is not a document, and parsed has the reason */
    size_t id_end, text_end, end; /* of what is in parsed */
    struct dt_stream_mark mark;
};

struct block {
    struct block *next_idle;
    struct dt_buffer bytes;
    uint64_t first_line;
    bool cut; /* one record, of which this is the beginning */
    struct record *records;
    size_t count, capacity;
    struct dt_buffer parsed; /* of each record id, text and meta, or the reason */
    struct dt_document scratch;
    size_t next, given; /* the next record to return; bytes of parsed before it */
};

struct reader {
    struct dt_document_source source;
    const struct dt_line_format *format;
    struct dt_pool *pool;
    struct block *current, *idle;
    struct dt_buffer rest; /* bytes of the next block: a record that has begun */
    uint64_t lines;        /* before the next block */
    size_t reading, ahead; /* bytes of the blocks in the pool, and their limit */
    size_t most;           /* bytes of a record without a mark */
    bool ended, cut;       /* no more blocks; after this one, until the rest is skipped */
    int failed;            /* result of the input after the last block, or 0 */
    struct dt_error failure;
    struct dt_buffer as; /* the record last returned; borrows its bytes */
};

/* --- parsing, on a thread --------------------------------------------------------------------- */

static bool is_blank(const char *bytes, size_t size)
{
    size_t i = 0;
    while (i < size && (bytes[i] == ' ' || bytes[i] == '\t' || bytes[i] == '\r'))
        i++;
    return i == size;
}

/* Adds what parse() found, or why it failed. */
static void store(struct block *b, struct record *record, const struct dt_error *failure)
{
    const struct dt_document *d = &b->scratch;
    if (failure) {
        dt_buffer_add_string(&b->parsed, failure->text);
    } else {
        dt_buffer_append(&b->parsed, d->id.data, d->id.size);
        record->id_end = b->parsed.size;
        dt_buffer_append(&b->parsed, d->text.data, d->text.size);
        record->text_end = b->parsed.size;
        dt_buffer_append(&b->parsed, d->meta.data, d->meta.size);
    }
    record->failed = failure ? failure->code : DT_OK;
    record->end = b->parsed.size;
}

static void parse_record(const struct reader *r, struct block *b, struct record *record)
{
    struct dt_error err;
    int rc = 0;
    dt_buffer_clear(&b->scratch.id);
    dt_buffer_clear(&b->scratch.text);
    dt_buffer_clear(&b->scratch.meta);
    if (!b->cut)
        rc = r->format->parse(&r->source, record->bytes, record->size, record->whole, &b->scratch,
                              &record->mark, &err);
    store(b, record, rc < 0 ? &err : NULL);
}

static void parse_block(void *job, void *context)
{
    const struct reader *r = context;
    struct block *b = job;
    char *p = b->bytes.data, *end = p + b->bytes.size, *next;
    for (uint64_t line = b->first_line; p < end; line++, p = next) {
        char *stop = b->cut ? NULL : memchr(p, r->format->delimiter, (size_t)(end - p));
        size_t size = (size_t)((stop ? stop : end) - p);
        next = stop ? stop + 1 : end;
        if (!b->cut && r->format->passes_blank && is_blank(p, size))
            continue;
        p[size] = '\0';
        DT_GROW(b->records, b->count, b->capacity);
        struct record *record = &b->records[b->count++];
        *record = (struct record){.bytes = p, .size = size, .line = line, .whole = stop != NULL};
        parse_record(r, b, record);
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Bytes of a record; possible: it may have a mark. */
static size_t most_of(const struct reader *r, bool possible)
{
    return r->most + (possible ? r->format->more_of_stream : 0);
}

static struct block *take_idle(struct reader *r)
{
    struct block *b = r->idle;
    if (b)
        r->idle = b->next_idle;
    else
        b = dt_alloc(1, sizeof *b);
    b->count = b->next = b->given = 0;
    b->cut = false;
    dt_buffer_clear(&b->bytes);
    dt_buffer_clear(&b->parsed);
    return b;
}

static void release_if_large(struct dt_buffer *b)
{
    if (b->capacity > KEPT)
        dt_buffer_release(b);
}

static void recycle(struct reader *r, struct block *b)
{
    release_if_large(&b->bytes);
    release_if_large(&b->parsed);
    release_if_large(&b->scratch.text);
    release_if_large(&b->scratch.meta);
    b->next_idle = r->idle;
    r->idle = b;
}

static uint64_t count_lines(const struct block *b, char delimiter)
{
    uint64_t lines = 0;
    const char *p = b->bytes.data, *end = p + b->bytes.size;
    while (p < end && (p = memchr(p, delimiter, (size_t)(end - p))) != NULL) {
        lines++;
        p++;
    }
    return lines;
}

/* Appends bytes of the input up to the last delimiter among them; those after it become the rest.
 * At the end of the input all bytes are taken. */
static int read_block(struct reader *r, struct block *b, struct dt_error *err)
{
    const char *last = NULL;
    dt_buffer_append(&b->bytes, r->rest.data, r->rest.size);
    dt_buffer_clear(&r->rest);
    while (last == NULL && !r->ended && !b->cut) {
        size_t before = b->bytes.size, n;
        dt_buffer_reserve(&b->bytes, before + BLOCK);
        DT_TRY(dt_input_read(r->source.in, b->bytes.data + before, BLOCK, &n, err));
        b->bytes.size += n;
        r->ended = n == 0;
        last = memrchr(b->bytes.data + before, r->format->delimiter, n);
        b->cut = last == NULL && b->bytes.size > most_of(r, true);
    }
    if (last) {
        size_t size = (size_t)(last + 1 - b->bytes.data);
        dt_buffer_append(&r->rest, last + 1, b->bytes.size - size);
        b->bytes.size = size;
    }
    return 0;
}

/* Reads a block and submits it. */
static void read_ahead(struct reader *r)
{
    struct block *b = take_idle(r);
    r->failed = read_block(r, b, &r->failure);
    r->ended |= r->failed < 0;
    r->cut = b->cut;
    if (r->failed < 0 || b->bytes.size == 0) {
        recycle(r, b);
        return;
    }
    b->first_line = r->lines + 1;
    r->lines += b->cut ? 1 : count_lines(b, r->format->delimiter);
    r->reading += b->bytes.size;
    dt_pool_submit(r->pool, b);
}

/* Large blocks are not read ahead, and nothing is while the input waits for another process: the
 * documents that are there come first. */
static bool may_read_ahead(const struct reader *r)
{
    return r->reading == 0 || (r->reading < r->ahead && dt_input_is_ready(r->source.in));
}

/* The next block with records; NULL after the last. */
static struct block *next_block(struct reader *r)
{
    struct block *b;
    do {
        while (!r->ended && !r->cut && !dt_pool_full(r->pool) && may_read_ahead(r))
            read_ahead(r);
        b = dt_pool_next(r->pool);
        if (b)
            r->reading -= b->bytes.size;
        if (b && b->count == 0)
            recycle(r, b);
    } while (b && b->count == 0);
    return b;
}

/* --- the reader ------------------------------------------------------------------------------- */

int dt_document_lines_open(void **state, const struct dt_document_source *source,
                           const struct dt_line_format *format, struct dt_error *err)
{
    struct reader *r = *state = dt_alloc(1, sizeof *r);
    (void)err;
    r->source = *source;
    r->format = format;
    r->most = format->times * source->most + format->more;
    r->ahead = 4 * (size_t)dt_threads_count(source->threads) * BLOCK;
    r->pool = dt_pool_on(source->threads, parse_block, r);
    return 0;
}

static int give(struct reader *r, struct block *b, struct dt_document *doc,
                struct dt_document_record *record, struct dt_error *err)
{
    struct record *given = &b->records[b->next++];
    size_t most = most_of(r, record->inside || given->line == 1);
    record->cut = given->size > most;
    record->line = given->line;
    record->unfinished = !given->whole && !record->cut;
    record->mark = given->mark;
    r->as = (struct dt_buffer){.data = (char *)given->bytes,
                               .size = record->cut ? most + 1 : given->size};
    record->as = &r->as;
    const char *parsed = b->parsed.data;
    size_t from = b->given;
    b->given = given->end;
    if (given->failed && !record->cut) {
        dt_fail(err, given->failed, "%.*s", (int)(given->end - from), parsed + from);
        return DT_DOCUMENT_BAD;
    }
    if (!record->cut) {
        dt_buffer_append(&doc->id, parsed + from, given->id_end - from);
        dt_buffer_append(&doc->text, parsed + given->id_end, given->text_end - given->id_end);
        dt_buffer_append(&doc->meta, parsed + given->text_end, given->end - given->text_end);
    }
    return 1;
}

int dt_document_lines_next(void *state, struct dt_document *doc, struct dt_document_record *record,
                           struct dt_error *err)
{
    struct reader *r = state;
    if (r->current && r->current->next == r->current->count) {
        recycle(r, r->current);
        r->current = NULL;
    }
    if (r->current == NULL)
        r->current = next_block(r);
    if (r->current)
        return give(r, r->current, doc, record, err);
    if (r->failed < 0)
        *err = r->failure;
    return r->failed;
}

/* Nothing is left of a record that was read up to its delimiter. */
int dt_document_lines_skip(void *state, struct dt_error *err)
{
    struct reader *r = state;
    bool found;
    if (!r->cut || r->reading > 0)
        return 0;
    r->cut = false;
    return dt_input_skip_until(r->source.in, r->format->delimiter, &found, err);
}

static void free_block(struct block *b)
{
    dt_buffer_release(&b->bytes);
    dt_buffer_release(&b->parsed);
    dt_document_release(&b->scratch);
    free(b->records);
    free(b);
}

void dt_document_lines_close(void *state)
{
    struct reader *r = state;
    if (r == NULL)
        return;
    for (struct block *b; (b = dt_pool_next(r->pool)) != NULL;)
        recycle(r, b);
    if (r->current)
        recycle(r, r->current);
    for (struct block *b = r->idle, *next; b; b = next) {
        next = b->next_idle;
        free_block(b);
    }
    dt_pool_free(r->pool);
    dt_buffer_release(&r->rest);
    free(r);
}
