/* SPDX-License-Identifier: MIT */
/*
 * The file of a matrix: JSON Lines, appended to while it runs and read afterwards.
 *
 *     {"design":{"command":[...],"axes":{...},...}}          the last one counts
 *     {"machine":{"cpu":...,"program_hash":...},"started":1.7e9}   each time it went on
 *     {"cell":{"layers":"2"},"round":1,"seed":1,"load":0.4,"reference_s":0.012,
 *      "status":0,"values":{...}}
 *     {"cell":{"layers":"4"},"round":1,"seed":1,"load":0.5,"status":1,"error":"..."}
 *
 *     struct dt_results r;
 *     DT_TRY(dt_results_read(&r, "rows.jsonl", err));
 *     size_t n = dt_results_values(&r, cell, "wall_s", by_round);
 *
 * Beside what the command said itself, values holds wall_s, cpu_s (user and system),
 * user_s, system_s, peak_bytes (unless it is less than dt-bench's own, which hides it)
 * and, where readable, joules.
 */
#ifndef DT_EXPERIMENT_RESULTS_H
#define DT_EXPERIMENT_RESULTS_H

#include <stdio.h>

#include "experiment/matrix.h"
#include "experiment/statistics.h"

struct dt_row {
    int cell; /* -1: of no cell of the last design */
    long round;
    int status;
    double reference;           /* seconds of the loop of reference.h around it; NAN if unknown */
    struct json_object *values; /* NULL of a run that failed */
    char *error;
};

struct dt_results {
    char *path;
    struct dt_matrix matrix;
    struct json_object *machines; /* an array */
    struct dt_row *rows;
    int count, capacity;
};

/* A last line without its newline is passed over. */
int dt_results_read(struct dt_results *r, const char *path, struct dt_error *err) DT_MUST_CHECK;
void dt_results_release(struct dt_results *r);

/* Reads matrix.design again, of which keys were changed that rows do not depend on. */
int dt_results_renew(struct dt_results *r, struct dt_error *err) DT_MUST_CHECK;

/* The row of a cell in a round, the last if there are several; NULL for none. */
const struct dt_row *dt_results_row(const struct dt_results *r, int cell, long round);
/* by_round[i] becomes the value in round i + 1, NAN where there is none; it has room for
 * matrix.repeats. Returns how many there are. */
size_t dt_results_values(const struct dt_results *r, int cell, const char *name, double *by_round);
/* What these values say. */
struct dt_summary dt_results_summary(const struct dt_results *r, int cell, const char *name);
/* The names of all values, in their order in the rows: those of the command, then the
 * resources. An array that the caller owns. */
struct json_object *dt_results_names(const struct dt_results *r);
bool dt_results_has_name(struct json_object *names, const char *name);
/* Adds to such an array the names of a run's values that it lacks. */
void dt_results_add_names(struct json_object *names, struct json_object *values);
/* Whether all that is wanted is among the names, if there are any; else DT_EMISSING, with PATH.
 * A target that was not reached is nothing wrong. */
int dt_results_check_names(struct json_object *wanted, struct json_object *names, const char *path,
                           struct dt_error *err) DT_MUST_CHECK;

/* Opens PATH to go on with the matrix of a design, which is borrowed: a new file begins
 * with it; an old one must have been made by one like it (dt_matrix_continues), and
 * loses a line cut off at its end. The file is locked until it is closed. */
int dt_results_append(FILE **file, const char *path, struct json_object *design,
                      struct json_object *machine, struct dt_error *err) DT_MUST_CHECK;
/* Writes one line, which reaches the system before this returns. */
int dt_results_write(FILE *file, struct json_object *line, const char *path,
                     struct dt_error *err) DT_MUST_CHECK;

#endif
