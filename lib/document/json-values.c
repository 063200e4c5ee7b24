/* SPDX-License-Identifier: MIT */
/*
 * Documents as JSON objects that are not one a line: elements of an array, objects one after
 * another, or elements of a list inside an object, which --field LIST[].NAME names. An element may
 * be a string, which is the text. One is in memory at a time, without white space between values.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "document/document-internal.h"
#include "document/json-line.h"
#include "json/json-scan.h"

#define PIECE   ((size_t)1 << 16)
#define ESCAPED 4 /* bytes of an object per byte of text: escapes and other members */
#define LIST    "[]"

struct reader {
    struct dt_input *in;
    char *list;        /* path of the list, or NULL */
    const char *field; /* of an object */
    bool has_strings;  /* no field was given, so that a string is a text */
    size_t most;
    char *piece; /* bytes [at, size) are not yet used */
    size_t at, size;
    uint64_t line, began; /* here; where the array, or else the value that is read, begins */
    bool inside, again;   /* in the array, after one of its values */
    bool keep, blank;     /* what is read is copied to text, after white space */
    struct dt_buffer text;
    char open[DT_JSON_DEEPEST + 2]; /* brackets around what is read */
    size_t depth;
};

/* --- bytes ------------------------------------------------------------------------------------ */

static int fail(const struct reader *r, const char *what, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "%s:%llu: %s", dt_input_name(r->in),
                   (unsigned long long)r->line, what);
}

static int ends_inside(const struct reader *r, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT,
                   "%s: ends inside the value of JSON that begins in line %llu: the file was cut, "
                   "or a quotation mark or a bracket is missing",
                   dt_input_name(r->in), (unsigned long long)r->began);
}

/* The next byte, which is not yet used; -1: the input ended. */
static int peek(struct reader *r, int *c, struct dt_error *err)
{
    if (r->at == r->size) {
        r->at = 0;
        DT_TRY(dt_input_read(r->in, r->piece, PIECE, &r->size, err));
    }
    *c = r->at < r->size ? (unsigned char)r->piece[r->at] : -1;
    return 0;
}

/* Of what is longer than the limit a prefix is kept. */
static void take(struct reader *r, size_t count)
{
    if (r->keep && r->text.size <= ESCAPED * r->most)
        dt_buffer_append(&r->text, r->piece + r->at, count);
    r->at += count;
}

/* Passes over white space; the next byte. */
static int next_byte(struct reader *r, int *c, struct dt_error *err)
{
    for (;; r->at++) {
        DT_TRY(peek(r, c, err));
        if (*c != ' ' && *c != '\t' && *c != '\r' && *c != '\n')
            return 0;
        r->blank = true;
        r->line += *c == '\n';
    }
}

static int expect(struct reader *r, char wanted, const char *what, struct dt_error *err)
{
    int c;
    DT_TRY(next_byte(r, &c, err));
    if (c != wanted)
        return c < 0 ? ends_inside(r, err) : fail(r, what, err);
    r->at++;
    return 0;
}

/* --- values ----------------------------------------------------------------------------------- */

static int read_string(struct reader *r, struct dt_error *err)
{
    bool escaped = false;
    int c;
    take(r, 1);
    for (;;) {
        size_t plain = escaped ? 0 : dt_json_plain(r->piece + r->at, r->size - r->at);
        take(r, plain);
        DT_TRY(peek(r, &c, err));
        if (c < 0)
            return ends_inside(r, err);
        if (plain > 0 && r->at == 0) /* a new piece */
            continue;
        r->line += c == '\n';
        take(r, 1);
        if (c == '"' && !escaped)
            return 0;
        escaped = c == '\\' && !escaped;
    }
}

static bool is_structure(char c)
{
    return c != '\0' && strchr("{}[]:,", c) != NULL;
}

/* White space stays where it separates two values, which is an error that the parser reports. */
static void take_blank(struct reader *r, int c)
{
    if (r->keep && r->blank) {
        assert(r->text.size > 0); /* a value is read from its first byte on */
        if (!is_structure((char)c) && !is_structure(r->text.data[r->text.size - 1]))
            dt_buffer_add_char(&r->text, ' ');
    }
    r->blank = false;
}

static int take_bracket(struct reader *r, char c, size_t base, struct dt_error *err)
{
    if (c == '{' || c == '[') {
        if (r->depth == sizeof r->open)
            return fail(r, "nesting too deep", err);
        r->open[r->depth++] = c;
    } else if (r->depth == base || r->open[--r->depth] != (c == '}' ? '{' : '[')) {
        return fail(r, "a bracket closes one of the other kind, or none", err);
    }
    take(r, 1);
    return 0;
}

/* From a byte that is neither white space nor structure. */
static int read_scalar(struct reader *r, struct dt_error *err)
{
    int c;
    do {
        take(r, 1);
        DT_TRY(peek(r, &c, err));
    } while (c > ' ' && c != '"' && !is_structure((char)c));
    return 0;
}

/* Reads a value, or the rest of those around it down to a depth. Only brackets and the ends of
 * strings are checked. */
static int read_values(struct reader *r, size_t base, struct dt_error *err)
{
    int c;
    r->blank = false;
    do {
        DT_TRY(next_byte(r, &c, err));
        if (c < 0)
            return ends_inside(r, err);
        take_blank(r, c);
        if (c == '"')
            DT_TRY(read_string(r, err));
        else if (c == ',' || c == ':')
            take(r, r->depth > base);
        else if (is_structure((char)c))
            DT_TRY(take_bracket(r, (char)c, base, err));
        else
            DT_TRY(read_scalar(r, err));
    } while (r->depth > base);
    return 0;
}

/* --- the list in an object -------------------------------------------------------------------- */

/* Whether the string in text, with its quotes, is this name. */
static bool is_named(const struct reader *r, const char *name, size_t size)
{
    struct dt_json_scan s = {.p = r->text.data, .end = r->text.data + r->text.size};
    struct dt_json_span string;
    struct dt_buffer plain = DT_BUFFER_EMPTY;
    if (!dt_json_skip_string(&s, &string))
        return false;
    dt_json_unescape(string, &plain);
    bool same = plain.size == size && memcmp(plain.data, name, size) == 0;
    dt_buffer_release(&plain);
    return same;
}

static int no_list(const struct reader *r, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "%s: has no list '%s', which --field %s" LIST ".%s names",
                   dt_input_name(r->in), r->list, r->list, r->field);
}

/* Reads on to the value of a member of the object that begins here. */
static int find_member(struct reader *r, const char *name, size_t size, struct dt_error *err)
{
    int c;
    if (r->depth == sizeof r->open)
        return fail(r, "nesting too deep", err);
    DT_TRY(next_byte(r, &c, err));
    if (c != '{')
        return no_list(r, err);
    for (;;) {
        r->at++;
        DT_TRY(next_byte(r, &c, err));
        if (c != '"')
            return c < 0 ? ends_inside(r, err) : no_list(r, err);
        dt_buffer_clear(&r->text);
        r->keep = true;
        DT_TRY(read_string(r, err));
        r->keep = false;
        bool found = is_named(r, name, size);
        DT_TRY(expect(r, ':', "':' expected", err));
        if (found)
            break;
        DT_TRY(read_values(r, r->depth, err));
        DT_TRY(next_byte(r, &c, err));
        if (c != ',')
            return c < 0 ? ends_inside(r, err) : no_list(r, err);
    }
    r->open[r->depth++] = '{';
    return 0;
}

static int find_list(struct reader *r, struct dt_error *err)
{
    int c;
    for (const char *name = r->list; name;) {
        const char *end = strchr(name, '.');
        DT_TRY(find_member(r, name, end ? (size_t)(end - name) : strlen(name), err));
        name = end ? end + 1 : NULL;
    }
    DT_TRY(next_byte(r, &c, err));
    return c == '[' ? 0 : no_list(r, err);
}

/* --- documents -------------------------------------------------------------------------------- */

static int open_reader(void **state, const struct dt_document_source *source, struct dt_error *err)
{
    struct reader *r = *state = dt_alloc(1, sizeof *r);
    const char *field = source->field ? source->field : "text", *list = strstr(field, LIST ".");
    *r = (struct reader){.in = source->in,
                         .list = list ? dt_strndup(field, (size_t)(list - field)) : NULL,
                         .field = list ? list + strlen(LIST ".") : field,
                         .has_strings = source->field == NULL,
                         .most = source->most,
                         .piece = dt_alloc(PIECE, 1),
                         .line = 1};
    return dt_input_skip_mark(r->in, err);
}

static void close_reader(void *state)
{
    struct reader *r = state;
    if (r == NULL)
        return;
    free(r->list);
    free(r->piece);
    dt_buffer_release(&r->text);
    free(r);
}

/* Goes to the next value, in an array or not. Returns 1, or 0 at the end of the input. */
static int find_value(struct reader *r, struct dt_error *err)
{
    int c;
    for (;;) {
        DT_TRY(next_byte(r, &c, err));
        if (!r->inside) {
            r->began = r->line;
            if (c < 0)
                return 0;
            if (c != '{' && c != '[')
                return fail(r, "a JSON array or object expected", err);
            if (c == '{' && r->list == NULL)
                return 1;
            if (c == '{')
                DT_TRY(find_list(r, err));
            r->inside = true;
            r->again = false;
        } else if (c == ']' && !r->again) {
            r->inside = false;
            r->at++;
            if (r->depth > 0)
                DT_TRY(read_values(r, 0, err));
            continue;
        } else {
            return c < 0 ? ends_inside(r, err) : 1;
        }
        r->at++;
    }
}

/* After a value in an array: the comma, or, not yet used, the bracket. */
static int end_value(struct reader *r, struct dt_error *err)
{
    int c;
    if (!r->inside)
        return 0;
    DT_TRY(next_byte(r, &c, err));
    r->again = c == ',';
    r->at += r->again;
    if (c < 0)
        return ends_inside(r, err);
    return r->again || c == ']' ? 0 : fail(r, "',' or ']' expected", err);
}

static int parse(struct reader *r, struct dt_document *doc, struct dt_document_record *record,
                 struct dt_error *err)
{
    struct dt_json_scan s = {.p = r->text.data, .end = r->text.data + r->text.size};
    struct dt_json_span string;
    if (!r->has_strings || dt_json_peek(&s) != '"')
        return dt_json_line_read(r->text.data, r->text.size, r->field, doc, &record->mark, err);
    if (!dt_json_skip_string(&s, &string))
        return dt_fail(err, DT_EFORMAT, "%s", s.reason);
    dt_json_unescape(string, &doc->text);
    return 0;
}

/* For a quarantine file, in which a value is a line. */
static int bad(struct reader *r)
{
    for (size_t i = 0; i < r->text.size; i++)
        if (r->text.data[i] == '\n')
            r->text.data[i] = ' ';
    return DT_DOCUMENT_BAD;
}

static int next_document(void *state, struct dt_document *doc, struct dt_document_record *record,
                         struct dt_error *err)
{
    struct reader *r = state;
    int rc = find_value(r, err);
    if (rc <= 0)
        return rc;
    uint64_t around = r->began;
    record->line = r->began = r->line;
    record->as = &r->text;
    dt_buffer_clear(&r->text);
    r->keep = true;
    DT_TRY(read_values(r, r->depth, err));
    r->keep = false;
    r->began = around;
    DT_TRY(end_value(r, err));
    record->cut = r->text.size > ESCAPED * r->most;
    if (!record->cut && parse(r, doc, record, err) < 0)
        return bad(r);
    return 1;
}

/* The whole value was read. */
static int skip_value(void *state, struct dt_error *err)
{
    (void)state;
    (void)err;
    return 0;
}

const struct dt_document_reader dt_document_reader_json = {.name = "json",
                                                           .has_fields = true,
                                                           .open = open_reader,
                                                           .next = next_document,
                                                           .skip = skip_value,
                                                           .close = close_reader};
