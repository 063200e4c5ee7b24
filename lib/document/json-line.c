/* SPDX-License-Identifier: MIT */
#include "document/json-line.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "json/json-scan.h"

/* The size of the name, if the path begins with it; else SIZE_MAX. */
static size_t match_name(struct dt_json_span name, const char *path)
{
    size_t n = (size_t)(name.to - name.from);
    if (memchr(name.from, '\\', n) == NULL)
        return strncmp(path, name.from, n) == 0 ? n : SIZE_MAX;
    struct dt_buffer plain = DT_BUFFER_EMPTY;
    dt_json_unescape(name, &plain);
    bool begins =
        strnlen(path, plain.size) == plain.size && memcmp(path, plain.data, plain.size) == 0;
    n = begins ? plain.size : SIZE_MAX;
    dt_buffer_release(&plain);
    return n;
}

static bool is_named(struct dt_json_span name, const char *expected)
{
    size_t n = match_name(name, expected);
    return n != SIZE_MAX && expected[n] == '\0';
}

/* Spans of the members of a line: values, strings with their quotes; from is NULL if absent. */
struct found {
    struct dt_json_span text, id, meta, mark;
};

static void append_span(struct dt_buffer *b, struct dt_json_span span)
{
    dt_buffer_append(b, span.from, (size_t)(span.to - span.from));
}

static void add_member(struct dt_buffer *b, const char *comma, struct dt_json_span name,
                       struct dt_json_span value)
{
    dt_buffer_add_string(b, comma);
    dt_buffer_add_char(b, '"');
    append_span(b, name);
    dt_buffer_add_string(b, "\":");
    append_span(b, value);
}

/* The rest of the path after its first name, if that is name; else NULL. */
static const char *path_below(struct dt_json_span name, const char *path)
{
    size_t n = match_name(name, path);
    return n != SIZE_MAX && path[n] == '.' && path[n + 1] ? path + n + 1 : NULL;
}

/* Takes the text from below an object; the object's other members are added to
 * others. depth: objects around it. */
static bool take_nested(struct dt_json_scan *r, const char *path, int depth, struct found *found,
                        struct dt_buffer *others)
{
    const char *comma = "{";
    if (depth > DT_JSON_DEEPEST)
        return dt_json_scan_fail(r, "nesting too deep");
    r->p++;
    if (dt_json_skip_char(r, '}')) {
        dt_buffer_add_string(others, "{}");
        return true;
    }
    do {
        struct dt_json_span name;
        if (!dt_json_skip_name(r, &name))
            return false;
        const char *below = path_below(name, path);
        struct dt_json_span value = {.from = r->p, .to = r->p};
        bool nested = below && dt_json_peek(r) == '{';
        if (nested)
            add_member(others, comma, name, value);
        if (nested ? !take_nested(r, below, depth + 1, found, others)
                   : !dt_json_skip_value(r, depth))
            return false;
        value.to = r->p;
        if (!nested && is_named(name, path))
            found->text = value;
        else if (!nested)
            add_member(others, comma, name, value);
        comma = nested || !is_named(name, path) ? "," : comma;
    } while (dt_json_skip_char(r, ','));
    if (*comma == '{')
        dt_buffer_add_char(others, '{');
    dt_buffer_add_char(others, '}');
    return dt_json_skip_char(r, '}') || dt_json_scan_fail(r, "',' or '}' expected");
}

static bool take_member(struct dt_json_scan *r, const char *field, struct found *found,
                        struct dt_buffer *others)
{
    struct dt_json_span name;
    if (!dt_json_skip_name(r, &name))
        return false;
    struct dt_json_span value = {.from = r->p, .to = r->p};
    const char *below = path_below(name, field);
    if (below && dt_json_peek(r) == '{') {
        add_member(others, ",", name, value);
        return take_nested(r, below, 2, found, others);
    }
    if (!dt_json_skip_value(r, 1))
        return false;
    value.to = r->p;
    if (is_named(name, field)) {
        found->text = value;
    } else if (is_named(name, "id")) {
        found->id = value;
    } else if (is_named(name, "meta") && (*value.from == '{' || *value.from == 'n')) {
        found->meta = *value.from == '{' ? value : (struct dt_json_span){NULL, NULL};
    } else if (is_named(name, DT_STREAM_MEMBER)) {
        found->mark = value;
    } else {
        add_member(others, ",", name, value);
    }
    return true;
}

static bool take_members(struct dt_json_scan *r, const char *field, struct found *found,
                         struct dt_buffer *others)
{
    if (!dt_json_skip_char(r, '{'))
        return dt_json_scan_fail(r, "'{' expected");
    if (!dt_json_skip_char(r, '}')) {
        do {
            if (!take_member(r, field, found, others))
                return false;
        } while (dt_json_skip_char(r, ','));
        if (!dt_json_skip_char(r, '}'))
            return dt_json_scan_fail(r, "',' or '}' expected");
    }
    dt_json_skip_space(r);
    return true;
}

static struct dt_json_span without_quotes(struct dt_json_span string)
{
    return (struct dt_json_span){string.from + 1, string.to - 1};
}

static void set_id(struct dt_json_span value, struct dt_buffer *id)
{
    dt_buffer_clear(id);
    if (value.from && *value.from == '"')
        dt_json_unescape(without_quotes(value), id);
    else if (value.from && *value.from != 'n')
        append_span(id, value);
}

/* Inserts the given object, without its closing brace, before the members in meta, each of which
 * begins with a comma. */
static void put_before(struct dt_json_span given, struct dt_buffer *meta)
{
    struct dt_buffer merged = DT_BUFFER_EMPTY;
    bool is_empty = given.from[1 + strspn(given.from + 1, " \t\r")] == '}';
    given.to--;
    append_span(&merged, given);
    dt_buffer_append(&merged, meta->data + is_empty, meta->size - is_empty);
    dt_buffer_release(meta);
    *meta = merged;
}

static void set_meta(struct dt_json_span given, struct dt_buffer *meta)
{
    if (meta->size == 0) {
        append_span(meta, given);
        return;
    }
    if (given.from)
        put_before(given, meta);
    else
        meta->data[0] = '{';
    dt_buffer_add_char(meta, '}');
}

static int set_mark(struct dt_json_span given, struct dt_stream_mark *mark, struct dt_error *err)
{
    mark->kind = DT_STREAM_MARK_NONE;
    if (given.from == NULL ||
        dt_stream_mark_parse(given.from, (size_t)(given.to - given.from), mark))
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "member \"" DT_STREAM_MEMBER "\" is neither \"begin\" nor an end record");
}

int dt_json_line_read(const char *line, size_t size, const char *field, struct dt_document *doc,
                      struct dt_stream_mark *mark, struct dt_error *err)
{
    struct found found = {0};
    struct dt_json_scan r = {.p = line, .end = line + size};
    bool optional = *field == 0; /* DT_DOCUMENT_RECORD */
    field = optional ? "text" : field;
    dt_buffer_clear(&doc->meta);
    if (take_members(&r, field, &found, &doc->meta) && r.p != line + size)
        dt_json_scan_fail(&r, "text after the object");
    if (r.reason)
        return dt_fail(err, DT_EFORMAT, "byte %zu: %s", (size_t)(r.p - line),
                       r.p == line + size ? "the JSON object ends too early" : r.reason);
    if (found.text.from == NULL && !optional)
        return dt_fail(
            err, DT_EMISSING,
            "no member \"%s\"; --field of dt-clean, dt-dedup and dt-extract names the one "
            "with the text",
            field);
    if (found.text.from && *found.text.from != '"')
        return dt_fail(err, DT_EFORMAT, "member \"%s\" is not a string", field);
    DT_TRY(set_mark(found.mark, mark, err));
    if (found.text.from)
        dt_json_unescape(without_quotes(found.text), &doc->text);
    set_id(found.id, &doc->id);
    set_meta(found.meta, &doc->meta);
    return 0;
}
