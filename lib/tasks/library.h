/* SPDX-License-Identifier: MIT */
/* The task files that are installed, share/dt/tasks. */
#ifndef DT_TASKS_LIBRARY_H
#define DT_TASKS_LIBRARY_H

#include "base/error.h"

/* The path of a task: of a file, or of the installed one of this name. *path is owned by the
 * caller. */
int dt_task_find(const char *name, char **path, struct dt_error *err) DT_MUST_CHECK;

#endif
