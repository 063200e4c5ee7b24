/* SPDX-License-Identifier: MIT */
/*
 * index.json: what a directory of shards holds. It is written last, so a
 * directory with one is complete, and what it does not list does not count.
 * dt-shard(5) describes it.
 */
#ifndef DT_SHARD_MANIFEST_H
#define DT_SHARD_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "shard/shard.h"

#define DT_MANIFEST_NAME "index.json"
#define DT_DEFAULT_SPLIT    "train"  /* what the named splits leave */
#define DT_ALTERNATE_SUFFIX   ".b.dts" /* ends the names of the other generation */

struct dt_manifest_shard {
    char *file; /* within the directory */
    uint64_t tokens, documents, text_bytes;
    uint64_t size;             /* of the file, in bytes */
    uint64_t hash;             /* struct dt_shard_info's */
    uint64_t padding, targets; /* likewise */
};

struct dt_manifest_split {
    char *name;
    struct dt_manifest_shard *shards; /* in order */
    int count, capacity;
};

struct dt_manifest {
    struct dt_shard_info info; /* what all shards share; totals over all splits */
    char *provenance;          /* info.provenance points here */
    struct dt_manifest_split *splits;
    int count, capacity;
};

/* Reads and checks DIRECTORY/index.json; *m is released with dt_manifest_release,
 * after a failure too. */
int dt_manifest_read(struct dt_manifest *m, const char *directory,
                     struct dt_error *err) DT_MUST_CHECK;
int dt_manifest_write(const struct dt_manifest *m, const char *directory,
                      struct dt_error *err) DT_MUST_CHECK;
void dt_manifest_release(struct dt_manifest *m);

/* The split of that name; NULL if there is none. */
const struct dt_manifest_split *dt_manifest_find(const struct dt_manifest *m, const char *name);
/* The split that lists a file of the directory, and its entry, unless shard is NULL; NULL if
 * none lists it. */
const struct dt_manifest_split *dt_manifest_find_file(const struct dt_manifest *m, const char *file,
                                                      const struct dt_manifest_shard **shard);
/* Whether a file's name is one that dt-shard gives to shards: NAME-00000.dts, or
 * NAME-00000.b.dts. */
bool dt_manifest_is_shard_name(const char *file);
/* Appends a split and a shard; names are copied, the results borrowed until the
 * next call. */
struct dt_manifest_split *dt_manifest_add_split(struct dt_manifest *m, const char *name);
struct dt_manifest_shard *dt_manifest_add_shard(struct dt_manifest_split *split, const char *file);

/* Removes splits that list no shard. */
void dt_manifest_drop_empty(struct dt_manifest *m);

/* Takes a shard's counts and hash from what its writer says. */
void dt_manifest_set(struct dt_manifest_shard *shard, const struct dt_shard_info *totals);

/* Checks that a shard is the one that the manifest lists. path names it in errors. */
int dt_manifest_check(const struct dt_manifest *m, const struct dt_manifest_shard *listed,
                      const struct dt_shard *shard, const char *path,
                      struct dt_error *err) DT_MUST_CHECK;

#endif
