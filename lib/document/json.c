/* SPDX-License-Identifier: MIT */
/* Documents as JSON Lines. */
#include <stdlib.h>
#include <string.h>

#include "document/document-internal.h"
#include "document/json-line.h"
#include "document/lines.h"

#define ESCAPED 4                 /* line bytes per text byte: escapes and other members */
#define LINEAGE ((size_t)1 << 20) /* more bytes for the end record of a stream */

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
static bool quote_nan(const char *line, size_t size, struct dt_buffer *quoted)
{
    bool inside = false, any = false;
    for (const char *p = line, *end = p + size; p < end;) {
        size_t n = inside ? 0 : match_nan(p);
        any |= n > 0;
        if (n > 0)
            dt_buffer_printf(quoted, "\"%.*s\"", (int)n, p);
        else
            dt_buffer_append(quoted, p, n = inside && *p == '\\' && p + 1 < end ? 2 : 1);
        inside ^= *p == '"';
        p += n;
    }
    return any;
}

/* An end record is borrowed from the line, which outlives the text with quotes. */
static int parse_quoted(const struct dt_buffer *quoted, const char *field, const char *line,
                        size_t size, struct dt_document *doc, struct dt_stream_mark *mark,
                        struct dt_error *err)
{
    DT_TRY(dt_json_line_read(quoted->data, quoted->size, field, doc, mark, err));
    if (mark->kind == DT_STREAM_MARK_END)
        mark->json = memmem(line, size, mark->json, mark->size);
    return mark->kind != DT_STREAM_MARK_END || mark->json
               ? 0
               : dt_fail(err, DT_EFORMAT, "member \"" DT_STREAM_MEMBER "\" has NaN or Infinity");
}

static int parse(const struct dt_document_source *source, const char *line, size_t size, bool whole,
                 struct dt_document *doc, struct dt_stream_mark *mark, struct dt_error *err)
{
    const char *field = source->field ? source->field : "text";
    struct dt_buffer quoted = DT_BUFFER_EMPTY;
    int rc = dt_json_line_read(line, size, field, doc, mark, err);
    (void)whole;
    if (rc < 0 && source->has_nan && quote_nan(line, size, &quoted))
        rc = parse_quoted(&quoted, field, line, size, doc, mark, err);
    dt_buffer_release(&quoted);
    return rc;
}

static int open_reader(void **state, const struct dt_document_source *source, struct dt_error *err)
{
    static const struct dt_line_format json = {.delimiter = '\n',
                                               .passes_blank = true,
                                               .times = ESCAPED,
                                               .more_of_stream = LINEAGE,
                                               .parse = parse};
    DT_TRY(dt_document_lines_open(state, source, &json, err));
    return source->continued ? 0 : dt_input_skip_mark(source->in, err);
}

const struct dt_document_reader dt_document_reader_jsonl = {.name = "jsonl",
                                                            .has_fields = true,
                                                            .ends = "\n",
                                                            .passes_blank = true,
                                                            .open = open_reader,
                                                            .next = dt_document_lines_next,
                                                            .skip = dt_document_lines_skip,
                                                            .close = dt_document_lines_close};
