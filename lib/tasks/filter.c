/* SPDX-License-Identifier: MIT */
#include "tasks/filter.h"

#include <stdlib.h>
#include <string.h>

#include "eval/translation-words.h"
#include "tasks/task-internal.h"
#include "unicode/case.h"
#include "unicode/utf8.h"

#define NUMBER_AFTER_MARKS "#### (\\-?[0-9\\.\\,]+)" /* the default of the harness */

/* --- texts ------------------------------------------------------------------------------------*/

static void set(struct dt_buffer *b, const char *text, size_t size)
{
    dt_buffer_clear(b);
    dt_buffer_append(b, text, size);
}

static size_t space_at(const char *text, size_t size)
{
    uint32_t point;
    size_t taken = size > 0 ? dt_utf8_next(text, size, &point) : 0;
    return taken > 0 && dt_translation_words_is_space(point) ? taken : 0;
}

/* str.strip() */
static void strip(struct dt_buffer *b)
{
    size_t from = 0, end = 0, taken;
    while ((taken = space_at(b->data + from, b->size - from)) > 0)
        from += taken;
    for (size_t at = from; at < b->size; at += taken ? taken : 1) {
        taken = space_at(b->data + at, b->size - at);
        end = taken ? end : at + 1;
    }
    struct dt_buffer kept = DT_BUFFER_EMPTY;
    if (end > from)
        dt_buffer_append(&kept, b->data + from, end - from);
    dt_buffer_release(b);
    *b = kept;
}

/* str.upper() or str.lower() */
static void change_case(struct dt_buffer *b, enum dt_case how)
{
    struct dt_buffer changed = DT_BUFFER_EMPTY;
    dt_case_change(how, b->data, b->size, &changed);
    dt_buffer_release(b);
    *b = changed;
}

/* --- filters ----------------------------------------------------------------------------------*/

/* The match with the index group, from the end if it is negative; false without one. */
static bool find_match(const struct dt_task_step *s, const struct dt_buffer *b,
                       struct dt_regex_match *found)
{
    struct dt_regex_match m = {.at = 0};
    long count = 0, wanted = s->group;
    const char *text = b->size ? b->data : "";
    while (dt_regex_next(s->regex, text, b->size, &m))
        if (count++ == wanted || wanted < 0)
            *found = m;
    if (wanted >= -1)
        return wanted < 0 ? count > 0 : count > wanted;
    wanted += count;
    m = (struct dt_regex_match){.at = 0};
    for (long i = 0; i <= wanted; i++)
        if (dt_regex_next(s->regex, text, b->size, &m))
            *found = m;
    return wanted >= 0;
}

/* What re.findall() gives of a match: its group, the first of several that is not empty, or all. */
static void apply_regex(const struct dt_task_step *s, struct dt_buffer *b)
{
    struct dt_regex_match m;
    size_t groups = dt_regex_group_count(s->regex), group = groups > 0;
    if (!find_match(s, b, &m)) {
        set(b, s->fallback, strlen(s->fallback));
        return;
    }
    while (group < groups &&
           (m.slots[2 * group + 1] == SIZE_MAX || m.slots[2 * group] == m.slots[2 * group + 1]))
        group++;
    struct dt_buffer found = DT_BUFFER_EMPTY;
    size_t start = m.slots[2 * group], end = m.slots[2 * group + 1];
    if (end != SIZE_MAX && end > start)
        dt_buffer_append(&found, b->data + start, end - start);
    else if (groups > 1)
        dt_buffer_add_string(&found, s->fallback);
    dt_buffer_release(b);
    *b = found;
    strip(b);
}

static void apply_map(const struct dt_task_step *s, struct dt_buffer *b)
{
    struct json_object *value;
    char *key = dt_strndup(b->size ? b->data : "", b->size);
    const char *to =
        json_object_object_get_ex(s->map, key, &value) ? dt_json_text(value) : s->fallback;
    set(b, to, strlen(to));
    free(key);
}

void dt_task_filter_apply(const struct dt_task_filter *filter, const char *text, size_t size,
                          struct dt_buffer *out)
{
    set(out, text, size);
    for (size_t i = 0; i < filter->count; i++) {
        const struct dt_task_step *s = &filter->steps[i];
        if (s->kind == DT_TASK_STEP_REGEX)
            apply_regex(s, out);
        else if (s->kind == DT_TASK_STEP_MAP)
            apply_map(s, out);
        else if (s->kind == DT_TASK_STEP_REMOVE_WHITESPACE)
            strip(out);
        else if (s->kind != DT_TASK_STEP_TAKE_FIRST)
            change_case(out, s->kind == DT_TASK_STEP_UPPERCASE ? DT_CASE_UPPER : DT_CASE_LOWER);
    }
}

/* --- exact match ------------------------------------------------------------------------------*/

static bool is_left_out(const struct dt_task_metric *m, char c)
{
    bool digit = c >= '0' && c <= '9';
    bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    bool punctuation = c > ' ' && c < 0x7f && !digit && !letter;
    return (m->ignore_numbers && digit) || (m->ignore_punctuation && punctuation);
}

static void normalize(const struct dt_task_metric *m, struct dt_buffer *b)
{
    for (size_t i = 0; i < m->ignored_count; i++) {
        struct dt_buffer out = DT_BUFFER_EMPTY;
        struct dt_error none;
        int rc =
            dt_regex_substitute(m->ignored[i], "", b->size ? b->data : "", b->size, &out, &none);
        (void)rc; /* an empty replacement has no escapes */
        dt_buffer_release(b);
        *b = out;
    }
    if (m->ignore_case)
        change_case(b, DT_CASE_LOWER);
    size_t kept = 0;
    for (size_t i = 0; i < b->size; i++)
        if (!is_left_out(m, b->data[i]))
            b->data[kept++] = b->data[i];
    b->size = kept;
}

bool dt_task_matches(const struct dt_task_metric *metric, const char *text, size_t size,
                     const char *right)
{
    struct dt_buffer a = DT_BUFFER_EMPTY, b = DT_BUFFER_EMPTY;
    set(&a, text, size);
    set(&b, right, strlen(right));
    normalize(metric, &a);
    normalize(metric, &b);
    bool same = a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
    dt_buffer_release(&a);
    dt_buffer_release(&b);
    return same;
}

/* --- filter_list ------------------------------------------------------------------------------*/

static const char *const functions[DT_TASK_STEP_COUNT] = {
    "regex", "take_first", "remove_whitespace", "lowercase", "uppercase", "map"};

static int find_function(const struct dt_task *t, struct dt_task_step *s, const char *name,
                         struct dt_error *err)
{
    for (int i = 0; i < DT_TASK_STEP_COUNT; i++)
        if (strcmp(name, functions[i]) == 0) {
            s->kind = (enum dt_task_step_kind)i;
            return 0;
        }
    return dt_fail(err, DT_EINVALID,
                   "%s: the filter '%s' is not supported; known are regex, take_first, "
                   "remove_whitespace, lowercase, uppercase and map",
                   t->path, name);
}

static int read_step_key(const struct dt_task *t, struct dt_task_step *s, const char *key,
                         struct json_object *value, const char **pattern, struct dt_error *err)
{
    bool regex = s->kind == DT_TASK_STEP_REGEX, map = s->kind == DT_TASK_STEP_MAP;
    if (strcmp(key, "function") == 0)
        return 0;
    if (regex && strcmp(key, "regex_pattern") == 0)
        return dt_task_text(t, key, value, pattern, err);
    if (regex && strcmp(key, "group_select") == 0)
        return dt_task_whole(t, key, value, &s->group, err);
    if ((regex && strcmp(key, "fallback") == 0) || (map && strcmp(key, "default_value") == 0))
        return dt_task_text(t, key, value, &s->fallback, err);
    if (map && strcmp(key, "mapping_dict") == 0 && json_object_is_type(value, json_type_object)) {
        s->map = value;
        return 0;
    }
    return dt_fail(err, DT_EINVALID, "%s: the filter %s has no key '%s'", t->path,
                   functions[s->kind], key);
}

static int read_step(const struct dt_task *t, struct dt_task_step *s, struct json_object *entry,
                     struct dt_error *err)
{
    struct json_object *name = NULL;
    const char *pattern = NUMBER_AFTER_MARKS;
    if (!json_object_is_type(entry, json_type_object) ||
        !json_object_object_get_ex(entry, "function", &name))
        return dt_task_fail(t, "filter", "an entry has no function", err);
    DT_TRY(find_function(t, s, dt_json_text(name), err));
    s->fallback = s->kind == DT_TASK_STEP_REGEX ? "[invalid]" : "None";
    json_object_object_foreach(entry, key, value)
    {
        DT_TRY(read_step_key(t, s, key, value, &pattern, err));
    }
    if (s->kind == DT_TASK_STEP_MAP && s->map == NULL)
        return dt_task_fail(t, "map", "needs mapping_dict, a mapping", err);
    return s->kind == DT_TASK_STEP_REGEX ? dt_regex_new_python(&s->regex, pattern, t->path, err)
                                         : 0;
}

static int read_filter(const struct dt_task *t, struct dt_task_filter *f, struct json_object *entry,
                       struct dt_error *err)
{
    struct json_object *name = NULL, *steps = NULL;
    if (!json_object_is_type(entry, json_type_object) ||
        !json_object_object_get_ex(entry, "name", &name) ||
        !json_object_object_get_ex(entry, "filter", &steps) ||
        !json_object_is_type(steps, json_type_array) || json_object_object_length(entry) != 2)
        return dt_task_fail(t, "filter_list", "an entry has a name, a filter, and no more", err);
    f->name = dt_json_text(name);
    f->count = json_object_array_length(steps);
    f->steps = dt_alloc(f->count + 1, sizeof *f->steps);
    for (size_t i = 0; i < f->count; i++)
        DT_TRY(read_step(t, &f->steps[i], json_object_array_get_idx(steps, i), err));
    return 0;
}

int dt_task_read_filters(struct dt_task *t, const char *key, struct json_object *list,
                         struct dt_error *err)
{
    if (!json_object_is_type(list, json_type_array))
        return dt_task_fail(t, key, "must be a list", err);
    t->filter_count = json_object_array_length(list);
    t->filters = dt_alloc(t->filter_count + 1, sizeof *t->filters);
    for (size_t i = 0; i < t->filter_count; i++)
        DT_TRY(read_filter(t, &t->filters[i], json_object_array_get_idx(list, i), err));
    return 0;
}

void dt_task_free_filters(struct dt_task *t)
{
    for (size_t i = 0; i < t->filter_count; i++) {
        for (size_t k = 0; t->filters[i].steps && k < t->filters[i].count; k++)
            dt_regex_free(t->filters[i].steps[k].regex);
        free(t->filters[i].steps);
    }
    free(t->filters);
}
