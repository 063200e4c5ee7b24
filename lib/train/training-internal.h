/* SPDX-License-Identifier: MIT */
/* Shared by the files of a training run; training.h is the public interface. */
#ifndef DT_TRAIN_TRAINING_INTERNAL_H
#define DT_TRAIN_TRAINING_INTERNAL_H

#include <signal.h>

#include "checkpoint/checkpoint-writer.h"
#include "formats/labels.h"
#include "model/forward-backward.h"
#include "parallel/local-sgd.h"
#include "parallel/pipeline-executor.h"
#include "parallel/watchdog.h"
#include "shard/loader.h"
#include "train/memory-plan.h"
#include "train/metrics-file.h"
#include "train/objective.h"
#include "train/step-trace.h"
#include "train/training.h"

/* The micro-batches that this rank's loader reads, step by step. */
struct dt_batch_order {
    const struct dt_settings *settings;
    const struct dt_data_parallel *dp;
    uint64_t samples;  /* consumed before the step */
    int64_t batches;   /* micro-batches of the step, of all ranks */
    int64_t next, end; /* of this rank's micro-batches */
};

struct dt_training {
    struct dt_settings settings;
    struct dt_run_identity identity;
    char *run, *lineage, *tokenizer_path;
    int lock;        /* file descriptor of the run directory, with flock */
    uint64_t origin; /* hash of the parameters of --init-from; 0: none */
    struct dt_device *device;
    double peak;          /* operations a second, of all ranks' devices */
    struct dt_comm *comm; /* all ranks of the run */
    struct dt_comm *self; /* the communicator of one rank, if it was opened here */
    struct dt_mesh mesh;
    bool leads; /* rank 0, which writes metrics and checkpoints */
    const volatile sig_atomic_t *stop;
    struct dt_labels labels;        /* of a classifier */
    struct dt_dataset *train, *val; /* val NULL: no validation */
    uint64_t samples;               /* of one epoch */
    struct dt_loader *loader;
    enum dt_scope scope;         /* of attention: row, document, or row without padding */
    struct dt_batch_order order; /* the loader's position */
    struct dt_model *model;
    struct dt_train_state state;
    struct dt_local_sgd local;
    struct dt_pipeline_executor executor;
    struct dt_snapshot snapshot;
    struct dt_memory_plan memory;
    struct dt_checkpoint_writer *writer;
    struct dt_objective objective;
    struct dt_step_trace trace;
    struct dt_metrics metrics, hashes; /* metrics.jsonl, hashes.jsonl; not open without a run */
    struct dt_buffer line; /* of metrics; reused, so that a logged step allocates nothing */
    long lost_lines;       /* as in struct dt_training_facts */
    struct dt_progress_state progress;
    long first_step;
    double busy_seconds;   /* of computing, without waiting, since the last search for stragglers */
    int64_t busy_batches;  /* micro-batches computed in these */
    double logged_seconds; /* progress.seconds and tokens at the last logged step */
    uint64_t logged_tokens;
    /* Validation: one batch. */
    struct dt_batch batch;
    uint32_t *val_ids;                        /* batch x (T + 1) */
    int32_t *val_span_begins, *val_span_ends; /* batch x T */
    float *val_losses, *val_hits;             /* batch x T */
};

/* training-open.c: opens data, model and run directory, and loads the checkpoint. */
int dt_training_open(struct dt_training *training, const struct dt_training_options *options,
                     struct dt_error *err) DT_MUST_CHECK;

/* training-step.c: forward and backward of a step's micro-batches, and the update, unless it is
 * skipped. */
int dt_training_update(struct dt_training *training, struct dt_step_report *report,
                       struct dt_error *err) DT_MUST_CHECK;

/* batch-order.c: starts after that number of samples. dt_batch_order_next returns the position of
 * the next micro-batch, for dt_loader_options.next_position. */
void dt_batch_order_begin(struct dt_batch_order *order, const struct dt_settings *settings,
                          const struct dt_data_parallel *dp, uint64_t samples);
uint64_t dt_batch_order_next(void *order);

/* validation.c: the loss on the validation split, and whether it is the best so far. */
int dt_training_validate(struct dt_training *training, struct dt_step_report *report,
                         struct dt_error *err) DT_MUST_CHECK;
bool dt_training_stopped_early(const struct dt_training *training);

/* training-metrics.c: throughput since the last logged step, and lines of metrics.jsonl
 * (dt-metrics(5)). */
void dt_training_measure(const struct dt_training *training, struct dt_step_report *report);
/* The line with the run's name, if it has one and the file is new. */
int dt_training_log_run(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
/* The line with the number of lines that a resumed run has lost, if any. */
int dt_training_log_lost(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
int dt_training_log_step(struct dt_training *training, struct dt_step_report *report,
                         struct dt_error *err) DT_MUST_CHECK;
/* The sink of traced steps: RUN/hashes.jsonl. */
int dt_training_log_hash(void *training, const struct dt_trace_line *line,
                         struct dt_error *err) DT_MUST_CHECK;
int dt_training_log_validation(struct dt_training *training, const struct dt_step_report *report,
                               struct dt_error *err) DT_MUST_CHECK;

#endif
