/* SPDX-License-Identifier: MIT */
#include "checkpoint/progress-state.h"

#include <inttypes.h>

#include "hash/hash.h"
#include "json/json-number.h"
#include "json/json.h"

/* JSON key: the number of data-parallel ranks with error feedback residuals. */
#define RESIDUAL_RANKS "replicas"

static void add_hex(struct json_object *object, const char *name, uint64_t value)
{
    char hex[DT_HASH_HEX];
    dt_json_object_add(object, name, dt_json_new_string(dt_hash_hex(value, hex)));
}

static void add_int(struct json_object *object, const char *name, long value)
{
    dt_json_object_add(object, name, dt_json_new_int(value));
}

static void add_real(struct json_object *object, const char *name, double value)
{
    dt_json_object_add(object, name, dt_json_number(value));
}

/* Adds an object as a member; owned by the outer object. */
static struct json_object *add_object(struct json_object *object, const char *name)
{
    struct json_object *inner = dt_json_new_object();
    dt_json_object_add(object, name, inner);
    return inner;
}

static void add_best(struct json_object *o, const struct dt_progress_state *s, int i)
{
    add_int(o, "step", s->best[i].step);
    add_real(o, "loss", s->best[i].loss);
}

static void add_parts(struct json_object *o, const struct dt_progress_state *s)
{
    if (s->best_count > 0) {
        struct json_object *best = add_object(o, "best");
        add_best(best, s, 0);
        add_int(best, "validations_since", s->validations_since_best);
        struct json_object *next = dt_json_new_array();
        for (int i = 1; i < s->best_count; i++) {
            struct json_object *one = dt_json_new_object();
            add_best(one, s, i);
            dt_json_array_add(next, one);
        }
        dt_json_object_add(best, "next", next);
    }
    if (s->skipped > 0) {
        struct json_object *skipped = add_object(o, "skipped");
        add_int(skipped, "updates", s->skipped);
        add_int(skipped, "in_a_row", s->skipped_in_row);
    }
    if (s->loss_scale.factor != 1 || s->loss_scale.updates > 0) {
        struct json_object *scale = add_object(o, "loss_scale");
        add_real(scale, "factor", s->loss_scale.factor);
        add_int(scale, "updates", s->loss_scale.updates);
    }
    if (s->residual_ranks > 0)
        add_int(add_object(o, "errors"), RESIDUAL_RANKS, s->residual_ranks);
    if (s->losses.updates > 0) {
        struct json_object *losses = add_object(o, "losses");
        add_real(losses, "mean", s->losses.mean);
        add_real(losses, "variance", s->losses.variance);
        add_int(losses, "updates", s->losses.updates);
    }
}

int dt_progress_state_write(const struct dt_progress_state *s, uint64_t data, uint64_t parameters,
                            const char *path, struct dt_error *err)
{
    struct json_object *o = dt_json_new_object();
    add_int(o, "version", 1);
    add_int(o, "step", s->step);
    add_int(o, "samples", (long)s->samples);
    add_real(o, "seconds", s->seconds);
    add_real(o, "timed", s->timed);
    add_int(o, "logged_lines", s->logged_lines);
    add_parts(o, s);
    add_hex(o, "data", data);
    add_hex(o, "parameters", parameters);
    int rc = dt_json_write(path, o, err);
    json_object_put(o);
    return rc;
}

/* A count of steps, samples, updates or lines. */
static int get_count(struct json_object *o, const char *name, const char *path, long *value,
                     struct dt_error *err)
{
    int64_t wide;
    DT_TRY(dt_json_get_int(o, name, path, &wide, err));
    if (wide < 0)
        return dt_fail(err, DT_EFORMAT, "%s: '%s' is %" PRId64 ", which is below 0", path, name,
                       wide);
    *value = (long)wide;
    return 0;
}

static int get_amount(struct json_object *o, const char *name, const char *path, double *value,
                      struct dt_error *err)
{
    DT_TRY(dt_json_get_real(o, name, path, value, err));
    return *value < 0 ? dt_fail(err, DT_EFORMAT, "%s: '%s' is below 0", path, name) : 0;
}

static int get_hash(struct json_object *o, const char *name, const char *path, uint64_t *value,
                    struct dt_error *err)
{
    const char *hex;
    DT_TRY(dt_json_get_string(o, name, path, &hex, err));
    if (!dt_hash_parse(hex, value))
        return dt_fail(err, DT_EFORMAT, "%s: '%s' is not a hash of 16 hexadecimal digits", path,
                       name);
    return 0;
}

/* Absent from checkpoints before 0.2. */
static int parse_timed(struct dt_progress_state *s, struct json_object *o, const char *path,
                       struct dt_error *err)
{
    s->timed = s->seconds;
    return json_object_object_get_ex(o, "timed", NULL)
               ? get_amount(o, "timed", path, &s->timed, err)
               : 0;
}

/* Absent from checkpoints of dt 0.1. */
static int parse_logged_lines(struct dt_progress_state *s, struct json_object *o, const char *path,
                              struct dt_error *err)
{
    s->logged_lines = 0;
    return json_object_object_get_ex(o, "logged_lines", NULL)
               ? get_count(o, "logged_lines", path, &s->logged_lines, err)
               : 0;
}

static int get_best(struct dt_progress_state *s, struct json_object *o, const char *path,
                    struct dt_error *err)
{
    if (s->best_count == DT_BEST_MOST)
        return dt_fail(err, DT_EFORMAT, "%s: 'best' has more than %d steps", path, DT_BEST_MOST);
    DT_TRY(get_count(o, "step", path, &s->best[s->best_count].step, err));
    DT_TRY(dt_json_get_real(o, "loss", path, &s->best[s->best_count].loss, err));
    s->best_count++;
    return 0;
}

/* 'next' is absent from checkpoints of dt 0.1. */
static int parse_best(struct dt_progress_state *s, struct json_object *o, const char *path,
                      struct dt_error *err)
{
    struct json_object *next;
    s->best_count = 0;
    DT_TRY(get_best(s, o, path, err));
    DT_TRY(get_count(o, "validations_since", path, &s->validations_since_best, err));
    if (!json_object_object_get_ex(o, "next", NULL))
        return 0;
    DT_TRY(dt_json_get(o, "next", json_type_array, path, &next, err));
    for (size_t i = 0; i < json_object_array_length(next); i++)
        DT_TRY(get_best(s, json_object_array_get_idx(next, i), path, err));
    return 0;
}

static int parse_skipped(struct dt_progress_state *s, struct json_object *o, const char *path,
                         struct dt_error *err)
{
    DT_TRY(get_count(o, "updates", path, &s->skipped, err));
    return get_count(o, "in_a_row", path, &s->skipped_in_row, err);
}

static int parse_loss_scale(struct dt_progress_state *s, struct json_object *o, const char *path,
                            struct dt_error *err)
{
    DT_TRY(dt_json_get_real(o, "factor", path, &s->loss_scale.factor, err));
    if (!(s->loss_scale.factor >= 1))
        return dt_fail(err, DT_EFORMAT, "%s: 'loss_scale': 'factor' is below 1", path);
    return get_count(o, "updates", path, &s->loss_scale.updates, err);
}

static int parse_losses(struct dt_progress_state *s, struct json_object *o, const char *path,
                        struct dt_error *err)
{
    DT_TRY(dt_json_get_real(o, "mean", path, &s->losses.mean, err));
    DT_TRY(get_amount(o, "variance", path, &s->losses.variance, err));
    return get_count(o, "updates", path, &s->losses.updates, err);
}

#define MAX_RANKS 65536

static int parse_errors(struct dt_progress_state *s, struct json_object *o, const char *path,
                        struct dt_error *err)
{
    DT_TRY(get_count(o, RESIDUAL_RANKS, path, &s->residual_ranks, err));
    if (s->residual_ranks >= 1 && s->residual_ranks <= MAX_RANKS)
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s: 'errors': '" RESIDUAL_RANKS "' is %ld, expected 1 to %d",
                   path, s->residual_ranks, MAX_RANKS);
}

static const struct {
    const char *name;
    int (*parse)(struct dt_progress_state *, struct json_object *, const char *, struct dt_error *);
} parts[] = {{"best", parse_best},
             {"skipped", parse_skipped},
             {"loss_scale", parse_loss_scale},
             {"losses", parse_losses},
             {"errors", parse_errors}};

static int parse(struct dt_progress_state *s, struct json_object *o, uint64_t *data,
                 const char *path, struct dt_error *err)
{
    int64_t version;
    long samples = 0;
    DT_TRY(dt_json_get_int(o, "version", path, &version, err));
    if (version != 1)
        return dt_fail(err, DT_EFORMAT, "%s: version %" PRId64 " is not supported, expected 1",
                       path, version);
    DT_TRY(get_count(o, "step", path, &s->step, err));
    DT_TRY(get_count(o, "samples", path, &samples, err));
    s->samples = (uint64_t)samples;
    DT_TRY(get_amount(o, "seconds", path, &s->seconds, err));
    DT_TRY(parse_timed(s, o, path, err));
    DT_TRY(parse_logged_lines(s, o, path, err));
    DT_TRY(get_hash(o, "data", path, data, err));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct json_object *part;
        if (json_object_object_get_ex(o, parts[i].name, &part))
            DT_TRY(parts[i].parse(s, part, path, err));
    }
    return 0;
}

int dt_progress_state_read(struct dt_progress_state *s, uint64_t *data, const char *path,
                           struct dt_error *err)
{
    struct json_object *o;
    DT_TRY(dt_json_read(path, &o, err));
    int rc = parse(s, o, data, path, err);
    json_object_put(o);
    return rc;
}

int dt_progress_state_hash(const char *path, uint64_t *parameters, struct dt_error *err)
{
    struct json_object *o;
    DT_TRY(dt_json_read(path, &o, err));
    int rc = get_hash(o, "parameters", path, parameters, err);
    json_object_put(o);
    return rc;
}
