/* SPDX-License-Identifier: MIT */
/*
 * The ranks that a launcher announces in the environment of this process: mpirun, srun, torchrun,
 * and any other that sets RANK and WORLD_SIZE.
 *
 * A process that is one of several announced ranks but runs alone would repeat the work of the
 * others: that is an error.
 */
#ifndef DT_COMM_LAUNCH_H
#define DT_COMM_LAUNCH_H

#include <stdbool.h>

#include "base/error.h"

#define DT_LAUNCH_MOST (1 << 20) /* ranks */

struct dt_launch {
    int rank, size;
    bool one_machine; /* all ranks are on this one */
};

/* The rank of this process, as its MPI launcher writes it; NULL without one. */
const char *dt_launch_rank(void);

/* Fails if the variables of the MPI launcher are malformed. */
int dt_launch_check_numbers(struct dt_error *err) DT_MUST_CHECK;

/* Numbers this process, by RANK and WORLD_SIZE in its environment; fails if a launcher has done so.
 */
int dt_launch_number(long rank, long size, struct dt_error *err) DT_MUST_CHECK;

/* Reads RANK and WORLD_SIZE, JOB_COMPLETION_INDEX and WORLD_SIZE, or SLURM_PROCID and SLURM_NTASKS.
 */
int dt_launch_find(struct dt_launch *launch, struct dt_error *err) DT_MUST_CHECK;

/* Whether the environment numbers this process as one of several ranks without MPI; *launch is then
 * as of dt_launch_find. A batch script of Slurm is none, although it has SLURM_PROCID. */
bool dt_launch_is_numbered(struct dt_launch *launch);

/* For a process that runs alone: fails if the environment announces several ranks. remedy: the
 * advice in the message. */
int dt_launch_check_alone(const char *remedy, struct dt_error *err) DT_MUST_CHECK;
#define DT_LAUNCH_ONCE "what it does is done by one process: start it once" /* such a remedy */

/* Fails if the launcher announced another number of ranks than MPI joined (size). */
int dt_launch_check_joined(int size, struct dt_error *err) DT_MUST_CHECK;

#endif
