/* SPDX-License-Identifier: MIT */
/*
 * Writes documents to a directory of shards, divided into splits.
 *
 *     DT_TRY(dt_sharder_new(&s, directory, &info, &options, err));
 *     DT_TRY(dt_sharder_add(s, ids, &document, err));     for each document
 *     DT_TRY(dt_sharder_finish(s, err));
 *     dt_sharder_free(s);
 *
 * Atomic: shard/shard-directory.h. The output does not depend on the number of threads.
 *
 * Documents are assigned to splits by the options or, after dt_sharder_assign, explicitly.
 */
#ifndef DT_SHARD_SHARDER_H
#define DT_SHARD_SHARDER_H

#include <stdint.h>

#include "base/error.h"
#include "shard/manifest.h"
#include "shard/shard.h"

enum dt_sharder_layout {
    DT_SHARDER_LAYOUT_LIST,
    DT_SHARDER_LAYOUT_PADDED, /* rows of one document each */
    DT_SHARDER_LAYOUT_PACKED  /* rows of several documents, by best-fit packing */
};

enum dt_split_by {
    DT_SPLIT_BY_DOCUMENT, /* by document hash, independent of their order */
    DT_SPLIT_BY_TAIL      /* the last tokens; may split a document */
};

struct dt_split {
    char name[64];
    double fraction; /* of documents or tokens, between 0 and 1; 0: only by dt_sharder_assign */
};

/* Parses "val=0.01". */
int dt_split_parse(const char *text, struct dt_split *split, struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID if a name is repeated or DT_DEFAULT_SPLIT, or if nothing is left for the latter. */
int dt_sharder_check_splits(const struct dt_split *splits, int count,
                            struct dt_error *err) DT_MUST_CHECK;

struct dt_sharder_options {
    const struct dt_split *splits; /* in addition to DT_DEFAULT_SPLIT, which is first */
    int count;
    enum dt_split_by split_by;
    uint64_t tokens_per_shard; /* exceeded only by a single longer document */
    int level, threads;
    enum dt_sharder_layout layout; /* rows have info->row ids */
    bool append;                   /* to the existing shards */
    bool allow_empty;              /* index.json also lists splits without shards */
    struct dt_lineage *lineage;    /* goes into index.json; borrowed, or NULL */
};

struct dt_sharder;
/* *info and *options are borrowed until dt_sharder_finish. To append, tokenizer, layout and
 * mask must be those of the existing shards. */
int dt_sharder_new(struct dt_sharder **s, const char *directory, const struct dt_shard_info *info,
                   const struct dt_sharder_options *options, struct dt_error *err) DT_MUST_CHECK;
/* ids may have DT_NO_LOSS marks if info->masked. */
int dt_sharder_add(struct dt_sharder *s, const uint32_t *ids,
                   const struct dt_shard_document *document, struct dt_error *err) DT_MUST_CHECK;
/* The directory for temporary files of the same command; borrowed. */
const char *dt_sharder_staging(const struct dt_sharder *s);
/* Assigns documents added from now on to a split of the options or DT_DEFAULT_SPLIT. Not with
 * DT_SPLIT_BY_TAIL. */
void dt_sharder_assign(struct dt_sharder *s, const char *split);
/* DT_EINVALID if a split is empty, unless options allow it; after dt_sharder_assign an empty split
 * is omitted. */
int dt_sharder_finish(struct dt_sharder *s, struct dt_error *err) DT_MUST_CHECK;
/* Removes the new shards if the sharder did not finish. NULL is fine. */
void dt_sharder_free(struct dt_sharder *s);

/* Sets DT_NO_LOSS in all ids up to and including the first `last`; DT_EINVALID if absent. */
int dt_sharder_mask_until(uint32_t *ids, size_t count, uint32_t last,
                          struct dt_error *err) DT_MUST_CHECK;

#endif
