/* SPDX-License-Identifier: MIT */
/*
 * Hashes (hash/sum-hash.h) of what a step computes, independent of the parallel layout: of its
 * batch always, and in the steps of training.trace_steps of every layer's hidden states and
 * gradients, summed over micro-batches, and of every tensor's gradient, parameters and optimizer
 * state. dt-metrics(5) describes the lines.
 *
 *     dt_step_trace_begin(&trace, step);
 *     dt_step_trace_add_batch(&trace, i, &batch);      each micro-batch of this rank
 *     forward and backward, whose hook adds hidden states
 *     DT_TRY(dt_step_trace_share(&trace, flags, err)); the passes of all ranks have ended
 *     DT_TRY(dt_step_trace_passes(&trace, err));       gradients are reduced
 *     DT_TRY(dt_step_trace_update(&trace, err));       after the update
 *
 * A micro-batch that is computed again only to take part in collective calls (padding,
 * data-parallel.h) counts once.
 */
#ifndef DT_TRAIN_STEP_TRACE_H
#define DT_TRAIN_STEP_TRACE_H

#include "checkpoint/state-hash.h"
#include "model/forward-backward.h"
#include "train/training.h"

struct dt_step_trace {
    const struct dt_settings *settings; /* borrowed, as are: */
    struct dt_train_state *state;
    struct dt_comm *comm; /* all ranks */
    struct dt_trace_sink sink;
    long first, last;               /* steps that are traced; last 0: none */
    struct dt_sum_hash batch;       /* of this rank, or of all */
    unsigned char *flags;           /* of each rank */
    struct dt_step_notice *notices; /* scratch: what each rank tells */
    struct dt_state_hash parameters, optimizer;
    struct dt_trace_hook hook;
    /* Of the current step: */
    long step;
    uint64_t samples;           /* sequences before it */
    struct dt_sum_hash *points; /* DT_TRACE_POINTS of each layer, 0 .. L; NULL: nothing is traced */
    bool *seen;                 /* of each of them, the micro-batches that were added */
};

/* Reads "A:B" or "A", steps from 1 on; an empty text gives 0, 0. name begins errors. */
int dt_step_trace_read_range(const char *text, const char *name, long *first, long *last,
                             struct dt_error *err) DT_MUST_CHECK;

/* sink.write NULL: only hashes of batches and parameters. Release with dt_step_trace_release. */
int dt_step_trace_init(struct dt_step_trace *trace, const struct dt_settings *settings,
                       struct dt_train_state *state, struct dt_comm *comm,
                       const struct dt_trace_sink *sink, struct dt_error *err) DT_MUST_CHECK;
void dt_step_trace_release(struct dt_step_trace *trace);

/* step: that follows; samples: sequences consumed before it. */
void dt_step_trace_begin(struct dt_step_trace *trace, long step, uint64_t samples);
/* Micro-batch i of the step, once. */
void dt_step_trace_add_batch(struct dt_step_trace *trace, int64_t i, const struct dt_batch *batch);
/* Sums the hash of the batch over all ranks, and exchanges their flags with it, which costs no more
 * than one of the two. Collective, as are those below. */
int dt_step_trace_share(struct dt_step_trace *trace, unsigned char own,
                        struct dt_error *err) DT_MUST_CHECK;
/* Writes the lines of batch, forward and backward, and gradients. */
int dt_step_trace_passes(struct dt_step_trace *trace, struct dt_error *err) DT_MUST_CHECK;
/* Writes the lines of parameters and optimizer state. */
int dt_step_trace_update(struct dt_step_trace *trace, struct dt_error *err) DT_MUST_CHECK;

#endif
