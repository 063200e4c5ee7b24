/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints: RUN/step-00001000/, a model directory that transformers loads, with what an exact
 * resume needs in trainer/. dt-checkpoint(5) describes the files.
 *
 *     config.json  model.safetensors  [tokenizer.json]
 *     trainer/state.json                  step, samples, seconds, hashes (progress-state.h)
 *     trainer/optimizer.safetensors       optimizer state (dt_optimizer_named_tensors)
 *     trainer/config.yaml                 the resolved settings
 *     trainer/lineage.txt                 commands that led here, oldest first, one a line
 *     trainer/lineage.json                the same with the hashes of inputs (io/lineage.h)
 *     trainer/manifest.json               sizes and hashes of all files; written last
 *     ema/                                the EMA of the parameters, a model directory
 *
 * A run that trains an adapter has its files (formats/adapter.h) instead of model.safetensors.
 *
 * A checkpoint is atomic: it is written to a hidden directory, fsync'ed and renamed, and the links
 * RUN/latest and RUN/best are replaced by a rename. All ranks write into the same files, which do
 * not depend on the parallel layout.
 */
#ifndef DT_CHECKPOINT_CHECKPOINT_H
#define DT_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>

#include "checkpoint/progress-state.h"
#include "checkpoint/snapshot.h"
#include "checkpoint/state-hash.h"
#include "parallel/train-state.h"
#include "settings/settings.h"

/* What does not change during a run. */
struct dt_run_identity {
    const struct dt_settings *settings;
    uint32_t eot;                /* end-of-text id; UINT32_MAX: none */
    uint64_t data;               /* fingerprint of the training split, which a resume compares */
    const char *data_name;       /* of its file or directory, for errors */
    const char *tokenizer_path;  /* copied into checkpoints; NULL: none */
    const char *base;            /* path of the model that an adapter is of; NULL: no adapter */
    uint64_t base_hash;          /* of its parameters (dt_adapter_base_hash) */
    const char *lineage;         /* lines, each ended by a newline */
    struct json_object *records; /* the same with inputs (io/lineage.h); borrowed, NULL: none */
};

/* The hidden directory in which a step's checkpoint is written; owned by the caller. */
char *dt_checkpoint_path(const char *run, long step);
/* A checkpoint is written in three calls. One rank makes the directory, with every file but the
 * tensors' values: */
int dt_checkpoint_begin(const char *directory, const struct dt_train_state *state,
                        const struct dt_run_identity *identity, struct dt_error *err) DT_MUST_CHECK;
/* each rank writes and fsyncs the elements that it owns: */
int dt_checkpoint_write(const char *directory, struct dt_snapshot *snapshot,
                        struct dt_error *err) DT_MUST_CHECK;
/* and when all have, one rank renames it to RUN/step-N and points RUN/latest at it, and RUN/best if
 * the step is the best one. */
int dt_checkpoint_complete(const char *run, const char *directory,
                           const struct dt_snapshot *snapshot,
                           const struct dt_run_identity *identity,
                           struct dt_error *err) DT_MUST_CHECK;

/* The hash of the parameters of RUN/latest. */
int dt_checkpoint_hash(const char *run, uint64_t *parameters, struct dt_error *err) DT_MUST_CHECK;

/* Sets hashes of the tensors of a checkpoint's file, one for each of own's. Each rank reads some of
 * them. Collective: all ranks of comm. */
int dt_checkpoint_hash_tensors(const char *directory, const struct dt_state_hash *own,
                               struct dt_comm *comm, struct dt_sum_hash *hashes,
                               struct dt_error *err) DT_MUST_CHECK;

enum dt_checkpoint_use {
    DT_CHECKPOINT_RESUME, /* goes on with the run */
    DT_CHECKPOINT_BRANCH  /* another run begins with its state; settings and data may change */
};

/* Refuses a checkpoint whose manifest does not list or match a file, whose state.json does not
 * belong to the weights: DT_EFORMAT, DT_EIO or DT_EMISSING, it is damaged; or whose settings
 * exclude that use: DT_EINVALID names the first (checkpoint-settings.h). Collective. */
int dt_checkpoint_check(const char *directory, const struct dt_train_state *state,
                        const struct dt_run_identity *identity, enum dt_checkpoint_use use,
                        struct dt_error *err) DT_MUST_CHECK;
/* Loads parameters, optimizer state and progress of a checkpoint after that check. Collective. */
int dt_checkpoint_load(const char *directory, struct dt_train_state *state,
                       struct dt_progress_state *progress, const struct dt_run_identity *identity,
                       enum dt_checkpoint_use use, struct dt_error *err) DT_MUST_CHECK;
/* The progress alone. *data: the fingerprint of the data that it was trained on. */
int dt_checkpoint_read_progress(const char *directory, struct dt_progress_state *progress,
                                uint64_t *data, struct dt_error *err) DT_MUST_CHECK;

/* The steps of RUN's checkpoints, in ascending order; owned by the caller. */
int dt_checkpoint_steps(const char *run, long **steps, size_t *count,
                        struct dt_error *err) DT_MUST_CHECK;
/* RUN/step-N; owned by the caller. */
char *dt_checkpoint_of_step(const char *run, long step);

/* The checkpoint that RUN/latest points to; without the link the one of the highest step; NULL if
 * there is none. *path is owned by the caller. */
int dt_checkpoint_find(const char *run, char **path, struct dt_error *err) DT_MUST_CHECK;

/* Fails if RUN/latest or RUN/best is a directory, which no link can replace: a copy that followed
 * links has made it. */
int dt_checkpoint_check_links(const char *run, struct dt_error *err) DT_MUST_CHECK;

/* The newest checkpoint of RUN before the one at path, which may be RUN/latest; NULL: none.
 * *earlier is owned by the caller. */
int dt_checkpoint_find_before(const char *run, const char *path, char **earlier,
                              struct dt_error *err) DT_MUST_CHECK;

/* Removes checkpoints of RUN up to the current step, except the keep_last newest of these (0: keeps
 * all), those whose step is a multiple of keep_every (0: none), the best ones of progress, and the
 * targets of RUN/latest and RUN/best. Later steps are from a run that was resumed from an older
 * checkpoint, and stay. */
int dt_checkpoint_prune(const char *run, const struct dt_progress_state *progress, long keep_last,
                        long keep_every, struct dt_error *err) DT_MUST_CHECK;

/* Removes hidden directories that killed writers left in RUN. */
int dt_checkpoint_clean(const char *run, struct dt_error *err) DT_MUST_CHECK;

#endif
