/* SPDX-License-Identifier: MIT */
/* Shards that share a cache of frames. Private to lib/shard. */
#ifndef DT_SHARD_SHARD_INTERNAL_H
#define DT_SHARD_SHARD_INTERNAL_H

#include "shard/cache.h"
#include "shard/shard.h"

/* As dt_shard_open. *cache is made if it is NULL, with that budget in bytes; it is the caller's to
 * free, after all shards that use it. These must have ids of one width. */
int dt_shard_open_shared(struct dt_shard **s, const char *path, struct dt_frame_cache **cache,
                         size_t budget, struct dt_error *err) DT_MUST_CHECK;
/* Bytes of its tables in memory. */
size_t dt_shard_memory(const struct dt_shard *s);
/* Size of the file in bytes. */
uint64_t dt_shard_file_size(const struct dt_shard *s);

#endif
