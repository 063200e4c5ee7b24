/* SPDX-License-Identifier: MIT */
/* Shared by sampling and beam search. */
#ifndef DT_EVAL_GENERATION_INTERNAL_H
#define DT_EVAL_GENERATION_INTERNAL_H

#include "eval/generation.h"
#include "model/decode.h"

struct dt_generator {
    const struct dt_model *model;
    const struct dt_tokenizer *tokenizer;
    struct dt_generation how;
    uint32_t size; /* of the vocabulary */
    int64_t capacity;
    struct dt_decoder *decoder;
    struct dt_sampler *sampler;
    float *logits;    /* [slots][vocabulary] */
    bool *seen;       /* [vocabulary]: token occurs, while logits are penalized */
    float *unchanged; /* [vocabulary]: logits before that, with how.probabilities */
    int64_t slots;
    struct dt_ids *held; /* [slots]: tokens in the KV cache; not in beam search */
};

/* Appends the bytes of a token. */
void dt_generation_add_token_text(const struct dt_generator *g, uint32_t id,
                                  struct dt_buffer *text);
/* Offset of the first stop string in text at or after from; SIZE_MAX without one. */
size_t dt_generation_find_stop(const struct dt_generator *g, const struct dt_buffer *text,
                               size_t from);
/* Applies the repetition penalty to the tokens of head and tail. */
void dt_generation_penalize_text(struct dt_generator *g, float *logits, const struct dt_ids *head,
                                 const struct dt_ids *tail);
/* DT_EFORMAT if a logit of the token after added others is not finite. */
int dt_check_logits(const struct dt_generator *g, const struct dt_continuation *item,
                    const float *logits, size_t added, struct dt_error *err) DT_MUST_CHECK;
int dt_generation_beam_search(struct dt_generator *g, struct dt_continuation *item,
                              struct dt_error *err) DT_MUST_CHECK;

#endif
