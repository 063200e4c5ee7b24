/* SPDX-License-Identifier: MIT */
/*
 * A directory of shards while it is written.
 *
 *     DT_TRY(dt_shard_directory_begin(&d, path, append, err));
 *     name = dt_shard_directory_name(&d, "train", 0);    write or link
 *     ...                                                dt_shard_directory_stage(name)
 *     DT_TRY(dt_shard_directory_commit(&d, &out, err));  if written
 *     DT_TRY(dt_shard_directory_publish(&d, &manifest, err));
 *     dt_shard_directory_release(&d);
 *
 * New shards are written in DIR/.incomplete and moved to DIR when all are complete and synced; then
 * index.json is renamed, and at last .incomplete is removed. So no file that looks like a shard is
 * in DIR before, and readers refuse shards that no index.json lists beside a directory .incomplete.
 * What a killed writer left there is removed by the next one.
 */
#ifndef DT_SHARD_SHARD_DIRECTORY_H
#define DT_SHARD_SHARD_DIRECTORY_H

#include <stdbool.h>

#include "base/file.h"
#include "shard/manifest.h"

#define DT_SHARD_DIRECTORY_STAGING ".incomplete"

struct dt_shard_directory {
    char *path, *staging;
    int lock;               /* flock on the directory */
    struct dt_manifest old; /* of the existing shards, or empty */
    int committed;          /* shards by dt_shard_directory_commit */
    bool made;              /* it did not exist before */
    bool unsynced;          /* some of them need dt_file_sync_all */
    bool alternate;         /* new files have DT_ALTERNATE_SUFFIX until the old ones are removed */
};

/* Creates and locks the directory. An unreadable index.json is an error only if append. Release *d
 * also after a failure. */
int dt_shard_directory_begin(struct dt_shard_directory *d, const char *path, bool append,
                             struct dt_error *err) DT_MUST_CHECK;
/* The file name of a shard, which the old index.json does not list; owned by the caller. */
char *dt_shard_directory_name(const struct dt_shard_directory *d, const char *split, int number);
/* The path where a file is written before dt_shard_directory_publish; owned by the caller. */
char *dt_shard_directory_stage(const struct dt_shard_directory *d, const char *file);
/* dt_output_commit of a shard in the stage. Of many shards those after the first are synced
 * together when they are published: an fsync of each would wait for the disk each time. */
int dt_shard_directory_commit(struct dt_shard_directory *d, struct dt_output *out,
                              struct dt_error *err) DT_MUST_CHECK;
/* Moves the shards of m that the old index.json does not list to the directory, writes index.json,
 * removes the shards that it does not list, with a warning if they are of other splits, and then
 * gives those of m names without DT_ALTERNATE_SUFFIX. After a failure index.json and the shards
 * that it lists are the old or the new ones. */
int dt_shard_directory_publish(struct dt_shard_directory *d, struct dt_manifest *m,
                               struct dt_error *err) DT_MUST_CHECK;
/* Removes files that were not published, and an empty directory that did not exist before. */
void dt_shard_directory_release(struct dt_shard_directory *d);

/* DT_EFORMAT for a shard of a directory that is being written, or whose writer was stopped. file:
 * within directory, not listed in an index.json there. */
int dt_shard_directory_check(const char *directory, const char *file,
                             struct dt_error *err) DT_MUST_CHECK;

#endif
