/* SPDX-License-Identifier: MIT */
/*
 * Accuracy and log-likelihood of a classifier of texts on labelled documents.
 *
 * A document's "label" is a number from 0, or a name of id2label. A text is what transformers'
 * tokenizer makes of it with its special tokens, cut to the longest context; the classifier's
 * answer is the label with the largest logit, the first of ties.
 */
#ifndef DT_EVAL_CLASSIFICATION_H
#define DT_EVAL_CLASSIFICATION_H

#include "base/buffer.h"
#include "base/progress.h"
#include "eval/scored-model.h"

struct dt_classification_item {
    char *id; /* owned */
    int32_t label, answer;
    double nats; /* -ln p of the label */
};

struct dt_classification {
    char *directory; /* model directory, owned */
    long labels;
    struct dt_classification_item *items; /* owned, like what follows */
    size_t count, capacity, cut;          /* cut: texts that were longer than the context */
    double *right, *nats;                 /* [item] */
    float *logits;                        /* count x labels */
};

/* data: documents ("-": stdin). tokenizer: NULL for the one in the model's directory. batch: texts
 * at a time. Release the result, also after a failure. */
int dt_classification_measure(struct dt_classification *result, struct dt_scored_model *subject,
                              char *data, const char *tokenizer, long batch,
                              struct dt_progress *progress, struct dt_error *err) DT_MUST_CHECK;
void dt_classification_release(struct dt_classification *result);

/* Appends the results of count models on the same data. */
void dt_classification_report(const struct dt_classification *results, int count, bool json,
                              struct dt_buffer *text);
/* Appends a JSON line per document and model. */
void dt_classification_items(const struct dt_classification *results, int count,
                             struct dt_buffer *lines);

#endif
