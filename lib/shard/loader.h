/* SPDX-License-Identifier: MIT */
/*
 * Batches of samples, with prefetch by worker threads.
 *
 *     struct dt_loader_options o = {.length = 1024, .batch = 8, .order.shuffle = true,
 *                                   .workers = 1};
 *     DT_TRY(dt_loader_open(&l, dataset, &o, err));
 *     while (training) {
 *         DT_TRY(dt_loader_next(l, &samples, err));
 *         step(samples.ids); // 8 x (1024 + 1)
 *     }
 *     dt_loader_free(l);
 *
 * Sample order: the positions 0, 1, 2, ... of a run, over all epochs, are assigned to samples
 * by permutations per epoch that the shuffle seed determines (shard/dataset.h). Global batch
 * n of G samples takes positions nG .. nG+G-1. Each data-parallel rank opens a loader with
 * the same options except its rank, and reads a contiguous range of the rows:
 *
 *     position     0   1   2   3 | 4   5   6   7 | 8 ...
 *     sample       9   2   7   0 | 5   1   8   3 | 6 ...       permutation of the seed
 *     batch        0             | 1             | 2           G = 4
 *     rank of 2    0   0   1   1 | 0   0   1   1 | 0 ...       B = 2 rows per rank
 *
 * The contents of a global batch depend only on dataset, length, batch, order and position. So the
 * state to resume from is the number of samples consumed (`first`), and the number of ranks and
 * workers may change.
 *
 * B: rows of this rank; T: sequence length.
 */
#ifndef DT_SHARD_LOADER_H
#define DT_SHARD_LOADER_H

#include "shard/attention-scope.h"
#include "shard/dataset.h"

struct dt_loader_options {
    uint32_t length, batch; /* T; rows of a global batch */
    struct dt_sample_order order;
    uint64_t first; /* first position: samples consumed before */
    /* The first position of the next batch, for batches that are not consecutive; called once
     * per batch, in order, from any thread. NULL: consecutive batches. */
    uint64_t (*next_position)(void *context);
    void *context;
    uint32_t ranks;      /* data-parallel ranks, at most batch; 0 means 1 */
    uint32_t rank;       /* this rank */
    int workers;         /* prefetch threads; 0: the caller reads in dt_loader_next */
    enum dt_scope scope; /* attention mask to compute */
    size_t memory;       /* cache in bytes, over all workers; 0: DT_DATASET_MEMORY */
};

struct dt_samples {
    const uint32_t *ids;          /* [B, T+1]; DT_NO_LOSS marks targets without loss */
    const int32_t *begins, *ends; /* [B, T]: shard/attention-scope.h; NULL for DT_SCOPE_ROW */
    uint64_t targets;             /* of the B x T that carry loss */
    uint64_t position;            /* of the first sample of the global batch */
};

struct dt_loader;

/* dataset is borrowed; only the loader may read it until it is freed. DT_EINVALID as for
 * dt_dataset_samples, if DT_SCOPE_DOCUMENT lacks an end-of-text token, or for an order in blocks
 * of samples that do not come from shards. */
int dt_loader_open(struct dt_loader **l, struct dt_dataset *dataset,
                   const struct dt_loader_options *options, struct dt_error *err) DT_MUST_CHECK;
uint32_t dt_loader_rows(const struct dt_loader *l); /* B */
/* Upper bound of memory in bytes: batches, caches and tables. */
size_t dt_loader_memory(const struct dt_loader *l);
/* The next batch; borrowed until the next call. */
int dt_loader_next(struct dt_loader *l, struct dt_samples *batch,
                   struct dt_error *err) DT_MUST_CHECK;
/* Makes the arrays of the batch that dt_loader_next returned last the caller's, each to be freed
 * with free(). */
void dt_loader_take(struct dt_loader *l);
void dt_loader_free(struct dt_loader *l); /* NULL is fine */

#endif
