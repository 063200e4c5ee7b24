/* SPDX-License-Identifier: MIT */
/*
 * Croissant metadata of a set of shards, from its index.json: JSON-LD that catalogues of data sets
 * read (MLCommons, "Croissant Format Specification", version 1.0).
 */
#ifndef DT_SHARD_CROISSANT_H
#define DT_SHARD_CROISSANT_H

#include "base/buffer.h"
#include "base/error.h"
#include "shard/manifest.h"

/* Appends the metadata; name: of the data set. DT_EINVALID if the manifest lacks the SHA-256 of a
 * shard, which Croissant requires: dt-shard of an earlier version wrote it. */
int dt_croissant_write(const struct dt_manifest *m, const char *name, struct dt_buffer *text,
                       struct dt_error *err) DT_MUST_CHECK;

#endif
