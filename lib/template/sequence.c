/* SPDX-License-Identifier: MIT */
/* Filters and methods of lists, dictionaries and what else has items. */
#include <stdlib.h>
#include <string.h>

#include "template/template-internal.h"
#include "unicode/utf8.h"

static int length(struct call *c, struct value *result)
{
    switch (c->subject.kind) {
    case VALUE_STRING:
        *result = dt_template_int((int64_t)dt_utf8_count(c->subject.text, c->subject.size));
        return 0;
    case VALUE_DICT:
        *result = dt_template_int((int64_t)c->subject.dict->count);
        return 0;
    case VALUE_UNDEFINED:
        *result = dt_template_int(0);
        return 0;
    case VALUE_LIST:
        *result = dt_template_int((int64_t)c->subject.list->count);
        if (c->subject.list->kind != LIST_GENERATOR)
            return 0;
        return dt_template_error(c->r, "a generator has no length: use |list");
    default:
        return dt_template_error(c->r, "%s has no length", dt_template_kind_name(c->subject));
    }
}

static int to_list(struct call *c, struct value *result)
{
    const struct list *items;
    DT_TRY(dt_template_iterate(c->r, c->subject, &items));
    *result = dt_template_list(c->r, LIST_PLAIN);
    for (size_t i = 0; i < items->count; i++)
        DT_TRY(dt_template_append(c->r, result->list, items->items[i]));
    return 0;
}

/* The first item of a generator, which has the others left. */
static void next_item(struct list *generator, struct value *item)
{
    *item = *generator->items++;
    generator->count--;
}

/* number: 0 first, 1 last */
static int end_item(struct call *c, struct value *result)
{
    const struct list *items;
    if (c->subject.kind == VALUE_LIST && c->subject.list->kind == LIST_GENERATOR) {
        if (c->function->number)
            return dt_template_error(c->r, "a generator has no last item: use |list");
        if (c->subject.list->count > 0) {
            next_item(c->subject.list, result);
            return 0;
        }
    }
    DT_TRY(dt_template_iterate(c->r, c->subject, &items));
    *result = items->count ? items->items[c->function->number ? items->count - 1 : 0]
                           : dt_template_undefined(c->r, "an item of an empty sequence");
    return 0;
}

static int reverse(struct call *c, struct value *result)
{
    const struct list *items;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    DT_TRY(dt_template_iterate(c->r, c->subject, &items));
    *result = dt_template_list(c->r, LIST_GENERATOR);
    for (size_t i = items->count; i-- > 0;) {
        if (c->subject.kind == VALUE_STRING)
            dt_buffer_append(&b, items->items[i].text, items->items[i].size);
        else
            DT_TRY(dt_template_append(c->r, result->list, items->items[i]));
    }
    return c->subject.kind == VALUE_STRING ? dt_template_buffer(c->r, &b, result) : 0;
}

/* An item, or otherwise, which may be NULL, if there is none. */
static int item_or(struct render *r, struct value of, struct value key,
                   const struct value *otherwise, struct value *result)
{
    DT_TRY(dt_template_item(r, of, key, result));
    if (result->kind == VALUE_UNDEFINED && otherwise && otherwise->kind != VALUE_NONE)
        *result = *otherwise;
    return 0;
}

/* a.b.0 of a value, as filters take attributes. */
static int path_of(struct render *r, struct value of, struct value path,
                   const struct value *otherwise, struct value *result)
{
    *result = of;
    if (path.kind == VALUE_INT)
        return item_or(r, of, path, otherwise, result);
    DT_TRY(dt_template_want_string(r, path, "attribute"));
    for (const char *at = path.text, *end = at + path.size; at <= end;) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        size_t size = (size_t)((dot ? dot : end) - at);
        char *stop, *name = dt_template_copy(&r->arena, at, size);
        struct value key = {.kind = VALUE_STRING, .text = name, .size = size};
        long index = strtol(name, &stop, 10);
        if (size > 0 && *stop == 0)
            key = dt_template_int(index);
        DT_TRY(item_or(r, *result, key, otherwise, result));
        at += size + 1;
    }
    return 0;
}

/* What a filter sorts or compares by: the attribute, if one is given, without case. */
static int key_of(struct call *c, struct value item, int attribute, int sensitive,
                  struct value *key)
{
    *key = item;
    if (c->given[attribute] && c->a[attribute].kind != VALUE_NONE)
        DT_TRY(path_of(c->r, item, c->a[attribute], NULL, key));
    if (key->kind != VALUE_STRING || (c->given[sensitive] && dt_template_is_true(c->a[sensitive])))
        return 0;
    return dt_template_invoke(c->r, dt_template_find_filter("lower"), *key, NULL, 0, NULL, 0, key);
}

enum { MOST_SORTED = 10000 };

/* Stable insertion of items by keys; reversed order keeps equal items in order, too. */
static int sort_by(struct call *c, struct list *items, struct list *keys, bool descending)
{
    if (items->count > MOST_SORTED)
        return dt_template_error(c->r, "sorts at most %d items, not %zu", MOST_SORTED,
                                 items->count);
    for (size_t i = 1; i < items->count; i++) {
        struct value item = items->items[i], key = keys->items[i];
        size_t at = i;
        for (; at > 0; at--) {
            int order;
            DT_TRY(dt_template_compare(c->r, keys->items[at - 1], key, &order));
            if (descending ? order >= 0 : order <= 0)
                break;
            items->items[at] = items->items[at - 1];
            keys->items[at] = keys->items[at - 1];
        }
        items->items[at] = item;
        keys->items[at] = key;
    }
    return 0;
}

/* sort(reverse, case_sensitive, attribute) */
static int sort(struct call *c, struct value *result)
{
    struct list *keys = dt_template_list(c->r, LIST_PLAIN).list;
    DT_TRY(to_list(c, result));
    for (size_t i = 0; i < result->list->count; i++) {
        struct value key;
        DT_TRY(key_of(c, result->list->items[i], 2, 1, &key));
        DT_TRY(dt_template_append(c->r, keys, key));
    }
    return sort_by(c, result->list, keys, c->given[0] && dt_template_is_true(c->a[0]));
}

static int items_of(struct call *c, const struct dict *d, enum list_kind kind, struct value *result)
{
    *result = dt_template_list(c->r, kind);
    for (size_t i = 0; i < d->count; i++) {
        struct value pair = dt_template_list(c->r, LIST_TUPLE);
        DT_TRY(dt_template_append(c->r, pair.list, d->entries[i].key));
        DT_TRY(dt_template_append(c->r, pair.list, d->entries[i].value));
        DT_TRY(dt_template_append(c->r, result->list, pair));
    }
    return 0;
}

/* dictsort(case_sensitive, by, reverse) */
static int dictsort(struct call *c, struct value *result)
{
    struct list *keys = dt_template_list(c->r, LIST_PLAIN).list;
    bool by_value = c->given[1] && c->a[1].kind == VALUE_STRING && strcmp(c->a[1].text, "key") != 0;
    if (c->subject.kind != VALUE_DICT)
        return dt_template_error(c->r, "dictsort wants a dictionary, not %s",
                                 dt_template_kind_name(c->subject));
    DT_TRY(items_of(c, c->subject.dict, LIST_PLAIN, result));
    for (size_t i = 0; i < result->list->count; i++) {
        struct value key, pair = result->list->items[i];
        DT_TRY(key_of(c, pair.list->items[by_value], MOST_ARGUMENTS - 1, 0, &key));
        DT_TRY(dt_template_append(c->r, keys, key));
    }
    return sort_by(c, result->list, keys, c->given[2] && dt_template_is_true(c->a[2]));
}

/* number: 0 the items as a generator (filter), 1 as a view, 2 keys, 3 values */
static int items(struct call *c, struct value *result)
{
    int what = c->function->number;
    if (c->subject.kind == VALUE_UNDEFINED) {
        *result = dt_template_list(c->r, LIST_GENERATOR);
        return 0;
    }
    if (c->subject.kind != VALUE_DICT)
        return dt_template_error(c->r, "items wants a dictionary, not %s",
                                 dt_template_kind_name(c->subject));
    if (what < 2)
        return items_of(c, c->subject.dict, what ? LIST_VIEW : LIST_GENERATOR, result);
    *result = dt_template_list(c->r, LIST_VIEW);
    for (size_t i = 0; i < c->subject.dict->count; i++) {
        const struct entry *e = &c->subject.dict->entries[i];
        DT_TRY(dt_template_append(c->r, result->list, what == 2 ? e->key : e->value));
    }
    return 0;
}

/* unique(case_sensitive, attribute) */
static int unique(struct call *c, struct value *result)
{
    const struct list *all;
    struct list *keys = dt_template_list(c->r, LIST_PLAIN).list;
    DT_TRY(dt_template_iterate(c->r, c->subject, &all));
    *result = dt_template_list(c->r, LIST_GENERATOR);
    for (size_t i = 0; i < all->count; i++) {
        struct value key;
        bool found = false;
        DT_TRY(key_of(c, all->items[i], 1, 0, &key));
        for (size_t j = 0; j < keys->count && !found; j++)
            found = dt_template_equal(c->r, keys->items[j], key);
        DT_TRY(dt_template_check_spent(c->r));
        if (found)
            continue;
        DT_TRY(dt_template_append(c->r, keys, key));
        DT_TRY(dt_template_append(c->r, result->list, all->items[i]));
    }
    return 0;
}

/* min and max(case_sensitive, attribute); number: 0 min, 1 max */
static int extreme(struct call *c, struct value *result)
{
    const struct list *all;
    struct value best = dt_template_none(), key;
    int order;
    DT_TRY(dt_template_iterate(c->r, c->subject, &all));
    *result = dt_template_undefined(c->r, "an item of an empty sequence");
    for (size_t i = 0; i < all->count; i++) {
        DT_TRY(key_of(c, all->items[i], 1, 0, &key));
        order = -1;
        if (i > 0)
            DT_TRY(c->function->number ? dt_template_compare(c->r, best, key, &order)
                                       : dt_template_compare(c->r, key, best, &order));
        if (order >= 0)
            continue;
        best = key;
        *result = all->items[i];
    }
    return 0;
}

int dt_template_join(struct call *c, struct value *result)
{
    const struct list *all;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    struct value separator = c->given[0] ? c->a[0] : dt_template_text("");
    bool method = c->function->number;
    int rc = dt_template_iterate(c->r, method ? c->a[0] : c->subject, &all);
    if (method)
        separator = c->subject;
    for (size_t i = 0; rc == 0 && i < all->count; i++) {
        struct value item = all->items[i];
        if (method)
            rc = dt_template_want_string(c->r, item, "join");
        else if (c->given[1])
            rc = path_of(c->r, item, c->a[1], NULL, &item);
        if (rc == 0 && i > 0)
            rc = dt_template_add_text(c->r, separator, &b);
        rc = rc == 0 ? dt_template_add_text(c->r, item, &b) : rc;
    }
    return dt_template_finish(c, &b, rc, result);
}

/* Calls a filter or test by its name with the arguments of c from `from` on. */
static int call_named(struct call *c, const struct function *f, struct value subject, size_t from,
                      struct value *result)
{
    if (!dt_template_takes_undefined(f))
        DT_TRY(dt_template_want_usable(c->r, subject));
    return dt_template_invoke(c->r, f, subject, c->arguments + from, c->count - from, c->names,
                              c->name_count, result);
}

/* The value of NAME=; NULL if it is not given. */
static const struct value *named(const struct call *c, const char *name)
{
    for (size_t i = 0; i < c->name_count; i++)
        if (strcmp(c->names[i], name) == 0)
            return &c->arguments[c->count + i];
    return NULL;
}

static int map_item(struct call *c, struct value item, struct value *result)
{
    const struct value *attribute = named(c, "attribute"), *otherwise = named(c, "default");
    if (attribute)
        return path_of(c->r, item, *attribute, otherwise, result);
    if (c->count == 0 || c->arguments[0].kind != VALUE_STRING)
        return dt_template_error(c->r, "map wants a filter or attribute=");
    const struct function *f = dt_template_find_filter(c->arguments[0].text);
    if (f == NULL)
        return dt_template_error(c->r, "the filter '%s' is not supported", c->arguments[0].text);
    return call_named(c, f, item, 1, result);
}

static int map(struct call *c, struct value *result)
{
    const struct list *all;
    *result = dt_template_list(c->r, LIST_GENERATOR);
    if (!dt_template_is_true(c->subject)) /* None, too */
        return 0;
    DT_TRY(dt_template_iterate(c->r, c->subject, &all));
    for (size_t i = 0; i < all->count; i++) {
        struct value item;
        DT_TRY(map_item(c, all->items[i], &item));
        DT_TRY(dt_template_append(c->r, result->list, item));
    }
    return 0;
}

enum { SELECT_REJECTS = 1, SELECT_BY_ATTRIBUTE = 2 };

/* select, reject, selectattr, rejectattr */
static int select_items(struct call *c, struct value *result)
{
    const struct list *all;
    size_t by = (c->function->number & SELECT_BY_ATTRIBUTE) != 0;
    const struct function *test = NULL;
    *result = dt_template_list(c->r, LIST_GENERATOR);
    if (!dt_template_is_true(c->subject)) /* None, too */
        return 0;
    if (c->count < by)
        return dt_template_error(c->r, "%s wants an attribute", c->function->name);
    if (c->count > by) {
        DT_TRY(dt_template_want_string(c->r, c->arguments[by], c->function->name));
        test = dt_template_find_test(c->arguments[by].text);
        if (test == NULL)
            return dt_template_error(c->r, "the test '%s' is not supported", c->arguments[by].text);
    }
    DT_TRY(dt_template_iterate(c->r, c->subject, &all));
    for (size_t i = 0; i < all->count; i++) {
        struct value item = all->items[i];
        if (by)
            DT_TRY(path_of(c->r, item, c->arguments[0], NULL, &item));
        if (test)
            DT_TRY(call_named(c, test, item, by + 1, &item));
        else
            DT_TRY(dt_template_want_usable(c->r, item));
        if (dt_template_is_true(item) != (c->function->number & SELECT_REJECTS))
            DT_TRY(dt_template_append(c->r, result->list, all->items[i]));
    }
    return 0;
}

static int get(struct call *c, struct value *result)
{
    const struct value *found = dt_template_dict_find(c->r, c->subject.dict, c->a[0]);
    *result = found ? *found : c->given[1] ? c->a[1] : dt_template_none();
    return 0;
}

/* --- tables
 * --------------------------------------------------------------------------------------*/

const struct function dt_template_sequence_filters[] = {
    {"count", "", length, 0},
    {"dictsort", "case_sensitive by reverse", dictsort, 0},
    {"first", "", end_item, 0, SAFE_IS_LOST},
    {"items", "", items, 0},
    {"join", "d attribute", dt_template_join, 0, SAFE_IS_LOST},
    {"last", "", end_item, 1},
    {"length", "", length, 0},
    {"list", "", to_list, 0},
    {"map", "*", map, 0},
    {"max", "case_sensitive attribute", extreme, 1},
    {"min", "case_sensitive attribute", extreme, 0},
    {"reject", "*", select_items, SELECT_REJECTS},
    {"rejectattr", "*", select_items, SELECT_REJECTS | SELECT_BY_ATTRIBUTE},
    {"reverse", "", reverse, 0},
    {"select", "*", select_items, 0},
    {"selectattr", "*", select_items, SELECT_BY_ATTRIBUTE},
    {"sort", "reverse case_sensitive attribute", sort, 0},
    {"unique", "case_sensitive attribute", unique, 0},
    {NULL, NULL, NULL, 0},
};

const struct function dt_template_dict_methods[] = {
    {"get", "key / default", get, 0}, {"items", "", items, 1}, {"keys", "", items, 2},
    {"values", "", items, 3},         {NULL, NULL, NULL, 0},
};
