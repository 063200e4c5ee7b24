/* SPDX-License-Identifier: MIT */
#include "io/json-line.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"

#define DEEPEST 32 /* objects and arrays in each other; the recursion is as deep */

/* A place in the line. The line ends with a 0 byte, which JSON cannot contain,
 * so that looking at *p is always allowed. */
struct reader {
    const char *p, *end;
    const char *reason; /* why the last function returned false */
};

struct span {
    const char *from, *to;
};

/* The functions below move r->p behind what they name and return true, or leave
 * it at what is wrong and return false. */

static bool fail(struct reader *r, const char *reason)
{
    r->reason = reason;
    return false;
}

static void skip_space(struct reader *r)
{
    while (*r->p == ' ' || *r->p == '\t' || *r->p == '\r')
        r->p++;
}

/* Passes c, after white space, if it is next. */
static bool skip_char(struct reader *r, char c)
{
    skip_space(r);
    if (*r->p != c)
        return false;
    r->p++;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number that four hexadecimal digits make; -1 if they are none. */
static int32_t hex4(const char *p)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static bool skip_escape(struct reader *r)
{
    char c = *++r->p;
    if (c == 'u' && hex4(r->p + 1) < 0)
        return fail(r, "four hexadecimal digits expected");
    if (c == '\0' || strchr("\"\\/bfnrtu", c) == NULL)
        return fail(r, "unknown escape");
    r->p += c == 'u' ? 4 : 0;
    return true;
}

/* A string in quotes; content is what stands between them, escapes as they are. */
static bool skip_string(struct reader *r, struct span *content)
{
    if (!skip_char(r, '"'))
        return fail(r, "string expected");
    for (content->from = r->p;; r->p++) {
        r->p += dt_json_plain(r->p, (size_t)(r->end - r->p));
        if (*r->p == '"')
            break;
        if ((unsigned char)*r->p < 0x20)
            return fail(r, "control character in a string");
        if (*r->p == '\\' && !skip_escape(r))
            return false;
    }
    content->to = r->p++;
    return true;
}

static bool skip_digits(struct reader *r)
{
    if (*r->p < '0' || *r->p > '9')
        return fail(r, "digit expected");
    while (*r->p >= '0' && *r->p <= '9')
        r->p++;
    return true;
}

static bool skip_number(struct reader *r)
{
    r->p += *r->p == '-';
    if (*r->p == '0')
        r->p++; /* no digit may follow */
    else if (!skip_digits(r))
        return false;
    if (*r->p == '.' && (r->p++, !skip_digits(r)))
        return false;
    if (*r->p != 'e' && *r->p != 'E')
        return true;
    r->p++;
    r->p += *r->p == '+' || *r->p == '-';
    return skip_digits(r);
}

static bool skip_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(r->p, word, n) != 0)
        return fail(r, "value expected");
    r->p += n;
    return true;
}

static bool skip_value(struct reader *r, int depth);

/* The members of an object or the elements of an array, behind its bracket. */
static bool skip_inside(struct reader *r, char closing, int depth)
{
    struct span name;
    if (depth > DEEPEST)
        return fail(r, "nesting too deep");
    if (skip_char(r, closing))
        return true;
    do {
        if (closing == '}' && !skip_string(r, &name))
            return false;
        if (closing == '}' && !skip_char(r, ':'))
            return fail(r, "':' expected");
        if (!skip_value(r, depth))
            return false;
    } while (skip_char(r, ','));
    return skip_char(r, closing) ||
           fail(r, closing == '}' ? "',' or '}' expected" : "',' or ']' expected");
}

/* depth: objects and arrays around the value. */
static bool skip_value(struct reader *r, int depth)
{
    struct span ignored;
    skip_space(r);
    char c = *r->p;
    switch (c) {
    case '{':
    case '[':
        r->p++;
        return skip_inside(r, c == '{' ? '}' : ']', depth + 1);
    case '"':
        return skip_string(r, &ignored);
    case 't':
        return skip_word(r, "true");
    case 'f':
        return skip_word(r, "false");
    case 'n':
        return skip_word(r, "null");
    default:
        return c == '-' || (c >= '0' && c <= '9') ? skip_number(r) : fail(r, "value expected");
    }
}

static char *put_utf8(char *out, int32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return out;
}

/* The character that "uXXXX" at *p stands for, or a pair of them; *p is moved
 * to the last digit. Half a pair is U+FFFD. */
static int32_t unicode_escape(const char **p)
{
    int32_t c = hex4(*p + 1);
    *p += 4;
    if (c < 0xd800 || c > 0xdfff)
        return c;
    if (c > 0xdbff || (*p)[1] != '\\' || (*p)[2] != 'u')
        return 0xfffd;
    int32_t low = hex4(*p + 3);
    if (low < 0xdc00 || low > 0xdfff)
        return 0xfffd;
    *p += 6;
    return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

static char meaning_of(char letter)
{
    switch (letter) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    default:
        return letter;
    }
}

/* Sets b to the string with its escapes resolved; the result is never longer. */
static void unescape(struct span string, struct dt_buffer *b)
{
    dt_buffer_reserve(b, (size_t)(string.to - string.from));
    char *out = b->data;
    for (const char *p = string.from; p < string.to; p++) {
        const char *next = memchr(p, '\\', (size_t)(string.to - p));
        size_t plain = (size_t)((next ? next : string.to) - p);
        memcpy(out, p, plain);
        out += plain;
        if (next == NULL)
            break;
        p = next + 1;
        if (*p == 'u')
            out = put_utf8(out, unicode_escape(&p));
        else
            *out++ = meaning_of(*p);
    }
    *out = '\0';
    b->size = (size_t)(out - b->data);
}

static bool is_named(struct span name, const char *expected)
{
    size_t n = (size_t)(name.to - name.from);
    if (memchr(name.from, '\\', n) == NULL)
        return n == strlen(expected) && memcmp(name.from, expected, n) == 0;
    struct dt_buffer plain = DT_BUFFER_EMPTY;
    unescape(name, &plain);
    bool same = plain.size == strlen(expected) && memcmp(plain.data, expected, plain.size) == 0;
    dt_buffer_release(&plain);
    return same;
}

/* Where a line holds what: values, strings with their quotes; from is NULL where
 * there is none. */
struct found {
    struct span text, id, meta, mark;
};

static void append_span(struct dt_buffer *b, struct span span)
{
    dt_buffer_append(b, span.from, (size_t)(span.to - span.from));
}

/* The name of a member and the colon behind it. */
static bool skip_name(struct reader *r, struct span *name)
{
    if (!skip_string(r, name))
        return false;
    if (!skip_char(r, ':'))
        return fail(r, "':' expected");
    skip_space(r);
    return true;
}

static void add_member(struct dt_buffer *b, const char *comma, struct span name, struct span value)
{
    dt_buffer_add_string(b, comma);
    dt_buffer_add_char(b, '"');
    append_span(b, name);
    dt_buffer_add_string(b, "\":");
    append_span(b, value);
}

/* What follows in the path behind its first name, if that is name; else NULL. */
static const char *path_below(struct span name, const char *path)
{
    size_t n = (size_t)(name.to - name.from);
    return strncmp(path, name.from, n) == 0 && path[n] == '.' && path[n + 1] ? path + n + 1 : NULL;
}

/* Takes the text from below an object; the object's other members are added to
 * others. depth: objects around it. */
static bool take_nested(struct reader *r, const char *path, int depth, struct found *found,
                        struct dt_buffer *others)
{
    const char *comma = "{";
    if (depth > DEEPEST)
        return fail(r, "nesting too deep");
    r->p++;
    if (skip_char(r, '}')) {
        dt_buffer_add_string(others, "{}");
        return true;
    }
    do {
        struct span name;
        if (!skip_name(r, &name))
            return false;
        const char *below = path_below(name, path);
        struct span value = {.from = r->p, .to = r->p};
        bool nested = below && *r->p == '{';
        if (nested)
            add_member(others, comma, name, value);
        if (nested ? !take_nested(r, below, depth + 1, found, others) : !skip_value(r, depth))
            return false;
        value.to = r->p;
        if (!nested && is_named(name, path))
            found->text = value;
        else if (!nested)
            add_member(others, comma, name, value);
        comma = nested || !is_named(name, path) ? "," : comma;
    } while (skip_char(r, ','));
    if (*comma == '{')
        dt_buffer_add_char(others, '{');
    dt_buffer_add_char(others, '}');
    return skip_char(r, '}') || fail(r, "',' or '}' expected");
}

static bool take_member(struct reader *r, const char *field, struct found *found,
                        struct dt_buffer *others)
{
    struct span name;
    if (!skip_name(r, &name))
        return false;
    struct span value = {.from = r->p, .to = r->p};
    const char *below = path_below(name, field);
    if (below && *r->p == '{') {
        add_member(others, ",", name, value);
        return take_nested(r, below, 2, found, others);
    }
    if (!skip_value(r, 1))
        return false;
    value.to = r->p;
    if (is_named(name, field)) {
        found->text = value;
    } else if (is_named(name, "id")) {
        found->id = value;
    } else if (is_named(name, "meta") && (*value.from == '{' || *value.from == 'n')) {
        found->meta = *value.from == '{' ? value : (struct span){NULL, NULL};
    } else if (is_named(name, DT_STREAM_MEMBER)) {
        found->mark = value;
    } else {
        add_member(others, ",", name, value);
    }
    return true;
}

static bool take_members(struct reader *r, const char *field, struct found *found,
                         struct dt_buffer *others)
{
    if (!skip_char(r, '{'))
        return fail(r, "'{' expected");
    if (!skip_char(r, '}')) {
        do {
            if (!take_member(r, field, found, others))
                return false;
        } while (skip_char(r, ','));
        if (!skip_char(r, '}'))
            return fail(r, "',' or '}' expected");
    }
    skip_space(r);
    return true;
}

static struct span without_quotes(struct span string)
{
    return (struct span){string.from + 1, string.to - 1};
}

static void set_id(struct span value, struct dt_buffer *id)
{
    dt_buffer_clear(id);
    if (value.from && *value.from == '"')
        unescape(without_quotes(value), id);
    else if (value.from && *value.from != 'n')
        append_span(id, value);
}

/* Puts the given object, without its last brace, before the members in meta,
 * each of which has a comma in front. */
static void put_before(struct span given, struct dt_buffer *meta)
{
    struct dt_buffer merged = DT_BUFFER_EMPTY;
    bool is_empty = given.from[1 + strspn(given.from + 1, " \t\r")] == '}';
    given.to--;
    append_span(&merged, given);
    dt_buffer_append(&merged, meta->data + is_empty, meta->size - is_empty);
    dt_buffer_release(meta);
    *meta = merged;
}

static void set_meta(struct span given, struct dt_buffer *meta)
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

static int set_mark(struct span given, struct dt_stream_mark *mark, struct dt_error *err)
{
    mark->kind = DT_MARK_NONE;
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
    struct reader r = {.p = line, .end = line + size};
    dt_buffer_clear(&doc->meta);
    if (take_members(&r, field, &found, &doc->meta) && r.p != line + size)
        fail(&r, "text behind the object");
    if (r.reason)
        return dt_fail(err, DT_EFORMAT, "byte %zu: %s", (size_t)(r.p - line),
                       r.p == line + size ? "ends too early" : r.reason);
    if (found.text.from == NULL)
        return dt_fail(err, DT_EFORMAT, "no member \"%s\"", field);
    if (*found.text.from != '"')
        return dt_fail(err, DT_EFORMAT, "member \"%s\" is not a string", field);
    DT_TRY(set_mark(found.mark, mark, err));
    unescape(without_quotes(found.text), &doc->text);
    set_id(found.id, &doc->id);
    set_meta(found.meta, &doc->meta);
    return 0;
}
