/* SPDX-License-Identifier: MIT */
#include "train/update-record.h"

#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "io/json-lines.h"
#include "json/json.h"

struct reading {
    struct dt_update_record *record;
    long bound;
};

static const struct dt_ordered_update *last_of(const struct dt_update_record *r)
{
    return r->count > 0 ? &r->updates[r->count - 1] : NULL;
}

static int check(const struct reading *reading, const struct dt_ordered_update *u,
                 const char *subject, struct dt_error *err)
{
    const struct dt_ordered_update *last = last_of(reading->record);
    const long stale = u->step - 1 - u->version;
    if (u->step < 1 || (last && u->step != last->step + 1))
        return dt_fail(err, DT_EFORMAT, "%s: is update %ld, not %ld: updates are missing or twice",
                       subject, u->step, last ? last->step + 1 : 1);
    if (u->version < 0 || stale < 0 || u->batch <= u->version)
        return dt_fail(err, DT_EFORMAT,
                       "%s: update %ld cannot be of batch %ld with the parameters of update %ld",
                       subject, u->step, u->batch, u->version);
    if (stale <= reading->bound && u->batch - u->step <= reading->bound)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s: update %ld is of batch %ld with the parameters of update %ld: "
                   "distributed.staleness must be %ld or more, not %ld",
                   subject, u->step, u->batch, u->version,
                   stale > u->batch - u->step ? stale : u->batch - u->step, reading->bound);
}

static int get_long(struct json_object *line, const char *name, const char *subject, long *value,
                    struct dt_error *err)
{
    int64_t x;
    DT_TRY(dt_json_get_int(line, name, subject, &x, err));
    *value = (long)x;
    return 0;
}

static int get_loss(struct json_object *line, const char *subject, double *loss,
                    struct dt_error *err)
{
    struct json_object *value;
    *loss = NAN;
    if (json_object_object_get_ex(line, "loss", &value) && value == NULL)
        return 0;
    return dt_json_get_real(line, "loss", subject, loss, err);
}

static int take(void *context, struct json_object *line, const char *subject, struct dt_error *err)
{
    const struct reading *reading = context;
    struct dt_update_record *r = reading->record;
    struct dt_ordered_update u;
    double loss;
    DT_TRY(get_long(line, "step", subject, &u.step, err));
    DT_TRY(get_long(line, "batch", subject, &u.batch, err));
    DT_TRY(get_long(line, "version", subject, &u.version, err));
    DT_TRY(get_loss(line, subject, &loss, err));
    DT_TRY(check(reading, &u, subject, err));
    DT_GROW(r->updates, r->count, r->capacity);
    DT_GROW(r->losses, r->count, r->loss_capacity);
    r->updates[r->count] = u;
    r->losses[r->count++] = loss;
    return 0;
}

/* A batch is at most bound updates before or after its own number. */
static int check_batches(const struct dt_update_record *r, long bound, struct dt_error *err)
{
    for (size_t i = 0; i < r->count; i++)
        for (size_t j = i + 1; j < r->count && j <= i + 2 * (size_t)bound + 1; j++)
            if (r->updates[j].batch == r->updates[i].batch)
                return dt_fail(err, DT_EFORMAT, "%s: updates %ld and %ld are both of batch %ld",
                               r->path, r->updates[i].step, r->updates[j].step,
                               r->updates[i].batch);
    return 0;
}

int dt_update_record_read(struct dt_update_record *r, const char *path, long bound,
                          struct dt_error *err)
{
    struct reading reading = {r, bound};
    *r = (struct dt_update_record){.path = path};
    int rc = dt_json_lines_read(path, take, &reading, err);
    rc = rc < 0 ? rc : check_batches(r, bound, err);
    if (rc < 0)
        dt_update_record_release(r);
    return rc;
}

void dt_update_record_release(struct dt_update_record *r)
{
    free(r->updates);
    free(r->losses);
    *r = (struct dt_update_record){0};
}

int dt_update_record_check(const struct dt_update_record *r, long first, long last,
                           struct dt_error *err)
{
    const long begins = r->count > 0 ? r->updates[0].step : 1, ends = begins + (long)r->count - 1;
    if (last > ends || begins > first + 1)
        return dt_fail(err, DT_EINVALID,
                       "distributed.replay: %s has updates %ld to %ld, but steps %ld to %ld are to "
                       "be replayed",
                       r->path, begins, ends, first + 1, last);
    for (size_t i = (size_t)(first + 1 - begins); i < r->count; i++)
        if (r->updates[i].version < first || r->updates[i].batch <= first)
            return dt_fail(err, DT_EINVALID,
                           "distributed.replay: update %ld of %s is of batch %ld with the "
                           "parameters of update %ld, but the run resumes at step %ld",
                           r->updates[i].step, r->path, r->updates[i].batch, r->updates[i].version,
                           first);
    return 0;
}

int dt_update_record_compare(const struct dt_update_record *r, long step, double loss,
                             struct dt_error *err)
{
    const size_t i = (size_t)(step - r->updates[0].step);
    if (r->losses[i] == loss || (isnan(r->losses[i]) && !isfinite(loss)))
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "step %ld: the loss is %.17g, and %s has %.17g: the run that is replayed had "
                   "other settings or data, or the file is damaged",
                   step, loss, r->path, r->losses[i]);
}

int dt_update_record_write(struct dt_metrics *file, const struct dt_ordered_update *u, int rank,
                           double loss, struct dt_error *err)
{
    char text[40] = "null";
    if (isfinite(loss))
        snprintf(text, sizeof text, "%.17g", loss);
    return dt_metrics_write(file, err,
                            "{\"step\":%ld,\"batch\":%ld,\"version\":%ld,\"rank\":%d,\"loss\":%s}",
                            u->step, u->batch, u->version, rank, text);
}
