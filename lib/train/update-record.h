/* SPDX-License-Identifier: MIT */
/*
 * RUN/updates.jsonl: the order in which an asynchronous run has applied gradients, one update a
 * line (dt-metrics(5)), from which it is replayed (distributed.replay).
 *
 *     {"step":7,"batch":6,"version":4,"rank":2,"loss":5.1234567890123457}
 */
#ifndef DT_TRAIN_UPDATE_RECORD_H
#define DT_TRAIN_UPDATE_RECORD_H

#include "parallel/update-order.h"
#include "train/metrics-file.h"

struct dt_update_record {
    const char *path; /* borrowed */
    struct dt_ordered_update *updates;
    double *losses; /* of each update; NAN: it was not finite */
    size_t count, capacity, loss_capacity;
};

/* Reads a record. DT_EFORMAT or DT_EINVALID names the line: for an update that is missing or that
 * no run can have made, and one whose staleness exceeds the bound. *record is empty after a
 * failure. */
int dt_update_record_read(struct dt_update_record *record, const char *path, long bound,
                          struct dt_error *err) DT_MUST_CHECK;
void dt_update_record_release(struct dt_update_record *record);
/* Whether it can be followed from a step to another: DT_EINVALID says why not. */
int dt_update_record_check(const struct dt_update_record *record, long first, long last,
                           struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID if the loss is not that of the update. */
int dt_update_record_compare(const struct dt_update_record *record, long step, double loss,
                             struct dt_error *err) DT_MUST_CHECK;

/* Appends a line. */
int dt_update_record_write(struct dt_metrics *file, const struct dt_ordered_update *update,
                           int rank, double loss, struct dt_error *err) DT_MUST_CHECK;

#endif
