/* SPDX-License-Identifier: MIT */
/*
 * index.json: the manifest of a directory of shards. It is written last: a directory with an
 * index.json is complete, and files that it does not list are not part of the data set.
 * dt-shard(5) specifies it.
 */
#ifndef DT_SHARD_MANIFEST_H
#define DT_SHARD_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "shard/shard.h"

#define DT_MANIFEST_NAME    "index.json"
#define DT_DEFAULT_SPLIT    "train"  /* documents of no named split */
#define DT_ALTERNATE_SUFFIX ".b.dts" /* suffix of shards that replace others of the same number */

struct dt_manifest_shard {
    char *file; /* within the directory */
    uint64_t tokens, documents, text_bytes;
    uint64_t size;              /* of the file, in bytes */
    uint64_t hash;              /* content hash, as in struct dt_shard_info */
    uint64_t padding, targets;  /* ids, as in struct dt_shard_info */
    char sha256[DT_SHA256_HEX]; /* of the file; "": an earlier version did not record it */
};

struct dt_manifest_split {
    char *name;
    struct dt_manifest_shard *shards; /* in order */
    int count, capacity;
};

struct dt_manifest {
    struct dt_shard_info info;   /* shared properties; totals over all splits */
    char *provenance;            /* storage of info.provenance */
    struct json_object *lineage; /* records (io/lineage.h); NULL: none */
    struct dt_manifest_split *splits;
    int count, capacity;
};

/* Reads and checks DIRECTORY/index.json. Release *m with dt_manifest_release, also after a
 * failure. */
int dt_manifest_read(struct dt_manifest *m, const char *directory,
                     struct dt_error *err) DT_MUST_CHECK;
/* The directory is not synced: after a failure index.json is the old one. */
int dt_manifest_write(const struct dt_manifest *m, const char *directory,
                      struct dt_error *err) DT_MUST_CHECK;
void dt_manifest_release(struct dt_manifest *m);

/* The split of that name; NULL if absent. */
const struct dt_manifest_split *dt_manifest_find(const struct dt_manifest *m, const char *name);
/* The split that lists a file of the directory; NULL if absent. Sets *shard to its entry
 * unless shard is NULL. */
const struct dt_manifest_split *dt_manifest_find_file(const struct dt_manifest *m, const char *file,
                                                      const struct dt_manifest_shard **shard);
/* Whether a file name has the form of a shard of dt-shard: NAME-00000.dts or
 * NAME-00000.b.dts. */
bool dt_manifest_is_shard_name(const char *file);
/* Append a split, a shard. Names are copied; results are borrowed until the next call. */
struct dt_manifest_split *dt_manifest_add_split(struct dt_manifest *m, const char *name);
struct dt_manifest_shard *dt_manifest_add_shard(struct dt_manifest_split *split, const char *file);

/* Removes splits without shards. */
void dt_manifest_drop_empty(struct dt_manifest *m);

/* Copies counts and hash of a shard from its writer's totals. */
void dt_manifest_set(struct dt_manifest_shard *shard, const struct dt_shard_info *totals);

/* Checks that a shard matches its manifest entry: DT_EFORMAT otherwise. path is for errors. */
int dt_manifest_check(const struct dt_manifest *m, const struct dt_manifest_shard *listed,
                      const struct dt_shard *shard, const char *path,
                      struct dt_error *err) DT_MUST_CHECK;

#endif
