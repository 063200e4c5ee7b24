/* SPDX-License-Identifier: MIT */
/*
 * What the operands of a program stand for: token streams, shards, and the shards that a
 * directory's index.json lists, each with the split that it belongs to.
 *
 *     struct dt_shard_sources s = {0};
 *     for each operand: DT_TRY(dt_shard_sources_add(&s, operand, err));
 *     ... s.items[i].path ...
 *     dt_shard_sources_release(&s);
 *
 * index.json is the truth: of a shard that is named by itself, or by a link to it, it says the
 * split, too, and one that it does not list is refused, since it is what a stopped dt-shard left,
 * or a copy of documents that other shards hold.
 */
#ifndef DT_SHARD_SOURCES_H
#define DT_SHARD_SOURCES_H

#include <stdbool.h>

#include "base/error.h"
#include "shard/manifest.h"

struct dt_shard_source {
    char *path;        /* "-": the standard input */
    const char *split; /* the three are NULL where no index.json lists it */
    const struct dt_manifest *manifest;
    const struct dt_manifest_shard *listed;
};

/* All-zero is a valid empty list. */
struct dt_shard_sources {
    struct dt_shard_source *items;
    int count, capacity;
    struct dt_indexed_directory *directories; /* those read so far */
};

/* Appends what the operand stands for. */
int dt_shard_sources_add(struct dt_shard_sources *s, const char *operand,
                         struct dt_error *err) DT_MUST_CHECK;
/* Appends a path as it is. It belongs to the list from now on. */
void dt_shard_sources_add_path(struct dt_shard_sources *s, char *path);
void dt_shard_sources_release(struct dt_shard_sources *s);

/* Keeps the shards of that split alone. DT_EINVALID if nothing says which split a source
 * is of; DT_EMISSING if none is of that one. */
int dt_shard_sources_select(struct dt_shard_sources *s, const char *split,
                            struct dt_error *err) DT_MUST_CHECK;
/* DT_EFORMAT unless the shard is as index.json lists it; 0 where none does. */
int dt_shard_source_check(const struct dt_shard_source *source, struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID if two of them are one file, whose documents would count twice. */
int dt_shard_sources_check_distinct(const struct dt_shard_sources *s,
                                    struct dt_error *err) DT_MUST_CHECK;
/* The first source of another split than the first source; NULL: all are of one split. What
 * no index.json lists is of the split that its name says, or of DT_DEFAULT_SPLIT. */
const struct dt_shard_source *dt_shard_sources_find_other_split(const struct dt_shard_sources *s);
/* Whether a source is of another split than DT_DEFAULT_SPLIT, so that splits have to be kept.
 * DT_EINVALID if that is so, and nothing says which split another source is of; or if names of
 * shards without an index.json say that they are of several. */
int dt_shard_sources_check_splits(const struct dt_shard_sources *s, bool *divided,
                             struct dt_error *err) DT_MUST_CHECK;

#endif
