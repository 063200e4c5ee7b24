/* SPDX-License-Identifier: MIT */
/* Documents as JSON Lines. */
#include <stdlib.h>
#include <string.h>

#include "io/document-internal.h"
#include "io/json-line.h"

#define ESCAPED 4                 /* line bytes per text byte: escapes and other members */
#define LINEAGE ((size_t)1 << 20) /* more bytes for the end record of a stream */

struct reader {
    struct dt_input *in;
    const char *field;
    size_t most;
    uint64_t line;
    bool has_nan;          /* as in struct dt_document_source */
    struct dt_buffer text; /* of the line */
};

static int open_reader(void **state, const struct dt_document_source *source, struct dt_error *err)
{
    struct reader *r = *state = dt_alloc(1, sizeof *r);
    *r = (struct reader){.in = source->in,
                         .field = source->field ? source->field : "text",
                         .most = source->most,
                         .has_nan = source->has_nan};
    return source->continued ? 0 : dt_input_skip_mark(r->in, err);
}

static void close_reader(void *state)
{
    struct reader *r = state;
    if (r)
        dt_buffer_release(&r->text);
    free(r);
}

static bool is_blank(const struct dt_buffer *line)
{
    return line->size == 0 || strspn(line->data, " \t\r") == line->size;
}

/* Reads the next non-blank line; 0 at the end. The first line, or one of a stream, may have an end
 * record. *ended: whether it ends with a line feed. */
static int next_line(struct reader *r, struct dt_document_record *record, bool *ended,
                     struct dt_error *err)
{
    do {
        size_t most = ESCAPED * r->most + (record->inside || r->line == 0 ? LINEAGE : 0);
        dt_buffer_clear(&r->text);
        DT_TRY(dt_input_add_until(r->in, '\n', most, &r->text, ended, err));
        r->line++;
        if (!*ended && r->text.size == 0)
            return 0;
        record->cut = r->text.size > most;
    } while (!record->cut && is_blank(&r->text));
    return 1;
}

/* The size of the real number at p that JSON does not have, or 0. */
static size_t match_nan(const char *p)
{
    static const char *const names[] = {"NaN", "Infinity", "-NaN", "-Infinity"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(p, names[i], strlen(names[i])) == 0)
            return strlen(names[i]);
    return 0;
}

/* Puts quotes around such numbers. Returns whether there was any. */
static bool quote_nan(struct dt_buffer *line)
{
    struct dt_buffer quoted = DT_BUFFER_EMPTY;
    bool inside = false, any = false;
    for (const char *p = line->data, *end = p + line->size; p < end;) {
        size_t size = inside ? 0 : match_nan(p);
        any |= size > 0;
        if (size > 0)
            dt_buffer_printf(&quoted, "\"%.*s\"", (int)size, p);
        else
            dt_buffer_append(&quoted, p, size = inside && *p == '\\' && p + 1 < end ? 2 : 1);
        inside ^= *p == '"';
        p += size;
    }
    dt_buffer_release(line);
    *line = quoted;
    return any;
}

static int parse(struct reader *r, struct dt_document *doc, struct dt_document_record *record,
                 struct dt_error *err)
{
    int rc = dt_json_line_read(r->text.data, r->text.size, r->field, doc, &record->mark, err);
    if (rc < 0 && r->has_nan && quote_nan(&r->text))
        rc = dt_json_line_read(r->text.data, r->text.size, r->field, doc, &record->mark, err);
    return rc;
}

static int next_document(void *state, struct dt_document *doc, struct dt_document_record *record,
                         struct dt_error *err)
{
    struct reader *r = state;
    bool ended;
    int rc = next_line(r, record, &ended, err);
    if (rc <= 0)
        return rc;
    record->line = r->line;
    record->as = &r->text;
    record->unfinished = !ended && !record->cut;
    if (!record->cut && parse(r, doc, record, err) < 0)
        return DT_DOCUMENT_BAD;
    return 1;
}

static int skip_line(void *state, struct dt_error *err)
{
    struct reader *r = state;
    bool found;
    return dt_input_skip_until(r->in, '\n', &found, err);
}

const struct dt_document_reader dt_document_reader_jsonl = {.name = "jsonl",
                                                            .has_fields = true,
                                                            .ends = "\n",
                                                            .passes_blank = true,
                                                            .open = open_reader,
                                                            .next = next_document,
                                                            .skip = skip_line,
                                                            .close = close_reader};
