/* SPDX-License-Identifier: MIT */
#include "verify/recorded-steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "io/json-lines.h"

static int get_hash(struct json_object *line, const char *name, const char *subject,
                    struct dt_sum_hash *hash, struct dt_error *err)
{
    const char *text;
    unsigned long long sums[2];
    DT_TRY(dt_json_get_string(line, name, subject, &text, err));
    if (strlen(text) != DT_SUM_HASH_HEX - 1 ||
        strspn(text, "0123456789abcdef") != DT_SUM_HASH_HEX - 1 ||
        sscanf(text, "%16llx%16llx", &sums[0], &sums[1]) != 2)
        return dt_fail(err, DT_EFORMAT, "%s: '%s' is '%s', expected 32 hexadecimal digits", subject,
                       name, text);
    *hash = (struct dt_sum_hash){{sums[0], sums[1]}};
    return 0;
}

/* NAN for null. */
static int get_number(struct json_object *line, const char *name, const char *subject,
                      double *value, struct dt_error *err)
{
    struct json_object *member;
    *value = NAN;
    if (json_object_object_get_ex(line, name, &member) && member == NULL)
        return 0;
    return dt_json_get_real(line, name, subject, value, err);
}

static int get_step(struct json_object *line, const char *subject, long least, long *step,
                    struct dt_error *err)
{
    int64_t value;
    DT_TRY(dt_json_get_int(line, "step", subject, &value, err));
    if (value < least)
        return dt_fail(err, DT_EFORMAT,
                       "%s: step %lld is not above that of the line before: steps of a run "
                       "ascend",
                       subject, (long long)value);
    *step = (long)value;
    return 0;
}

static int take_validation(struct dt_recorded_steps *s, struct json_object *line,
                           const char *subject, struct dt_error *err)
{
    struct dt_recorded_validation v = {.loss = NAN, .accuracy = NAN, .ema_loss = NAN};
    long before = s->validation_count > 0 ? s->validations[s->validation_count - 1].step : 0;
    DT_TRY(get_step(line, subject, before + 1, &v.step, err));
    if (json_object_object_get_ex(line, "val_loss", NULL))
        DT_TRY(get_number(line, "val_loss", subject, &v.loss, err));
    if (json_object_object_get_ex(line, "val_accuracy", NULL))
        DT_TRY(get_number(line, "val_accuracy", subject, &v.accuracy, err));
    if (json_object_object_get_ex(line, "ema_val_loss", NULL))
        DT_TRY(get_number(line, "ema_val_loss", subject, &v.ema_loss, err));
    v.line = json_object_get(line);
    DT_GROW(s->validations, s->validation_count, s->validation_capacity);
    s->validations[s->validation_count++] = v;
    return 0;
}

/* Without a validation split it has the losses of data.validation's sets alone. */
static bool is_validation(struct json_object *line)
{
    json_object_object_foreach(line, name, value)
    {
        (void)value;
        if (strncmp(name, "val_", strlen("val_")) == 0)
            return true;
    }
    return false;
}

static int take_lost(struct dt_recorded_steps *s, struct json_object *line, const char *subject,
                     struct dt_error *err)
{
    struct json_object *lost;
    int64_t lines, until;
    DT_TRY(dt_json_get(line, "lost", json_type_object, subject, &lost, err));
    DT_TRY(dt_json_get_int(lost, "lines", subject, &lines, err));
    DT_TRY(dt_json_get_int(lost, "until", subject, &until, err));
    s->lost_lines += (long)lines;
    s->lost_until = (long)until;
    return 0;
}

static int take_step(void *context, struct json_object *line, const char *subject,
                     struct dt_error *err)
{
    struct dt_recorded_steps *s = context;
    struct dt_recorded_step step;
    if (!json_object_is_type(line, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: is not a JSON object", subject);
    if (is_validation(line))
        return take_validation(s, line, subject, err);
    if (json_object_object_get_ex(line, "lost", NULL))
        return take_lost(s, line, subject, err);
    if (!json_object_object_get_ex(line, "loss", NULL))
        return 0; /* the name of the run */
    long before = s->count > 0 ? s->items[s->count - 1].step : 0;
    DT_TRY(get_step(line, subject, before + 1, &step.step, err));
    DT_TRY(get_number(line, "loss", subject, &step.loss, err));
    DT_TRY(get_number(line, "lr", subject, &step.learning_rate, err));
    DT_TRY(get_number(line, "grad_norm", subject, &step.gradient_norm, err));
    DT_TRY(get_hash(line, "batch_hash", subject, &step.batch, err));
    DT_TRY(get_hash(line, "parameter_hash", subject, &step.parameters, err));
    s->several_ranks |= json_object_object_get_ex(line, "bytes_sent", NULL);
    DT_GROW(s->items, s->count, s->capacity);
    s->items[s->count++] = step;
    return 0;
}

void dt_recorded_steps_release(struct dt_recorded_steps *steps)
{
    free(steps->items);
    for (size_t i = 0; i < steps->validation_count; i++)
        json_object_put(steps->validations[i].line);
    free(steps->validations);
    *steps = (struct dt_recorded_steps){NULL};
}

const struct dt_recorded_validation *
dt_recorded_steps_find_validation(const struct dt_recorded_steps *steps, long step)
{
    for (size_t i = 0; i < steps->validation_count; i++)
        if (steps->validations[i].step == step)
            return &steps->validations[i];
    return NULL;
}

double dt_recorded_validation_number(const struct dt_recorded_validation *line, const char *name)
{
    struct json_object *member;
    bool there = json_object_object_get_ex(line->line, name, &member) &&
                 (json_object_is_type(member, json_type_double) ||
                  json_object_is_type(member, json_type_int));
    return there ? json_object_get_double(member) : NAN;
}

int dt_recorded_steps_read(struct dt_recorded_steps *steps, const char *path, struct dt_error *err)
{
    *steps = (struct dt_recorded_steps){NULL};
    DT_TRY(dt_json_lines_read(path, take_step, steps, err));
    return steps->count > 0
               ? 0
               : dt_fail(err, DT_EFORMAT, "%s: has no training line to compare with", path);
}

static int get_text(struct json_object *line, const char *name, const char *subject, char *text,
                    size_t size, struct dt_error *err)
{
    const char *value;
    DT_TRY(dt_json_get_string(line, name, subject, &value, err));
    if (snprintf(text, size, "%s", value) >= (int)size)
        return dt_fail(err, DT_EFORMAT, "%s: '%s' has more than %zu bytes", subject, name,
                       size - 1);
    return 0;
}

static int take_hash(void *context, struct json_object *line, const char *subject,
                     struct dt_error *err)
{
    struct dt_recorded_hashes *h = context;
    struct dt_recorded_hash hash;
    long before = h->count > 0 ? h->items[h->count - 1].step : 1;
    if (!json_object_is_type(line, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: is not a JSON object", subject);
    DT_TRY(get_step(line, subject, before, &hash.step, err));
    DT_TRY(get_text(line, "operation", subject, hash.operation, sizeof hash.operation, err));
    DT_TRY(get_text(line, "tensor", subject, hash.tensor, sizeof hash.tensor, err));
    DT_TRY(get_hash(line, "hash", subject, &hash.hash, err));
    hash.line = (long)h->count + 1;
    DT_GROW(h->items, h->count, h->capacity);
    h->items[h->count++] = hash;
    return 0;
}

int dt_recorded_hashes_read(struct dt_recorded_hashes *hashes, const char *path,
                            struct dt_error *err)
{
    *hashes = (struct dt_recorded_hashes){NULL};
    return dt_json_lines_read(path, take_hash, hashes, err);
}

const struct dt_recorded_step *dt_recorded_steps_find(const struct dt_recorded_steps *s, long step)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].step == step)
            return &s->items[i];
    return NULL;
}
