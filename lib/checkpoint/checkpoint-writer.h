/* SPDX-License-Identifier: MIT */
/*
 * Writes the checkpoints of a run and removes old ones: while training waits, or on a
 * thread from a snapshot, at most one at a time.
 *
 * Every rank has a saver, and all call the same functions at the same time. A checkpoint
 * goes through phases: the first rank makes its directory; all write their parts of the
 * tensors into it; the first rank completes it. In the background a phase ends when all
 * ranks have told each other that they are done with it (dt_saver_idle, among the values
 * that they share in every step), and all see so in the same step.
 */
#ifndef DT_CHECKPOINT_CHECKPOINT_WRITER_H
#define DT_CHECKPOINT_CHECKPOINT_WRITER_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/snapshot.h"
#include "comm/comm.h"

struct dt_saver;
/* All are borrowed. saved_step: that of a checkpoint that is there already, or -1.
 * In the background if the snapshot is whole. */
struct dt_saver *dt_saver_new(const char *run, struct dt_comm *comm, struct dt_snapshot *snapshot,
                              const struct dt_run_identity *identity, long saved_step);
/* A checkpoint of now. Waits for the one before it. In the background this only begins. */
int dt_saver_save(struct dt_saver *saver, const struct dt_progress_state *state,
                  struct dt_error *err) DT_MUST_CHECK;
/* Whether this rank has nothing to do in the phase at hand. */
bool dt_saver_idle(const struct dt_saver *saver);
/* All ranks are idle: goes on to the next phase. */
void dt_saver_advance(struct dt_saver *saver);
/* Whether a checkpoint that was being written in the background has failed; says so once. */
bool dt_saver_failed(struct dt_saver *saver, struct dt_error *err);
void dt_saver_wait(struct dt_saver *saver); /* for what is being written, by all */
/* The step of the last checkpoint that is whole; -1: none. Not while one is being written. */
long dt_saver_saved_step(const struct dt_saver *saver);
/* Waits for this rank's own part; NULL is fine. */
void dt_saver_free(struct dt_saver *saver);

#endif
