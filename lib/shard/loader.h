/* SPDX-License-Identifier: MIT */
/*
 * Batches of samples, read ahead of their use.
 *
 *     struct dt_loader_options o = {.length = 1024, .batch = 8, .shuffle = true, .workers = 1};
 *     DT_TRY(dt_loader_open(&l, dataset, &o, err));
 *     while (training) {
 *         DT_TRY(dt_loader_next(l, &samples, err));
 *         step(samples.ids); // 8 x (1024 + 1)
 *     }
 *     dt_loader_free(l);
 *
 * Several processes train on the same global batches: each makes a loader with
 * the same options but for its rank, and gets its rows of each batch, which
 * lie one behind the other. What is in a global batch follows from the dataset,
 * length, batch, seed, shuffle and position alone, so a run may go on with another
 * number of ranks or workers from the one number of samples used.
 *
 * B rows of this rank, T length.
 */
#ifndef DT_SHARD_LOADER_H
#define DT_SHARD_LOADER_H

#include "shard/attention-scope.h"
#include "shard/dataset.h"

struct dt_loader_options {
    uint32_t length, batch; /* T; rows of a global batch */
    uint64_t seed;
    bool shuffle;   /* otherwise samples come as they lie */
    uint64_t first; /* the position to begin at: samples used so far */
    /* Where the next batch begins, for batches that do not follow one another; called
     * once a batch, in their order, but not in any one thread. NULL: they do. */
    uint64_t (*next_position)(void *context);
    void *context;
    uint32_t ranks;      /* processes that share a batch, at most batch; 0 means 1 */
    uint32_t rank;       /* which of them this is */
    int workers;         /* threads that read ahead; 0: the caller's own reads, when asked */
    enum dt_scope scope; /* what attention keeps to, if it is to be said */
    size_t memory;       /* bytes of decoded tokens, over all workers; 0: DT_DATASET_MEMORY */
};

struct dt_samples {
    const uint32_t *ids;          /* B x (T + 1); DT_NO_LOSS in those that carry none as targets */
    const int32_t *begins, *ends; /* B x T: shard/attention-scope.h; NULL unless asked for */
    uint64_t targets;             /* of the B x T that carry loss */
    uint64_t position;               /* of the global batch's first sample */
};

struct dt_loader;

/* dataset is borrowed, and only the loader may read it from now on. DT_EINVALID as for
 * dt_dataset_samples; DT_SCOPE_DOCUMENT needs an end-of-text token. */
int dt_loader_open(struct dt_loader **l, struct dt_dataset *dataset,
                   const struct dt_loader_options *options, struct dt_error *err) DT_MUST_CHECK;
uint32_t dt_loader_rows(const struct dt_loader *l); /* B */
/* Bytes that it may come to use: batches, decoded tokens and tables. */
size_t dt_loader_memory(const struct dt_loader *l);
/* The next batch; borrowed until the next call. */
int dt_loader_next(struct dt_loader *l, struct dt_samples *batch,
                   struct dt_error *err) DT_MUST_CHECK;
void dt_loader_free(struct dt_loader *l); /* NULL is fine */

#endif
