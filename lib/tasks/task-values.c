/* SPDX-License-Identifier: MIT */
/* Values of the keys of task files. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/task-internal.h"

const char *const dt_task_outputs[] = {"multiple_choice", "loglikelihood", "loglikelihood_rolling",
                                       "generate_until", NULL};

int dt_task_fail(const struct dt_task *t, const char *key, const char *what, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "%s: %s: %s", t->path, key, what);
}

int dt_task_text(const struct dt_task *t, const char *key, struct json_object *value,
                 const char **text, struct dt_error *err)
{
    if (!json_object_is_type(value, json_type_string))
        return dt_task_fail(t, key, "must be a text", err);
    *text = dt_json_text(value);
    return 0;
}

int dt_task_bool(const struct dt_task *t, const char *key, struct json_object *value, bool *flag,
                 struct dt_error *err)
{
    static const char *const names[] = {"false", "true", "False", "True"};
    for (int i = 0; i < 4; i++)
        if (strcmp(dt_json_text(value), names[i]) == 0) {
            *flag = i % 2;
            return 0;
        }
    return dt_task_fail(t, key, "must be true or false", err);
}

int dt_task_whole(const struct dt_task *t, const char *key, struct json_object *value, long *number,
                  struct dt_error *err)
{
    char *end;
    const char *text = dt_json_text(value);
    *number = strtol(text, &end, 10);
    if (end == text || *end || *number < INT_MIN || *number > INT_MAX)
        return dt_task_fail(t, key, "must be a whole number", err);
    return 0;
}
