/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "io/json-lines.h"
#include "io/run-metrics.h"
#include "json/json.h"

static bool get_number(struct json_object *line, const char *name, double *value)
{
    struct json_object *member;
    *value = NAN;
    if (!json_object_object_get_ex(line, name, &member) ||
        !(json_object_is_type(member, json_type_int) ||
          json_object_is_type(member, json_type_double)))
        return false;
    *value = json_object_get_double(member);
    return isfinite(*value);
}

#define MOST 1e300 /* means and axes of larger numbers overflow */

/* Whether the line has the member; *loss is NAN unless it is finite. One that is NaN, infinite,
 * huge or null is counted. */
static bool get_loss(struct dt_run_metrics *m, struct dt_curve *curve, struct json_object *line,
                     const char *name, double *loss)
{
    *loss = NAN;
    if (name == NULL || !json_object_object_get_ex(line, name, NULL))
        return false;
    if (!get_number(line, name, loss) || fabs(*loss) > MOST)
        *loss = NAN;
    curve->lost = isnan(*loss);
    m->not_finite += curve->lost;
    return true;
}

static void drop_from(struct dt_curve *curve, double step, bool after)
{
    while (curve->count > 0 && (curve->items[curve->count - 1].step > step ||
                                (!after && curve->items[curve->count - 1].step == step)))
        curve->count--;
}

/* Replaces what an earlier part of the run has of this step and later ones. */
static void add_point(struct dt_curve *curve, struct dt_metric point, double loss)
{
    drop_from(curve, point.step, false);
    if (isnan(loss))
        return;
    point.loss = loss;
    DT_GROW(curve->items, curve->count, curve->capacity);
    curve->items[curve->count++] = point;
}

#define LOSS "loss"

/* State of reading one file. */
struct reading {
    struct dt_run_metrics *metrics;
    const char *train, *valid; /* members of the two curves; NULL: none */
};

static int add_line(void *context, struct json_object *line, const char *subject,
                    struct dt_error *err)
{
    const struct reading *r = context;
    struct dt_run_metrics *m = r->metrics;
    struct dt_metric point;
    struct json_object *run;
    if (!json_object_is_type(line, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: not a JSON object", subject);
    if (json_object_object_get_ex(line, "run", &run) &&
        json_object_is_type(run, json_type_string)) {
        free(m->name);
        m->name = dt_strdup(dt_json_text(run));
    }
    double train, valid;
    bool is_step = json_object_object_get_ex(line, LOSS, NULL);
    bool trains = get_loss(m, &m->train, line, r->train, &train);
    bool validates = get_loss(m, &m->valid, line, r->valid, &valid);
    if (!isnan(train) || !isnan(valid))
        DT_TRY(dt_json_get_real(line, "step", subject, &point.step, err));
    else if (!(is_step || trains || validates) || !get_number(line, "step", &point.step))
        return 0;
    get_number(line, "tokens", &point.tokens);
    get_number(line, "time", &point.time);
    point.loss = train;
    m->last = point;
    if (is_step) { /* of a run that was resumed before it */
        drop_from(&m->train, point.step, true);
        drop_from(&m->valid, point.step, true);
    }
    if (trains)
        add_point(&m->train, point, train);
    if (validates)
        add_point(&m->valid, point, valid);
    return 0;
}

/* "a/b/" is called "b", "a/b/metrics.jsonl" as well. */
static char *name_of(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    char *copy = dt_strndup(path, size);
    char *base = strrchr(copy, '/');
    if (base && strcmp(base, "/metrics.jsonl") == 0) {
        *base = 0;
        base = strrchr(copy, '/');
    }
    char *name = dt_strdup(base ? base + 1 : copy);
    free(copy);
    return name;
}

/* file: of a directory. A checkpoint of a run has none. */
static int need_file(const char *file, const char *directory, struct dt_error *err)
{
    int there = dt_file_probe(file, err);
    if (there == 0)
        return dt_fail(err, DT_EMISSING,
                       "%s: contains no metrics.jsonl: name the directory of a run, not that of a "
                       "checkpoint",
                       directory);
    return there < 0 ? there : dt_file_need_regular(file, err);
}

static bool is_run(const char *path)
{
    return strcmp(path, "-") != 0 && dt_file_is_directory(path);
}

/* Owned by the caller. */
static char *file_of(const char *path)
{
    return is_run(path) ? dt_path_join(path, "metrics.jsonl") : dt_strdup(path);
}

/* Members of the two curves; NULL: none. */
static int read_curves(struct dt_run_metrics *m, const char *path, const char *train,
                       const char *valid, struct dt_error *err)
{
    memset(m, 0, sizeof *m);
    m->name = name_of(path);
    bool directory = is_run(path);
    char *file = file_of(path);
    struct reading reading = {m, train, valid};
    int rc = directory ? need_file(file, path, err) : 0;
    rc = rc < 0 ? rc : dt_json_lines_read(file, add_line, &reading, err);
    free(file);
    if (rc < 0)
        dt_run_metrics_release(m);
    return rc;
}

static int need_points(struct dt_run_metrics *m, const char *path, const char *member,
                       struct dt_error *err)
{
    if (!dt_run_metrics_is_empty(m))
        return 0;
    char *file = file_of(path);
    int rc = dt_fail(err, DT_EFORMAT, "%s: holds no %s%s", file, m->not_finite > 0 ? "finite " : "",
                     member);
    free(file);
    dt_run_metrics_release(m);
    return rc;
}

bool dt_run_metrics_is_empty(const struct dt_run_metrics *m)
{
    return m->train.count + m->valid.count == 0;
}

bool dt_run_metrics_is_validation(const char *member)
{
    return strncmp(member, "val_", 4) == 0 || strcmp(member, "ema_val_loss") == 0;
}

int dt_run_metrics_read_if_any(struct dt_run_metrics *m, const char *path, const char *member,
                               struct dt_error *err)
{
    if (dt_run_metrics_is_validation(member))
        return read_curves(m, path, NULL, member, err);
    return read_curves(m, path, member, strcmp(member, LOSS) == 0 ? "val_loss" : NULL, err);
}

int dt_run_metrics_read_member(struct dt_run_metrics *m, const char *path, const char *member,
                               struct dt_error *err)
{
    DT_TRY(dt_run_metrics_read_if_any(m, path, member, err));
    return need_points(m, path, member, err);
}

int dt_run_metrics_read(struct dt_run_metrics *m, const char *path, struct dt_error *err)
{
    return dt_run_metrics_read_member(m, path, LOSS, err);
}

void dt_run_metrics_release(struct dt_run_metrics *m)
{
    free(m->name);
    free(m->train.items);
    free(m->valid.items);
    memset(m, 0, sizeof *m);
}
