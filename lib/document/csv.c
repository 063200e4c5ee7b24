/* SPDX-License-Identifier: MIT */
/*
 * Documents as rows of CSV (RFC 4180) and TSV, with a header: the column --field is the text, "id"
 * the id, and the others go to meta, as strings. A field that begins with a quote ends at the next
 * single one, and may hold line ends.
 */
#include <stdlib.h>
#include <string.h>

#include "document/document-internal.h"
#include "json/json.h"

#define COLUMNS     10000
#define PIECE       ((size_t)1 << 16)
#define QUOTED_MOST 4 /* bytes of a row per byte of text: quotes and other columns */

/* Where the parser is in a row: between two bytes of it. */
enum place { AT_START, INSIDE, QUOTED, AFTER_QUOTE };

struct reader {
    struct dt_input *in;
    char separator;
    size_t most;
    uint64_t lines;         /* read so far */
    enum place at;          /* in the row */
    uint64_t quoted;        /* line in which the last quoted value begins */
    bool open, doubtful;    /* such a value of several lines ends after a separator; in this row */
    struct dt_buffer row;   /* as read */
    struct dt_buffer cells; /* the row's values, without quotes, one after the other */
    size_t *ends;           /* of the values in cells */
    size_t count, room;     /* of ends */
    size_t columns;         /* of the header; 0: it is being read */
    char **names;
    size_t text, id; /* columns; id: columns where there is none */
};

/* --- rows ------------------------------------------------------------------------------------- */

static void end_cell(struct reader *r)
{
    if (r->count == r->room) {
        r->room = r->room ? 2 * r->room : 16;
        r->ends = dt_checked(realloc(r->ends, r->room * sizeof *r->ends));
    }
    r->ends[r->count++] = r->cells.size;
}

/* Takes a line of a row, without its line end. Returns false if a quote is in a value
 * without quotes (but in TSV), or a value goes on after its closing one. */
static bool parse_line(struct reader *r, const char *line, size_t size)
{
    for (const char *end = line + size; line < end;) {
        const char *stop;
        size_t left = (size_t)(end - line);
        switch (r->at) {
        case AT_START:
            r->at = *line == '"' ? QUOTED : INSIDE;
            line += r->at == QUOTED;
            r->quoted = r->lines;
            break;
        case QUOTED:
            stop = memchr(line, '"', left);
            dt_buffer_append(&r->cells, line, stop ? (size_t)(stop - line) : left);
            r->at = stop ? AFTER_QUOTE : QUOTED;
            r->open = stop > line && stop[-1] == r->separator && r->quoted < r->lines;
            line = stop ? stop + 1 : end;
            break;
        case AFTER_QUOTE:
            if (*line != '"' && *line != r->separator)
                return false;
            r->at = *line == '"' ? QUOTED : AT_START;
            r->doubtful |= r->open && *line != '"';
            if (*line == '"')
                dt_buffer_add_char(&r->cells, '"');
            else
                end_cell(r);
            line++;
            break;
        case INSIDE:
            stop = memchr(line, r->separator, left);
            left = stop ? (size_t)(stop - line) : left;
            if (r->separator != '\t' && memchr(line, '"', left))
                return false;
            dt_buffer_append(&r->cells, line, left);
            if (stop)
                end_cell(r);
            r->at = stop ? AT_START : INSIDE;
            line = stop ? stop + 1 : end;
        }
    }
    return true;
}

/* Reads a line and parses it. *ended: whether it ends with a line feed, which belongs to a quoted
 * value. Returns 0, or DT_DOCUMENT_BAD. */
static int next_line(struct reader *r, bool *ended, struct dt_document_record *record,
                     struct dt_error *err)
{
    size_t start = r->row.size, most = QUOTED_MOST * r->most;
    DT_TRY(dt_input_add_until(r->in, '\n', most, &r->row, ended, err));
    r->lines += *ended || r->row.size > start;
    record->cut = r->row.size > most;
    if (r->row.size == start)
        return 0;
    size_t size = r->row.size - start;
    bool returned = r->row.data[r->row.size - 1] == '\r';
    bool valid = parse_line(r, r->row.data + start, size - (returned && !record->cut));
    if (record->cut) {
        r->at = valid ? r->at : INSIDE;
        return 0;
    }
    if (!valid) {
        dt_fail(err, DT_EFORMAT,
                "a quotation mark is inside a value: a value with one is in "
                "quotation marks, and has it twice (RFC 4180)");
        return DT_DOCUMENT_BAD;
    }
    if (returned && r->at == QUOTED)
        dt_buffer_add_char(&r->cells, '\r');
    return 0;
}

/* All rows from that line on are in the value: it is not one bad row, which may be skipped. */
static int no_end(const struct reader *r, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT,
                   "%s:%llu: the input ends inside a quoted value, which begins in this line: "
                   "remove the quotation mark, or the line if the file was cut there",
                   dt_input_name(r->in), (unsigned long long)r->quoted);
}

/* A stray quotation mark swallows rows up to one that begins a value, which follows a separator. */
static int refuse_doubtful(const struct reader *r, struct dt_error *err)
{
    dt_fail(err, DT_EFORMAT,
            "the quoted value ends in line %llu with '%c\"', as if a value began there: remove the "
            "quotation mark that has no partner, or the %s before the last one",
            (unsigned long long)r->lines, r->separator, r->separator == '\t' ? "tab" : "separator");
    return DT_DOCUMENT_BAD;
}

/* Reads a row, after any empty lines. Returns 1, 0 at the end, or DT_DOCUMENT_BAD. */
static int next_row(struct reader *r, struct dt_document_record *record, struct dt_error *err)
{
    bool ended = true, empty = true;
    dt_buffer_clear(&r->cells);
    r->count = 0;
    r->at = AT_START;
    r->doubtful = false;
    record->as = &r->row;
    while (ended && (empty || r->at == QUOTED)) { /* of a row that is cut no end is found */
        if (r->at == QUOTED) {
            dt_buffer_add_char(&r->row, '\n');
            dt_buffer_add_char(&r->cells, '\n');
        } else {
            dt_buffer_clear(&r->row);
            record->line = r->lines + 1;
        }
        int rc = next_line(r, &ended, record, err);
        if (rc != 0)
            return rc;
        empty = r->row.size == 0 || (r->row.size == 1 && *r->row.data == '\r');
    }
    if (r->at == QUOTED && !record->cut)
        return no_end(r, err);
    if ((r->doubtful || (r->at == AFTER_QUOTE && r->open)) && !record->cut)
        return refuse_doubtful(r, err);
    end_cell(r);
    return !empty;
}

static const char *cell(const struct reader *r, size_t i, size_t *size)
{
    size_t from = i > 0 ? r->ends[i - 1] : 0;
    *size = r->ends[i] - from;
    return r->cells.size > 0 ? r->cells.data + from : "";
}

/* --- the header ------------------------------------------------------------------------------- */

/* A name that is empty, as of the index that pandas writes, is replaced by the column's number. */
static int take_names(struct reader *r, struct dt_error *err)
{
    if (r->cells.size > 0 && memchr(r->cells.data, 0, r->cells.size))
        return dt_fail(err, DT_EFORMAT, "%s: its header holds a zero byte", dt_input_name(r->in));
    r->columns = r->count;
    r->names = dt_alloc(r->count, sizeof *r->names);
    for (size_t i = 0; i < r->count; i++) {
        size_t size;
        const char *name = cell(r, i, &size);
        r->names[i] = size > 0 ? dt_strndup(name, size) : dt_asprintf("column%zu", i + 1);
    }
    return 0;
}

static size_t column(const struct reader *r, const char *name)
{
    size_t i = 0;
    while (i < r->columns && strcmp(r->names[i], name) != 0)
        i++;
    return i;
}

static int find_columns(struct reader *r, const char *field, struct dt_error *err)
{
    struct dt_buffer names = DT_BUFFER_EMPTY;
    for (size_t i = 0; i < r->columns; i++) {
        if (column(r, r->names[i]) < i) {
            dt_buffer_release(&names);
            return dt_fail(err, DT_EFORMAT, "%s: two columns of its header are named '%s'",
                           dt_input_name(r->in), r->names[i]);
        }
        dt_buffer_printf(&names, "%s%s", i ? ", " : "", r->names[i]);
    }
    bool optional = *field == 0; /* DT_DOCUMENT_RECORD */
    r->text = column(r, optional ? "text" : field);
    r->id = column(r, "id");
    if (r->id == r->text)
        r->id = r->columns;
    int rc = 0;
    if (r->text == r->columns && !optional)
        rc = dt_fail(err, DT_EFORMAT,
                     "%s: has no column '%s', but %s; --field NAME (of dt-clean, too) names the "
                     "column with the text, --from text reads the file as plain text",
                     dt_input_name(r->in), field, names.data);
    dt_buffer_release(&names);
    return rc;
}

/* CSV without a comma in its first line is separated by semicolons. */
static int find_separator(struct reader *r, struct dt_error *err)
{
    const char *head, *end;
    size_t size;
    DT_TRY(dt_input_peek(r->in, &head, &size, err));
    end = memchr(head, '\n', size);
    size = end ? (size_t)(end - head) : size;
    if (!memchr(head, ',', size) && memchr(head, ';', size))
        r->separator = ';';
    return 0;
}

static int open_reader(void **state, const struct dt_document_source *source, char separator,
                       struct dt_error *err)
{
    struct dt_document_record record = {0};
    struct reader *r = *state = dt_alloc(1, sizeof *r);
    r->in = source->in;
    r->separator = separator;
    r->most = source->most;
    DT_TRY(dt_input_skip_mark(r->in, err));
    if (separator == ',')
        DT_TRY(find_separator(r, err));
    int rc = next_row(r, &record, err);
    if (rc == DT_DOCUMENT_BAD)
        return dt_fail_context(err, "%s:%llu", dt_input_name(r->in),
                               (unsigned long long)record.line);
    if (rc > 0 && record.cut)
        return dt_fail(err, DT_EFORMAT, "%s: its header has more than %zu bytes",
                       dt_input_name(r->in), QUOTED_MOST * r->most);
    if (rc <= 0)
        return rc;
    if (r->count > COLUMNS)
        return dt_fail(err, DT_EFORMAT, "%s: its header has more than %d columns",
                       dt_input_name(r->in), COLUMNS);
    DT_TRY(take_names(r, err));
    return find_columns(r, source->field ? source->field : "text", err);
}

static int open_csv(void **state, const struct dt_document_source *source, struct dt_error *err)
{
    return open_reader(state, source, ',', err);
}

static int open_tsv(void **state, const struct dt_document_source *source, struct dt_error *err)
{
    return open_reader(state, source, '\t', err);
}

static void close_reader(void *state)
{
    struct reader *r = state;
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->columns; i++)
        free(r->names[i]);
    free(r->names);
    free(r->ends);
    dt_buffer_release(&r->row);
    dt_buffer_release(&r->cells);
    free(r);
}

/* --- documents -------------------------------------------------------------------------------- */

static void add_meta(const struct reader *r, struct dt_buffer *meta)
{
    for (size_t i = 0; i < r->columns; i++) {
        size_t size;
        const char *value = cell(r, i, &size);
        if (i == r->text || i == r->id)
            continue;
        dt_buffer_add_char(meta, meta->size ? ',' : '{');
        dt_json_add_string(meta, r->names[i], strlen(r->names[i]));
        dt_buffer_add_char(meta, ':');
        dt_json_add_string(meta, value, size);
    }
    if (meta->size > 0)
        dt_buffer_add_char(meta, '}');
}

static int next_document(void *state, struct dt_document *doc, struct dt_document_record *record,
                         struct dt_error *err)
{
    struct reader *r = state;
    size_t size;
    if (r->columns == 0) /* an empty file */
        return 0;
    int rc = next_row(r, record, err);
    if (rc != 1 || record->cut)
        return rc;
    if (r->count != r->columns) {
        dt_fail(err, DT_EFORMAT, "expected %zu columns, as in the header, found %zu", r->columns,
                r->count);
        return DT_DOCUMENT_BAD;
    }
    if (r->text < r->columns) {
        const char *text = cell(r, r->text, &size);
        dt_buffer_append(&doc->text, text, size);
    }
    if (r->id < r->columns) {
        const char *id = cell(r, r->id, &size);
        dt_buffer_append(&doc->id, id, size);
    }
    add_meta(r, &doc->meta);
    return 1;
}

/* Reads to the end of the row, of which a prefix was read. */
static int skip_row(void *state, struct dt_error *err)
{
    struct reader *r = state;
    struct dt_buffer piece = DT_BUFFER_EMPTY;
    bool found = false, ended = false;
    int rc = 0;
    while (rc == 0 && !ended && (!found || r->at == QUOTED)) {
        r->lines += found; /* the first was counted */
        r->count = 0;
        dt_buffer_clear(&r->cells);
        dt_buffer_clear(&piece);
        rc = dt_input_add_until(r->in, '\n', PIECE, &piece, &found, err);
        ended = !found && piece.size == 0;
        if (rc == 0 && piece.size > 0 && !parse_line(r, piece.data, piece.size))
            r->at = INSIDE;
    }
    dt_buffer_release(&piece);
    return rc == 0 && r->at == QUOTED ? no_end(r, err) : rc;
}

const struct dt_document_reader dt_document_reader_csv = {.name = "csv",
                                                          .has_fields = true,
                                                          .open = open_csv,
                                                          .next = next_document,
                                                          .skip = skip_row,
                                                          .close = close_reader},
                                dt_document_reader_tsv = {.name = "tsv",
                                                          .has_fields = true,
                                                          .open = open_tsv,
                                                          .next = next_document,
                                                          .skip = skip_row,
                                                          .close = close_reader};
