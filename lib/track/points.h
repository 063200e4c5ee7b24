/* SPDX-License-Identifier: MIT */
/*
 * A line of metrics.jsonl as points, and the memory of what has been passed on: for each
 * name the last step. Lines come again when a run goes on from a checkpoint; a point
 * whose step is not above the last of its name is old.
 */
#ifndef DT_TRACK_POINTS_H
#define DT_TRACK_POINTS_H

#include "json/json.h"
#include <stdbool.h>
#include <stdint.h>

struct dt_point {
    const char *name; /* borrowed from the line */
    double value;     /* finite */
    double seconds;   /* of training; 0 where the line does not say */
    int64_t step;
};

#define DT_MOST_POINTS 32 /* of a line; more are not looked at */

/* The numbers of a line that has a step, but the step. Returns how many. A line whose step or
 * time is not a number, or is a huge one, has none. */
int dt_points_of(struct json_object *line, struct dt_point points[DT_MOST_POINTS]);

/* The time of a line; 0 where it has none. False if what it has is not a number, or is a huge one.
 */
bool dt_points_time(struct json_object *line, double *seconds);

struct dt_last_steps {
    struct json_object *steps; /* name: step; NULL is empty */
};

/* Whether the step is above the last of that name. */
bool dt_point_is_new(const struct dt_last_steps *last, const char *name, int64_t step);
void dt_last_steps_set(struct dt_last_steps *last, const char *name, int64_t step);
void dt_last_steps_release(struct dt_last_steps *last);

#endif
