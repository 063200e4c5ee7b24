/* SPDX-License-Identifier: MIT */
/*
 * How well a model predicts documents: nats a token, perplexity, bits a byte.
 *
 * Each document is scored alone. Its first window of up to max_seq_len tokens
 * is predicted from the end-of-text token, as documents begin in training;
 * each later window from the one token before it. Every token is predicted
 * once, the end-of-text token at the end of a document included.
 *
 *     struct dt_scorer *s;
 *     DT_TRY(dt_scorer_new(&s, model, eot, 16, err));
 *     dt_scorer_add(s, ids, count);      for each document
 *     dt_scorer_finish(s, &score);
 */
#ifndef DT_EVAL_PERPLEXITY_H
#define DT_EVAL_PERPLEXITY_H

#include "model/model.h"

struct dt_score {
    double nats; /* sum of -log p over the tokens */
    uint64_t tokens, documents;
};

struct dt_scorer;

/* eot: the token that documents begin behind, or UINT32_MAX if there is none:
 * then a document's first token is not predicted. batch: windows scored at a
 * time. model is borrowed. */
int dt_scorer_new(struct dt_scorer **scorer, const struct dt_model *model, uint32_t eot,
                  int64_t batch, struct dt_error *err) DT_MUST_CHECK;
/* ids: those of one document, every one below the model's vocabulary. */
void dt_scorer_add(struct dt_scorer *scorer, const uint32_t *ids, size_t count);
/* Scores what still waits, and says the sums. */
void dt_scorer_finish(struct dt_scorer *scorer, struct dt_score *score);
void dt_scorer_free(struct dt_scorer *scorer); /* NULL is fine */

#endif
