/* SPDX-License-Identifier: MIT */
/*
 * A data set: the shards of one split, read as one long row of tokens; or several
 * of them, mixed by weights. It is cut into samples, in an order that is a pure
 * function.
 *
 * Sample k of length T has T+1 ids. Of a list of N tokens these are tokens
 * kT .. kT+T (samples overlap by one, so no target is lost), of rows they are row
 * k. Place i of the order holds sample dt_rng_permute(key(seed, i / samples), samples,
 * i % samples). The state of the data is the one number of samples already used;
 * it depends on no rank, worker or shard size.
 *
 * A mixture is a JSON file that names directories, relative to itself, with the
 * share that each has of the samples used:
 *
 *     {"version": 1, "mixture": [{"data": "web", "weight": 0.7},
 *                                {"data": "code", "weight": 0.3}]}
 *
 * Of every DT_MIXTURE_SLOTS places, each part has its share exactly, to one slot;
 * which of these places are its own is a permutation of them, and each part has an
 * order of its own, over and over.
 *
 * Decoded tokens stay in memory up to DT_DATASET_MEMORY, so a small data set is
 * decoded once; of a larger one, the 8Ki tokens around a sample are decoded again
 * when they have had to go.
 */
#ifndef DT_SHARD_DATASET_H
#define DT_SHARD_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "shard/shard.h"

#define DT_DATASET_MEMORY ((size_t)1 << 30)
#define DT_MIXTURE_SLOTS  65536u
#define DT_CHECKED_TOKENS ((uint64_t)1 << 32)

struct dt_dataset;

/* path: what dt-shard wrote (a directory with index.json and shards); or one .dts
 * file, which is refused where an index.json beside it says that it is of another split
 * or does not list it; or a mixture. split: "train", "val", ...
 * Checks that the shards exist with the size that index.json says. That they agree
 * with it otherwise and have a whole end is checked when they are first used; of
 * splits up to DT_CHECKED_TOKENS, now. */
int dt_dataset_open(struct dt_dataset **d, const char *path, const char *split,
                    struct dt_error *err) DT_MUST_CHECK;
/* Whether what is at path has splits: a directory or a mixture, not a single file. */
bool dt_dataset_has_splits(const char *path);
/* Whether a split of it can be asked for by name: it has splits, or is a shard that index.json
 * lists, which is of one. */
bool dt_dataset_names_splits(const char *path);
/* A hash of the weights of a mixture, which are part of its order; 0 if it is none. */
uint64_t dt_dataset_weights(const struct dt_dataset *d);
/* The same data set for another thread, with a memory of its own. */
int dt_dataset_clone(struct dt_dataset **copy, const struct dt_dataset *d,
                     struct dt_error *err) DT_MUST_CHECK;
/* Totals over the split, and what all shards share. provenance is that of the first. */
const struct dt_shard_info *dt_dataset_info(const struct dt_dataset *d);
/* Keeps no more than that many bytes of decoded tokens (two frames at least). For a
 * data set from which nothing was read yet. */
void dt_dataset_limit_memory(struct dt_dataset *d, size_t bytes);
/* Bytes that it may come to use: decoded tokens, and the tables of the shards that
 * are open now. */
size_t dt_dataset_memory(const struct dt_dataset *d);

int dt_dataset_tokens(struct dt_dataset *d, uint64_t first, uint64_t count, uint32_t *ids,
                      struct dt_error *err) DT_MUST_CHECK;
/* Document number i over all shards of the split. */
int dt_dataset_document(struct dt_dataset *d, uint64_t i, uint64_t *first,
                        struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;

/* How many samples of length tokens there are. DT_EINVALID if there is none, or if
 * rows are of another length. */
int dt_dataset_samples(const struct dt_dataset *d, uint32_t length, uint64_t *samples,
                       struct dt_error *err) DT_MUST_CHECK;
/* The length + 1 ids of sample k, with DT_NO_LOSS where the data say so. */
int dt_dataset_sample(struct dt_dataset *d, uint32_t length, uint64_t k, uint32_t *ids,
                      struct dt_error *err) DT_MUST_CHECK;
/* Which sample stands at place index (counted over all epochs) of the order that
 * seed gives; without shuffle they stand as they lie. dt_dataset_samples must have
 * succeeded for this length. */
uint64_t dt_dataset_order(const struct dt_dataset *d, uint32_t length, uint64_t seed, bool shuffle,
                          uint64_t index);
void dt_dataset_close(struct dt_dataset *d); /* NULL is fine */

/* Samples that come from elsewhere than shards: from text that is tokenized when they
 * are asked for. */
struct dt_sample_source {
    struct dt_shard_info info; /* its tokens may be an estimate; its hash tells it from others */
    uint32_t length;
    uint64_t samples; /* of one epoch; where it has an order of its own, an estimate */
    bool has_order;   /* sample k is that of place k, over all epochs */
    int (*read)(void *state, uint64_t k, uint32_t *ids, struct dt_error *err);
    int (*clone)(void **copy, const void *state, struct dt_error *err); /* for another thread */
    void (*free)(void *state);
    void *state;
};

/* state belongs to the data set from now on. It has samples, but no numbered tokens and
 * documents (DT_EINVALID). */
struct dt_dataset *dt_dataset_from_source(const struct dt_sample_source *source);
bool dt_dataset_has_tokens(const struct dt_dataset *d);

/* The order of one part; samples > 0. */
uint64_t dt_dataset_sample_at(uint64_t seed, uint64_t samples, uint64_t index);

#endif
