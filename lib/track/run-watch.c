/* SPDX-License-Identifier: MIT */
#include "track/run-watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/file.h"
#include "base/path.h"
#include "json/json.h"
#include "json/yaml.h"

/* 1 if a program holds flock(2) of the directory, 0 if none does, -1 if unknown. */
static int is_locked(const char *run, const char *locks)
{
    struct stat st;
    char line[256];
    int held = 0;
    FILE *file = dt_checked_errno(fopen(locks, "re"));
    if (file == NULL)
        return -1;
    while (stat(run, &st) == 0 && fgets(line, sizeof line, file)) {
        unsigned high, low;
        unsigned long inode;
        /* 1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF */
        if (sscanf(line, "%*d: FLOCK %*s %*s %*d %x:%x:%lu", &high, &low, &inode) == 3 &&
            inode == st.st_ino && high == major(st.st_dev) && low == minor(st.st_dev))
            held = 1;
    }
    fclose(file);
    return held;
}

static struct json_object *read_state(const char *run)
{
    struct json_object *state;
    struct dt_error ignored;
    char *path = dt_path_join(run, "latest/trainer/state.json");
    int rc = dt_json_read(path, &state, &ignored);
    free(path);
    return rc < 0 ? NULL : state;
}

static long member(struct json_object *object, const char *name, long otherwise)
{
    struct json_object *value;
    return json_object_object_get_ex(object, name, &value) ? (long)json_object_get_int64(value)
                                                           : otherwise;
}

static long setting(struct json_object *settings, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(settings, name, &value) ? strtol(dt_json_text(value), NULL, 10)
                                                             : 0;
}

static bool is_finished(struct json_object *state, const char *run)
{
    struct json_object *settings = dt_run_watch_settings(run), *best;
    bool finished = false;
    if (settings) {
        long patience = setting(settings, "training.patience");
        finished = member(state, "step", -1) >= setting(settings, "training.max_steps");
        if (patience > 0 && json_object_object_get_ex(state, "best", &best))
            finished = finished || member(best, "validations_since", 0) >= patience;
    }
    json_object_put(settings);
    return finished;
}

enum dt_run_state dt_run_watch_state(const char *run, long last_step, const char *locks)
{
    int locked = is_locked(run, locks);
    if (locked == 1)
        return DT_RUN_RUNNING;
    struct json_object *state = read_state(run);
    enum dt_run_state found = DT_RUN_BROKEN;
    if (state && is_finished(state, run))
        found = DT_RUN_FINISHED;
    else if (locked < 0)
        found = DT_RUN_RUNNING;
    else if (state && member(state, "step", -1) >= last_step)
        found = DT_RUN_STOPPED;
    json_object_put(state);
    return found;
}

struct json_object *dt_run_watch_settings(const char *run)
{
    struct json_object *tree, *flat = NULL;
    struct dt_error ignored;
    char *path = dt_path_join(run, "latest/trainer/config.yaml");
    if (dt_yaml_read(path, &tree, &ignored) == 0) {
        flat = dt_json_new_object();
        json_object_object_foreach(tree, section, keys)
        {
            if (!json_object_is_type(keys, json_type_object))
                continue;
            json_object_object_foreach(keys, key, value)
            {
                char *name = dt_asprintf("%s.%s", section, key);
                if (json_object_is_type(value, json_type_string))
                    dt_json_object_add(flat, name, json_object_get(value));
                free(name);
            }
        }
        json_object_put(tree);
    }
    free(path);
    return flat;
}
