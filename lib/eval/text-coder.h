/* SPDX-License-Identifier: MIT */
/*
 * Tokens of prompts and answers of a causal model, as lm-evaluation-harness encodes them: a text
 * begins with the tokens of the tokenizer's template (post_processor), if there is one.
 */
#ifndef DT_EVAL_TEXT_CODER_H
#define DT_EVAL_TEXT_CODER_H

#include "eval/likelihood.h"
#include "eval/scored-model.h"
#include "eval/text-frame.h"

struct dt_text_coder {
    struct dt_scored_model *subject; /* borrowed; it has a tokenizer */
    struct dt_text_frame frame;
};

/* Release with dt_text_coder_release, also after a failure. */
int dt_text_coder_open(struct dt_text_coder *coder, struct dt_scored_model *subject,
                       struct dt_error *err) DT_MUST_CHECK;
void dt_text_coder_release(struct dt_text_coder *coder);
/* Appends the tokens of a text. */
void dt_text_coder_encode(const struct dt_text_coder *coder, const char *text, size_t size,
                          struct dt_ids *ids);
/* The token before a text without context; DT_NO_TOKEN if there is none. */
uint32_t dt_text_coder_prefix(const struct dt_text_coder *coder);
/* Queues an answer after its context, as a new item. DT_EFORMAT if no token is the answer's, whose
 * probability would be 1, or if they are more than the model's context. */
int dt_text_coder_add_answer(const struct dt_text_coder *coder, const char *context,
                             const char *answer, struct dt_likelihoods *likelihoods,
                             struct dt_error *err) DT_MUST_CHECK;

#endif
