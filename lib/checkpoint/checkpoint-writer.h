/* SPDX-License-Identifier: MIT */
/*
 * Writes the checkpoints of a run and removes old ones: while training waits, or on a
 * thread from a snapshot, at most one at a time.
 *
 * Every rank has a saver, and all call the same functions at the same time. A checkpoint
 * goes through phases: the first rank makes its directory; all write their parts of the
 * tensors into it; the first rank completes it. In the background a phase ends when all
 * ranks have told each other that they are done with it (dt_checkpoint_writer_idle, among the
 * values that they share in every step), and all see so in the same step.
 */
#ifndef DT_CHECKPOINT_CHECKPOINT_WRITER_H
#define DT_CHECKPOINT_CHECKPOINT_WRITER_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/snapshot.h"
#include "comm/comm.h"

struct dt_checkpoint_writer;
/* All are borrowed. saved_step: that of a checkpoint that is there already, or -1.
 * In the background if the snapshot is whole. */
struct dt_checkpoint_writer *dt_checkpoint_writer_new(const char *run, struct dt_comm *comm,
                                                      struct dt_snapshot *snapshot,
                                                      const struct dt_run_identity *identity,
                                                      long saved_step);
/* A checkpoint of now. Waits for the one before it. In the background this only begins. */
int dt_checkpoint_writer_save(struct dt_checkpoint_writer *saver,
                              const struct dt_progress_state *state,
                              struct dt_error *err) DT_MUST_CHECK;
/* Whether this rank has nothing to do in the phase at hand. */
bool dt_checkpoint_writer_idle(const struct dt_checkpoint_writer *saver);
/* All ranks are idle: goes on to the next phase. */
void dt_checkpoint_writer_advance(struct dt_checkpoint_writer *saver);
/* Whether a checkpoint that was being written in the background has failed; says so once. */
bool dt_checkpoint_writer_failed(struct dt_checkpoint_writer *saver, struct dt_error *err);
void dt_checkpoint_writer_wait(
    struct dt_checkpoint_writer *saver); /* for what is being written, by all */
/* The step of the last checkpoint that is whole; -1: none. Not while one is being written. */
long dt_checkpoint_writer_saved_step(const struct dt_checkpoint_writer *saver);
/* Waits for this rank's own part; NULL is fine. */
void dt_checkpoint_writer_free(struct dt_checkpoint_writer *saver);

#endif
