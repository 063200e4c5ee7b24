/* SPDX-License-Identifier: MIT */
#include "tasks/history.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "json/json.h"

#define LARGEST ((size_t)1 << 28)
#define PREFIX  "step-"

/* The file's text; empty if there is none. */
static int read_history(const char *run, char **text, size_t *size, struct dt_error *err)
{
    char *path = dt_path_join(run, "tasks.jsonl");
    int rc = 0;
    *text = NULL;
    *size = 0;
    if (dt_file_is_regular(path))
        rc = dt_file_read(path, LARGEST, text, size, err);
    free(path);
    return rc;
}

/* The steps of the file, as an object {"STEP": true}. */
static int read_steps(const char *run, struct json_object **steps, struct dt_error *err)
{
    char *text, *rest = NULL;
    size_t size;
    int rc = read_history(run, &text, &size, err);
    *steps = dt_json_new_object();
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; rc == 0 && line;
         line = strtok_r(NULL, "\n", &rest)) {
        struct json_object *value;
        int64_t step;
        rc = dt_json_parse(line, strlen(line), "tasks.jsonl", &value, err);
        if (rc < 0)
            break;
        rc = dt_json_get_int(value, "step", "tasks.jsonl", &step, err);
        char name[32];
        snprintf(name, sizeof name, "%lld", (long long)step);
        dt_json_object_add(*steps, name, dt_json_new_boolean(true));
        json_object_put(value);
    }
    free(text);
    return rc;
}

/* The step of a checkpoint's directory; -1: it is none. */
static long step_of(const char *name)
{
    char *end;
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return -1;
    long step = strtol(name + strlen(PREFIX), &end, 10);
    return *end || end == name + strlen(PREFIX) ? -1 : step;
}

int dt_task_history_next(const char *run, long *step, char **checkpoint, struct dt_error *err)
{
    struct json_object *steps;
    DIR *directory = opendir(run);
    *step = LONG_MAX;
    *checkpoint = NULL;
    if (directory == NULL)
        return dt_fail_errno(err, "cannot read the run '%s'", run);
    int rc = read_steps(run, &steps, err);
    for (struct dirent *e; rc == 0 && (e = readdir(directory)) != NULL;) {
        long found = step_of(e->d_name);
        char name[32];
        snprintf(name, sizeof name, "%ld", found);
        if (found < 0 || found >= *step || json_object_object_get_ex(steps, name, NULL))
            continue;
        free(*checkpoint);
        *checkpoint = dt_path_join(run, e->d_name);
        *step = found;
    }
    closedir(directory);
    json_object_put(steps);
    return rc;
}

int dt_task_history_add(const char *run, const struct dt_buffer *line, struct dt_error *err)
{
    char *text, *path = dt_path_join(run, "tasks.jsonl");
    size_t size;
    struct dt_output out;
    int rc = read_history(run, &text, &size, err);
    rc = rc < 0 ? rc : dt_output_open(&out, path, err);
    if (rc == 0) {
        rc = size > 0 ? dt_output_write(&out, text, size, err) : 0;
        rc = rc < 0 ? rc : dt_output_write(&out, line->data, line->size, err);
        rc = rc < 0 ? rc : dt_output_commit(&out, err);
        dt_output_abandon(&out);
    }
    free(text);
    free(path);
    return rc;
}
