/* SPDX-License-Identifier: MIT */
/* What the files of a training run share; training.h is for its users. */
#ifndef DT_TRAIN_TRAINING_INTERNAL_H
#define DT_TRAIN_TRAINING_INTERNAL_H

#include <signal.h>

#include "checkpoint/checkpoint-writer.h"
#include "model/forward-backward.h"
#include "parallel/local-sgd.h"
#include "parallel/pipeline-executor.h"
#include "parallel/watchdog.h"
#include "shard/loader.h"
#include "train/memory-plan.h"
#include "train/metrics.h"
#include "train/objective.h"
#include "train/training.h"

/* Which batches of the epoch the loader reads: this rank's part of every step. */
struct dt_batch_order {
    const struct dt_settings *settings;
    const struct dt_data_parallel *parallel;
    uint64_t samples;  /* before the step */
    int64_t passes;    /* of the step, of all ranks */
    int64_t pass, end; /* of them, this rank's */
};

struct dt_training {
    struct dt_settings settings;
    struct dt_run_identity identity;
    char *run, *lineage, *tokenizer_path;
    int lock;        /* of the run directory */
    uint64_t origin; /* hash of the parameters that it was given to begin with; 0: none */
    struct dt_device *device;
    double peak;                  /* of all ranks' devices */
    struct dt_comm *comm, *alone; /* the ranks that train together; alone: made here, for one */
    struct dt_mesh mesh;
    bool leads; /* the rank that writes metrics and checkpoints */
    const volatile sig_atomic_t *stop;
    struct dt_dataset *train, *val; /* val NULL: no validation */
    uint64_t samples;               /* of one epoch */
    struct dt_loader *loader;
    enum dt_scope scope;           /* what attention keeps to */
    struct dt_batch_order reading; /* where the loader is */
    struct dt_model *model;
    struct dt_train_state store;
    struct dt_local_sgd local; /* replicas that train alone for a while */
    struct dt_passes passes;
    struct dt_snapshot snapshot;
    struct dt_memory_plan memory;
    struct dt_checkpoint_writer *saver;
    struct dt_objective objective;
    struct dt_batch batch; /* of a validation */
    struct dt_metrics metrics;
    struct dt_buffer line; /* of metrics; its memory is kept, so that a logged step takes none */
    long lost_lines;       /* as of struct dt_training_facts */
    struct dt_progress_state state;
    long first_step;
    double busy_seconds;   /* in steps, but for waiting, since the last look at the ranks' pace, */
    int64_t busy_passes;   /* and passes of micro-batches in them */
    double logged_seconds; /* state.seconds and tokens at the last logged step */
    uint64_t logged_tokens;
    double *pass_values; /* what ranks tell each other of the passes of a step */
    uint32_t *val_ids;   /* batch x (T + 1), and the losses they give */
    int32_t *val_begins, *val_ends;
    float *val_losses, *val_hits;
    double *val_values; /* what ranks tell each other of the batches of a validation */
};

/* training-open.c: everything of a run before its first step. */
int dt_training_open(struct dt_training *training, const struct dt_training_options *options,
                     struct dt_error *err) DT_MUST_CHECK;

/* training-step.c: passes over the batches of a step, and the update, or why there is none. */
int dt_training_update(struct dt_training *training, struct dt_step_report *report,
                       struct dt_error *err) DT_MUST_CHECK;
double *dt_training_pass_values(const struct dt_settings *settings); /* owned by the caller */

/* batch-order.c: the order of batches. Begins behind so many samples; the place of the next
 * batch is for dt_loader_options.next_position. */
void dt_batch_order_begin(struct dt_batch_order *reading, const struct dt_settings *settings,
                          const struct dt_data_parallel *parallel, uint64_t samples);
uint64_t dt_batch_order_next(void *reading);

/* validation.c: the loss on the validation split, and whether it is the best so far. */
int dt_training_validate(struct dt_training *training, struct dt_step_report *report,
                         struct dt_error *err) DT_MUST_CHECK;
double *dt_training_validation_values(const struct dt_settings *settings); /* likewise */
bool dt_training_stopped_early(const struct dt_training *training);

/* training-log.c: the speed since the last logged step; lines of metrics.jsonl. */
void dt_training_measure(const struct dt_training *training, struct dt_step_report *report);
/* The line that names the run, if it has a name and the file is new. */
int dt_training_log_run(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
/* The line that says how many lines of a resumed run are lost. */
int dt_training_log_lost(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
int dt_training_log_step(struct dt_training *training, struct dt_step_report *report,
                         struct dt_error *err) DT_MUST_CHECK;
int dt_training_log_validation(struct dt_training *training, const struct dt_step_report *report,
                               struct dt_error *err) DT_MUST_CHECK;

#endif
