/* SPDX-License-Identifier: MIT */
/*
 * What a checkpoint is written from: a run's state in host memory.
 *
 * A whole snapshot is a copy of everything at one step, which stays while training
 * goes on. One that is not whole has room for the largest part alone, which it
 * fetches from the device when it is asked for: training must wait.
 */
#ifndef DT_TRAIN_SNAPSHOT_H
#define DT_TRAIN_SNAPSHOT_H

#include "train/progress-state.h"
#include "train/store.h"

enum dt_part { DT_PART_PARAMETERS, DT_PART_MOMENTS, DT_PART_AVERAGE, DT_PARTS };

struct dt_snapshot {
    const struct dt_store *store; /* borrowed */
    struct dt_progress_state state;
    bool whole;
    char *memory;
};

/* Takes no memory yet. */
void dt_snapshot_plan(struct dt_snapshot *snapshot, const struct dt_store *store, bool whole);
size_t dt_snapshot_bytes(const struct dt_snapshot *snapshot); /* of host memory */
void dt_snapshot_allocate(struct dt_snapshot *snapshot);
void dt_snapshot_release(struct dt_snapshot *snapshot);

void dt_snapshot_take(struct dt_snapshot *snapshot, const struct dt_progress_state *state);
/* A part in host memory, valid until the next call; NULL if the run has none such.
 * Moments: the first ones, and those of dt_optimizer_second_moments behind them. */
float *dt_snapshot_part(struct dt_snapshot *snapshot, enum dt_part part);

#endif
