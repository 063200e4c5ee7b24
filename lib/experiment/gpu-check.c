/* SPDX-License-Identifier: MIT */
#include "experiment/gpu-check.h"

#include <stdio.h>
#include <string.h>

#include "json/json.h"

static int take_text(struct json_object *of, const char *name, const char *path, char *text,
                     size_t size, struct dt_error *err)
{
    const char *value;
    DT_TRY(dt_json_get_string(of, name, path, &value, err));
    if (strlen(value) >= size || strpbrk(value, "\t\n"))
        return dt_fail(err, DT_EFORMAT, "%s: '%s' is too long or has a tab or a line end", path,
                       name);
    snprintf(text, size, "%s", value);
    return 0;
}

/* Adds 1 to one of three counts. */
static int count_verdict(const char *verdict, int *agree, int *differ, int *not_run)
{
    int *which = strcmp(verdict, "agrees") == 0    ? agree
                 : strcmp(verdict, "differs") == 0 ? differ
                 : strcmp(verdict, "not run") == 0 ? not_run
                                                   : NULL;
    if (which == NULL)
        return -1;
    ++*which;
    return 0;
}

/* Whether the words, which blanks separate, have this one. */
static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (; *words; words += strspn(words, " ")) {
        size_t here = strcspn(words, " ");
        if (here == length && memcmp(words, word, length) == 0)
            return true;
        words += here;
    }
    return false;
}

static int add_step(struct dt_gpu_check *check, struct json_object *step, const char *path,
                    struct dt_gpu_option_result *options, int count, struct dt_error *err)
{
    const char *verdict, *needs;
    DT_TRY(dt_json_get_string(step, "verdict", path, &verdict, err));
    DT_TRY(dt_json_get_string(step, "options", path, &needs, err));
    if (count_verdict(verdict, &check->agree, &check->differ, &check->not_run) < 0)
        return dt_fail(err, DT_EFORMAT,
                       "%s: a verdict is 'agrees', 'differs' or 'not run', not '%s'", path,
                       verdict);
    if (*needs == '\0' && strcmp(verdict, "differs") == 0)
        check->base_differs = true;
    for (struct dt_gpu_option_result *o = options; o < options + count; o++)
        if (has_word(needs, o->name))
            (void)count_verdict(verdict, &o->agree, &o->differ, &o->not_run);
    return 0;
}

static int read_all(struct dt_gpu_check *check, struct json_object *root, const char *path,
                    struct dt_gpu_option_result *options, int count, struct dt_error *err)
{
    struct json_object *steps;
    DT_TRY(take_text(root, "device", path, check->gpu, sizeof check->gpu, err));
    DT_TRY(take_text(root, "driver", path, check->driver, sizeof check->driver, err));
    DT_TRY(take_text(root, "engine", path, check->engine, sizeof check->engine, err));
    DT_TRY(dt_json_get(root, "steps", json_type_array, path, &steps, err));
    for (size_t i = 0; i < json_object_array_length(steps); i++)
        DT_TRY(add_step(check, json_object_array_get_idx(steps, i), path, options, count, err));
    return 0;
}

int dt_gpu_check_read(struct dt_gpu_check *check, const char *path,
                      struct dt_gpu_option_result *options, int count, struct dt_error *err)
{
    struct json_object *root;
    *check = (struct dt_gpu_check){.agree = 0};
    DT_TRY(dt_json_read(path, &root, err));
    int rc = read_all(check, root, path, options, count, err);
    json_object_put(root);
    for (struct dt_gpu_option_result *o = options; o < options + count; o++)
        o->proven = o->agree > 0 && o->differ == 0 && o->not_run == 0 && !check->base_differs;
    return rc;
}

void dt_gpu_check_print(const struct dt_gpu_check *check,
                        const struct dt_gpu_option_result *options, int count,
                        struct dt_buffer *text)
{
    dt_buffer_printf(text, "%s, driver %s: %d agree, %d differ, %d not run\n", check->gpu,
                     check->driver, check->agree, check->differ, check->not_run);
    for (const struct dt_gpu_option_result *o = options; o < options + count; o++)
        dt_buffer_printf(text, "%-6s  %s: %d agree, %d differ, %d not run%s\n", o->name,
                         o->proven ? "proven" : "not proven", o->agree, o->differ, o->not_run,
                         check->base_differs ? "; a step without options differs" : "");
}
