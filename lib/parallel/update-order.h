/* SPDX-License-Identifier: MIT */
/*
 * The order in which a parameter server applies the gradients of its workers
 * (distributed.sync=async).
 *
 *     version      0         1         2         3      updates applied
 *     worker 1     |-- 1 --> x-- 3 ---------------> x
 *     worker 2     |------ 2 ------> x-- 4 --> x         "-- 3 -->": the gradient of batch 3
 *
 * A worker computes the gradient of one batch, a step's samples, with the parameters of the version
 * at which it began. Gradients are applied in the order of their arrival. The staleness of an
 * update, the number of updates between the parameters of its gradient and itself, is at most a
 * bound (Ho et al. 2013): a gradient waits if applying it first would make another one too old, and
 * no batch begins while bound + 1 are unfinished. With a bound of 0 batches follow one another.
 *
 * The sequence of (batch, version) determines the result; with it, a run is replayed.
 */
#ifndef DT_PARALLEL_UPDATE_ORDER_H
#define DT_PARALLEL_UPDATE_ORDER_H

#include <stdbool.h>
#include <stddef.h>

/* An update: number step, from 1 on, applied the gradient of a batch, from 1 on, that was computed
 * with the parameters after update number version. */
struct dt_ordered_update {
    long step, batch, version;
};

/* A batch that has begun and is not applied. */
struct dt_pending_update {
    long batch, version;
    int worker;
    long arrival; /* its number among all; 0: not yet */
    void *gradient;
};

struct dt_update_order {
    long bound;                        /* of the staleness */
    long version;                      /* updates applied */
    long begun;                        /* batches up to this one have begun */
    struct dt_pending_update *pending; /* in the order in which they began: versions ascend */
    size_t count, capacity;
    long arrivals;
    const struct dt_ordered_update
        *recorded; /* to replay, from update version + 1 on; borrowed; or NULL */
    size_t recorded_count;
};

/* step: updates applied so far, by which the batches up to it are finished. */
void dt_update_order_init(struct dt_update_order *order, long step, long bound);
void dt_update_order_release(struct dt_update_order *order);
/* Follows a record; its updates up to the present one are passed over. */
void dt_update_order_follow(struct dt_update_order *order, const struct dt_ordered_update *recorded,
                            size_t count);

/* The batch that a worker may begin now, with the present parameters; 0: none. */
long dt_update_order_next_batch(const struct dt_update_order *order);
/* Begins that batch. The result is valid until the next call. */
struct dt_pending_update *dt_update_order_begin(struct dt_update_order *order, int worker);
/* The worker's gradient has arrived. */
void dt_update_order_arrive(struct dt_update_order *order, int worker);
/* Whether a batch of the worker is not applied yet. */
bool dt_update_order_has_pending(const struct dt_update_order *order, int worker);
/* The gradient that is to be applied now; NULL: none has arrived that may be. */
const struct dt_pending_update *dt_update_order_next(const struct dt_update_order *order);
/* Records that it has been applied. Returns the update. */
struct dt_ordered_update dt_update_order_apply(struct dt_update_order *order,
                                               const struct dt_pending_update *pending);

#endif
