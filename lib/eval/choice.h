/* SPDX-License-Identifier: MIT */
/*
 * Multiple choice by likelihood, as in lm-evaluation-harness: the model's answer is the choice with
 * the highest probability after the context, the first of ties.
 *
 * An item with a single choice counts as right if greedy decoding gives each of its tokens.
 */
#ifndef DT_EVAL_CHOICE_H
#define DT_EVAL_CHOICE_H

#include "base/buffer.h"
#include "eval/choice-data.h"
#include "eval/likelihood.h"
#include "eval/scored-model.h"

/* Normalization of the answers' log-probabilities. */
enum dt_choice_rule {
    DT_CHOICE_ACC,       /* none */
    DT_CHOICE_ACC_NORM,  /* ln p per character */
    DT_CHOICE_ACC_BYTES, /* ln p per byte */
    DT_CHOICE_RULES
};

struct dt_choice_result {
    char *directory; /* model directory, owned */
    const struct dt_choice_data *data;
    struct dt_likelihood *answers;  /* of all choices of all items, in order; owned */
    double *right[DT_CHOICE_RULES]; /* [item]: 1 or 0; owned */
    double *nats;                   /* [item]: -ln p of the right answer; owned */
};

/* tokenizer: NULL for the one in the model's directory. data is borrowed. Release the result with
 * dt_choice_release, also after a failure. */
int dt_choice_measure(struct dt_choice_result *result, struct dt_scored_model *subject,
                      const struct dt_choice_data *data, const char *tokenizer, long batch,
                      struct dt_progress *progress, struct dt_error *err) DT_MUST_CHECK;
void dt_choice_release(struct dt_choice_result *result);

/* Appends the results of count models on the same data. */
void dt_choice_report(const struct dt_choice_result *results, int count, bool json,
                      struct dt_buffer *text);
/* Appends a JSON line per item and model. */
void dt_choice_items(const struct dt_choice_result *results, int count, struct dt_buffer *lines);

#endif
