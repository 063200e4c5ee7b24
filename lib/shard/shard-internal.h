/* SPDX-License-Identifier: MIT */
/* Shards that share a cache of frames. Private to lib/shard. */
#ifndef DT_SHARD_SHARD_INTERNAL_H
#define DT_SHARD_SHARD_INTERNAL_H

#include "shard/cache.h"
#include "shard/shard.h"

/* Like dt_shard_open with a shared cache, created with budget bytes if *cache is NULL. The
 * caller frees it after all shards that use it, which must have the same token_bytes. */
int dt_shard_open_shared(struct dt_shard **s, const char *path, struct dt_frame_cache **cache,
                         size_t budget, struct dt_error *err) DT_MUST_CHECK;
/* Bytes of memory of the tables. */
size_t dt_shard_memory(const struct dt_shard *s);
/* Size of the file in bytes. */
uint64_t dt_shard_file_size(const struct dt_shard *s);

#endif
