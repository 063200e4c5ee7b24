/* SPDX-License-Identifier: MIT */
/*
 * Multiple choice by likelihood, as lm-evaluation-harness scores it: a model's
 * answer is the one to which it gives the highest probability behind the context.
 * Of ties the first counts.
 *
 * Where items have a single choice, it is to be guessed: right if each of its
 * tokens is the most probable one.
 */
#ifndef DT_EVAL_CHOICE_H
#define DT_EVAL_CHOICE_H

#include "base/buffer.h"
#include "eval/choice-data.h"
#include "eval/likelihood.h"
#include "eval/scored-model.h"

/* How the probabilities of answers of different lengths are compared. */
enum dt_choice_rule {
    DT_CHOICE_ACC,       /* as they are */
    DT_CHOICE_ACC_NORM,  /* ln p for each character */
    DT_CHOICE_ACC_BYTES, /* ln p for each byte */
    DT_CHOICE_RULES
};

struct dt_choice_result {
    char *directory; /* of the model, owned */
    const struct dt_choice_data *data;
    struct dt_likelihood *answers;  /* choice after choice, item after item; owned */
    double *right[DT_CHOICE_RULES]; /* 1 or 0 for each item; owned */
    double *nats;                   /* of the right answer of each item; owned */
};

/* tokenizer NULL: the one in the model's directory. data is borrowed. Release the
 * result with dt_choice_release, after a failure too. */
int dt_choice_measure(struct dt_choice_result *result, struct dt_scored_model *subject,
                      const struct dt_choice_data *data, const char *tokenizer, long batch,
                      struct dt_progress *progress, struct dt_error *err) DT_MUST_CHECK;
void dt_choice_release(struct dt_choice_result *result);

/* Appends the results of count models over the same data. */
void dt_choice_report(const struct dt_choice_result *results, int count, bool json,
                      struct dt_buffer *text);
/* Appends a line of JSON for each item and model. */
void dt_choice_items(const struct dt_choice_result *results, int count, struct dt_buffer *lines);

#endif
