/* SPDX-License-Identifier: MIT */
/*
 * Loss and accuracy of a masked model on tokens masked as in training, or with one token masked at
 * a time: pseudo-perplexity (Salazar et al. 2020).
 *
 * A document's tokens and an end-of-text token are split into sequences of at most max_seq_len.
 * Special tokens are not predicted.
 */
#ifndef DT_EVAL_MASKED_H
#define DT_EVAL_MASKED_H

#include "base/buffer.h"
#include "base/progress.h"
#include "eval/scored-model.h"

struct dt_masked_options {
    const char *tokenizer; /* NULL: the one in the model's directory */
    long batch;
    double rate;   /* fraction of tokens to mask */
    uint64_t seed; /* of the masks */
    bool alone;    /* mask one token at a time instead */
};

/* Scores of a document, or of all. */
struct dt_masked_score {
    uint64_t predicted, hits; /* masked tokens; those predicted correctly */
    double nats;              /* sum of -ln p over the masked tokens */
};

struct dt_masked_result {
    char *directory; /* model directory, owned */
    uint64_t documents, tokens;
    struct dt_masked_score all;
    struct dt_masked_score *items; /* [document], owned */
};

/* data: documents ("-": stdin). Release the result, also after a failure. */
int dt_masked_measure(struct dt_masked_result *result, struct dt_scored_model *subject, char *data,
                      const struct dt_masked_options *how, struct dt_progress *progress,
                      struct dt_error *err) DT_MUST_CHECK;
void dt_masked_release(struct dt_masked_result *result);
void dt_masked_report(const struct dt_masked_result *results, int count, bool alone, bool json,
                      struct dt_buffer *text);
/* Appends a JSON line per document and model. */
void dt_masked_items(const struct dt_masked_result *results, int count, struct dt_buffer *lines);

#endif
