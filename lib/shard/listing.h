/* SPDX-License-Identifier: MIT */
/*
 * A summary of shards, as a table or as JSON lines.
 *
 *     struct dt_listing l = {.width = 22};
 *     dt_listing_add(&l, "a.dts", &info, file_bytes, &text);     for each shard
 *     dt_listing_finish(&l, &text);
 */
#ifndef DT_SHARD_LISTING_H
#define DT_SHARD_LISTING_H

#include "shard/shard.h"

struct dt_listing {
    int width; /* of the first column; longer paths are shortened from the left */
    int count; /* rows so far; private from here on */
    struct dt_shard_info last, total;
    uint64_t file_bytes; /* total */
};

/* Appends a row, after a heading if it is the first or its tokenizer or layout differs. */
void dt_listing_add(struct dt_listing *l, const char *path, const struct dt_shard_info *info,
                    uint64_t file_bytes, struct dt_buffer *text);
/* Appends totals and averages. */
void dt_listing_finish(const struct dt_listing *l, struct dt_buffer *text);

/* Appends {"file":PATH,...} and a newline. */
void dt_listing_json(const char *path, const struct dt_shard_info *info, struct dt_buffer *text);

#endif
