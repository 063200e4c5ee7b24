/* SPDX-License-Identifier: MIT */
#include "eval/choice-data.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "io/input.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"
#include "json/json.h"

#define MOST_CHOICES 1000

typedef int read_item(struct dt_choice_item *item, struct json_object *line, const char *place,
                      struct dt_error *err);

static int take_string(struct json_object *line, const char *name, const char *place, char **text,
                       struct dt_error *err)
{
    const char *given;
    DT_TRY(dt_json_get_string(line, name, place, &given, err));
    *text = dt_strdup(given);
    return 0;
}

static void add_choice(struct dt_choice_item *item, const char *text)
{
    item->choices = dt_realloc(item->choices, (size_t)item->count + 1, sizeof *item->choices);
    item->choices[item->count++] = dt_strdup(text);
}

/* --- dt's own formats -------------------------------------------------------------------------*/

static int read_choices(struct dt_choice_item *item, struct json_object *list, const char *name,
                        const char *place, struct dt_error *err)
{
    size_t n = json_object_array_length(list);
    if (n < 1 || n > MOST_CHOICES)
        return dt_fail(err, DT_EFORMAT, "%s: \"%s\" must have 1 to %d members, not %zu", place,
                       name, MOST_CHOICES, n);
    for (size_t i = 0; i < n; i++) {
        struct json_object *choice = json_object_array_get_idx(list, i);
        if (!json_object_is_type(choice, json_type_string))
            return dt_fail(err, DT_EFORMAT, "%s: the members of \"%s\" must be strings", place,
                           name);
        add_choice(item, dt_json_text(choice));
    }
    return 0;
}

static int set_gold(struct dt_choice_item *item, int64_t gold, const char *place,
                    struct dt_error *err)
{
    if (gold < 0 || gold >= item->count)
        return dt_fail(err, DT_EFORMAT,
                       "%s: \"gold\" is %lld, but there are %d choices, numbered from 0", place,
                       (long long)gold, item->count);
    item->gold = (int)gold;
    return 0;
}

static int read_delimiter(struct dt_choice_item *item, struct json_object *line, const char *place,
                          struct dt_error *err)
{
    if (!json_object_object_get(line, "delimiter"))
        return 0;
    free(item->delimiter);
    item->delimiter = NULL;
    return take_string(line, "delimiter", place, &item->delimiter, err);
}

static int read_plain(struct dt_choice_item *item, struct json_object *line, const char *place,
                      struct dt_error *err)
{
    struct json_object *list;
    int64_t gold;
    DT_TRY(take_string(line, "context", place, &item->context, err));
    DT_TRY(dt_json_get(line, "choices", json_type_array, place, &list, err));
    DT_TRY(read_choices(item, list, "choices", place, err));
    DT_TRY(dt_json_get_int(line, "gold", place, &gold, err));
    DT_TRY(read_delimiter(item, line, place, err));
    return set_gold(item, gold, place, err);
}

static int read_target(struct dt_choice_item *item, struct json_object *line, const char *place,
                       struct dt_error *err)
{
    const char *target;
    DT_TRY(take_string(line, "context", place, &item->context, err));
    DT_TRY(dt_json_get_string(line, "target", place, &target, err));
    add_choice(item, target);
    return read_delimiter(item, line, place, err);
}

/* --- published benchmarks ---------------------------------------------------------------------*/

static int read_lambada(struct dt_choice_item *item, struct json_object *line, const char *place,
                        struct dt_error *err)
{
    const char *text;
    DT_TRY(dt_json_get_string(line, "text", place, &text, err));
    const char *space = strrchr(text, ' ');
    if (space == NULL)
        return dt_fail(err, DT_EFORMAT, "%s: \"text\" must contain at least two words", place);
    item->context = dt_strndup(text, (size_t)(space - text));
    add_choice(item, space + 1);
    return 0;
}

/* HellaSwag's clean-up: " [title]" becomes ". ", bracketed text is removed, double spaces become
 * one. */
static char *clean_hellaswag(const char *text)
{
    struct dt_buffer b = DT_BUFFER_EMPTY, c = DT_BUFFER_EMPTY;
    while (*text == ' ' || *text == '\n' || *text == '\t')
        text++;
    size_t size = strlen(text);
    while (size > 0 && strchr(" \n\t\r", text[size - 1]))
        size--;
    for (size_t i = 0; i < size;) {
        const char *close;
        if (size - i >= 8 && memcmp(text + i, " [title]", 8) == 0) {
            dt_buffer_add_string(&b, ". ");
            i += 8;
        } else if (text[i] == '[' && (close = memchr(text + i, ']', size - i)) != NULL &&
                   memchr(text + i, '\n', (size_t)(close - text) - i) == NULL) {
            i = (size_t)(close - text) + 1;
        } else {
            dt_buffer_add_char(&b, text[i++]);
        }
    }
    for (size_t i = 0; i < b.size; i++) {
        dt_buffer_add_char(&c, b.data[i]);
        if (b.data[i] == ' ' && i + 1 < b.size && b.data[i + 1] == ' ')
            i++;
    }
    dt_buffer_release(&b);
    dt_buffer_add_string(&c, "");
    return c.data ? c.data : dt_strdup("");
}

/* str.capitalize() of Python: title case, then lower case. */
static void add_capitalized(struct dt_buffer *b, const char *text)
{
    size_t size = strlen(text);
    for (size_t at = 0; at < size;) {
        uint32_t point;
        char bytes[4];
        size_t taken = dt_utf8_next(text + at, size - at, &point);
        if (taken == 0) {
            dt_buffer_add_char(b, text[at++]);
            continue;
        }
        point = at == 0 ? dt_unicode_title(point) : dt_unicode_lower(point);
        dt_buffer_append(b, bytes, dt_utf8_encode(point, bytes));
        at += taken;
    }
}

static int read_label(struct json_object *line, const char *place, int64_t *label,
                      struct dt_error *err)
{
    struct json_object *value = json_object_object_get(line, "label");
    if (!json_object_is_type(value, json_type_string))
        return dt_json_get_int(line, "label", place, label, err);
    char *end;
    *label = strtol(dt_json_text(value), &end, 10);
    if (*end != 0 || end == dt_json_text(value))
        return dt_fail(err, DT_EFORMAT, "%s: member \"label\" is not a whole number", place);
    return 0;
}

static int read_hellaswag(struct dt_choice_item *item, struct json_object *line, const char *place,
                          struct dt_error *err)
{
    const char *label, *a, *b;
    struct json_object *endings;
    int64_t gold;
    DT_TRY(dt_json_get_string(line, "activity_label", place, &label, err));
    DT_TRY(dt_json_get_string(line, "ctx_a", place, &a, err));
    DT_TRY(dt_json_get_string(line, "ctx_b", place, &b, err));
    DT_TRY(dt_json_get(line, "endings", json_type_array, place, &endings, err));
    DT_TRY(read_choices(item, endings, "endings", place, err));
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_buffer_printf(&text, "%s: %s ", label, a);
    add_capitalized(&text, b);
    item->context = clean_hellaswag(text.data);
    dt_buffer_release(&text);
    for (int i = 0; i < item->count; i++) {
        char *clean = clean_hellaswag(item->choices[i]);
        free(item->choices[i]);
        item->choices[i] = clean;
    }
    DT_TRY(read_label(line, place, &gold, err));
    return set_gold(item, gold, place, err);
}

static int read_arc(struct dt_choice_item *item, struct json_object *line, const char *place,
                    struct dt_error *err)
{
    struct json_object *question, *choices;
    const char *stem, *key;
    int64_t gold = -1;
    DT_TRY(dt_json_get(line, "question", json_type_object, place, &question, err));
    DT_TRY(dt_json_get_string(question, "stem", place, &stem, err));
    DT_TRY(dt_json_get(question, "choices", json_type_array, place, &choices, err));
    DT_TRY(dt_json_get_string(line, "answerKey", place, &key, err));
    item->context = dt_asprintf("Question: %s\nAnswer:", stem);
    size_t n = json_object_array_length(choices);
    for (size_t i = 0; i < n && i < MOST_CHOICES; i++) {
        struct json_object *choice = json_object_array_get_idx(choices, i);
        const char *text, *label;
        DT_TRY(dt_json_get_string(choice, "text", place, &text, err));
        DT_TRY(dt_json_get_string(choice, "label", place, &label, err));
        add_choice(item, text);
        if (strcmp(label, key) == 0)
            gold = (int64_t)i;
    }
    if (gold < 0)
        return dt_fail(err, DT_EFORMAT, "%s: no choice has the label '%s'", place, key);
    return set_gold(item, gold, place, err);
}

static int read_piqa(struct dt_choice_item *item, struct json_object *line, const char *place,
                     struct dt_error *err)
{
    const char *goal, *solution;
    DT_TRY(dt_json_get_string(line, "goal", place, &goal, err));
    item->context = dt_asprintf("Question: %s\nAnswer:", goal);
    for (int i = 0; i < 2; i++) {
        DT_TRY(dt_json_get_string(line, i ? "sol2" : "sol1", place, &solution, err));
        add_choice(item, solution);
    }
    item->gold = -1; /* from the labels file, unless the line has it */
    if (json_object_object_get(line, "label") == NULL)
        return 0;
    int64_t gold;
    DT_TRY(read_label(line, place, &gold, err));
    return set_gold(item, gold, place, err);
}

/* Reads NAME-labels.lst next to NAME.jsonl: one label per line. */
static int read_piqa_labels(struct dt_choice_data *data, const char *path, struct dt_error *err)
{
    size_t stem = strlen(path), size;
    const char *dot = strrchr(dt_path_base(path), '.');
    if (dot)
        stem = (size_t)(dot - path);
    char *labels = dt_asprintf("%.*s-labels.lst", (int)stem, path), *text = NULL, *at;
    int rc = dt_file_read(labels, (size_t)1 << 30, &text, &size, err);
    at = text;
    for (size_t i = 0; rc == 0 && i < data->count; i++) {
        char *end;
        long label = strtol(at, &end, 10);
        if (end == at || label < 0 || label > 1)
            rc = dt_fail(err, DT_EFORMAT, "%s:%zu: the label must be 0 or 1", labels, i + 1);
        data->items[i].gold = (int)label;
        at = end;
    }
    free(text);
    free(labels);
    return rc;
}

/* --- files ------------------------------------------------------------------------------------*/

static const struct kind {
    const char *members[3]; /* that identify the format */
    read_item *read;
} kinds[] = {
    {{"endings", "ctx_a", "ctx_b"}, read_hellaswag},
    {{"question", "answerKey"}, read_arc},
    {{"goal", "sol1", "sol2"}, read_piqa},
    {{"context", "choices", "gold"}, read_plain},
    {{"context", "target"}, read_target},
    {{"text"}, read_lambada},
    {{NULL}, NULL},
};

static const struct kind *kind_of(struct json_object *line)
{
    const struct kind *k = kinds;
    for (; k->read; k++) {
        bool all = true;
        for (int i = 0; i < 3 && k->members[i]; i++)
            all = all && json_object_object_get(line, k->members[i]);
        if (all)
            break;
    }
    return k;
}

static void take_id(struct dt_choice_item *item, struct json_object *line, size_t number)
{
    static const char *const names[] = {"id", "ind", "fname"};
    for (int i = 0; i < 3 && item->id == NULL; i++) {
        struct json_object *id = json_object_object_get(line, names[i]);
        if (json_object_is_type(id, json_type_string) || json_object_is_type(id, json_type_int))
            item->id = dt_strdup(dt_json_text(id));
    }
    if (item->id == NULL)
        item->id = dt_asprintf("%zu", number);
}

static int read_line(struct dt_choice_data *data, const struct kind **kind,
                     const struct dt_buffer *text, const char *place, struct dt_error *err)
{
    struct json_object *line;
    int rc = 0;
    DT_TRY(dt_json_parse(text->data, text->size, place, &line, err));
    if (!json_object_is_type(line, json_type_object))
        rc = dt_fail(err, DT_EFORMAT, "%s: is not a JSON object", place);
    if (rc == 0 && *kind == NULL)
        *kind = kind_of(line);
    if (rc == 0 && (*kind)->read == NULL)
        rc = dt_fail(err, DT_EFORMAT,
                     "%s: has neither \"context\" with \"choices\" and \"gold\" or \"target\", nor "
                     "\"text\", nor the members of HellaSwag, ARC or PIQA",
                     place);
    if (rc == 0) {
        DT_GROW(data->items, data->count, data->capacity);
        struct dt_choice_item *item = &data->items[data->count++];
        *item = (struct dt_choice_item){.delimiter = dt_strdup(" ")};
        take_id(item, line, data->count);
        rc = (*kind)->read(item, line, place, err);
    }
    json_object_put(line);
    return rc;
}

int dt_choice_data_read(struct dt_choice_data *data, const char *path, struct dt_error *err)
{
    struct dt_input *in;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    const struct kind *kind = NULL;
    bool found = true;
    int rc = 0;
    *data = (struct dt_choice_data){0};
    DT_TRY(dt_input_open(&in, path, err));
    for (size_t number = 1; rc == 0; number++) {
        rc = dt_input_read_until(in, '\n', &line, &found, err);
        if (rc < 0 || (!found && line.size == 0))
            break;
        char *place = dt_asprintf("%s:%zu", dt_input_name(in), number);
        if (line.size > 0)
            rc = read_line(data, &kind, &line, place, err);
        free(place);
    }
    if (rc == 0 && data->count == 0)
        rc = dt_fail(err, DT_EFORMAT, "%s: contains no question", dt_input_name(in));
    dt_input_close(in);
    dt_buffer_release(&line);
    if (rc == 0 && kind->read == read_piqa && data->items[0].gold < 0)
        rc = read_piqa_labels(data, path, err);
    for (size_t i = 0; rc == 0 && i < data->count; i++)
        if (data->items[i].gold < 0)
            rc = dt_fail(err, DT_EFORMAT, "%s: item '%s' lacks a label", path, data->items[i].id);
    return rc;
}

void dt_choice_data_release(struct dt_choice_data *data)
{
    for (size_t i = 0; i < data->count; i++) {
        struct dt_choice_item *item = &data->items[i];
        for (int c = 0; c < item->count; c++)
            free(item->choices[c]);
        free(item->choices);
        free(item->id);
        free(item->context);
        free(item->delimiter);
    }
    free(data->items);
    *data = (struct dt_choice_data){0};
}
