/* SPDX-License-Identifier: MIT */
/*
 * How well a masked model fills in what is hidden: loss and accuracy over tokens that
 * are masked as in training, or each token masked alone, which gives the
 * pseudo-perplexity (Salazar et al. 2020).
 *
 * A document's tokens, with the end-of-text token behind them, are cut into sequences
 * of at most max_seq_len. Special tokens are not predicted.
 */
#ifndef DT_EVAL_MASKED_H
#define DT_EVAL_MASKED_H

#include "base/buffer.h"
#include "base/progress.h"
#include "eval/scored-model.h"

struct dt_masked_options {
    const char *tokenizer; /* NULL: the one in the model's directory */
    long batch;
    double rate;   /* of tokens to mask */
    uint64_t seed; /* of which they are */
    bool alone;    /* mask each token alone instead */
};

/* Of a document, or of all. */
struct dt_masked_score {
    uint64_t predicted, hits; /* tokens hidden, and found */
    double nats;              /* sum of -ln p over the tokens hidden */
};

struct dt_masked_result {
    char *directory; /* of the model, owned */
    uint64_t documents, tokens;
    struct dt_masked_score all;
    struct dt_masked_score *items; /* of each document, owned */
};

/* data: documents ("-": stdin). Release the result, after a failure too. */
int dt_masked_measure(struct dt_masked_result *result, struct dt_scored_model *subject, char *data,
                      const struct dt_masked_options *how, struct dt_progress *progress,
                      struct dt_error *err) DT_MUST_CHECK;
void dt_masked_release(struct dt_masked_result *result);
void dt_masked_report(const struct dt_masked_result *results, int count, bool alone, bool json,
                      struct dt_buffer *text);
/* Appends a line of JSON for each document and model. */
void dt_masked_items(const struct dt_masked_result *results, int count, struct dt_buffer *lines);

#endif
