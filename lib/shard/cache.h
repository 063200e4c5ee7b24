/* SPDX-License-Identifier: MIT */
/*
 * Decoded frames of shards, kept within a budget of memory. Private to
 * lib/shard.
 *
 * Whoever owns frames keeps an array of dt_frame_slot, one a frame, 0 where
 * the frame is not in the cache; the cache sets an element back to 0 when it
 * needs the room. Memory is taken as frames come, so a data set below the
 * budget ends up whole in memory, each frame decoded once. Which frame has to
 * go is chosen by the clock algorithm (second chance).
 */
#ifndef DT_SHARD_CACHE_H
#define DT_SHARD_CACHE_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t dt_frame_slot;
struct dt_frame_cache;

/* Room for budget bytes of frames of up to frame_size bytes each, two at least. */
struct dt_frame_cache *dt_frame_cache_new(size_t budget, size_t frame_size);
/* Lowers or raises the budget, as far as no frame in the cache has to go. */
void dt_frame_cache_limit(struct dt_frame_cache *c, size_t budget);
void dt_frame_cache_free(struct dt_frame_cache *c); /* NULL is fine */
/* Memory for a frame of size bytes; *slot is set, and is reset when the frame has
 * to go. A frame above frame_size is taken, beyond the budget. */
void *dt_frame_cache_add(struct dt_frame_cache *c, dt_frame_slot *slot, size_t size);
/* The frame in a slot that is not 0. */
const void *dt_frame_cache_get(struct dt_frame_cache *c, dt_frame_slot slot);
/* Gives up a frame: *slot is 0 afterwards. */
void dt_frame_cache_drop(struct dt_frame_cache *c, dt_frame_slot *slot);

#endif
