/* SPDX-License-Identifier: MIT */
/*
 * The documents of a task's splits: JSON Lines, JSON, CSV, Parquet and Arrow files of the user, or
 * of Hugging Face's hub.
 *
 *     struct dt_task_split test;
 *     const struct dt_task_sources from = {.named = {"test=boolq.jsonl"}, .count = 1};
 *     DT_TRY(dt_task_split_read(&test, task, "test", &from, err));
 */
#ifndef DT_TASKS_DATA_H
#define DT_TASKS_DATA_H

#include "tasks/task.h"

/* Fetches hf://NAME; *path is owned by the caller. */
typedef int dt_task_fetch(const char *name, char **path, struct dt_error *err);

struct dt_task_sources {
    const char *const *named; /* SPLIT=FILE, or a directory that has SPLIT.* or TASK/SPLIT.* */
    int count;
    dt_task_fetch *fetch;       /* of names on the hub */
    const char *const *outputs; /* files that will be written: none of them is read */
    size_t output_count;
};

struct dt_task_split {
    char *path; /* of the first file, for errors */
    struct json_object **documents;
    size_t count, capacity;
    struct json_object *features; /* names of the fields of the first document */
};

/* Release with dt_task_split_release, also after a failure. */
int dt_task_split_read(struct dt_task_split *split, const struct dt_task *task, const char *name,
                       const struct dt_task_sources *sources, struct dt_error *err) DT_MUST_CHECK;
void dt_task_split_release(struct dt_task_split *split);

#endif
