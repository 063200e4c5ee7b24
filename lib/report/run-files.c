/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "io/json-lines.h"
#include "report/report-internal.h"

enum { MOST_BYTES = 4096, MOST_SAMPLES = 8 };

/* Whether it is a file that a reader was given: not of dt-train, not a lineage. */
static bool is_evaluation(const char *name)
{
    size_t size = strlen(name);
    return size > 5 && strcmp(name + size - 5, ".json") == 0 && strstr(name, ".lineage.") == NULL &&
           strncmp(name, "timeline-", 9) != 0 && *name != '.';
}

static bool is_sample(const char *name)
{
    size_t size = strlen(name);
    return size > 4 && strcmp(name + size - 4, ".txt") == 0 && *name != '.';
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted paths of the regular files of a run that fit; owned by the caller, as they are. */
static int list_files(const struct dt_reported_run *run, bool (*fits)(const char *), char ***paths,
                      int *count, struct dt_error *err)
{
    int capacity = 0;
    struct dirent *entry;
    *paths = NULL;
    *count = 0;
    if (!dt_file_is_directory(run->path))
        return 0;
    DIR *directory = dt_checked_errno(opendir(run->path));
    if (directory == NULL)
        return dt_fail_errno(err, "cannot read the directory '%s'", run->path);
    while ((entry = readdir(directory)) != NULL) {
        if (!fits(entry->d_name))
            continue;
        char *path = dt_path_join(run->path, entry->d_name);
        if (!dt_file_is_regular(path)) {
            free(path);
            continue;
        }
        DT_GROW(*paths, *count, capacity);
        (*paths)[(*count)++] = path;
    }
    closedir(directory);
    if (*count > 0)
        qsort(*paths, (size_t)*count, sizeof **paths, compare_names);
    return 0;
}

static void free_paths(char **paths, int count)
{
    for (int i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
}

/* --- evaluations --------------------------------------------------------------------------- */

static bool is_number(struct json_object *value)
{
    return json_object_is_type(value, json_type_int) ||
           json_object_is_type(value, json_type_double);
}

static bool is_stderr(const char *name)
{
    size_t size = strlen(name);
    return size > 7 && strcmp(name + size - 7, "_stderr") == 0;
}

/* A row for each number of an object, with its standard error if there is one; numbers of objects
 * in it after the name of that, "a.b". */
static void add_numbers(struct dt_grid *g, const struct dt_reported_run *run, const char *file,
                        const char *before, struct json_object *object)
{
    json_object_object_foreach(object, name, value)
    {
        struct json_object *error;
        if (json_object_is_type(value, json_type_object)) {
            char *deeper = dt_asprintf("%s%s.", before, name);
            add_numbers(g, run, file, deeper, value);
            free(deeper);
        }
        if (!is_number(value) || is_stderr(name))
            continue;
        char *of_error = dt_asprintf("%s_stderr", name), *whole = dt_asprintf("%s%s", before, name);
        dt_grid_add(g, run->name);
        dt_grid_add(g, dt_path_base(file));
        dt_grid_add(g, whole);
        free(whole);
        if (json_object_object_get_ex(object, of_error, &error) && is_number(error))
            dt_grid_printf(g, "%.6g \302\261 %.2g", json_object_get_double(value),
                           1.959964 * json_object_get_double(error));
        else if (json_object_is_type(value, json_type_int)) /* a count, in all digits */
            dt_grid_add(g, dt_json_text(value));
        else
            dt_grid_printf(g, "%.6g", json_object_get_double(value));
        free(of_error);
    }
}

static int add_evaluation(struct dt_grid *g, const struct dt_reported_run *run, const char *file,
                          struct dt_error *err)
{
    struct json_object *object;
    DT_TRY(dt_json_read(file, &object, err));
    if (json_object_is_type(object, json_type_object))
        add_numbers(g, run, file, "", object);
    json_object_put(object);
    return 0;
}

static int keep_line(void *context, struct json_object *line, const char *subject,
                     struct dt_error *err)
{
    struct json_object **last = context;
    if (!json_object_is_type(line, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: expected a JSON object", subject);
    json_object_put(*last);
    *last = json_object_get(line);
    return 0;
}

/* The last line of what dt-eval watch writes. */
static int add_tasks(struct dt_grid *g, const struct dt_reported_run *run, struct dt_error *err)
{
    struct json_object *last = NULL;
    char *file = dt_path_join(run->path, "tasks.jsonl");
    int rc = dt_file_is_directory(run->path) ? dt_file_probe(file, err) : 0;
    if (rc > 0)
        rc = dt_json_lines_read(file, keep_line, &last, err);
    if (rc == 0 && last)
        add_numbers(g, run, file, "", last);
    json_object_put(last);
    free(file);
    return rc;
}

static int evaluate(struct dt_grid *g, const struct dt_reported_run *run, struct dt_error *err)
{
    char **files;
    int count;
    DT_TRY(add_tasks(g, run, err));
    int rc = list_files(run, is_evaluation, &files, &count, err);
    for (int i = 0; i < count && rc == 0; i++)
        rc = add_evaluation(g, run, files[i], err);
    free_paths(files, count);
    return rc;
}

int dt_report_evaluations(struct dt_page *page, const struct dt_reported *r, struct dt_error *err)
{
    static const char *const headings[] = {"run", "file", "value", "result"};
    struct dt_grid g = {.columns = 4};
    int rc = 0;
    for (int i = 0; i < g.columns; i++)
        dt_grid_add(&g, headings[i]);
    for (int i = 0; i < r->count && rc == 0; i++)
        rc = evaluate(&g, &r->runs[i], err);
    if (rc == 0 && g.count > (size_t)g.columns) {
        dt_page_heading(page, "Evaluations");
        dt_page_paragraph(page,
                          "Numbers in files of the runs' directories; of tasks.jsonl those of "
                          "the last checkpoint. An interval is that of 95%% by the standard "
                          "error, over items.");
        dt_page_table(page, &g);
    }
    dt_grid_release(&g);
    return rc;
}

/* --- samples of text ----------------------------------------------------------------------- */

static int read_beginning(const char *path, char text[MOST_BYTES], size_t *size,
                          struct dt_error *err)
{
    int fd = dt_file_open(path, err);
    if (fd < 0)
        return fd;
    ssize_t n = 1;
    for (*size = 0; *size < MOST_BYTES && n > 0; *size += n > 0 ? (size_t)n : 0)
        do
            n = read(fd, text + *size, MOST_BYTES - *size);
        while (n < 0 && errno == EINTR);
    int rc = n < 0 ? dt_fail_errno(err, "cannot read '%s'", path) : 0;
    close(fd);
    return rc;
}

static int add_sample(struct dt_page *page, const struct dt_reported_run *run, const char *path,
                      struct dt_error *err)
{
    char text[MOST_BYTES];
    size_t size;
    DT_TRY(read_beginning(path, text, &size, err));
    dt_page_paragraph(page, "%s of run '%s'%s:", dt_path_base(path), run->name,
                      size == MOST_BYTES ? ", its first 4096 bytes" : "");
    dt_page_verbatim(page, text, size);
    return 0;
}

int dt_report_samples(struct dt_page *page, const struct dt_reported *r, struct dt_error *err)
{
    bool begun = false;
    int rc = 0;
    for (int i = 0; i < r->count && rc == 0; i++) {
        char **files;
        int count;
        rc = list_files(&r->runs[i], is_sample, &files, &count, err);
        if (rc == 0 && count > 0 && !begun)
            dt_page_heading(page, "Samples of text");
        begun = begun || count > 0;
        for (int k = 0; k < count && k < MOST_SAMPLES && rc == 0; k++)
            rc = add_sample(page, &r->runs[i], files[k], err);
        if (rc == 0 && count > MOST_SAMPLES)
            dt_page_paragraph(page, "%d more files of run '%s' are not shown.",
                              count - MOST_SAMPLES, r->runs[i].name);
        free_paths(files, count);
    }
    return rc;
}
