/* SPDX-License-Identifier: MIT */
/*
 * Data parallelism: which micro-batches of a step a rank passes through the model,
 * and how the ranks' gradients become one sum.
 *
 *     dt_parallel_begin(&p, batches);
 *     for (int64_t i = p.first; i < p.end; i++)
 *         backward into dt_parallel_gradients(&p), then dt_parallel_add(&p, i);
 *     DT_TRY(dt_parallel_sum(&p, &norm, err));
 *
 * The flat arena is cut into blocks by its size alone, and ranks own whole blocks, so
 * that the norm is the same sum however many ranks there are. With invariant set,
 * gradients are added in the order of a tree over the step's micro-batches
 * (comm/tree.h): the same bits for any number of ranks. Without it each rank adds up
 * its own in their order, in one buffer, and the tree is over the ranks.
 */
#ifndef DT_TRAIN_DATA_PARALLEL_H
#define DT_TRAIN_DATA_PARALLEL_H

#include "comm/comm.h"
#include "device/arena.h"
#include "train/settings.h"

struct dt_parallel {
    struct dt_comm *comm; /* borrowed */
    struct dt_device *device;
    bool invariant;
    int64_t elements;    /* of the flat arena */
    int64_t first, end;  /* this rank's micro-batches of the step */
    float *gradients;    /* the sum, in the end; a flat arena */
    size_t *pieces;      /* size + 1: floats where each rank's blocks begin */
    size_t *piece_bytes; /* the same in bytes */
    int64_t *firsts;     /* size + 1: each rank's first leaf */
    size_t *norms;       /* size + 1: bytes where each rank's part of partial begins */
    size_t *shared;      /* size + 1: bytes where each rank's shared values begin */
    double *partial;     /* sums of squares of the blocks */
    struct dt_tree_stack stack;
    int buffer_count, spare_count;
    float **buffers, **spares; /* flat arenas: all, and those not in use */
};

/* Cuts up the work; no memory of the device yet. DT_EINVALID if a step has fewer
 * micro-batches than there are ranks. */
int dt_parallel_init(struct dt_parallel *parallel, struct dt_comm *comm, struct dt_device *device,
                     int64_t elements, const struct dt_settings *settings,
                     struct dt_error *err) DT_MUST_CHECK;
void dt_parallel_layout(struct dt_parallel *parallel, struct dt_arena *arena);
void dt_parallel_release(struct dt_parallel *parallel);

/* Begins a step of so many micro-batches. */
void dt_parallel_begin(struct dt_parallel *parallel, int64_t batches);
/* Where the next backward pass adds its gradients. */
float *dt_parallel_gradients(struct dt_parallel *parallel);
/* They are those of that micro-batch, the next of this rank's. */
void dt_parallel_add(struct dt_parallel *parallel, int64_t batch);
/* All ranks have the sum in parallel->gradients, and its Euclidean norm. */
int dt_parallel_sum(struct dt_parallel *parallel, double *norm, struct dt_error *err) DT_MUST_CHECK;

/* This rank's part, first to below end, of count things dealt out in their order. */
void dt_parallel_part(const struct dt_parallel *parallel, int64_t count, int64_t *first,
                      int64_t *end);
/* Every rank gives `each` values for each thing of its part, at their place in an array
 * of count * each, and gets those of the others. */
int dt_parallel_share(struct dt_parallel *parallel, double *values, int64_t count, int64_t each,
                      struct dt_error *err) DT_MUST_CHECK;

#endif
