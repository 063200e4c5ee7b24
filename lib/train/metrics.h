/* SPDX-License-Identifier: MIT */
/*
 * RUN/metrics.jsonl: one JSON object a line, for plots and trackers.
 *
 *     {"step":10,"tokens":81920,"time":1.5,"loss":5.1,"lr":1e-3,"grad_norm":0.9,
 *      "tokens_per_second":54000,"mfu":0.41}
 *     {"step":250,"tokens":2048000,"time":37.9,"val_loss":2.2}
 */
#ifndef DT_TRAIN_METRICS_H
#define DT_TRAIN_METRICS_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct dt_metrics {
    FILE *file;
    char *path;
    long lines;   /* with a step, found when it was opened, but for those that were removed */
    long damaged; /* lines, but for a last one without its newline, that were not JSON */
};

/* Opens the file for appending. Lines of steps after last_step, a last line that was cut off,
 * and lines that are not JSON are removed first; a resumed run writes the first of these anew.
 * Lines without a step stay. */
int dt_metrics_open(struct dt_metrics *metrics, const char *path, long last_step,
                    struct dt_error *err) DT_MUST_CHECK;
/* Writes one line; it reaches the system, but not yet the disk, before this returns. */
int dt_metrics_write(struct dt_metrics *metrics, struct dt_error *err, const char *fmt, ...)
    DT_PRINTF(3, 4) DT_MUST_CHECK;
/* Waits until all lines are on the disk. */
int dt_metrics_sync(struct dt_metrics *metrics, struct dt_error *err) DT_MUST_CHECK;
void dt_metrics_close(struct dt_metrics *metrics);

#endif
