/* SPDX-License-Identifier: MIT */
/*
 * Writes a run's checkpoints and removes old ones: synchronously, or from a full snapshot on a
 * background thread. At most one checkpoint is in progress.
 *
 * Every rank has a writer, and all make the same calls. A checkpoint has phases:
 *
 *     rank 0     makes the directory | writes its pieces | manifest, fsync, rename, prune
 *     others                         | write their pieces|
 *                                    WRITING             COMPLETING
 *
 * In the background a phase ends when all ranks have reported that they are idle, in the flags that
 * they exchange in every step (dt_step_trace_share), so that all see its end in the same step.
 */
#ifndef DT_CHECKPOINT_CHECKPOINT_WRITER_H
#define DT_CHECKPOINT_CHECKPOINT_WRITER_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/snapshot.h"
#include "comm/comm.h"

struct dt_checkpoint_writer;
/* Arguments are borrowed. saved_step: step of an existing checkpoint, or -1. Writes in the
 * background if the snapshot is full. */
struct dt_checkpoint_writer *dt_checkpoint_writer_new(const char *run, struct dt_comm *comm,
                                                      struct dt_snapshot *snapshot,
                                                      const struct dt_run_identity *identity,
                                                      long saved_step);
/* Waits for the previous checkpoint and writes one of the current state; in the background it only
 * takes the snapshot and starts to write. */
int dt_checkpoint_writer_save(struct dt_checkpoint_writer *writer,
                              const struct dt_progress_state *progress,
                              struct dt_error *err) DT_MUST_CHECK;
/* Whether this rank has finished its work of the current phase. */
bool dt_checkpoint_writer_idle(const struct dt_checkpoint_writer *writer);
/* Whether a checkpoint is in progress, which releasing the writer abandons. */
bool dt_checkpoint_writer_is_busy(const struct dt_checkpoint_writer *writer);
/* Call when all ranks are idle: starts the next phase. */
void dt_checkpoint_writer_advance(struct dt_checkpoint_writer *writer);
/* Whether a background checkpoint has failed since the last call; fills in err. */
bool dt_checkpoint_writer_failed(struct dt_checkpoint_writer *writer, struct dt_error *err);
/* Waits until all ranks have finished the checkpoint in progress. */
void dt_checkpoint_writer_wait(struct dt_checkpoint_writer *writer);
/* The step of the last complete checkpoint; -1: none. Not while one is in progress. */
long dt_checkpoint_writer_saved_step(const struct dt_checkpoint_writer *writer);
/* Waits for this rank's thread. NULL is allowed. */
void dt_checkpoint_writer_free(struct dt_checkpoint_writer *writer);

#endif
