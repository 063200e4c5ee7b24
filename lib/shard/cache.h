/* SPDX-License-Identifier: MIT */
/*
 * A cache of decoded frames with a memory budget. Private to lib/shard.
 *
 * The owner of frames keeps an array of dt_frame_slot, one per frame, 0 if the frame is not
 * cached. The cache resets an element to 0 on eviction. Memory is allocated as frames arrive,
 * so a data set within the budget is decoded once and stays in memory. Eviction uses the clock
 * algorithm (second chance).
 */
#ifndef DT_SHARD_CACHE_H
#define DT_SHARD_CACHE_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t dt_frame_slot;
struct dt_frame_cache;

/* budget: bytes; at least two frames of frame_size bytes. */
struct dt_frame_cache *dt_frame_cache_new(size_t budget, size_t frame_size);
/* Changes the budget, without evicting cached frames. */
void dt_frame_cache_limit(struct dt_frame_cache *c, size_t budget);
void dt_frame_cache_free(struct dt_frame_cache *c); /* NULL is fine */
/* Returns memory for a frame of size bytes and sets *slot, which is reset on eviction. A frame
 * larger than frame_size is allocated outside the budget. */
void *dt_frame_cache_add(struct dt_frame_cache *c, dt_frame_slot *slot, size_t size);
/* The frame in a slot; slot is not 0. */
const void *dt_frame_cache_get(struct dt_frame_cache *c, dt_frame_slot slot);
/* Evicts a frame and sets *slot to 0. */
void dt_frame_cache_drop(struct dt_frame_cache *c, dt_frame_slot *slot);

#endif
