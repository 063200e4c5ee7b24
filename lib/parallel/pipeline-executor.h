/* SPDX-License-Identifier: MIT */
/*
 * The passes of a step: this rank's micro-batches through the layers that it holds, in the
 * order of a schedule (pipeline-schedule.h). One stage alone is a pipeline like any other.
 *
 *     DT_TRY(dt_passes_plan(&passes, model, &mesh, &settings, err));
 *     DT_TRY(dt_passes_allocate(&passes, err));
 *     DT_TRY(dt_passes_run(&passes, count, &source, &how, err));
 *
 * The stream crosses between stages while other passes compute, from device to device where these
 * are linked, otherwise through host memory: each slice sends some of its rows.
 */
#ifndef DT_PARALLEL_PIPELINE_EXECUTOR_H
#define DT_PARALLEL_PIPELINE_EXECUTOR_H

#include "device/arena.h"
#include "model/forward-backward.h"
#include "parallel/mesh.h"
#include "parallel/pipeline-schedule.h"

/* Where micro-batches come from, and where what they give goes. */
struct dt_pass_source {
    void *context;
    /* Fills in a micro-batch; they are asked for in their order. */
    int (*fill)(void *context, int64_t index, struct dt_batch *batch, struct dt_error *err);
    /* Where a backward pass of that micro-batch adds. */
    const struct dt_flat *(*gradients)(void *context, int64_t index);
    /* Its losses, added up: in the last stage alone, behind all passes of the step. */
    void (*loss)(void *context, int64_t index, double loss);
};

#define DT_BOXES 2 /* messages of one kind that may be under way */

/* Messages of one kind to or from a neighbour. */
struct dt_message_buffer {
    void *memory[DT_BOXES];
    struct dt_message *messages[DT_BOXES];
    int64_t begun, ended; /* messages of the step so far */
    int64_t next;         /* place: where to look for the next message to receive */
};

struct dt_passes {
    struct dt_model *model;     /* borrowed */
    const struct dt_mesh *mesh; /* borrowed */
    struct dt_comm *stages;     /* for what boxes hold */
    struct dt_pipeline pipeline;
    int64_t batches, most;      /* micro-batches of the step, and of any */
    double *losses;             /* of each, on the device */
    double *fetched;            /* the same, on the host */
    int64_t slots;              /* micro-batches under way in a run at most */
    struct dt_workspace **work; /* slots of the first run, of the second, ... */
    int64_t held;               /* micro-batches that are kept for another run */
    struct dt_batch *batch;     /* those, and what they borrow of spans */
    int32_t **spans;
    int64_t batch_size, length;
    enum dt_recompute recompute;
    size_t bytes;                      /* of the workspaces */
    size_t stream_bytes;               /* of one micro-batch */
    struct dt_message_buffer boxes[4]; /* by the kind of message: enum in pipeline-executor.c */
    struct dt_arena box_memory;        /* where they lie on the device */
};

/* Without memory of the device; DT_EINVALID if the schedule does not fit the micro-batches.
 * Release with dt_passes_release, also then. */
int dt_passes_plan(struct dt_passes *passes, struct dt_model *model, const struct dt_mesh *mesh,
                   const struct dt_settings *settings, struct dt_error *err) DT_MUST_CHECK;
int dt_passes_allocate(struct dt_passes *passes, struct dt_error *err) DT_MUST_CHECK;
size_t dt_passes_bytes(const struct dt_passes *passes); /* on the device */
void dt_passes_release(struct dt_passes *passes);

/* Passes micro-batches 0 to below count. */
int dt_passes_run(struct dt_passes *passes, int64_t count, const struct dt_pass_source *source,
                  const struct dt_pass *how, struct dt_error *err) DT_MUST_CHECK;
/* Scores a batch, as dt_model_score; the last stage alone writes losses and hits. */
int dt_passes_score(struct dt_passes *passes, const struct dt_batch *batch, float *losses,
                    float *hits, struct dt_error *err) DT_MUST_CHECK;

#endif
