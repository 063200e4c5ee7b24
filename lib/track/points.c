/* SPDX-License-Identifier: MIT */
#include "track/points.h"

#include <math.h>
#include <string.h>

static bool number_of(struct json_object *value, double *x)
{
    *x = json_object_get_double(value);
    return (json_object_is_type(value, json_type_int) ||
            json_object_is_type(value, json_type_double)) &&
           isfinite(*x);
}

#define MOST_SECONDS                                                                               \
    1e12 /* in milliseconds and added to a Unix time, larger ones overflow 64 bits */
#define MOST_STEP 0x1p53

bool dt_points_time(struct json_object *line, double *seconds)
{
    struct json_object *member;
    *seconds = 0;
    if (!json_object_object_get_ex(line, "time", &member))
        return true;
    if (number_of(member, seconds) && fabs(*seconds) <= MOST_SECONDS)
        return true;
    *seconds = 0;
    return false;
}

int dt_points_of(struct json_object *line, struct dt_point **points)
{
    struct json_object *member;
    double step, seconds, x;
    int count = 0;
    *points = NULL;
    if (!json_object_is_type(line, json_type_object) ||
        !json_object_object_get_ex(line, "step", &member) || !number_of(member, &step) ||
        fabs(step) > MOST_STEP || !dt_points_time(line, &seconds))
        return 0;
    *points = dt_alloc((size_t)json_object_object_length(line), sizeof **points);
    json_object_object_foreach(line, name, value)
    {
        if (strcmp(name, "step") != 0 && number_of(value, &x))
            (*points)[count++] = (struct dt_point){name, x, seconds, (int64_t)step};
    }
    return count;
}

bool dt_point_is_new(const struct dt_last_steps *last, const char *name, int64_t step)
{
    struct json_object *known;
    if (last->steps == NULL || !json_object_object_get_ex(last->steps, name, &known))
        return true;
    return step > json_object_get_int64(known);
}

void dt_last_steps_set(struct dt_last_steps *last, const char *name, int64_t step)
{
    if (last->steps == NULL)
        last->steps = dt_json_new_object();
    dt_json_object_add(last->steps, name, dt_json_new_int(step));
}

void dt_last_steps_release(struct dt_last_steps *last)
{
    json_object_put(last->steps);
    last->steps = NULL;
}
