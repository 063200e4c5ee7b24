/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints: RUN/step-00001000/, a model directory that transformers loads,
 * plus trainer/ with all that an exact resume needs. A checkpoint is made in a
 * hidden directory, synced, and renamed; its manifest is written last; RUN/latest
 * is a link that is replaced atomically, and so is RUN/best. What is half made is never found.
 * All ranks write their own parts into the same files: what is in them does not tell how many
 * there were.
 *
 *     config.json  model.safetensors  [tokenizer.json]
 *     trainer/state.json                  step, samples, seconds, seed, hashes
 *     trainer/optimizer.safetensors       as dt_optimizer_named_tensors
 *     trainer/config.yaml                 the resolved configuration
 *     trainer/lineage.txt                 one line a program, oldest first
 *     trainer/manifest.json
 *     ema/                                the average of the parameters, a model directory
 */
#ifndef DT_CHECKPOINT_CHECKPOINT_H
#define DT_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>

#include "checkpoint/progress-state.h"
#include "checkpoint/snapshot.h"
#include "parallel/train-state.h"
#include "settings/settings.h"

/* What does not change during a run. */
struct dt_run_identity {
    const struct dt_settings *settings;
    uint32_t eot;
    uint64_t data;              /* fingerprint of the training split: a resume needs the same */
    const char *tokenizer_path; /* copied into checkpoints; NULL: none */
    const char *lineage;        /* lines, each ended by a newline */
};

/* Where the checkpoint of a step is made; owned by the caller. */
char *dt_checkpoint_path(const char *run, long step);
/* Making one, in three parts. One rank makes directory, with all but tensors: */
int dt_checkpoint_begin(const char *directory, const struct dt_train_state *store,
                        const struct dt_run_identity *identity, struct dt_error *err) DT_MUST_CHECK;
/* then each writes what it owns of these, to the disk: */
int dt_checkpoint_write(const char *directory, struct dt_snapshot *snapshot,
                        struct dt_error *err) DT_MUST_CHECK;
/* when all have, one makes it RUN/step-N and points RUN/latest at it, and RUN/best if it is
 * the best step. */
int dt_checkpoint_complete(const char *run, const char *directory,
                           const struct dt_snapshot *snapshot,
                           const struct dt_run_identity *identity,
                           struct dt_error *err) DT_MUST_CHECK;

/* The hash of the parameters of the newest checkpoint. */
int dt_checkpoint_hash(const char *run, uint64_t *parameters, struct dt_error *err) DT_MUST_CHECK;

/* Restores model, moments and state from a checkpoint directory; all ranks do. Settings that
 * change the meaning of a step must be those of the checkpoint; the first that
 * is not is named. */
int dt_checkpoint_load(const char *directory, struct dt_train_state *store,
                       struct dt_progress_state *state, const struct dt_run_identity *identity,
                       struct dt_error *err) DT_MUST_CHECK;

/* The checkpoint that RUN/latest points to, or, if there is no such link, the one of the
 * highest step; NULL if there is none. *path is owned by the caller. */
int dt_checkpoint_find(const char *run, char **path, struct dt_error *err) DT_MUST_CHECK;

/* Removes checkpoints of RUN up to step newest, but for the keep_last newest of
 * them (0: all stay), those whose step keep_every divides (0: none), and those
 * that RUN/latest or RUN/best points to. A later step, of a run that went on
 * from an older checkpoint, is left alone. */
int dt_checkpoint_prune(const char *run, long newest, long keep_last, long keep_every,
                        struct dt_error *err) DT_MUST_CHECK;

/* Removes what writers that died have left in RUN. */
int dt_checkpoint_clean(const char *run, struct dt_error *err) DT_MUST_CHECK;

#endif
