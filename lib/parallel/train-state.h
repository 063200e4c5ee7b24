/* SPDX-License-Identifier: MIT */
/*
 * The sharded training state of one rank: fp32 parameters, weights, gradients, optimizer state and
 * EMA, and the optimizer step. Parameters are the fp32 values that the optimizer updates and
 * checkpoints store; weights are the same values in the compute type, for forward and backward.
 *
 * ZeRO (distributed.zero_stage; Rajbhandari et al. 2020) shards over a sharding group (mesh.h):
 *
 *     zero_stage   weights                gradients   parameters, optimizer state, EMA
 *         0        full                   full        full
 *         1        full                   full        shard
 *         2        full                   shard [1]   shard
 *         3        gathered per bucket    shard [1]   shard
 *
 *     [1] full if a step has more micro-batches than data-parallel ranks, unless
 *         distributed.invariant (data-parallel.h)
 *
 * A flat array (model/table.h) has one range for each bucket: the token embedding; the other
 * tensors before the layers; each layer; the tensors after the layers; where it has a separate
 * gradient, the tied head. A bucket consists of blocks, and each rank of the group owns adjacent
 * blocks of every bucket (sharding.h): a bucket can be reduced while backward computes the next
 * one. With 4 ranks:
 *
 *     bucket        0 embedding       1 positions       2 layer 0
 *                 +-----------------+-----------------+-----------------+--
 *     flat array  | b b b b b b b b | b b b b b b b b | b b b b b b b b | ..     b: one block
 *                 +-----------------+-----------------+-----------------+--
 *     owner         0 0 1 1 2 2 3 3   0 0 1 1 2 2 3 3   0 0 1 1 2 2 3 3   ..
 *     rank 1 keeps, from zero_stage 1 on:   | b b | b b | b b | ..
 *
 * With zero_stage 0 every rank updates all elements; owners then only divide the work of the
 * reduction, of the gradient norm and of writing checkpoints. A step:
 *
 *     dt_data_parallel_begin_step       assigns micro-batches to ranks
 *     forward and backward              hooks.enter, before the model uses a bucket: waits for its
 *                                         weights; zero_stage 3: gathers them, prefetches the next
 *                                       hooks.leave, after the last backward of a bucket: starts
 *                                         its reduction, which overlaps the rest of backward
 *     dt_train_state_reduce_gradients   waits for the reductions; gradient norm
 *     dt_train_state_update             clipping, optimizer step, EMA; refreshes the weights
 *
 * Pipeline and tensor parallelism appear here only in the gradient norm and in a tied embedding's
 * gradients: the table lists the layers and tensor shards that the rank holds.
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
    struct dt_model *model;     /* borrowed; its hooks point to this state */
    const struct dt_mesh *mesh; /* borrowed */
    struct dt_optimizer optimizer;
    struct dt_data_parallel dp;
    struct dt_compression compression;
    struct dt_parameter_gather gather; /* zero_stage 1 to 3: has the weights */
    struct dt_bucket_hooks hooks;
    struct dt_arena arena; /* device memory of the whole state: dp, compression, gather, optimizer
                            * state, and float arrays below; pointers and ranges are on the host */
    struct dt_flat gradients; /* where backward accumulates: dp.gradients */
    struct dt_range *shards;  /* of each bucket: the elements of the flat array that this rank
                               * updates; with zero_stage 0 the whole bucket */
    int64_t elements;         /* sum of the shards' counts */
    float **parameters;       /* of each bucket: its shard, in master, gather.weights or
                               * model->parameters */
    float **reduced;          /* of each bucket: dt_data_parallel_reduced, set by an update */
    float *tied_gradients;    /* scratch with pipeline parallelism and a tied embedding, whose
                               * gradients the first and the last stage exchange and sum. With a
                               * device communicator: those received. Otherwise host memory: those
                               * sent, then those received. */
    bool has_ema;             /* keeps an exponential moving average of the parameters */
    float *ema;               /* all shards, side by side */
    float **ema_shards;       /* of each bucket: its shard, in ema */
    bool has_outer;           /* DiLoCo (local-sgd.h), whose outer step uses the next two arrays,
                               * which are in arena */
    float *outer_start;       /* parameters after the last outer step */
    float *outer_momentum;    /* of the outer step */
    float *master;            /* zero_stage 1 to 3: parameters, all shards side by side, if weights
                               * differ from them: in bf16 or fp16, gathered per bucket (zero_stage
                               * 3), or swapped with an EMA. NULL otherwise, and with zero_stage 0,
                               * where the parameters are model->parameters. */
    struct {
        size_t parameters, weights, gradients, moments, average, scratch;
    } bytes; /* of the arena; average: EMA; moments: optimizer and outer step */
};

/* "Collective" names the ranks that must make the call together. A failed transfer in a function
 * without a return code makes every later wait fail (comm/comm.h): the next collective call that
 * returns a code, at the latest dt_train_state_reduce_gradients, returns the error. */

/* Lays out the state without allocating it; dt_train_state_release accepts that too. With
 * zero_stage > 0 the state has the parameters and weights, and the model does not allocate any
 * (dt_model_strip): call dt_model_allocate afterwards. DT_EINVALID if a step has fewer
 * micro-batches than there are data-parallel ranks, or if tensor or context parallelism needs a
 * device communicator and has none. */
int dt_train_state_plan(struct dt_train_state *state, struct dt_model *model,
                        const struct dt_settings *settings, const struct dt_mesh *mesh,
                        struct dt_error *err) DT_MUST_CHECK;
/* Call after dt_model_allocate. */
int dt_train_state_allocate(struct dt_train_state *state, struct dt_error *err) DT_MUST_CHECK;
void dt_train_state_release(struct dt_train_state *state);

/* Sets the parameters from a full flat array in host memory, in the order of model->table, and
 * refreshes the weights. Equal on all ranks of the data-parallel group. Collective: sharding
 * group. */
void dt_train_state_set_parameters(struct dt_train_state *state, const float *parameters);
/* Sets the parameters to random initial values (dt_table_initialize). Collective: as above. */
void dt_train_state_initialize(struct dt_train_state *state, uint64_t seed);
/* Call when parameters have changed: casts them to weights. With zero_stage 1 and 2 starts to
 * all-gather these over the sharding group; hooks.enter waits for each bucket. With zero_stage 3
 * hooks.enter gathers them. Collective: sharding group. */
void dt_train_state_refresh_weights(struct dt_train_state *state);

/* Waits for the step's reductions. Gradients are then sums over all micro-batches and ranks, not
 * means (data-parallel.h). *norm: their L2 norm over the whole model, on every rank; the
 * caller divides it by factor (dt_train_state_update). With local SGD gradients are not reduced:
 * the norm is that of the rank's own gradients, but not finite if that of any rank is not.
 * Collective: all ranks. */
int dt_train_state_reduce_gradients(struct dt_train_state *state, double *norm,
                                    struct dt_error *err) DT_MUST_CHECK;
/* One optimizer step, and ema = d ema + (1 - d) parameters with d = min(ema_decay, (1 + step) /
 * (10 + step)); refreshes the weights. step counts from 0. factor: the gradients divided by it are
 * those of the mean loss (loss scale, positions without targets, local SGD). gradient_norm: already
 * divided by factor; if it exceeds grad_clip > 0, gradients are scaled to the norm grad_clip.
 * Collective: sharding group. */
void dt_train_state_update(struct dt_train_state *state, const struct dt_settings *settings,
                           long step, double gradient_norm, double factor);
/* Sets the EMA to the parameters. */
void dt_train_state_begin_ema(struct dt_train_state *state);
/* Swaps the EMA and the parameters, and refreshes the weights: call before and after a validation.
 * Collective: sharding group. */
void dt_train_state_swap_ema(struct dt_train_state *state);

/* Hash of all parameters in the table of this rank. Without pipeline and tensor parallelism it
 * equals dt_tensor_file_hash of their file in a checkpoint. Collective: sharding group. */
int dt_train_state_hash(struct dt_train_state *state, uint64_t *hash,
                        struct dt_error *err) DT_MUST_CHECK;

#endif
