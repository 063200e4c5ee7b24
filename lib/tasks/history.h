/* SPDX-License-Identifier: MIT */
/*
 * Results of tasks on the checkpoints of a run: RUN/tasks.jsonl, a line per checkpoint.
 *
 *     {"step":100,"boolq/acc":0.61,"boolq/acc_stderr":0.02}
 *
 *     DT_TRY(dt_task_history_next(run, &step, &checkpoint, err));
 *     if (checkpoint)
 *         DT_TRY(dt_task_history_add(run, &line, err));
 */
#ifndef DT_TASKS_HISTORY_H
#define DT_TASKS_HISTORY_H

#include "base/buffer.h"
#include "base/error.h"

/* The earliest checkpoint of the run that the file lacks, and its step. *checkpoint is owned by the
 * caller; NULL: there is none. */
int dt_task_history_next(const char *run, long *step, char **checkpoint,
                         struct dt_error *err) DT_MUST_CHECK;
/* Adds a line, atomically. */
int dt_task_history_add(const char *run, const struct dt_buffer *line,
                        struct dt_error *err) DT_MUST_CHECK;

#endif
