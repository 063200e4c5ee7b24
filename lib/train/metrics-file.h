/* SPDX-License-Identifier: MIT */
/*
 * RUN/metrics.jsonl: one JSON object a line (dt-metrics(5)).
 *
 *     {"step":10,"tokens":81920,"time":1.5,"loss":5.1,"lr":1e-3,"grad_norm":0.9,
 *      "tokens_per_second":54000,"mfu":0.41}
 *     {"step":250,"tokens":2048000,"time":37.9,"val_loss":2.2}
 */
#ifndef DT_TRAIN_METRICS_FILE_H
#define DT_TRAIN_METRICS_FILE_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct dt_metrics {
    FILE *file;
    char *path;
    long lines;   /* with a step, found by dt_metrics_open and not removed */
    long damaged; /* lines that were not JSON; a last line without a newline does not count */
};

/* Opens the file for appending. First removes lines of steps after last_step, which the resumed run
 * writes again, lines that are not JSON, and a truncated last line. Lines without a step stay. */
int dt_metrics_open(struct dt_metrics *metrics, const char *path, long last_step,
                    struct dt_error *err) DT_MUST_CHECK;
/* Replaces the file, if there is one, by a copy: a process that has it open and was stopped then
 * writes no more lines to it. */
int dt_metrics_take_over(const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Writes one line and flushes it to the operating system. */
int dt_metrics_write(struct dt_metrics *metrics, struct dt_error *err, const char *fmt, ...)
    DT_PRINTF(3, 4) DT_MUST_CHECK;
/* fsync. */
int dt_metrics_sync(struct dt_metrics *metrics, struct dt_error *err) DT_MUST_CHECK;
void dt_metrics_close(struct dt_metrics *metrics);

#endif
