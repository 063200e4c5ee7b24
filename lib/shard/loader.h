/* SPDX-License-Identifier: MIT */
/*
 * Batches of samples, read ahead of their use.
 *
 *     DT_TRY(dt_loader_new(&l, dataset, length, batch, seed, true, 0, err));
 *     while (training) {
 *         DT_TRY(dt_loader_next(l, &ids, err));
 *         step(ids);      // batch x (length + 1)
 *     }
 *     dt_loader_free(l);
 *
 * Several processes train on the same global batches: each makes a loader with
 * the same options but for its rank, and gets its rows of each batch, which
 * lie one behind the other. What is in a global batch follows from the dataset,
 * length, batch, seed, shuffle and place alone, so a run may go on with another
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
    uint64_t first; /* the place to begin at: samples used so far */
    /* Where the next batch begins, for batches that do not follow one another; called
     * once a batch, in their order, but not in any one thread. NULL: they do. */
    uint64_t (*next_place)(void *context);
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
    uint64_t place;               /* of the global batch's first sample */
};

struct dt_loader;

/* The simplest: one rank, one worker. dataset is borrowed, and only the loader may
 * read it from now on. DT_EINVALID as for dt_dataset_samples. first is the place to
 * begin at; shuffle false gives the samples in file order. */
int dt_loader_new(struct dt_loader **l, struct dt_dataset *dataset, uint32_t length, uint32_t batch,
                  uint64_t seed, int shuffle, uint64_t first, struct dt_error *err) DT_MUST_CHECK;
/* The same with all options. DT_SCOPE_DOCUMENT needs an end-of-text token. */
int dt_loader_open(struct dt_loader **l, struct dt_dataset *dataset,
                   const struct dt_loader_options *options, struct dt_error *err) DT_MUST_CHECK;
uint64_t dt_loader_samples(const struct dt_loader *l); /* of one epoch */
uint32_t dt_loader_rows(const struct dt_loader *l);    /* B */
/* Bytes that it may come to use: batches, decoded tokens and tables. */
size_t dt_loader_memory(const struct dt_loader *l);
/* The next batch: B x (T + 1) ids, row by row; borrowed until the next call. */
int dt_loader_next(struct dt_loader *l, const uint32_t **ids, struct dt_error *err) DT_MUST_CHECK;
int dt_loader_next_batch(struct dt_loader *l, struct dt_samples *batch,
                         struct dt_error *err) DT_MUST_CHECK;
void dt_loader_free(struct dt_loader *l); /* NULL is fine */

#endif
