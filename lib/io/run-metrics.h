/* SPDX-License-Identifier: MIT */
/*
 * Metrics of a training run: JSON Lines, one object a step.
 *
 *     {"run": "demo", ...}                                          at most once
 *     {"step": 10, "tokens": 81920, "time": 3.2, "loss": 5.1, ...}  training
 *     {"step": 10, "tokens": 81920, "time": 3.9, "val_loss": 5.0}   validation
 *
 * Members not named here are ignored, and so are lines without a finite loss and a last line
 * without its newline, which a running trainer may still be writing. A line whose step is not above
 * the previous one of its kind replaces its kind from that step on, and a training line all
 * validations after it: a resumed run repeats steps.
 *
 *     struct dt_run_metrics m;
 *     DT_TRY(dt_run_metrics_read(&m, "build/demo/run", err));
 *     for (size_t i = 0; i < m.train.count; i++)
 *         use(m.train.items[i].step, m.train.items[i].loss);
 *     dt_run_metrics_release(&m);
 */
#ifndef DT_IO_RUN_METRICS_H
#define DT_IO_RUN_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct dt_metric {
    double step, tokens, time; /* time in seconds; NAN where a line lacks tokens or time */
    double loss;               /* mean nats per token; or the requested number */
};

struct dt_curve { /* steps increase */
    struct dt_metric *items;
    size_t count, capacity;
    bool lost; /* after the last point comes a value that is not finite */
};

struct dt_run_metrics {
    char *name; /* of the run: its header's "run", else the directory's or file's name */
    struct dt_curve train, valid;
    struct dt_metric last; /* of the last line with a loss, finite or not; its loss is not set */
    size_t not_finite;     /* losses that are NaN, above 1e300 or not a number; in no curve */
};

/* Reads PATH, or PATH/metrics.jsonl if PATH is a directory. A run without any
 * loss is DT_EFORMAT. *m is released after a failure. */
int dt_run_metrics_read(struct dt_run_metrics *m, const char *path,
                        struct dt_error *err) DT_MUST_CHECK;
bool dt_run_metrics_is_empty(const struct dt_run_metrics *m); /* without points */
/* Whether a member of metrics is of a validation: "val_loss", "val_accuracy_NAME", ... */
bool dt_run_metrics_is_validation(const char *member);
/* The same for another member: one of a validation is in m->valid, one such as "lr" in m->train;
 * the other curve is empty. */
int dt_run_metrics_read_member(struct dt_run_metrics *m, const char *path, const char *member,
                               struct dt_error *err) DT_MUST_CHECK;
/* The same, but a file without finite values of the member is not an error. */
int dt_run_metrics_read_if_any(struct dt_run_metrics *m, const char *path, const char *member,
                               struct dt_error *err) DT_MUST_CHECK;
void dt_run_metrics_release(struct dt_run_metrics *m);

#endif
