/* SPDX-License-Identifier: MIT */
/*
 * Documents into a directory of shards, by splits.
 *
 *     DT_TRY(dt_sharder_new(&s, directory, &info, &options, err));
 *     DT_TRY(dt_sharder_add(s, ids, &document, err));     for each document
 *     DT_TRY(dt_sharder_finish(s, err));
 *     dt_sharder_free(s);
 *
 * The directory has its index.json only when it is complete: an older one is
 * removed first, the new one written last. What earlier runs left behind is
 * removed too. What is written does not depend on the number of threads.
 */
#ifndef DT_SHARD_SHARDER_H
#define DT_SHARD_SHARDER_H

#include <stdint.h>

#include "base/error.h"
#include "shard/manifest.h"
#include "shard/shard.h"

#define DT_REST_SPLIT "train" /* what the named splits leave */

enum dt_split_by {
    DT_SPLIT_BY_DOCUMENT, /* by each document's hash, whatever the order of documents */
    DT_SPLIT_BY_TAIL      /* the last tokens; a document may be cut */
};

struct dt_split {
    char name[64];
    double fraction; /* of the documents or tokens, between 0 and 1 */
};

/* Parses "val=0.01". */
int dt_split_parse(const char *text, struct dt_split *split, struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID if a name comes twice or is that of the rest, or if nothing is left for the rest. */
int dt_splits_check(const struct dt_split *splits, int count, struct dt_error *err) DT_MUST_CHECK;

struct dt_sharder_options {
    const struct dt_split *splits; /* besides DT_REST_SPLIT, which comes before them */
    int count;
    enum dt_split_by split_by;
    uint64_t tokens_per_shard; /* exceeded only by a single longer document */
    int level, threads;
};

struct dt_sharder;
/* What *info and *options point to is borrowed until dt_sharder_finish. */
int dt_sharder_new(struct dt_sharder **s, const char *directory, const struct dt_shard_info *info,
                   const struct dt_sharder_options *options, struct dt_error *err) DT_MUST_CHECK;
int dt_sharder_add(struct dt_sharder *s, const uint32_t *ids,
                   const struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;
/* Fails with DT_EINVALID if a split came out empty. */
int dt_sharder_finish(struct dt_sharder *s, struct dt_error *err) DT_MUST_CHECK;
/* Removes the shards written if the sharder did not finish. NULL is fine. */
void dt_sharder_free(struct dt_sharder *s);

#endif
