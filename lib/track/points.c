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

int dt_points_of(struct json_object *line, struct dt_point points[DT_MOST_POINTS])
{
    struct json_object *member;
    double step, seconds = 0, x;
    int count = 0;
    if (!json_object_is_type(line, json_type_object) ||
        !json_object_object_get_ex(line, "step", &member) || !number_of(member, &step))
        return 0;
    if (json_object_object_get_ex(line, "time", &member) && !number_of(member, &seconds))
        seconds = 0;
    json_object_object_foreach(line, name, value)
    {
        if (strcmp(name, "step") != 0 && number_of(value, &x) && count < DT_MOST_POINTS)
            points[count++] = (struct dt_point){name, x, seconds, (int64_t)step};
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
        last->steps = json_object_new_object();
    json_object_object_add(last->steps, name, json_object_new_int64(step));
}

void dt_last_steps_release(struct dt_last_steps *last)
{
    json_object_put(last->steps);
    last->steps = NULL;
}
