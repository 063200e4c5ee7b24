/* SPDX-License-Identifier: MIT */
#include "train/metrics-file.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "json/json.h"

/* The step of a line; 0: it has none, such as the line with the name; -1: not JSON. */
static long step_of(const char *line, size_t size)
{
    struct json_object *object;
    struct dt_error ignored;
    int64_t step = -1;
    if (dt_json_parse(line, size, "", &object, &ignored) < 0)
        return -1;
    if (dt_json_get_int(object, "step", "", &step, &ignored) < 0)
        step = 0;
    json_object_put(object);
    return (long)step;
}

static int keep_until(struct dt_metrics *m, const char *path, long last_step, struct dt_error *err)
{
    char *data;
    size_t size;
    struct dt_buffer kept = DT_BUFFER_EMPTY;
    DT_TRY(dt_file_read(path, SIZE_MAX / 2, &data, &size, err));
    for (char *line = data, *end; (end = memchr(line, '\n', size - (size_t)(line - data)));
         line = end + 1) {
        long step = step_of(line, (size_t)(end - line));
        m->damaged += step < 0;
        if (step < 0 || step > last_step)
            continue;
        dt_buffer_append(&kept, line, (size_t)(end - line) + 1);
        m->lines += step > 0;
    }
    int rc = kept.size == size ? 0 : dt_file_write(path, kept.data, kept.size, err);
    dt_buffer_release(&kept);
    free(data);
    return rc;
}

int dt_metrics_open(struct dt_metrics *m, const char *path, long last_step, struct dt_error *err)
{
    *m = (struct dt_metrics){.file = NULL};
    int there = dt_file_probe(path, err);
    DT_TRY(there > 0 ? keep_until(m, path, last_step, err) : there);
    m->file = fopen(path, "ae");
    if (m->file == NULL)
        return dt_fail_errno(err, "cannot open '%s'", path);
    fseek(m->file, 0, SEEK_END); /* so that ftell returns the size */
    m->path = dt_strdup(path);
    return 0;
}

int dt_metrics_take_over(const char *path, struct dt_error *err)
{
    char *data;
    size_t size;
    int there = dt_file_probe(path, err);
    if (there <= 0)
        return there;
    DT_TRY(dt_file_read(path, SIZE_MAX / 2, &data, &size, err));
    int rc = dt_file_write(path, data, size, err);
    free(data);
    return rc;
}

int dt_metrics_write(struct dt_metrics *m, struct dt_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vfprintf(m->file, fmt, args);
    va_end(args);
    if (n < 0 || putc('\n', m->file) == EOF || fflush(m->file) != 0)
        return dt_fail_errno(err, "cannot write '%s'", m->path);
    return 0;
}

int dt_metrics_sync(struct dt_metrics *m, struct dt_error *err)
{
    return fsync(fileno(m->file)) < 0 ? dt_fail_errno(err, "cannot sync '%s'", m->path) : 0;
}

void dt_metrics_close(struct dt_metrics *m)
{
    if (m->file)
        fclose(m->file);
    free(m->path);
    *m = (struct dt_metrics){.file = NULL};
}
