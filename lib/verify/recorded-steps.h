/* SPDX-License-Identifier: MIT */
/* What a run has recorded about its steps: metrics.jsonl and hashes.jsonl (dt-metrics(5)). */
#ifndef DT_VERIFY_RECORDED_STEPS_H
#define DT_VERIFY_RECORDED_STEPS_H

#include "base/error.h"
#include "hash/sum-hash.h"
#include "json/json.h"

/* A training line; NAN where the file has null. */
struct dt_recorded_step {
    long step;
    double loss, learning_rate, gradient_norm;
    struct dt_sum_hash batch, parameters;
};

/* A validation line; NAN where the file has null or nothing. */
struct dt_recorded_validation {
    long step;
    double loss, accuracy, ema_loss;
    struct json_object *line; /* owned by the steps */
};

struct dt_recorded_steps {
    struct dt_recorded_step *items; /* in the order of steps */
    size_t count, capacity;
    struct dt_recorded_validation *validations; /* in the order of steps */
    size_t validation_count, validation_capacity;
    long lost_lines, lost_until; /* lines up to a step that the run itself has reported missing */
    bool several_ranks;          /* some steps were computed by several */
};

/* A line of a traced step. */
struct dt_recorded_hash {
    long step, line; /* line: of the file */
    char operation[16], tensor[80];
    struct dt_sum_hash hash;
};

struct dt_recorded_hashes {
    struct dt_recorded_hash *items;
    size_t count, capacity;
};

/* DT_EFORMAT names file and line: a line that is not JSON, lacks a member or has a malformed hash,
 * or whose step is not above that of the line before (of hashes: is below it). A file without
 * training lines is DT_EFORMAT. A last line without its newline, which the run may still be
 * writing, is ignored. Release the steps with dt_recorded_steps_release and the items of the hashes
 * with free, also after a failure. */
int dt_recorded_steps_read(struct dt_recorded_steps *steps, const char *path,
                           struct dt_error *err) DT_MUST_CHECK;
int dt_recorded_hashes_read(struct dt_recorded_hashes *hashes, const char *path,
                            struct dt_error *err) DT_MUST_CHECK;

void dt_recorded_steps_release(struct dt_recorded_steps *steps);

/* NULL: the step was not logged. */
const struct dt_recorded_step *dt_recorded_steps_find(const struct dt_recorded_steps *steps,
                                                      long step);
/* NULL: no validation after the step is recorded. */
const struct dt_recorded_validation *
dt_recorded_steps_find_validation(const struct dt_recorded_steps *steps, long step);
/* A number of the line, such as "val_loss_NAME"; NAN where the file has null or nothing. */
double dt_recorded_validation_number(const struct dt_recorded_validation *line, const char *name);

#endif
