/* SPDX-License-Identifier: MIT */
/*
 * Documents into a directory of shards, by splits.
 *
 *     DT_TRY(dt_sharder_new(&s, directory, &info, &options, err));
 *     DT_TRY(dt_sharder_add(s, ids, &document, err));     for each document
 *     DT_TRY(dt_sharder_finish(s, err));
 *     dt_sharder_free(s);
 *
 * The directory has its index.json only when it is complete. An older one, and
 * the shards that it lists, stay as they are until the new one takes its place in
 * one step; the new shards have other names until then. What earlier runs left
 * behind is removed at the end. What is written does not depend on the number
 * of threads.
 *
 * Documents fall to splits by the options, or, after dt_sharder_assign, go where their
 * source has them already.
 */
#ifndef DT_SHARD_SHARDER_H
#define DT_SHARD_SHARDER_H

#include <stdint.h>

#include "base/error.h"
#include "shard/manifest.h"
#include "shard/shard.h"

enum dt_sharder_layout {
    DT_SHARDER_LAYOUT_LIST,
    DT_SHARDER_LAYOUT_PADDED, /* rows of a document each */
    DT_SHARDER_LAYOUT_PACKED  /* rows of several, by best fit; padded like the others */
};

enum dt_split_by {
    DT_SPLIT_BY_DOCUMENT, /* by each document's hash, whatever the order of documents */
    DT_SPLIT_BY_TAIL      /* the last tokens; a document may be cut */
};

struct dt_split {
    char name[64];
    double fraction; /* of the documents or tokens, between 0 and 1; 0: what is directed there */
};

/* Parses "val=0.01". */
int dt_split_parse(const char *text, struct dt_split *split, struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID if a name comes twice or is that of the rest, or if nothing is left for the rest. */
int dt_sharder_check_splits(const struct dt_split *splits, int count,
                            struct dt_error *err) DT_MUST_CHECK;

struct dt_sharder_options {
    const struct dt_split *splits; /* besides DT_DEFAULT_SPLIT, which comes before them */
    int count;
    enum dt_split_by split_by;
    uint64_t tokens_per_shard; /* exceeded only by a single longer document */
    int level, threads;
    enum dt_sharder_layout layout; /* rows: of the info's row ids */
    bool append;                   /* to the shards that the directory has */
};

struct dt_sharder;
/* What *info and *options point to is borrowed until dt_sharder_finish. To append,
 * the directory's shards must be of the same tokenizer, layout and mask. */
int dt_sharder_new(struct dt_sharder **s, const char *directory, const struct dt_shard_info *info,
                   const struct dt_sharder_options *options, struct dt_error *err) DT_MUST_CHECK;
/* Ids may have DT_NO_LOSS if the info has a mask. */
int dt_sharder_add(struct dt_sharder *s, const uint32_t *ids,
                   const struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;
/* Documents added from now on go to that split, one of the options' or DT_DEFAULT_SPLIT,
 * whatever their hash. Not to be mixed with DT_SPLIT_BY_TAIL. */
void dt_sharder_assign(struct dt_sharder *s, const char *split);
/* Fails with DT_EINVALID if a split came out empty; of a sharder that was directed, such
 * a split is left out. */
int dt_sharder_finish(struct dt_sharder *s, struct dt_error *err) DT_MUST_CHECK;
/* Removes the shards written if the sharder did not finish. NULL is fine. */
void dt_sharder_free(struct dt_sharder *s);

/* Sets DT_NO_LOSS in all ids up to the first that is `last`, itself included;
 * DT_EINVALID if it is not among them. */
int dt_sharder_mask_until(uint32_t *ids, size_t count, uint32_t last,
                          struct dt_error *err) DT_MUST_CHECK;

#endif
