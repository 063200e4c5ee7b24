/* SPDX-License-Identifier: MIT */
#include "track/run-watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/path.h"
#include "base/system.h"
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
            inode == st.st_ino && dt_system_is_device(st.st_dev, high, low))
            held = 1;
    }
    fclose(file);
    return held;
}

/* Reads a file of the last checkpoint; NULL if it does not exist. */
static int read_file(const char *run, const char *name,
                     int (*read)(const char *, struct json_object **, struct dt_error *),
                     struct json_object **value, struct dt_error *err)
{
    char *path = dt_path_join(run, name);
    *value = NULL;
    int rc = dt_file_probe(path, err);
    if (rc > 0)
        rc = read(path, value, err);
    free(path);
    return rc;
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

static bool is_finished(struct json_object *state, struct json_object *settings)
{
    struct json_object *best;
    if (state == NULL || settings == NULL)
        return false;
    long patience = setting(settings, "training.patience");
    if (member(state, "step", -1) >= setting(settings, "training.max_steps"))
        return true;
    return patience > 0 && json_object_object_get_ex(state, "best", &best) &&
           member(best, "validations_since", 0) >= patience;
}

int dt_run_watch_read_state(const char *run, long last_step, const char *locks,
                            enum dt_run_state *found, struct dt_error *err)
{
    int locked = is_locked(run, locks);
    struct json_object *state = NULL, *settings = NULL;
    *found = locked != 0 ? DT_RUN_RUNNING : DT_RUN_BROKEN;
    if (locked == 1)
        return 0;
    int rc = read_file(run, "latest/trainer/state.json", dt_json_read, &state, err);
    if (rc == 0)
        rc = dt_run_watch_read_settings(run, &settings, err);
    if (rc == 0 && is_finished(state, settings))
        *found = DT_RUN_FINISHED;
    else if (locked == 0 && state && member(state, "step", -1) >= last_step)
        *found = DT_RUN_STOPPED;
    json_object_put(state);
    json_object_put(settings);
    return rc;
}

enum dt_run_state dt_run_watch_state(const char *run, long last_step, const char *locks)
{
    enum dt_run_state found;
    struct dt_error ignored;
    (void)!dt_run_watch_read_state(run, last_step, locks, &found, &ignored);
    return found;
}

static struct json_object *flatten(struct json_object *tree)
{
    struct json_object *flat = dt_json_new_object();
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
    return flat;
}

int dt_run_watch_read_settings(const char *run, struct json_object **settings, struct dt_error *err)
{
    struct json_object *tree;
    *settings = NULL;
    DT_TRY(read_file(run, "latest/trainer/config.yaml", dt_yaml_read, &tree, err));
    if (tree)
        *settings = flatten(tree);
    json_object_put(tree);
    return 0;
}

struct json_object *dt_run_watch_settings(const char *run)
{
    struct json_object *settings;
    struct dt_error ignored;
    return dt_run_watch_read_settings(run, &settings, &ignored) < 0 ? NULL : settings;
}
