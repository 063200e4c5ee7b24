/* SPDX-License-Identifier: MIT */
/*
 * What shards hold, as a table for people, or as lines of JSON.
 *
 *     struct dt_listing l = {.width = 22};
 *     dt_listing_add(&l, "a.dts", &info, file_bytes, &text);     for each shard
 *     dt_listing_finish(&l, &text);
 */
#ifndef DT_SHARD_LISTING_H
#define DT_SHARD_LISTING_H

#include "shard/shard.h"

struct dt_listing {
    int width; /* of the first column: longer paths lose their beginning */
    int count; /* rows so far; the rest is the listing's own */
    struct dt_shard_info last, total;
    uint64_t file_bytes; /* of all */
};

/* A row, below a heading where it is the first or of another kind than the last. */
void dt_listing_add(struct dt_listing *l, const char *path, const struct dt_shard_info *info,
                    uint64_t file_bytes, struct dt_buffer *text);
/* The total of several, and what is known on average. */
void dt_listing_finish(const struct dt_listing *l, struct dt_buffer *text);

/* {"file":PATH,...} and a newline. */
void dt_listing_json(const char *path, const struct dt_shard_info *info, struct dt_buffer *text);

#endif
