/* SPDX-License-Identifier: MIT */
/* tojson: Python's json.dumps. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "template/template-internal.h"
#include "unicode/utf8.h"

struct json_style {
    const char *item, *member; /* separators */
    int64_t indent;            /* -1: on one line */
    bool sort, ascii;
    bool html; /* <, >, & and ' as escapes */
};

static int add_json(struct render *r, const struct json_style *s, struct value v, int64_t depth,
                    struct dt_buffer *b);

static void add_json_string(const struct json_style *s, struct dt_buffer *b, const char *text,
                            size_t size)
{
    const bool ascii = s->ascii;
    static const char letters[] = "\"\\\n\r\t\f\b", meanings[] = "\"\\nrtfb";
    dt_buffer_add_char(b, '"');
    for (size_t i = 0, length; i < size; i += length) {
        uint32_t code;
        length = dt_utf8_next(text + i, size - i, &code);
        const char *letter = code && code < 128 ? strchr(letters, (int)code) : NULL;
        if (letter)
            dt_buffer_printf(b, "\\%c", meanings[letter - letters]);
        else if (code < 0x20 || (ascii && code >= 0x7f && code < 0x10000) ||
                 (s->html && code < 0x7f && strchr("<>&'", (int)code)))
            dt_buffer_printf(b, "\\u%04" PRIx32, code);
        else if (ascii && code >= 0x10000)
            dt_buffer_printf(b, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd7c0 + (code >> 10),
                             0xdc00 + (code & 0x3ff));
        else
            dt_buffer_append(b, text + i, length);
    }
    dt_buffer_add_char(b, '"');
}

/* Before item i of count, or, with i == count, after the last. */
static void add_json_space(const struct json_style *s, size_t i, size_t count, int64_t depth,
                           struct dt_buffer *b)
{
    if (i > 0 && i < count)
        dt_buffer_add_string(b, s->item);
    if (s->indent < 0 || count == 0)
        return;
    dt_buffer_add_char(b, '\n');
    for (int64_t n = s->indent * (i < count ? depth + 1 : depth); n > 0; n--)
        dt_buffer_add_char(b, ' ');
}

static int by_key(const void *a, const void *b)
{
    const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
    size_t size = x->key.size < y->key.size ? x->key.size : y->key.size;
    int order = memcmp(x->key.text, y->key.text, size);
    return order ? order : (x->key.size > y->key.size) - (x->key.size < y->key.size);
}

static int add_json_key(struct render *r, const struct json_style *s, struct value key,
                        struct dt_buffer *b)
{
    if (key.kind == VALUE_STRING) {
        add_json_string(s, b, key.text, key.size);
        return 0;
    }
    dt_buffer_add_char(b, '"');
    DT_TRY(add_json(r, s, key, 0, b));
    dt_buffer_add_char(b, '"');
    return 0;
}

static int add_json_dict(struct render *r, const struct json_style *s, const struct dict *d,
                         int64_t depth, struct dt_buffer *b)
{
    struct entry **order = dt_template_alloc(&r->arena, d->count * sizeof *order);
    for (size_t i = 0; i < d->count; i++) {
        order[i] = &d->entries[i];
        if (s->sort && order[i]->key.kind != VALUE_STRING)
            return dt_template_error(r, "tojson sorts keys that are strings only");
    }
    if (s->sort && d->count > 0)
        qsort(order, d->count, sizeof *order, by_key);
    dt_buffer_add_char(b, '{');
    for (size_t i = 0; i < d->count; i++) {
        add_json_space(s, i, d->count, depth, b);
        DT_TRY(add_json_key(r, s, order[i]->key, b));
        dt_buffer_add_string(b, s->member);
        DT_TRY(add_json(r, s, order[i]->value, depth + 1, b));
    }
    add_json_space(s, d->count, d->count, depth, b);
    dt_buffer_add_char(b, '}');
    return 0;
}

static int add_json(struct render *r, const struct json_style *s, struct value v, int64_t depth,
                    struct dt_buffer *b)
{
    if (depth > 100)
        return dt_template_error(r, "tojson: values are nested more than 100 deep");
    DT_TRY(dt_template_may_use(r, b->size, 1));
    switch (v.kind) {
    case VALUE_NONE:
        dt_buffer_add_string(b, "null");
        return 0;
    case VALUE_BOOL:
        dt_buffer_add_string(b, v.boolean ? "true" : "false");
        return 0;
    case VALUE_STRING:
        DT_TRY(dt_template_may_use(r, b->size + v.size, 1));
        add_json_string(s, b, v.text, v.size);
        return 0;
    case VALUE_INT:
        return dt_template_add_text(r, v, b);
    case VALUE_FLOAT:
        return isfinite(v.real) ? dt_template_add_text(r, v, b)
                                : dt_template_error(r, "tojson of a number that is not finite");
    case VALUE_DICT:
        return add_json_dict(r, s, v.dict, depth, b);
    case VALUE_LIST:
        if (v.list->kind > LIST_TUPLE)
            return dt_template_error(r, "tojson of a generator or view: use |list");
        dt_buffer_add_char(b, '[');
        for (size_t i = 0; i < v.list->count; i++) {
            add_json_space(s, i, v.list->count, depth, b);
            DT_TRY(add_json(r, s, v.list->items[i], depth + 1, b));
        }
        add_json_space(s, v.list->count, v.list->count, depth, b);
        dt_buffer_add_char(b, ']');
        return 0;
    default:
        return dt_template_error(r, "tojson of %s", dt_template_kind_name(v));
    }
}

/* The arguments of Jinja's own tojson, which has only indent. */
static int bind_of_task(struct call *c)
{
    bool first = c->given[0] && c->count == 1;
    if (c->given[0] + c->given[1] > 1 || c->given[0] != first || c->given[2] || c->given[3])
        return dt_template_error(c->r, "tojson of a task has no argument but indent");
    if (first)
        c->a[1] = c->a[0];
    c->given[1] |= first;
    return 0;
}

/* ensure_ascii, indent, separators, sort_keys, as transformers has them; in tasks Jinja's own, for
 * HTML. */
int dt_template_tojson(struct call *c, struct value *result)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    bool task = c->r->template->kind == DT_TEMPLATE_TASK;
    if (task)
        DT_TRY(bind_of_task(c));
    struct json_style s = {.indent = -1,
                           .member = ": ",
                           .sort = task || (c->given[3] && dt_template_is_true(c->a[3])),
                           .ascii = task || (c->given[0] && dt_template_is_true(c->a[0])),
                           .html = task};
    if (c->given[1] && c->a[1].kind != VALUE_NONE) {
        s.indent = dt_template_int_or(c, 1, 0);
        s.indent = s.indent < 0 ? 0 : s.indent;
    }
    s.item = s.indent >= 0 ? "," : ", ";
    if (s.indent > 100 || (c->given[1] && c->a[1].kind != VALUE_INT && c->a[1].kind != VALUE_NONE))
        return dt_template_error(c->r, "tojson: indent is not an integer up to 100");
    if (!task && c->given[2] && c->a[2].kind != VALUE_NONE) {
        const struct list *l = c->a[2].kind == VALUE_LIST ? c->a[2].list : NULL;
        if (l == NULL || l->count != 2 || l->items[0].kind != VALUE_STRING ||
            l->items[1].kind != VALUE_STRING)
            return dt_template_error(c->r, "tojson: separators are two strings");
        s.item = dt_template_copy(&c->r->arena, l->items[0].text, l->items[0].size);
        s.member = dt_template_copy(&c->r->arena, l->items[1].text, l->items[1].size);
    }
    DT_TRY(dt_template_finish(c, &b, add_json(c->r, &s, c->subject, 0, &b), result));
    result->safe = task;
    return 0;
}
