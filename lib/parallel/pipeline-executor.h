/* SPDX-License-Identifier: MIT */
/*
 * The pipeline executor: forward and backward of this rank's micro-batches through the layers that
 * it holds, in the order of a schedule (pipeline-schedule.h). Without pipeline parallelism it is a
 * pipeline of one stage.
 *
 *     DT_TRY(dt_pipeline_executor_plan(&executor, model, &mesh, &settings, err));
 *     DT_TRY(dt_pipeline_executor_allocate(&executor, err));
 *     DT_TRY(dt_pipeline_executor_run(&executor, count, &source, &options, err));
 *
 * Hidden states (forward) and their gradients (backward) move between stages while other
 * micro-batches compute; each of the four kinds of message has two buffers:
 *
 *     stage i-1  -- BOUNDARY_INPUT -->  stage i  -- BOUNDARY_OUTPUT -->  stage i+1
 *     stage i-1  <- BOUNDARY_GRADIENT_OUT --     <- BOUNDARY_GRADIENT_IN --
 *
 * They go from device to device with a device communicator, otherwise through host memory. Each
 * tensor-parallel rank sends its part of the rows.
 */
#ifndef DT_PARALLEL_PIPELINE_EXECUTOR_H
#define DT_PARALLEL_PIPELINE_EXECUTOR_H

#include "device/arena.h"
#include "model/forward-backward.h"
#include "parallel/mesh.h"
#include "parallel/pipeline-schedule.h"

/* Where micro-batches come from, and where their losses go. */
struct dt_micro_batch_source {
    void *context;
    /* Fills in micro-batch number index; called in order. */
    int (*fill)(void *context, int64_t index, struct dt_batch *batch, struct dt_error *err);
    /* Where backward of that micro-batch accumulates gradients. */
    const struct dt_flat *(*gradients)(void *context, int64_t index);
    /* The sum of its losses: called on the last stage, after the step's forward and backward. */
    void (*loss)(void *context, int64_t index, const struct dt_exact_sum *loss);
};

#define DT_PIPELINE_BUFFERS 2 /* messages of one kind in flight */

/* Messages of one kind to or from a neighbouring stage. */
struct dt_pipeline_channel {
    void *memory[DT_PIPELINE_BUFFERS];
    struct dt_message *messages[DT_PIPELINE_BUFFERS];
    int64_t begun, ended; /* messages of the step so far */
    int64_t next;         /* position in the schedule to search for the next receive */
};

struct dt_pipeline_executor {
    struct dt_model *model;     /* borrowed */
    const struct dt_mesh *mesh; /* borrowed */
    struct dt_comm *pp_group;   /* for memory that channels have */
    struct dt_pipeline pipeline;
    int64_t batches, max_batches;     /* micro-batches of the step; of any step */
    struct dt_exact_sum *losses;      /* of each, on the device */
    struct dt_exact_sum *host_losses; /* the same, on the host */
    int64_t max_in_flight;            /* micro-batches of a model chunk */
    struct dt_workspace **workspaces; /* max_in_flight of the first chunk, of the second, ... */
    int64_t kept_batches;             /* micro-batches that a later chunk needs again */
    struct dt_batch *batch;           /* these, and copies of their attention spans */
    int32_t **spans;
    int64_t batch_size, length; /* sequences of a micro-batch; tokens of a sequence */
    enum dt_recompute recompute;
    size_t bytes;                           /* of the workspaces and losses, on the device */
    size_t message_bytes;                   /* hidden states of a micro-batch */
    struct dt_pipeline_channel channels[4]; /* by enum boundary in pipeline-executor.c */
    struct dt_arena channel_memory;         /* their buffers on the device */
};

/* Takes no device memory. DT_EINVALID if the schedule does not fit the micro-batches. Release with
 * dt_pipeline_executor_release, also after a failure. */
int dt_pipeline_executor_plan(struct dt_pipeline_executor *executor, struct dt_model *model,
                              const struct dt_mesh *mesh, const struct dt_settings *settings,
                              struct dt_error *err) DT_MUST_CHECK;
int dt_pipeline_executor_allocate(struct dt_pipeline_executor *executor,
                                  struct dt_error *err) DT_MUST_CHECK;
size_t dt_pipeline_executor_bytes(const struct dt_pipeline_executor *executor); /* on the device */
void dt_pipeline_executor_release(struct dt_pipeline_executor *executor);

/* Forward and backward of micro-batches 0 .. count - 1. */
int dt_pipeline_executor_run(struct dt_pipeline_executor *executor, int64_t count,
                             const struct dt_micro_batch_source *source,
                             const struct dt_pass *options, struct dt_error *err) DT_MUST_CHECK;
/* Forward and losses of a batch, as dt_model_score; sets losses and hits on the last stage. */
int dt_pipeline_executor_score(struct dt_pipeline_executor *executor, const struct dt_batch *batch,
                               float *losses, float *hits, struct dt_error *err) DT_MUST_CHECK;

#endif
