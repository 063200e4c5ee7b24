/* SPDX-License-Identifier: MIT */
/* Filters and methods of strings. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pretokenize/regex.h"
#include "template/template-internal.h"
#include "unicode/case.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

/* --- characters -------------------------------------------------------------------------------*/

static int change_case(struct call *c, struct value *result)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    struct value text;
    DT_TRY(dt_template_subject_text(c, &text));
    DT_TRY(dt_template_may_use(c->r, text.size, DT_UNICODE_CASE_MAX));
    dt_case_change((enum dt_case)c->function->number, text.text, text.size, &b);
    return dt_template_buffer(c->r, &b, result);
}

enum { STRIP_LEFT = 1, STRIP_RIGHT = 2 };

static bool is_stripped(struct render *r, const struct value *set, uint32_t code)
{
    if (set == NULL)
        return dt_template_is_space(code);
    dt_template_spend(r, set->size);
    for (size_t i = 0, length; i < set->size && !dt_template_is_spent(r); i += length) {
        uint32_t one;
        length = dt_utf8_next(set->text + i, set->size - i, &one);
        if (one == code)
            return true;
    }
    return false;
}

static int strip(struct call *c, struct value *result)
{
    const struct value *set = c->given[0] && c->a[0].kind != VALUE_NONE ? &c->a[0] : NULL;
    uint32_t code;
    DT_TRY(dt_template_subject_text(c, result));
    if (set)
        DT_TRY(dt_template_want_string(c->r, *set, c->function->name));
    while (c->function->number & STRIP_LEFT && result->size > 0) {
        size_t length = dt_utf8_next(result->text, result->size, &code);
        if (!is_stripped(c->r, set, code))
            break;
        result->text += length;
        result->size -= length;
    }
    while (c->function->number & STRIP_RIGHT && result->size > 0) {
        size_t start = result->size - 1;
        while (start > 0 && ((unsigned char)result->text[start] & 0xc0) == 0x80)
            start--;
        dt_utf8_next(result->text + start, result->size - start, &code);
        if (!is_stripped(c->r, set, code))
            break;
        result->size = start;
    }
    return 0;
}

/* --- pieces of strings ------------------------------------------------------------------------*/

static int add_piece(struct call *c, struct value *result, const char *text, size_t size)
{
    struct value piece = {
        .kind = VALUE_STRING, .text = text, .size = size, .safe = c->subject.safe};
    return dt_template_append(c->r, result->list, piece);
}

size_t dt_template_skip_space(struct value text, size_t at)
{
    uint32_t code;
    size_t length;
    for (; at < text.size; at += length) {
        length = dt_utf8_next(text.text + at, text.size - at, &code);
        if (!dt_template_is_space(code))
            break;
    }
    return at;
}

static size_t skip_word(struct value text, size_t at)
{
    uint32_t code;
    size_t length;
    for (; at < text.size; at += length) {
        length = dt_utf8_next(text.text + at, text.size - at, &code);
        if (dt_template_is_space(code))
            break;
    }
    return at;
}

static int split_at_spaces(struct call *c, int64_t most, struct value *result)
{
    size_t at = dt_template_skip_space(c->subject, 0);
    while (at < c->subject.size) {
        size_t end = most-- == 0 ? c->subject.size : skip_word(c->subject, at);
        DT_TRY(add_piece(c, result, c->subject.text + at, end - at));
        at = dt_template_skip_space(c->subject, end);
    }
    return 0;
}

static int split(struct call *c, struct value *result)
{
    const char *text = c->subject.text, *end = text + c->subject.size, *found;
    int64_t most = dt_template_int_or(c, 1, -1);
    *result = dt_template_list(c->r, LIST_PLAIN);
    if (!c->given[0] || c->a[0].kind == VALUE_NONE)
        return split_at_spaces(c, most, result);
    DT_TRY(dt_template_want_string(c->r, c->a[0], "split"));
    if (c->a[0].size == 0)
        return dt_template_error(c->r, "split: empty separator");
    while (most-- != 0 &&
           (found = memmem(text, (size_t)(end - text), c->a[0].text, c->a[0].size))) {
        DT_TRY(add_piece(c, result, text, (size_t)(found - text)));
        text = found + c->a[0].size;
    }
    return add_piece(c, result, text, (size_t)(end - text));
}

/* The last occurrence of part before end; NULL if there is none. */
static const char *find_last(struct render *r, const char *text, const char *end, struct value part)
{
    size_t size = (size_t)(end - text);
    for (size_t i = size < part.size ? 0 : size - part.size + 1; i-- > 0;) {
        const char *at = text + i;
        dt_template_spend(r, part.size && *at == *part.text ? part.size : 1);
        if (dt_template_is_spent(r))
            return NULL;
        if (part.size == 0 || memcmp(at, part.text, part.size) == 0)
            return at;
    }
    return NULL;
}

static int rsplit(struct call *c, struct value *result)
{
    const char *text = c->subject.text, *end = text + c->subject.size, *found;
    int64_t most = dt_template_int_or(c, 1, -1);
    *result = dt_template_list(c->r, LIST_PLAIN);
    DT_TRY(dt_template_want_string(c->r, c->a[0], "rsplit"));
    if (c->a[0].size == 0)
        return dt_template_error(c->r, "rsplit: empty separator");
    while (most-- != 0 && (found = find_last(c->r, text, end, c->a[0]))) {
        DT_TRY(add_piece(c, result, found + c->a[0].size, (size_t)(end - found) - c->a[0].size));
        end = found;
    }
    DT_TRY(add_piece(c, result, text, (size_t)(end - text)));
    struct list *list = result->list;
    for (size_t i = 0; i < list->count / 2; i++) {
        struct value last = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = list->items[i];
        list->items[i] = last;
    }
    return 0;
}

/* Length of the end of a line at text, 0 if none is there. */
static size_t line_end(const char *text, size_t size)
{
    uint32_t code;
    size_t length = dt_utf8_next(text, size, &code);
    if (code == '\r' && size > 1 && text[1] == '\n')
        return 2;
    return (code >= 10 && code <= 13) || (code >= 0x1c && code <= 0x1e) || code == 0x85 ||
                   code == 0x2028 || code == 0x2029
               ? length
               : 0;
}

static int split_lines(struct call *c, struct value text, struct value *result)
{
    size_t begin = 0, ending;
    *result = dt_template_list(c->r, LIST_PLAIN);
    for (size_t at = 0; at < text.size;) {
        ending = line_end(text.text + at, text.size - at);
        if (ending == 0) {
            at += dt_utf8_length(text.text[at]);
            continue;
        }
        DT_TRY(add_piece(c, result, text.text + begin, at - begin));
        begin = at += ending;
    }
    return begin < text.size ? add_piece(c, result, text.text + begin, text.size - begin) : 0;
}

static int splitlines(struct call *c, struct value *result)
{
    return split_lines(c, c->subject, result);
}

static bool has_affix(struct value text, struct value part, bool start)
{
    return part.kind == VALUE_STRING && text.size >= part.size &&
           memcmp(start ? text.text : text.text + text.size - part.size, part.text, part.size) == 0;
}

/* number: 1 startswith, 0 endswith; the argument may be a tuple. */
static int affix(struct call *c, struct value *result)
{
    struct value part = c->a[0];
    *result = dt_template_bool(false);
    if (part.kind != VALUE_LIST)
        DT_TRY(dt_template_want_string(c->r, part, c->function->name));
    size_t count = part.kind == VALUE_LIST ? part.list->count : 1;
    for (size_t i = 0; i < count && !dt_template_is_spent(c->r); i++) {
        struct value one = part.kind == VALUE_LIST ? part.list->items[i] : part;
        dt_template_spend(c->r, one.kind == VALUE_STRING ? one.size + 1 : 1);
        result->boolean |= has_affix(c->subject, one, c->function->number);
    }
    return 0;
}

static int remove_affix(struct call *c, struct value *result)
{
    DT_TRY(dt_template_want_string(c->r, c->a[0], c->function->name));
    *result = c->subject;
    if (!has_affix(c->subject, c->a[0], c->function->number))
        return 0;
    result->text += c->function->number ? c->a[0].size : 0;
    result->size -= c->a[0].size;
    return 0;
}

static size_t count_of(struct value text, struct value part)
{
    const char *at = text.text, *end = at + text.size;
    size_t count = 0;
    if (part.size == 0)
        return (size_t)dt_utf8_count(text.text, text.size) + 1;
    while ((at = memmem(at, (size_t)(end - at), part.text, part.size))) {
        at += part.size;
        count++;
    }
    return count;
}

int dt_template_count(struct call *c, struct value *result)
{
    int64_t found = 0;
    if (c->subject.kind == VALUE_STRING) {
        DT_TRY(dt_template_want_string(c->r, c->a[0], "count"));
        found = (int64_t)count_of(c->subject, c->a[0]);
    } else {
        for (size_t i = 0; i < c->subject.list->count; i++)
            found += dt_template_equal(c->r, c->subject.list->items[i], c->a[0]);
    }
    *result = dt_template_int(found);
    return 0;
}

static int find(struct call *c, struct value *result)
{
    DT_TRY(dt_template_want_string(c->r, c->a[0], c->function->name));
    const char *text = c->subject.text, *end = text + c->subject.size;
    const char *at = c->function->number ? find_last(c->r, text, end, c->a[0])
                     : c->a[0].size      ? memmem(text, c->subject.size, c->a[0].text, c->a[0].size)
                                         : text;
    *result = dt_template_int(at ? (int64_t)dt_utf8_count(text, (size_t)(at - text)) : -1);
    return 0;
}

/* str.index() and list.index() */
int dt_template_index(struct call *c, struct value *result)
{
    *result = dt_template_int(-1);
    if (c->subject.kind == VALUE_STRING) {
        DT_TRY(find(c, result));
    } else {
        const struct list *list = c->subject.list;
        for (size_t i = 0; i < list->count && result->integer < 0; i++)
            if (dt_template_equal(c->r, list->items[i], c->a[0]))
                *result = dt_template_int((int64_t)i);
    }
    return result->integer >= 0
               ? 0
               : dt_template_error(c->r, "index: the %s does not hold the value",
                                   c->subject.kind == VALUE_STRING ? "text" : "list");
}

/* regex_replace(pattern, repl, count) of lm-evaluation-harness */
static int regex_replace(struct call *c, struct value *result)
{
    struct dt_regex *regex;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    struct value text;
    if (c->r->template->kind != DT_TEMPLATE_TASK)
        return dt_template_error(c->r, "the filter 'regex_replace' is not supported");
    if (dt_template_int_or(c, 2, 0) != 0)
        return dt_template_error(c->r, "regex_replace with a count is not supported");
    DT_TRY(dt_template_subject_text(c, &text));
    DT_TRY(dt_template_want_string(c->r, c->a[0], "regex_replace"));
    DT_TRY(dt_template_want_string(c->r, c->a[1], "regex_replace"));
    DT_TRY(dt_template_may_use(c->r, text.size + 1, c->a[1].size + 1));
    char *pattern = dt_template_copy(&c->r->arena, c->a[0].text, c->a[0].size);
    char *replacement = dt_template_copy(&c->r->arena, c->a[1].text, c->a[1].size);
    DT_TRY(dt_regex_new_python(&regex, pattern, "regex_replace", c->r->err));
    int rc = dt_regex_substitute(regex, replacement, text.text, text.size, &b, c->r->err);
    dt_regex_free(regex);
    return dt_template_finish(c, &b, rc, result);
}

static int replace(struct call *c, struct value *result)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    struct value text, old = c->a[0], new = c->a[1];
    int64_t most = dt_template_int_or(c, 2, -1);
    DT_TRY(dt_template_subject_text(c, &text));
    DT_TRY(dt_template_want_string(c->r, old, "replace"));
    DT_TRY(dt_template_want_string(c->r, new, "replace"));
    if (old.size == 0)
        return dt_template_error(c->r, "replacing an empty string is not supported");
    DT_TRY(dt_template_may_use(c->r, count_of(text, old) + 1, new.size + 1));
    const char *at = text.text, *end = at + text.size, *found;
    while (most-- != 0 && (found = memmem(at, (size_t)(end - at), old.text, old.size))) {
        dt_buffer_append(&b, at, (size_t)(found - at));
        dt_buffer_append(&b, new.text, new.size);
        at = found + old.size;
    }
    dt_buffer_append(&b, at, (size_t)(end - at));
    return dt_template_buffer(c->r, &b, result);
}

/* One {} of str.format: its argument. */
static int format_argument(struct call *c, const char *field, size_t size, size_t *next,
                           struct value *value)
{
    char *end, name[64];
    snprintf(name, sizeof name, "%.*s", (int)size, field);
    if (strcspn(name, ".[:!") != size)
        return dt_template_error(c->r, "format: '{%s}' is not supported", name);
    size_t at = size ? strtoul(name, &end, 10) : (*next)++;
    if (size == 0 || *end == 0) {
        if (at >= c->count)
            return dt_template_error(c->r, "format: no argument for '{%s}'", name);
        *value = c->arguments[at];
        return 0;
    }
    for (size_t i = 0; i < c->name_count; i++)
        if (strcmp(c->names[i], name) == 0) {
            *value = c->arguments[c->count + i];
            return 0;
        }
    return dt_template_error(c->r, "format: no argument '%s'", name);
}

static int add_formatted(struct call *c, struct dt_buffer *b)
{
    const char *at = c->subject.text, *end = at + c->subject.size;
    size_t next = 0;
    for (; at < end; at++) {
        if (*at != '{' && *at != '}') {
            dt_buffer_add_char(b, *at);
            continue;
        }
        if (at + 1 < end && at[1] == *at) {
            dt_buffer_add_char(b, *at++);
            continue;
        }
        const char *close = memchr(at, '}', (size_t)(end - at));
        struct value value;
        if (*at == '}' || close == NULL)
            return dt_template_error(c->r, "format: a single '%c'", *at);
        DT_TRY(format_argument(c, at + 1, (size_t)(close - at - 1), &next, &value));
        DT_TRY(dt_template_add_text(c->r, value, b));
        at = close;
    }
    return 0;
}

static int format(struct call *c, struct value *result)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    return dt_template_finish(c, &b, add_formatted(c, &b), result);
}

static int add_indented(struct call *c, const struct list *lines, struct value indent,
                        struct dt_buffer *b)
{
    bool first = c->given[1] && dt_template_is_true(c->a[1]);
    bool blank = c->given[2] && dt_template_is_true(c->a[2]);
    for (size_t i = 0; i < lines->count; i++) {
        dt_buffer_add_string(b, i ? "\n" : "");
        if (i == 0 ? first : blank || lines->items[i].size > 0)
            DT_TRY(dt_template_add_text(c->r, indent, b));
        DT_TRY(dt_template_add_text(c->r, lines->items[i], b));
    }
    return 0;
}

static int indent(struct call *c, struct value *result)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    struct value text, with = c->a[0], lines;
    if (!c->given[0] || with.kind == VALUE_INT) {
        int64_t width = dt_template_int_or(c, 0, 4);
        DT_TRY(dt_template_may_use(c->r, width > 0 ? (size_t)width : 0, 1));
        for (int64_t i = 0; i < width; i++)
            dt_buffer_add_char(&b, ' ');
        DT_TRY(dt_template_buffer(c->r, &b, &with));
    }
    DT_TRY(dt_template_want_string(c->r, with, "indent"));
    DT_TRY(dt_template_want_string(c->r, c->subject, "indent"));
    DT_TRY(dt_template_subject_text(c, &text));
    dt_buffer_append(&b, text.text, text.size);
    dt_buffer_add_char(&b, '\n');
    DT_TRY(dt_template_buffer(c->r, &b, &text));
    DT_TRY(split_lines(c, text, &lines));
    return dt_template_finish(c, &b, add_indented(c, lines.list, with, &b), result);
}

/* --- tables
 * --------------------------------------------------------------------------------------*/

const struct function dt_template_string_filters[] = {
    {"capitalize", "", change_case, DT_CASE_CAPITALIZE},
    {"indent", "width first blank", indent, 0},
    {"lower", "", change_case, DT_CASE_LOWER},
    {"regex_replace", "pattern repl / count", regex_replace, 0, SAFE_IS_LOST},
    {"replace", "old new / count", replace, 0, SAFE_IS_LOST},
    {"trim", "chars", strip, STRIP_LEFT | STRIP_RIGHT},
    {"upper", "", change_case, DT_CASE_UPPER},
    {NULL, NULL, NULL, 0},
};

const struct function dt_template_string_methods[] = {
    {"capitalize", "", change_case, DT_CASE_CAPITALIZE},
    {"count", "sub /", dt_template_count, 0},
    {"endswith", "suffix /", affix, 0},
    {"find", "sub /", find, 0},
    {"format", "*", format, 0, SAFE_IS_REFUSED},
    {"index", "sub /", dt_template_index, 0},
    {"join", "iterable /", dt_template_join, 1, SAFE_IS_REFUSED},
    {"lower", "", change_case, DT_CASE_LOWER},
    {"lstrip", "chars", strip, STRIP_LEFT},
    {"removeprefix", "prefix /", remove_affix, 1},
    {"removesuffix", "suffix /", remove_affix, 0},
    {"replace", "old new / count", replace, 0, SAFE_IS_REFUSED},
    {"rfind", "sub /", find, 1},
    {"rsplit", "sep / maxsplit", rsplit, 0},
    {"rstrip", "chars", strip, STRIP_RIGHT},
    {"split", "sep maxsplit", split, 0},
    {"splitlines", "", splitlines, 0},
    {"startswith", "prefix /", affix, 1},
    {"strip", "chars", strip, STRIP_LEFT | STRIP_RIGHT},
    {"upper", "", change_case, DT_CASE_UPPER},
    {NULL, NULL, NULL, 0},
};
