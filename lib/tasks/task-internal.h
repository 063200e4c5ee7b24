/* SPDX-License-Identifier: MIT */
/* Shared by the files that read task files. */
#ifndef DT_TASKS_TASK_INTERNAL_H
#define DT_TASKS_TASK_INTERNAL_H

#include "tasks/task.h"

/* "FILE: KEY: WHAT" */
int dt_task_fail(const struct dt_task *t, const char *key, const char *what,
                 struct dt_error *err) DT_MUST_CHECK;
/* Values of YAML, whose scalars are strings; errors name the key. *text is borrowed. */
int dt_task_text(const struct dt_task *t, const char *key, struct json_object *value,
                 const char **text, struct dt_error *err) DT_MUST_CHECK;
int dt_task_bool(const struct dt_task *t, const char *key, struct json_object *value, bool *flag,
                 struct dt_error *err) DT_MUST_CHECK;
int dt_task_whole(const struct dt_task *t, const char *key, struct json_object *value, long *number,
                  struct dt_error *err) DT_MUST_CHECK;

/* metric_list and filter_list; the metrics of a task without a list. */
int dt_task_read_metrics(struct dt_task *t, const char *key, struct json_object *list,
                         struct dt_error *err) DT_MUST_CHECK;
int dt_task_read_filters(struct dt_task *t, const char *key, struct json_object *list,
                         struct dt_error *err) DT_MUST_CHECK;
int dt_task_default_metrics(struct dt_task *t, struct dt_error *err) DT_MUST_CHECK;
void dt_task_free_metrics(struct dt_task *t);
void dt_task_free_filters(struct dt_task *t);

#endif
