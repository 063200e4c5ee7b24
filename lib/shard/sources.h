/* SPDX-License-Identifier: MIT */
/*
 * Expands the operands of a program to token streams and shards, a directory to the shards that
 * its index.json lists, and determines the split of each shard.
 *
 *     struct dt_shard_sources s = {0};
 *     for each operand: DT_TRY(dt_shard_sources_add(&s, operand, err));
 *     ... s.items[i].path ...
 *     dt_shard_sources_release(&s);
 *
 * The index.json in the directory of a shard is authoritative, also for a shard named as a file or
 * by a symbolic link. A shard that it does not list is refused: a dt-shard that was stopped left
 * it, or it duplicates other shards.
 */
#ifndef DT_SHARD_SOURCES_H
#define DT_SHARD_SOURCES_H

#include <stdbool.h>

#include "base/error.h"
#include "shard/manifest.h"

struct dt_shard_source {
    char *path;        /* "-": stdin */
    const char *split; /* these three are NULL if no index.json lists it */
    const struct dt_manifest *manifest;
    const struct dt_manifest_shard *listed;
};

/* All-zero is a valid empty list. */
struct dt_shard_sources {
    struct dt_shard_source *items;
    int count, capacity;
    struct dt_indexed_directory *directories; /* manifests read so far */
};

/* Appends the sources of an operand. */
int dt_shard_sources_add(struct dt_shard_sources *s, const char *operand,
                         struct dt_error *err) DT_MUST_CHECK;
/* Appends a path without look-up. Takes ownership of path. */
void dt_shard_sources_add_path(struct dt_shard_sources *s, char *path);
void dt_shard_sources_release(struct dt_shard_sources *s);

/* Keeps only the shards of a split. DT_EINVALID if the split of a source is unknown; DT_EMISSING
 * if no source belongs to split. */
int dt_shard_sources_select(struct dt_shard_sources *s, const char *split,
                            struct dt_error *err) DT_MUST_CHECK;
/* DT_EFORMAT if the shard differs from its entry in index.json; 0 without an entry. */
int dt_shard_source_check(const struct dt_shard_source *source, struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID if two sources are the same file. */
int dt_shard_sources_check_distinct(const struct dt_shard_sources *s,
                                    struct dt_error *err) DT_MUST_CHECK;
/* The first source that belongs to another split than items[0]; NULL if all belong to one. Sources
 * without an index.json count by the split in their name, or as DT_DEFAULT_SPLIT. */
const struct dt_shard_source *dt_shard_sources_find_other_split(const struct dt_shard_sources *s);
/* Sets *keep if a source belongs to another split than DT_DEFAULT_SPLIT, so that splits must be
 * kept. DT_EINVALID if then the split of another source is unknown, and for a shard of a data set
 * that was divided into splits (by its provenance) which no index.json lists, unless its name is
 * that of a shard of DT_DEFAULT_SPLIT: its documents may be of any split. */
int dt_shard_sources_check_splits(const struct dt_shard_sources *s, bool *keep,
                                  struct dt_error *err) DT_MUST_CHECK;

#endif
