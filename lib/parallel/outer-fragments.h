/* SPDX-License-Identifier: MIT */
/*
 * Streaming DiLoCo (Douillard et al. 2025): the parameters are fragments, which are synchronized
 * one after the other while training continues.
 *
 *     step            1   2   3   4   5   6   7   8   9  10  ...    local_steps 8, 4 fragments,
 *     fragment 0          send apply                     send apply   outer_delay 1
 *     fragment 1                  send apply
 *     fragment 2                          send apply
 *     fragment 3                                  send apply
 *
 * A fragment's outer gradient is the change of its parameters since its last outer step. Each rank
 * sends every other one its piece of it, in codes (chunk-codes.h); a rank sends the mean of its
 * piece to all, in codes too; outer_delay steps later all ranks apply the outer step. What they
 * have trained meanwhile counts half, as in the paper. The step at which messages are applied does
 * not depend on when they arrive, so that a repeated run has the same bits.
 *
 * A fragment consists of every fragments-th bucket (model/table.h).
 */
#ifndef DT_PARALLEL_OUTER_FRAGMENTS_H
#define DT_PARALLEL_OUTER_FRAGMENTS_H

#include "comm/bulk.h"
#include "parallel/chunk-codes.h"
#include "parallel/train-state.h"

struct dt_outer_fragments {
    struct dt_train_state *state; /* borrowed */
    int count;                    /* of fragments */
    long every, delay;            /* steps */
    enum dt_outer_precision type;
    float rate, momentum;
    int pending;                           /* the fragment in flight; -1: none */
    bool gathers;                          /* its means are being sent; otherwise its gradients */
    long sent;                             /* step at which it was sent */
    int64_t elements, chunks;              /* of it */
    float *values;                         /* host: elements of the largest fragment */
    float *start, *velocity;               /* host, the same */
    unsigned char *own, *received, *means; /* codes of all its chunks; pieces of all ranks */
    struct dt_bulk messages;
};

/* Allocates nothing. */
void dt_outer_fragments_init(struct dt_outer_fragments *fragments, struct dt_train_state *state,
                             const struct dt_settings *settings);
void dt_outer_fragments_release(struct dt_outer_fragments *fragments);

/* After a step: sends the fragment that is due, and applies the one that was sent. Collective:
 * data-parallel group. */
int dt_outer_fragments_step(struct dt_outer_fragments *fragments, long step,
                            struct dt_error *err) DT_MUST_CHECK;
/* Synchronizes every fragment now: ranks have equal parameters, with which outer steps start. */
int dt_outer_fragments_flush(struct dt_outer_fragments *fragments,
                             struct dt_error *err) DT_MUST_CHECK;

#endif
