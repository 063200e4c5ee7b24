/* SPDX-License-Identifier: MIT */
/*
 * A data set: the concatenated tokens of the shards of one split, or a weighted mixture of
 * several data sets, divided into samples.
 *
 * Sample k of sequence length T has T+1 ids: inputs are the first T, targets the last T.
 *
 *     list of tokens   0 ........ T ........ 2T ....     sample k: tokens kT .. kT+T
 *     sample 0         [ T+1 ids  ]
 *     sample 1                    [ T+1 ids  ]           (overlap of one id: every token is
 *                                                         a target once)
 *     rows             row k is sample k
 *
 * Sample order: position i of a run, counted over all epochs, is in epoch i / samples and
 * reads sample
 *
 *     dt_rng_permute(key(seed, epoch), samples, i % samples)
 *
 * a random permutation per epoch, computed from the shuffle seed without a stored index. So
 * the state of the data for resuming is one number, the samples consumed; it is independent of
 * ranks, workers and shard sizes.
 *
 * Order in blocks: an epoch rotates the list of samples by a random number and cuts it into
 * blocks of neighbours. The blocks are permuted and grouped into windows of equal numbers of
 * blocks; the samples of each window are permuted again. So a cache of one window decodes each
 * frame once, and the file is read in pieces of a block:
 *
 *     samples      0 1 2 | 3 4 5 | 6 7 8 | 9        blocks of 3; the rest is a short block
 *     blocks       6 7 8   0 1 2 | 3 4 5   9        permuted; windows of 2 blocks
 *     positions    1 8 0 6 2 7   | 9 3 5 4          permuted in each window
 *
 * A mixture is a JSON file of data directories, relative to the file, with sampling weights:
 *
 *     {"version": 1, "mixture": [{"data": "web", "weight": 0.7},
 *                                {"data": "code", "weight": 0.3}]}
 *
 * Each block of DT_MIXTURE_SLOTS positions gives each component its weight of slots, rounded to
 * a slot. A permutation per block assigns positions to slots. Each component has a separate
 * sample order and repeats when it is exhausted.
 *
 * Decoded tokens are cached up to DT_DATASET_MEMORY: a smaller data set is decoded once; of a
 * larger one, frames of 8Ki tokens are decoded again after eviction.
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

struct dt_sample_order {
    uint64_t seed;
    bool shuffle;    /* false: storage order */
    uint64_t block;  /* tokens of a block; 0: an epoch is shuffled as a whole */
    uint64_t window; /* blocks; with block at least 1 */
};

/* path: a directory written by dt-shard; a .dts file, refused if the index.json in its
 * directory lists it in another split or does not list it; or a mixture. split: "train",
 * "val", ... Checks that all shards have the file size in index.json. Totals, hashes and
 * footers are checked when a shard is first opened: now for splits up to DT_CHECKED_TOKENS. */
int dt_dataset_open(struct dt_dataset **d, const char *path, const char *split,
                    struct dt_error *err) DT_MUST_CHECK;
/* A staged data set, whose data change during a run:
 *
 *     "web:8G,mixture.json:1.5G,books"
 *
 * The first 8 billion tokens of the order come from web, the next 1.5 billion from a mixture, the
 * rest from books. length: of a sample. A stage begins with the first sample after the tokens of
 * those before. Of a mixture each component has its weight of any number of samples, rounded to
 * one. Data that several stages name continue in each where they were in the last. */
int dt_dataset_open_stages(struct dt_dataset **d, const char *stages, const char *split,
                           uint32_t length, struct dt_error *err) DT_MUST_CHECK;
/* The data of the first stage; owned by the caller. */
char *dt_dataset_first_stage(const char *stages);
/* Adds the files of a data set to the inputs of a command: path itself, and what a mixture names;
 * and those of all stages. */
int dt_dataset_add_inputs(const char *path, struct dt_lineage *lineage,
                          struct dt_error *err) DT_MUST_CHECK;
int dt_dataset_add_stages(const char *stages, struct dt_lineage *lineage,
                          struct dt_error *err) DT_MUST_CHECK;
/* 1 if path has splits: a directory or a mixture; 0: a single file. DT_EIO if that cannot be
 * determined. */
int dt_dataset_has_splits(const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Whether the splits of path have names: it has splits, or is a shard listed by an index.json. */
bool dt_dataset_names_splits(const char *path);
/* A hash of the weights of a mixture and of the beginnings of stages, which determine the sample
 * order; 0 for other data. */
uint64_t dt_dataset_weights(const struct dt_dataset *d);
/* Opens the same data set for another thread, with a separate cache. */
int dt_dataset_clone(struct dt_dataset **copy, const struct dt_dataset *d,
                     struct dt_error *err) DT_MUST_CHECK;
/* Totals of the split, and the properties shared by all shards. provenance is that of the
 * first. */
const struct dt_shard_info *dt_dataset_info(const struct dt_dataset *d);
/* Limits the cache to bytes, at least two frames. Call before the first read. */
void dt_dataset_limit_memory(struct dt_dataset *d, size_t bytes);
/* Upper bound of memory in bytes: the cache, and the tables of the shards now open. */
size_t dt_dataset_memory(const struct dt_dataset *d);

int dt_dataset_tokens(struct dt_dataset *d, uint64_t first, uint64_t count, uint32_t *ids,
                      struct dt_error *err) DT_MUST_CHECK;
/* The same with DT_NO_LOSS marks. */
int dt_dataset_targets(struct dt_dataset *d, uint64_t first, uint64_t count, uint32_t *ids,
                       struct dt_error *err) DT_MUST_CHECK;
/* Document i of the split, over all shards. */
int dt_dataset_document(struct dt_dataset *d, uint64_t i, uint64_t *first,
                        struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;

/* The number of samples of sequence length `length` per epoch. DT_EINVALID if 0, or if rows
 * have another length. */
int dt_dataset_samples(const struct dt_dataset *d, uint32_t length, uint64_t *samples,
                       struct dt_error *err) DT_MUST_CHECK;
/* The first token of sample k, of all tokens of the data set; it has length + 1. UINT64_MAX if k is
 * out of range. */
uint64_t dt_dataset_sample_first(const struct dt_dataset *d, uint32_t length, uint64_t k);
/* The length + 1 ids of sample k, with DT_NO_LOSS marks. */
int dt_dataset_sample(struct dt_dataset *d, uint32_t length, uint64_t k, uint32_t *ids,
                      struct dt_error *err) DT_MUST_CHECK;
/* The sample at position index, counted over all epochs. dt_dataset_samples must have succeeded
 * for length. */
uint64_t dt_dataset_order(const struct dt_dataset *d, uint32_t length,
                          const struct dt_sample_order *order, uint64_t index);
void dt_dataset_close(struct dt_dataset *d); /* NULL is fine */

/* Samples that do not come from shards, such as text tokenized on the fly. */
struct dt_sample_source {
    struct dt_shard_info info; /* tokens may be an estimate; hash identifies the data */
    uint32_t length;
    uint64_t samples; /* per epoch; an estimate if has_order */
    bool has_order;   /* the source orders samples: sample k is at position k */
    int (*read)(void *state, uint64_t k, uint32_t *ids, struct dt_error *err);
    int (*clone)(void **copy, const void *state, struct dt_error *err); /* for another thread */
    void (*free)(void *state);
    void *state;
};

/* Takes ownership of state. Access by token or document fails with DT_EINVALID. */
struct dt_dataset *dt_dataset_from_source(const struct dt_sample_source *source);
bool dt_dataset_has_tokens(const struct dt_dataset *d);

/* The sample at position index of one component; samples > 0. */
uint64_t dt_dataset_sample_at(uint64_t seed, uint64_t samples, uint64_t index);

#endif
