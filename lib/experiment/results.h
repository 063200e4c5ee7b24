/* SPDX-License-Identifier: MIT */
/*
 * The results file of a matrix: JSON Lines, appended to during the runs.
 *
 *     {"design":{"command":[...],"axes":{...},...}}          the last one is valid
 *     {"machine":{"cpu":...,"program_hash":...},"started":1.7e9}   for each call
 *     {"cell":{"layers":"2"},"round":1,"seed":1,"load":0.4,"reference_s":0.012,
 *      "status":0,"values":{...}}
 *     {"cell":{"layers":"4"},"round":1,"seed":1,"load":0.5,"status":1,"error":"..."}
 *
 *     struct dt_results r;
 *     DT_TRY(dt_results_read(&r, "rows.jsonl", err));
 *     size_t n = dt_results_values(&r, cell, "wall_s", by_round);
 *
 * values holds the numbers that the command reported, and wall_s, cpu_s (user + system), user_s,
 * system_s, peak_bytes (if above dt-bench's own) and, where readable, joules.
 */
#ifndef DT_EXPERIMENT_RESULTS_H
#define DT_EXPERIMENT_RESULTS_H

#include <stdio.h>

#include "experiment/matrix.h"
#include "experiment/statistics.h"

struct dt_row {
    int cell; /* -1: not a cell of the last design */
    long round;
    int status;
    double reference;           /* seconds of the reference loop (reference.h); NAN if unknown */
    struct json_object *values; /* NULL if the run failed */
    char *error;
};

struct dt_results {
    char *path;
    struct dt_matrix matrix;
    struct json_object *machines; /* an array */
    struct dt_row *rows;
    int count, capacity;
    struct json_object
        *reported; /* of a report: by cell, {"0": {"loss": {"median": 1, ...}}}; else NULL */
};

/* An incomplete last line, without newline, is ignored. */
int dt_results_read(struct dt_results *r, const char *path, struct dt_error *err) DT_MUST_CHECK;
/* What dt-bench report --json printed of such a file: no rows, but dt_results_summary. */
int dt_results_read_report(struct dt_results *r, const char *path,
                           struct dt_error *err) DT_MUST_CHECK;
void dt_results_release(struct dt_results *r);

/* Re-reads matrix.design after a change of keys that rows do not depend on. */
int dt_results_renew(struct dt_results *r, struct dt_error *err) DT_MUST_CHECK;

/* Rounds of a cell that did not fail. */
size_t dt_results_runs(const struct dt_results *r, int cell);
/* The last row of a cell in a round, or NULL. */
const struct dt_row *dt_results_row(const struct dt_results *r, int cell, long round);
/* by_round: [matrix.repeats]; by_round[i] is set to the value in round i + 1, or NAN. Returns the
 * number of values. */
size_t dt_results_values(const struct dt_results *r, int cell, const char *name, double *by_round);
/* Median and quartiles of these values. */
struct dt_summary dt_results_summary(const struct dt_results *r, int cell, const char *name);
/* The names of all values in the order of the rows: the command's, then resources. An array owned
 * by the caller. */
struct json_object *dt_results_names(const struct dt_results *r);
bool dt_results_has_name(struct json_object *names, const char *name);
/* Adds the names of a run's values that such an array lacks. */
void dt_results_add_names(struct json_object *names, struct json_object *values);
/* DT_EMISSING, naming path, if a wanted name is not among the names. Targets that no run reached,
 * and an empty list of names, are accepted. */
int dt_results_check_names(struct json_object *wanted, struct json_object *names, const char *path,
                           struct dt_error *err) DT_MUST_CHECK;

/* Opens path for appending the rows of a design (borrowed). A new file begins with the design; an
 * existing one must continue it (dt_matrix_continues), and loses an incomplete last line. The
 * file is locked until closed. */
int dt_results_append(FILE **file, const char *path, struct json_object *design,
                      struct json_object *machine, struct dt_error *err) DT_MUST_CHECK;
/* Appends one line, and flushes it to the kernel. */
int dt_results_write(FILE *file, struct json_object *line, const char *path,
                     struct dt_error *err) DT_MUST_CHECK;

#endif
