/* SPDX-License-Identifier: MIT */
#include "plan/published.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "plan/plan.h"
#include "json/json-number.h"

#define LIMIT   ((size_t)1 << 24)
#define MOST    64 /* assignments of a line */
#define COLUMNS 80

/* One line of the file. */
struct figure {
    const char *subject; /* "FILE:LINE" */
    const char *table, *name, *metric, *source, *why;
    const char *set[MOST], *machine[MOST];
    struct dt_plan_source from;
    long base;       /* device count that efficiency is relative to */
    double measured; /* tokens/s on measured_devices; 0: none */
    long measured_devices;
    double published, predicted;
};

struct comparison {
    const char *path;
    char *folder;
    const char *table; /* the last one printed */
    struct dt_buffer *text;
    struct json_object *rows;
};

/* --- reading a line ------------------------------------------------------------------------- */

static int get_optional_string(struct json_object *o, const char *name, const char *subject,
                               const char **value, struct dt_error *err)
{
    *value = NULL;
    if (json_object_object_get_ex(o, name, NULL))
        return dt_json_get_string(o, name, subject, value, err);
    return 0;
}

static int get_optional_int(struct json_object *o, const char *name, const char *subject,
                            long *value, struct dt_error *err)
{
    int64_t number = 0;
    if (json_object_object_get_ex(o, name, NULL))
        DT_TRY(dt_json_get_int(o, name, subject, &number, err));
    if (number < 0 || number > 1 << 24)
        return dt_fail(err, DT_EFORMAT, "%s: %s is out of range", subject, name);
    *value = number;
    return 0;
}

static int get_list(struct json_object *o, const char *name, const char *subject,
                    const char **items, int *count, struct dt_error *err)
{
    struct json_object *list;
    *count = 0;
    if (!json_object_object_get_ex(o, name, NULL))
        return 0;
    DT_TRY(dt_json_get(o, name, json_type_array, subject, &list, err));
    if (json_object_array_length(list) > MOST)
        return dt_fail(err, DT_EFORMAT, "%s: %s is too long", subject, name);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *item = json_object_array_get_idx(list, i);
        if (!json_object_is_type(item, json_type_string))
            return dt_fail(err, DT_EFORMAT, "%s: the items of %s must be strings", subject, name);
        items[(*count)++] = dt_json_text(item);
    }
    return 0;
}

static int read_figure(struct figure *f, struct json_object *o, struct dt_error *err)
{
    const char *at = f->subject;
    DT_TRY(dt_json_get_string(o, "table", at, &f->table, err));
    DT_TRY(dt_json_get_string(o, "name", at, &f->name, err));
    DT_TRY(dt_json_get_string(o, "metric", at, &f->metric, err));
    DT_TRY(dt_json_get_string(o, "source", at, &f->source, err));
    DT_TRY(get_optional_string(o, "why", at, &f->why, err));
    DT_TRY(dt_json_get_string(o, "cluster", at, &f->from.cluster, err));
    DT_TRY(get_optional_string(o, "config", at, &f->from.config, err));
    DT_TRY(get_list(o, "set", at, f->set, &f->from.set_count, err));
    DT_TRY(get_list(o, "machine", at, f->machine, &f->from.machine_count, err));
    DT_TRY(get_optional_int(o, "devices", at, &f->from.devices, err));
    DT_TRY(get_optional_int(o, "micro_batches", at, &f->from.batches, err));
    DT_TRY(get_optional_int(o, "base_devices", at, &f->base, err));
    DT_TRY(get_optional_int(o, "measured_devices", at, &f->measured_devices, err));
    if (json_object_object_get_ex(o, "measured", NULL))
        DT_TRY(dt_json_get_real(o, "measured", at, &f->measured, err));
    DT_TRY(dt_json_get_real(o, "published", at, &f->published, err));
    if (!(f->published > 0) || f->measured < 0)
        return dt_fail(err, DT_EFORMAT, "%s: figures must be above 0", at);
    f->from.set = f->set;
    f->from.machine = f->machine;
    return 0;
}

/* --- predicting it -------------------------------------------------------------------------- */

/* The plan on devices ranks, with the same work per rank. */
static int plan_devices(const struct figure *f, long devices, const struct dt_measured *measured,
                        struct dt_plan *plan, struct dt_error *err)
{
    struct dt_settings settings;
    struct dt_cluster cluster;
    struct dt_plan_layout layout;
    struct dt_plan_request request;
    struct dt_plan_source source = f->from;
    source.devices = devices;
    DT_TRY(dt_plan_request_read(&request, &settings, &cluster, &layout, &source, err));
    request.measured = *measured;
    return dt_plan_make(plan, &request, &layout, err);
}

/* Scales predicted compute so that the plan of measured_devices matches its measurement. Iterated,
 * because exposed communication does not scale. */
static int calibrate(const struct figure *f, struct dt_measured *measured, struct dt_error *err)
{
    struct dt_plan plan;
    *measured = (struct dt_measured){1, 1};
    for (int round = 0; round < 4 && f->measured > 0; round++) {
        DT_TRY(plan_devices(f, f->measured_devices, measured, &plan, err));
        double slower = plan.tokens_per_second / f->measured;
        measured->passes *= slower;
        measured->update *= slower;
    }
    return 0;
}

static int metric_of(const struct dt_plan *p, const char *name, const char *subject, double *value,
                     struct dt_error *err)
{
    const struct {
        const char *name;
        double value;
    } metrics[] = {
        {"tokens_per_second", p->tokens_per_second},
        {"tokens_per_second_per_device", p->tokens_per_device},
        {"step_seconds", p->step.seconds},
        {"mfu", p->mfu},
        {"goodput", p->goodput.share},
        {"parameters_gb", p->sizes.parameters * 1e-9},
        {"gradients_gb", p->sizes.gradients * 1e-9},
        {"moments_gb", p->sizes.moments * 1e-9},
        {"model_state_gb", (p->sizes.parameters + p->sizes.moments) * 1e-9},
        {"memory_gb", p->sizes.total * 1e-9},
    };
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        if (strcmp(metrics[i].name, name) == 0) {
            *value = metrics[i].value;
            return 0;
        }
    return dt_fail(err, DT_EFORMAT, "%s: '%s' is not a metric", subject, name);
}

static int predict(struct figure *f, struct dt_error *err)
{
    struct dt_plan plan, base;
    struct dt_measured measured;
    DT_TRY(calibrate(f, &measured, err));
    DT_TRY(plan_devices(f, f->from.devices, &measured, &plan, err));
    if (strcmp(f->metric, "efficiency") != 0)
        return metric_of(&plan, f->metric, f->subject, &f->predicted, err);
    if (f->base == 0)
        return dt_fail(err, DT_EFORMAT, "%s: efficiency needs base_devices", f->subject);
    DT_TRY(plan_devices(f, f->base, &measured, &base, err));
    f->predicted = plan.tokens_per_device / base.tokens_per_device;
    return 0;
}

/* --- output --------------------------------------------------------------------------------- */

/* A paragraph, indented. */
static void print_wrapped(struct dt_buffer *b, const char *text)
{
    const int indent = 6;
    int column = 0;
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (column == 0 || column + 1 + word > COLUMNS) {
            dt_buffer_printf(b, "%s%*s", column ? "\n" : "", indent, "");
            column = indent;
        } else {
            dt_buffer_add_char(b, ' ');
            column++;
        }
        dt_buffer_append(b, text, (size_t)word);
        column += word;
        text += word + (text[word] == ' ');
    }
    dt_buffer_add_char(b, '\n');
}

static void print_number(struct dt_buffer *b, double value)
{
    if (fabs(value) >= 1e4 && fabs(value) < 1e10)
        dt_buffer_printf(b, "%10.0f ", value);
    else
        dt_buffer_printf(b, "%10.4g ", value);
}

static void print_figure(struct comparison *c, const struct figure *f)
{
    double error = f->predicted / f->published - 1;
    struct dt_buffer *b = c->text;
    if (c->table == NULL || strcmp(c->table, f->table) != 0)
        dt_buffer_printf(b, "%s%s\n  %-47s %10s %10s %8s\n", c->table ? "\n" : "", f->table, "",
                         "published", "predicted", "error");
    dt_buffer_printf(b, "  %-47s ", f->name);
    print_number(b, f->published);
    print_number(b, f->predicted);
    dt_buffer_printf(b, "%+7.1f%%\n", 100 * error);
    if (f->why && fabs(error) > DT_PUBLISHED_NEAR)
        print_wrapped(b, f->why);
}

static void keep_figure(struct comparison *c, const struct figure *f)
{
    struct json_object *o = dt_json_new_object();
    dt_json_object_add(o, "table", dt_json_new_string(f->table));
    dt_json_object_add(o, "name", dt_json_new_string(f->name));
    dt_json_object_add(o, "metric", dt_json_new_string(f->metric));
    dt_json_object_add(o, "published", dt_json_number(f->published));
    dt_json_object_add(o, "predicted", dt_json_number(f->predicted));
    dt_json_object_add(o, "error", dt_json_number(f->predicted / f->published - 1));
    dt_json_object_add(o, "explained", dt_json_new_boolean(f->why != NULL));
    dt_json_object_add(o, "source", dt_json_new_string(f->source));
    dt_json_array_add(c->rows, o);
}

static int compare_parsed(struct comparison *c, struct json_object *o, const char *subject,
                          struct dt_error *err)
{
    struct figure f = {.subject = subject};
    if (!json_object_is_type(o, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: must be a JSON object", subject);
    DT_TRY(read_figure(&f, o, err));
    char *config = f.from.config ? dt_asprintf("%s/../configs/%s", c->folder, f.from.config) : NULL;
    f.from.config = config;
    int rc = predict(&f, err);
    free(config);
    if (rc < 0)
        return dt_fail_context(err, "%s: %s", subject, f.name);
    print_figure(c, &f);
    keep_figure(c, &f);
    c->table = dt_json_text(json_object_object_get(
        json_object_array_get_idx(c->rows, json_object_array_length(c->rows) - 1), "table"));
    return 0;
}

static int compare_line(struct comparison *c, const char *line, size_t size, long number,
                        struct dt_error *err)
{
    struct json_object *o;
    char *subject = dt_asprintf("%s:%ld", c->path, number);
    int rc = dt_json_parse(line, size, subject, &o, err);
    if (rc == 0) {
        rc = compare_parsed(c, o, subject, err);
        json_object_put(o);
    }
    free(subject);
    return rc;
}

static int compare_lines(struct comparison *c, char *data, struct dt_error *err)
{
    long number = 0;
    for (char *line; (line = strsep(&data, "\n")) != NULL;) {
        number++;
        if (*line)
            DT_TRY(compare_line(c, line, strlen(line), number, err));
    }
    if (json_object_array_length(c->rows) == 0)
        return dt_fail(err, DT_EFORMAT, "%s: contains no figure", c->path);
    return 0;
}

int dt_published_compare(const char *path, struct dt_buffer *text, struct json_object **json,
                         struct dt_error *err)
{
    char *data;
    size_t size;
    struct comparison c = {.path = path, .text = text};
    DT_TRY(dt_file_read(path, LIMIT, &data, &size, err));
    c.folder = dt_strndup(path, (size_t)(dt_path_base(path) - path));
    if (*c.folder == 0) {
        free(c.folder);
        c.folder = dt_strdup(".");
    }
    c.rows = dt_json_new_array();
    int rc = compare_lines(&c, data, err);
    free(c.folder);
    free(data);
    if (rc < 0)
        json_object_put(c.rows);
    else
        *json = c.rows;
    return rc;
}
