/* SPDX-License-Identifier: MIT */
/*
 * Log-likelihood of text under a model. Sequences are queued, and scored in batches of similar
 * length.
 *
 *     struct dt_likelihoods *l = dt_likelihoods_new(model, NULL, 16, &names, progress);
 *     size_t item = dt_likelihoods_item(l);
 *     dt_likelihoods_add(l, item, ids, count, from);
 *     DT_TRY(dt_likelihoods_run(l, err));
 *     use(dt_likelihoods_of(l, item)->nats);
 *
 * Scores are summed per item: an answer, or a document, whose windows are several sequences.
 *
 * Several ranks take batches in turn (eval/rank-batches.h). All ranks queue the same sequences, and
 * get the bits of a single rank.
 */
#ifndef DT_EVAL_LIKELIHOOD_H
#define DT_EVAL_LIKELIHOOD_H

#include "base/progress.h"
#include "comm/comm.h"
#include "model/model.h"

struct dt_likelihood {
    double nats;     /* sum of -ln p over the predicted tokens */
    uint64_t tokens; /* predicted */
    bool greedy;     /* each predicted token was the most probable one */
};

struct dt_likelihoods;

/* The name of an item in errors; owned by the caller. */
struct dt_item_names {
    char *(*name)(const void *context, size_t item);
    const void *context;
};

/* ranks: that score together; NULL: only this process. batch: most sequences per batch. All
 * pointers are borrowed. */
struct dt_likelihoods *dt_likelihoods_new(const struct dt_model *model, struct dt_comm *ranks,
                                          int64_t batch, const struct dt_item_names *names,
                                          struct dt_progress *progress);
/* Adds an item; returns its index, from 0. */
size_t dt_likelihoods_item(struct dt_likelihoods *likelihoods);
/* Queues ids, all below the model's vocabulary size; those at from (at least 1) and after are
 * predicted. Of more than max_seq_len + 1 ids the last ones are used. */
void dt_likelihoods_add(struct dt_likelihoods *likelihoods, size_t item, const uint32_t *ids,
                        size_t count, size_t from);
/* Queues a document in rolling windows, as lm-evaluation-harness does:
 *
 *     prefix [w0 .......][w1 .......][w2 ...]
 *                      ^ context of w1: its last token before; of w2: all that max_seq_len allows
 *
 * Each window has max_seq_len tokens. prefix UINT32_MAX: the first token is not predicted. */
void dt_likelihoods_add_rolling(struct dt_likelihoods *likelihoods, size_t item, uint32_t prefix,
                                const uint32_t *ids, size_t count);
/* Queues a document in windows that overlap: every stride tokens begins one of length tokens, at
 * most max_seq_len, and it predicts those that no window before did. This is the recipe of
 * transformers' page on the perplexity of fixed-length models. 1 <= stride < length. prefix: as
 * above. */
void dt_likelihoods_add_overlapping(struct dt_likelihoods *likelihoods, size_t item,
                                    uint32_t prefix, const uint32_t *ids, size_t count,
                                    size_t length, size_t stride);
/* Number of queued tokens. */
size_t dt_likelihoods_waiting(const struct dt_likelihoods *likelihoods);
/* Scores the queue. share: its fraction of all that is to be scored, for the progress line; 0:
 * unknown. DT_EFORMAT, naming item and token, if a loss is not finite. */
int dt_likelihoods_run(struct dt_likelihoods *likelihoods, double share,
                       struct dt_error *err) DT_MUST_CHECK;
/* Scores of an item so far; borrowed until the next item. */
const struct dt_likelihood *dt_likelihoods_of(const struct dt_likelihoods *likelihoods,
                                              size_t item);
void dt_likelihoods_free(struct dt_likelihoods *likelihoods); /* may be NULL */

#endif
