/* SPDX-License-Identifier: MIT */
/*
 * The parameter store: what a rank keeps of parameters, gradients and optimizer state,
 * in flat arenas in the order of the tensor table, and the update that goes over them.
 *
 * A rank keeps everything, or of each bucket the blocks that it owns (zero_stage); its
 * model's hooks bring the weights of the others when a pass needs them
 * (parallel/parameter-gather.h) and see to the sum of gradients (parallel/data-parallel.h).
 */
#ifndef DT_PARALLEL_TRAIN_STATE_H
#define DT_PARALLEL_TRAIN_STATE_H

#include "model/model.h"
#include "optim/optimizer.h"
#include "parallel/data-parallel.h"
#include "parallel/gradient-compression.h"
#include "parallel/mesh.h"
#include "parallel/parameter-gather.h"
#include "settings/settings.h"

struct dt_train_state {
    struct dt_model *model;     /* borrowed; its hooks are the store's */
    const struct dt_mesh *mesh; /* borrowed */
    struct dt_optimizer optimizer;
    struct dt_data_parallel parallel;
    struct dt_compression compression;
    struct dt_parameter_gather weights; /* where ranks share out parameters */
    struct dt_bucket_hooks hooks;
    struct dt_arena arena;
    struct dt_flat gradients; /* where backward passes add */
    struct dt_range *kept;    /* of each bucket */
    int64_t elements;         /* kept of all buckets */
    float **parameters;       /* what is kept of each bucket, fp32 */
    float **sums;             /* likewise of gradients, behind dt_train_state_reduce_gradients */
    double *squares;          /* of each bucket's sum */
    float *tied;              /* for the sum of a head that two stages hold: the other's, where
                               * stages are linked; otherwise both, in host memory */
    float **averages;         /* likewise of the parameters over the updates */
    float *average;           /* of all buckets; NULL: none */
    bool outer;               /* replicas make outer steps (parallel/local-sgd.h): */
    float *before, *velocity; /* parameters at the last of these; its momentum */
    float *own;               /* parameters where the model has none of its own; or NULL */
    bool averaged;
    struct {
        size_t parameters, weights, gradients, moments, average, scratch;
    } bytes; /* of the arena */
};

/* A store without memory yet; released like one that has it. May take the parameters out of
 * the model's plan. DT_EINVALID if replicas are more than a step has micro-batches. */
int dt_train_state_plan(struct dt_train_state *store, struct dt_model *model,
                        const struct dt_settings *settings, const struct dt_mesh *mesh,
                        struct dt_error *err) DT_MUST_CHECK;
/* Behind dt_model_allocate. */
int dt_train_state_allocate(struct dt_train_state *store, struct dt_error *err) DT_MUST_CHECK;
void dt_train_state_release(struct dt_train_state *store);

/* Parameters from host memory, a whole flat arena; every rank has the same. */
void dt_train_state_set_parameters(struct dt_train_state *store, const float *parameters);
void dt_train_state_initialize(struct dt_train_state *store, uint64_t seed);
/* What is kept has changed. */
void dt_train_state_publish(struct dt_train_state *store);

/* Waits for the sums of the step's gradients; the Euclidean norm of all of them. */
int dt_train_state_reduce_gradients(struct dt_train_state *store, double *norm,
                                    struct dt_error *err) DT_MUST_CHECK;
/* One update of the model, and of the average; step counts from 0. The gradients are
 * factor times what they should be (loss scaling); those whose norm, without that, is
 * above grad_clip are scaled down to it. */
void dt_train_state_update(struct dt_train_state *store, const struct dt_settings *settings,
                           long step, double gradient_norm, double factor);
/* The average begins as the parameters are now. */
void dt_train_state_begin_average(struct dt_train_state *store);
/* The average and the parameters change places. */
void dt_train_state_swap_average(struct dt_train_state *store);

/* Hash of all parameters, as dt_tensor_file_hash of their file; every rank asks. */
int dt_train_state_hash(struct dt_train_state *store, uint64_t *hash,
                        struct dt_error *err) DT_MUST_CHECK;

#endif
