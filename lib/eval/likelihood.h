/* SPDX-License-Identifier: MIT */
/*
 * How probable a model finds text: sequences wait in a queue and are scored in
 * batches of about the same length.
 *
 *     struct dt_likelihoods *l = dt_likelihoods_new(model, NULL, 16, &names, progress);
 *     size_t item = dt_likelihoods_item(l);
 *     dt_likelihoods_add(l, item, ids, count, from);
 *     DT_TRY(dt_likelihoods_run(l, err));
 *     use(dt_likelihoods_of(l, item)->nats);
 *
 * An item is what a sum is wanted of: an answer, or a document of any length,
 * whose windows are sequences of one item.
 *
 * Several ranks take batches in turn (eval/rank-batches.h). All queue the same, and all come to
 * the same bits, those of one rank.
 */
#ifndef DT_EVAL_LIKELIHOOD_H
#define DT_EVAL_LIKELIHOOD_H

#include "base/progress.h"
#include "comm/comm.h"
#include "model/model.h"

struct dt_likelihood {
    double nats;     /* sum of -ln p over the tokens predicted */
    uint64_t tokens; /* predicted */
    bool greedy;     /* each was the most probable one */
};

struct dt_likelihoods;

/* What errors call an item; owned by the caller. */
struct dt_item_names {
    char *(*name)(const void *context, size_t item);
    const void *context;
};

/* ranks: that score together; NULL: this one alone. batch: sequences that are scored
 * together at most. All pointers are borrowed. */
struct dt_likelihoods *dt_likelihoods_new(const struct dt_model *model, struct dt_comm *ranks,
                                          int64_t batch, const struct dt_item_names *names,
                                          struct dt_progress *progress);
/* A new item, numbered from 0. */
size_t dt_likelihoods_item(struct dt_likelihoods *likelihoods);
/* Queues ids, each below the model's vocabulary, of which those from place from
 * (at least 1) on are predicted from all before them. Of more than max_seq_len + 1
 * ids the last ones count. */
void dt_likelihoods_add(struct dt_likelihoods *likelihoods, size_t item, const uint32_t *ids,
                        size_t count, size_t from);
/* Queues a document in rolling windows (as lm-evaluation-harness cuts them): the
 * first window of max_seq_len tokens is predicted from prefix, each later one from
 * the token before it, and the last, if it is shorter, from as many more as there
 * is room for. With UINT32_MAX as prefix the first token is not predicted. */
void dt_likelihoods_add_rolling(struct dt_likelihoods *likelihoods, size_t item, uint32_t prefix,
                                const uint32_t *ids, size_t count);
/* Tokens that wait. */
size_t dt_likelihoods_waiting(const struct dt_likelihoods *likelihoods);
/* Scores all that waits. share: which part of all that is to come these are, for
 * the progress line; 0 if it is not known. A loss that is not finite is DT_EFORMAT, with its
 * item and token. */
int dt_likelihoods_run(struct dt_likelihoods *likelihoods, double share,
                       struct dt_error *err) DT_MUST_CHECK;
/* What was scored so far of an item; borrowed until the next item. */
const struct dt_likelihood *dt_likelihoods_of(const struct dt_likelihoods *likelihoods,
                                              size_t item);
void dt_likelihoods_free(struct dt_likelihoods *likelihoods); /* NULL is fine */

#endif
