/* SPDX-License-Identifier: MIT */
#include "eval/choice-data.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "io/input.h"
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

/* --- files ------------------------------------------------------------------------------------*/

static const struct kind {
    const char *members[3]; /* that identify the format */
    read_item *read;
} kinds[] = {
    {{"context", "choices", "gold"}, read_plain},
    {{"context", "target"}, read_target},
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
    struct json_object *id = json_object_object_get(line, "id");
    bool given =
        json_object_is_type(id, json_type_string) || json_object_is_type(id, json_type_int);
    item->id = given ? dt_strdup(dt_json_text(id)) : dt_asprintf("%zu", number);
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
                     "%s: has not \"context\" with \"choices\" and \"gold\", or with \"target\"; "
                     "dt-eval tasks reads published benchmarks",
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
