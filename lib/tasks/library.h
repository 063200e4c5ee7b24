/* SPDX-License-Identifier: MIT */
/* The task files that are installed, share/dt/tasks. */
#ifndef DT_TASKS_LIBRARY_H
#define DT_TASKS_LIBRARY_H

#include "base/buffer.h"
#include "base/error.h"

/* The path of a task: of a file, or of the installed one of this name. *path is owned by the
 * caller. */
int dt_task_find(const char *name, char **path, struct dt_error *err) DT_MUST_CHECK;
/* Appends the names of the installed tasks, for completion. */
void dt_task_add_names(struct dt_buffer *words);

#endif
