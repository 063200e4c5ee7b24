/* SPDX-License-Identifier: MIT */
/*
 * Runs the missing cells of a matrix, round by round. Each round runs every cell once, in a seeded
 * random order, so that noise and drift affect all cells equally and the values of a round can be
 * compared in pairs.
 *
 *     DT_TRY(dt_matrix_run(&matrix, "rows.jsonl", &options, &failed, err));
 */
#ifndef DT_EXPERIMENT_RUN_H
#define DT_EXPERIMENT_RUN_H

#include <signal.h>

#include "experiment/matrix.h"

struct dt_matrix_run_options {
    bool quiet;
    const volatile sig_atomic_t *stop; /* nonzero: ends the current run, DT_ESTOP */
    /* Called for a failed run with its last line; may be NULL. */
    void (*warn)(const char *cell, int status, const char *complaint);
};

/* Appends a row per run to the file at path; rows of earlier calls are not repeated. A cell that
 * fails is not retried in this call; *failed: the number of such cells. */
int dt_matrix_run(const struct dt_matrix *m, const char *path,
                  const struct dt_matrix_run_options *options, int *failed,
                  struct dt_error *err) DT_MUST_CHECK;

#endif
