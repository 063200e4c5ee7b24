/* SPDX-License-Identifier: MIT */
/* What sampling and beam search share, inside lib/eval. */
#ifndef DT_EVAL_GENERATION_INTERNAL_H
#define DT_EVAL_GENERATION_INTERNAL_H

#include "eval/generation.h"
#include "model/decode.h"

struct dt_generator {
    const struct dt_model *model;
    const struct dt_tokenizer *tokenizer;
    struct dt_generation how;
    uint32_t size, eot; /* ids that are tokens; the one that ends text */
    int64_t capacity;
    struct dt_decoder *decoder;
    struct dt_sampler *sampler;
    float *logits; /* a row for each slot */
    bool *seen;    /* for each token whether it is there already, while logits are penalized */
};

/* Appends the bytes of a token. */
void dt_generation_add_token_text(const struct dt_generator *g, uint32_t id,
                                  struct dt_buffer *text);
/* Where the first stop string begins in text at or behind from; SIZE_MAX if none does. */
size_t dt_generation_find_stop(const struct dt_generator *g, const struct dt_buffer *text,
                               size_t from);
/* Penalizes the tokens of the text so far, which is head and then tail. */
void dt_generation_penalize_text(struct dt_generator *g, float *logits, const struct dt_ids *head,
                                 const struct dt_ids *tail);
/* Whether all logits of the token that comes after added others are finite. */
int dt_check_logits(const struct dt_generator *g, const struct dt_continuation *item,
                    const float *logits, size_t added, struct dt_error *err) DT_MUST_CHECK;
int dt_generation_beam_search(struct dt_generator *g, struct dt_continuation *item,
                              struct dt_error *err) DT_MUST_CHECK;

#endif
