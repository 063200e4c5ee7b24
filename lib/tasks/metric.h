/* SPDX-License-Identifier: MIT */
/*
 * Metrics of tasks: the mean or another aggregate of the scores of documents, its standard error,
 * and an interval by the bootstrap, as lm-evaluation-harness computes them.
 *
 *     struct dt_task_estimate e = dt_task_estimate(scores, count, DT_TASK_AGGREGATION_MEAN, 2, 0);
 *     printf("%g ± %g\n", e.value, e.error);
 */
#ifndef DT_TASKS_METRIC_H
#define DT_TASKS_METRIC_H

#include "tasks/task.h"

enum dt_task_metric_kind {
    DT_TASK_METRIC_ACC,
    DT_TASK_METRIC_ACC_NORM,  /* ln p per character of the answer */
    DT_TASK_METRIC_ACC_BYTES, /* per byte */
    DT_TASK_METRIC_EXACT_MATCH,
    DT_TASK_METRIC_F1,
    DT_TASK_METRIC_PERPLEXITY,
    DT_TASK_METRIC_WORD_PERPLEXITY,
    DT_TASK_METRIC_BYTE_PERPLEXITY,
    DT_TASK_METRIC_BITS_PER_BYTE,
    DT_TASK_METRIC_COUNT
};

enum dt_task_aggregation {
    DT_TASK_AGGREGATION_MEAN,
    DT_TASK_AGGREGATION_MEAN_PERPLEXITY,     /* exp(-mean) */
    DT_TASK_AGGREGATION_WEIGHTED_PERPLEXITY, /* exp(-sum / sum of weights) */
    DT_TASK_AGGREGATION_WEIGHTED_BITS,       /* the same in bits, without exp */
    DT_TASK_AGGREGATION_BINARY_F1,           /* of label 1 */
    DT_TASK_AGGREGATION_MACRO_F1,            /* mean over the labels */
    DT_TASK_AGGREGATION_COUNT
};

/* Of a document: value, or nats and weight, or right label and answer. */
struct dt_task_score {
    double value, other;
};

struct dt_task_estimate {
    double value, error; /* error: NAN if unknown, as of one document */
    double low, high;    /* 95% interval by the bootstrap; NAN of one document */
};

/* resamples: of the bootstrap; 0: 1000, and 100,000 where the standard error is by the bootstrap.
 * labels: of F1. */
struct dt_task_estimate dt_task_estimate(const struct dt_task_score *scores, size_t count,
                                         enum dt_task_aggregation aggregation, int labels,
                                         long resamples);
/* Standard error of the mean over groups of count[i] documents with errors[i], as
 * lm-evaluation-harness pools them. */
double dt_task_pooled_error(const double *errors, const size_t *counts, size_t groups);
/* Whether smaller is better. */
bool dt_task_metric_is_loss(enum dt_task_metric_kind kind);

#endif
