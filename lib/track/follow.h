/* SPDX-License-Identifier: MIT */
/*
 * Reads the lines of a file that grows, and may be replaced by a shorter one: dt-train
 * does so when it goes on from a checkpoint. Lines then come again from the first.
 *
 *     struct dt_follower f;
 *     dt_follow(&f, "run/metrics.jsonl");
 *     while (dt_follow_next(&f, &line, &found, err) == 0 && found)
 *         use(line);                  until what is there now has been read
 *     dt_follow_end(&f);
 */
#ifndef DT_TRACK_FOLLOW_H
#define DT_TRACK_FOLLOW_H

#include "json/json.h"
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

struct dt_follower {
    char *path;
    int fd; /* -1 while the file is not there */
    uint64_t inode, taken;
    long number;             /* of the last line */
    struct dt_buffer buffer; /* bytes read, from the next line on */
    size_t used;
};

void dt_follow(struct dt_follower *f, const char *path);
/* The next whole line as JSON, owned by the caller; *found is false if there is none
 * yet. A line that is no JSON is DT_EFORMAT with FILE:LINE. */
int dt_follow_next(struct dt_follower *f, struct json_object **line, bool *found,
                   struct dt_error *err) DT_MUST_CHECK;
void dt_follow_end(struct dt_follower *f);

#endif
