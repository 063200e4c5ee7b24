/* SPDX-License-Identifier: MIT */
/*
 * A data set: the shards of one split, read as one long row of tokens, and
 * cut into samples in an order that is a pure function.
 *
 * Sample k of a data set of N tokens, length T, is tokens kT .. kT+T (T+1 of
 * them: samples overlap by one, so no target is lost). Place i of epoch e
 * holds sample dt_permute(key(seed, e), samples, i). The state of the data is
 * the one number of samples already used; it depends on no rank, worker or
 * shard size.
 *
 * Decoded tokens stay in memory up to 1 GiB, so a small data set is decoded
 * once; of a larger one, the 64Ki tokens around a sample are decoded again when
 * they have had to go.
 */
#ifndef DT_SHARD_DATASET_H
#define DT_SHARD_DATASET_H

#include <stdint.h>

#include "base/error.h"
#include "shard/shard.h"

struct dt_dataset;

/* directory: what dt-shard wrote (index.json and shards); or one .dts file,
 * whose split then does not matter. split: "train", "val", ... Checks that the
 * shards exist, are whole, and agree with index.json. */
int dt_dataset_open(struct dt_dataset **d, const char *path, const char *split,
                    struct dt_error *err) DT_MUST_CHECK;
/* Totals over the split, and what all shards share. provenance is that of the first. */
const struct dt_shard_info *dt_dataset_info(const struct dt_dataset *d);
int dt_dataset_tokens(struct dt_dataset *d, uint64_t first, uint64_t count, uint32_t *ids,
                      struct dt_error *err) DT_MUST_CHECK;
/* Document number i over all shards of the split. */
int dt_dataset_document(struct dt_dataset *d, uint64_t i, uint64_t *first,
                        struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;
void dt_dataset_close(struct dt_dataset *d); /* NULL is fine */

/* Which sample stands at place index (counted over all epochs) of the order
 * that seed gives; samples > 0. */
uint64_t dt_sample_at(uint64_t seed, uint64_t samples, uint64_t index);

/* Reads batches of samples ahead of their use on a thread of its own. */
struct dt_loader;
/* dataset is borrowed, and only the loader may read it from now on.
 * Fails (DT_EINVALID) if the split holds fewer than length+1 tokens. first is
 * the place to begin at; shuffle false gives the samples in file order. */
int dt_loader_new(struct dt_loader **l, struct dt_dataset *dataset, uint32_t length, uint32_t batch,
                  uint64_t seed, int shuffle, uint64_t first, struct dt_error *err) DT_MUST_CHECK;
uint64_t dt_loader_samples(const struct dt_loader *l); /* of one epoch */
/* The next batch: batch x (length + 1) ids, row by row; borrowed until the next call. */
int dt_loader_next(struct dt_loader *l, const uint32_t **ids, struct dt_error *err) DT_MUST_CHECK;
void dt_loader_free(struct dt_loader *l); /* NULL is fine */

#endif
