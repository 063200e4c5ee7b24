/* SPDX-License-Identifier: MIT */
#include "experiment/readings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "io/json-lines.h"
#include "json/json-number.h"
#include "json/json.h"

#define MOST_DEPTH 8

static bool is_number(struct json_object *value)
{
    return (json_object_is_type(value, json_type_int) ||
            json_object_is_type(value, json_type_double)) &&
           fabs(json_object_get_double(value)) <= DT_READINGS_MOST;
}

static void add_members(struct json_object *values, struct json_object *object, const char *before,
                        int depth)
{
    json_object_object_foreach(object, key, member)
    {
        char *name = dt_asprintf("%s%s", before, key);
        if (is_number(member))
            dt_json_object_add(values, name, dt_json_number(json_object_get_double(member)));
        else
            json_object_object_del(values, name); /* null withdraws an earlier value */
        if (json_object_is_type(member, json_type_object) && depth < MOST_DEPTH) {
            char *inside = dt_asprintf("%s.", name);
            add_members(values, member, inside, depth + 1);
            free(inside);
        }
        free(name);
    }
}

static bool add_text(struct json_object *values, const char *text, size_t size)
{
    struct json_object *object;
    struct dt_error ignored;
    if (dt_json_parse(text, size, "", &object, &ignored) < 0)
        return false;
    bool is_object = json_object_is_type(object, json_type_object);
    if (is_object)
        add_members(values, object, "", 0);
    json_object_put(object);
    return is_object;
}

void dt_readings_add_output(struct json_object *values, const struct dt_buffer *output)
{
    size_t end = output->size;
    if (end == 0 || add_text(values, output->data, end))
        return;
    while (end > 0) {
        size_t start = end;
        while (start > 0 && output->data[start - 1] != '\n')
            start--;
        if (output->data[start] == '{' && add_text(values, output->data + start, end - start))
            return;
        end = start > 0 ? start - 1 : 0;
    }
}

/* Records the first line that meets a target. */
static void look_for_target(struct json_object *values, struct json_object *line, const char *name,
                            double level)
{
    static const char *const of[] = {"step", "time", "tokens"};
    struct json_object *member, *place;
    if (!json_object_object_get_ex(line, name, &member) || !is_number(member) ||
        !(json_object_get_double(member) <= level))
        return;
    for (int i = 0; i < 3; i++) {
        char *key = dt_asprintf("reached_%s_%s", name, of[i]);
        if (!json_object_object_get_ex(values, key, NULL) &&
            json_object_object_get_ex(line, of[i], &place) && is_number(place))
            dt_json_object_add(values, key, dt_json_number(json_object_get_double(place)));
        free(key);
    }
}

/* Values read so far, and targets. */
struct metrics {
    struct json_object *values, *targets;
};

static int add_line(void *context, struct json_object *line, const char *subject,
                    struct dt_error *err)
{
    const struct metrics *m = context;
    (void)subject, (void)err;
    if (!json_object_is_type(line, json_type_object))
        return 0;
    add_members(m->values, line, "", MOST_DEPTH);
    if (m->targets == NULL)
        return 0;
    json_object_object_foreach(m->targets, name, level)
    {
        double x;
        if (dt_program_parse_real(dt_json_text(level), &x) == 0)
            look_for_target(m->values, line, name, x);
    }
    return 0;
}

int dt_readings_add_metrics(struct json_object *values, const char *path,
                            struct json_object *targets, struct dt_error *err)
{
    struct metrics m = {values, targets};
    return dt_json_lines_read(path, add_line, &m, err);
}
