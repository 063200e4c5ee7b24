/* SPDX-License-Identifier: MIT */
/*
 * A model's answers to the items of a task, and their scores.
 *
 *     struct dt_task_result result;
 *     DT_TRY(dt_task_measure(&result, &items, &subject, 16, progress, err));
 *     dt_task_report(&result, 1, false, 0, &text);
 *     dt_task_result_release(&result);
 */
#ifndef DT_TASKS_MEASURE_H
#define DT_TASKS_MEASURE_H

#include "eval/likelihood.h"
#include "eval/scored-model.h"
#include "tasks/items.h"
#include "tasks/metric.h"

/* The scores of all items by one metric; of generated texts, after one filter. */
struct dt_task_column {
    const struct dt_task_metric *metric;
    const struct dt_task_filter *filter; /* NULL: none */
    struct dt_task_score *scores;        /* [item], owned */
};

struct dt_task_result {
    char *directory; /* model directory, owned */
    const struct dt_task_items *items;
    struct dt_likelihood *answers; /* of all answers of all items, in order; owned */
    size_t answer_count;
    struct dt_buffer *texts; /* [item]: generated; owned; NULL for other tasks */
    struct dt_task_column *columns;
    size_t column_count;
};

/* items are borrowed; subject has its tokenizer. Release the result
 * with dt_task_result_release, also after a failure. */
int dt_task_measure(struct dt_task_result *result, const struct dt_task_items *items,
                    struct dt_scored_model *subject, long batch, struct dt_progress *progress,
                    struct dt_error *err) DT_MUST_CHECK;
void dt_task_result_release(struct dt_task_result *result);

/* Appends the results of count models on the same items. resamples: of the bootstrap; 0: as
 * dt_task_estimate() chooses. */
void dt_task_report(const struct dt_task_result *results, int count, bool json, long resamples,
                    struct dt_buffer *text);
/* Appends the members "TASK/METRIC" and "TASK/METRIC_stderr" of a JSON object. */
void dt_task_add_metrics(const struct dt_task_result *result, long resamples,
                         struct dt_buffer *object);
/* Appends a JSON line per item and model. */
void dt_task_items_report(const struct dt_task_result *results, int count, struct dt_buffer *lines);

#endif
