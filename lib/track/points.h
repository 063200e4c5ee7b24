/* SPDX-License-Identifier: MIT */
/*
 * Points of a line of metrics.jsonl, and the last step sent per name. A resumed run repeats steps;
 * a point whose step is not above the last one of its name is skipped.
 */
#ifndef DT_TRACK_POINTS_H
#define DT_TRACK_POINTS_H

#include "json/json.h"
#include <stdbool.h>
#include <stdint.h>

struct dt_point {
    const char *name; /* borrowed from the line */
    double value;     /* finite */
    double seconds;   /* training time; 0 if the line has none */
    int64_t step;
};

/* The numeric members of a line with a step, except the step. Returns their number; 0 for a line
 * whose step or time is not a number, or out of range. *points is owned by the caller: free it. */
int dt_points_of(struct json_object *line, struct dt_point **points);

/* The time of a line; 0 where it has none. False if what it has is not a number, or is a huge one.
 */
bool dt_points_time(struct json_object *line, double *seconds);

struct dt_last_steps {
    struct json_object *steps; /* {name: step}; NULL: empty */
};

/* Whether step is above the last one of the name. */
bool dt_point_is_new(const struct dt_last_steps *last, const char *name, int64_t step);
void dt_last_steps_set(struct dt_last_steps *last, const char *name, int64_t step);
void dt_last_steps_release(struct dt_last_steps *last);

#endif
