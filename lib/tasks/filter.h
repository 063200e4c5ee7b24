/* SPDX-License-Identifier: MIT */
/* What filters of tasks make of a generated text, and whether it is the right one. */
#ifndef DT_TASKS_FILTER_H
#define DT_TASKS_FILTER_H

#include "tasks/task.h"

/* Appends the filtered text. DT_EFORMAT if a character has a case that is not supported. */
void dt_task_filter_apply(const struct dt_task_filter *filter, const char *text, size_t size,
                          struct dt_buffer *out);
/* Whether the text equals the right one, after both were changed as the metric says. */
bool dt_task_matches(const struct dt_task_metric *metric, const char *text, size_t size,
                     const char *right);

#endif
