/* SPDX-License-Identifier: MIT */
/*
 * Runs what a matrix still lacks, round by round: each round runs every cell once, in an
 * order of its own that the seed gives, so that noise and drift of the machine hit all
 * cells alike and values of one round can be compared in pairs.
 *
 *     DT_TRY(dt_matrix_run(&matrix, "rows.jsonl", &options, &failed, err));
 */
#ifndef DT_EXPERIMENT_RUN_H
#define DT_EXPERIMENT_RUN_H

#include <signal.h>

#include "experiment/matrix.h"

struct dt_matrix_run_options {
    bool quiet;
    const volatile sig_atomic_t *stop; /* not 0: ends the run that goes on, DT_ESTOP */
    /* Says what a run that failed said; may be NULL. */
    void (*warn)(const char *cell, int status, const char *complaint);
};

/* Appends a row for each run to the file at path, where rows of earlier calls count. A
 * cell that fails is not tried again in this call; *failed counts such cells. */
int dt_matrix_run(const struct dt_matrix *m, const char *path,
                  const struct dt_matrix_run_options *options, int *failed,
                  struct dt_error *err) DT_MUST_CHECK;

#endif
