/* SPDX-License-Identifier: MIT */
/*
 * Reads lines of a growing file, which may be replaced by a shorter one, as dt-train does when it
 * resumes from a checkpoint. Lines are then read again from the first.
 *
 *     struct dt_follower f;
 *     dt_follow(&f, "run/metrics.jsonl");
 *     while (dt_follow_next(&f, &line, &found, err) == 0 && found)
 *         use(line);                  until the current end of the file
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
    int fd; /* -1 while the file does not exist */
    uint64_t inode, taken;
    long number;             /* of the last line, from 1 */
    struct dt_buffer buffer; /* bytes read and not yet returned */
    size_t used;
};

void dt_follow(struct dt_follower *f, const char *path);
/* The next complete line as JSON, owned by the caller; *found is false if there is none yet.
 * DT_EFORMAT with FILE:LINE if a line is not JSON. */
int dt_follow_next(struct dt_follower *f, struct json_object **line, bool *found,
                   struct dt_error *err) DT_MUST_CHECK;
void dt_follow_end(struct dt_follower *f);

#endif
