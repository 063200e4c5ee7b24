/* SPDX-License-Identifier: MIT */
/*
 * What launchers say of this process in its environment: mpirun, srun, torchrun, and whoever else
 * sets RANK and WORLD_SIZE.
 *
 * A process that several ranks were announced to, and that runs alone, computes what all of them
 * should have computed together, and so does each of the others: that is an error.
 */
#ifndef DT_COMM_LAUNCH_H
#define DT_COMM_LAUNCH_H

#include <stdbool.h>

#include "base/error.h"

struct dt_launch {
    int rank, size;
    bool one_machine; /* all ranks are on this one */
};

/* What the launcher of MPI that has started this process calls its rank; NULL: there is none. */
const char *dt_launch_rank(void);

/* The ranks that RANK and WORLD_SIZE number, or SLURM_PROCID and SLURM_NTASKS. */
int dt_launch_find(struct dt_launch *launch, struct dt_error *err) DT_MUST_CHECK;

/* This process is to run alone: an error if the environment announces several ranks. remedy: what
 * to do with this program instead. */
int dt_launch_check_alone(const char *remedy, struct dt_error *err) DT_MUST_CHECK;
#define DT_LAUNCH_ONCE "what it does is done by one process: start it once" /* such a remedy */

/* size: ranks that MPI joined. An error if the launcher announced another number. */
int dt_launch_check_joined(int size, struct dt_error *err) DT_MUST_CHECK;

#endif
