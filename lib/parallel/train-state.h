/* SPDX-License-Identifier: MIT */
/*
 * The sharded training state of one rank: fp32 master parameters, compute weights, gradient
 * buckets, optimizer state and EMA, and the optimizer step. ZeRO (distributed.zero_stage;
 * Rajbhandari et al. 2020) decides which of these a rank holds in full:
 *
 *     zero_stage   weights    gradients                        optimizer state   master parameters
 *         0        full       full                             full              full
 *         1        full       full                             shard             shard
 *         2        full       shard, with one micro-batch      shard             shard
 *                             a rank (data-parallel.h)
 *         3        gathered   as 2                             shard             shard
 *                  per bucket
 *
 * All arrays have the order of the tensor table (model/table.h): one flat arena, one bucket for the
 * token embedding, for the tensors before the layers, for each layer, and for what follows them.
 * Each bucket is cut into blocks, and each data-parallel rank owns a run of blocks of every bucket
 * (sharding.h), so that the ranks' shards are even and a bucket is reduced as soon as it is ready:
 *
 *     bucket       0 embedding      2 layer 0        3 layer 1           last
 *               +----------------+----------------+----------------+---+------+
 *     arena     | b b b b b b b b| b b b b b b b b| b b b b b b b b|   | b b  |   b: one block
 *               +----------------+----------------+----------------+---+------+
 *     owner      0 0 1 1 2 2 3 3  0 0 1 1 2 2 3 3  0 0 1 1 2 2 3 3      ...       of 4 ranks
 *
 *     rank 1 keeps, of fp32 parameters, optimizer state and EMA, its shards side by side:
 *               +-----+-----+-----+---+
 *               | b b | b b | b b |   |       shards[bucket] is their range in the arena
 *               +-----+-----+-----+---+
 *
 * A step:
 *
 *     dt_data_parallel_begin_step             zero the gradients, assign micro-batches to ranks
 *     forward and backward of each            the model calls the hooks around every bucket:
 *       micro-batch                             enter: all-gather its weights (stage 3), prefetch
 *                                                      the next layer's
 *                                               leave, last backward: start its reduce-scatter,
 *                                                      which overlaps the rest of backward
 *     dt_train_state_reduce_gradients         wait for the reductions; the global gradient norm
 *     dt_train_state_update                   clip, optimizer step on the shard, EMA;
 *                                             start the all-gather of the new weights (1 and 2)
 *
 * Pipeline and tensor parallelism need nothing here: the table is that of the layers and tensor
 * shards which the rank holds.
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
    struct dt_parameter_gather gather; /* zero_stage 1 to 3 */
    struct dt_bucket_hooks hooks;
    struct dt_arena arena;    /* of the device: all that follows, unless stated otherwise */
    struct dt_flat gradients; /* where backward accumulates, bucket by bucket */
    struct dt_range *shards;  /* of each bucket: the elements that this rank updates */
    int64_t elements;         /* of all shards */
    float **parameters;       /* of each bucket: its shard of the master parameters */
    float **reduced;          /* of each bucket: its shard of the reduced gradients */
    double *squared_norms;    /* of each bucket's gradients; host memory */
    float *tied_gradients; /* for the all-reduce of a tied embedding between the first and the last
                            * stage: the other stage's gradients with a device communicator,
                            * otherwise both stages', in host memory */
    bool has_ema;          /* an exponential moving average of the parameters is kept */
    float *ema;            /* of all shards */
    float **ema_shards;    /* of each bucket */
    bool has_outer;        /* DiLoCo (local-sgd.h): */
    float *outer_start;    /* parameters after the last outer step */
    float *outer_momentum; /* of the outer step */
    float *master;         /* parameters where the model has none in fp32; NULL: the model's */
    struct {
        size_t parameters, weights, gradients, moments, average, scratch;
    } bytes; /* of the arena */
};

/* Lays out the state without allocating it; dt_train_state_release accepts that too. With
 * zero_stage > 0 the model's plan loses its parameters (dt_model_strip). DT_EINVALID if a step has
 * fewer micro-batches than there are data-parallel ranks. */
int dt_train_state_plan(struct dt_train_state *state, struct dt_model *model,
                        const struct dt_settings *settings, const struct dt_mesh *mesh,
                        struct dt_error *err) DT_MUST_CHECK;
/* Call after dt_model_allocate. */
int dt_train_state_allocate(struct dt_train_state *state, struct dt_error *err) DT_MUST_CHECK;
void dt_train_state_release(struct dt_train_state *state);

/* Sets parameters from host memory: a full flat arena, the same on every rank. */
void dt_train_state_set_parameters(struct dt_train_state *state, const float *parameters);
void dt_train_state_initialize(struct dt_train_state *state, uint64_t seed);
/* Call when parameters have changed: casts them to weights, which ranks all-gather. */
void dt_train_state_refresh_weights(struct dt_train_state *state);

/* Waits for the step's reductions. *norm: the L2 norm of the gradients of the whole model. */
int dt_train_state_reduce_gradients(struct dt_train_state *state, double *norm,
                                    struct dt_error *err) DT_MUST_CHECK;
/* One optimizer step, and the EMA's; step counts from 0. The gradients are factor times too large
 * (loss scaling). Where gradient_norm, already without factor, exceeds grad_clip, they are scaled
 * down to it. */
void dt_train_state_update(struct dt_train_state *state, const struct dt_settings *settings,
                           long step, double gradient_norm, double factor);
/* Sets the EMA to the parameters. */
void dt_train_state_begin_ema(struct dt_train_state *state);
/* Swaps the EMA and the parameters, for validation. */
void dt_train_state_swap_ema(struct dt_train_state *state);

/* Hash of all parameters, equal to dt_tensor_file_hash of their file. Collective. */
int dt_train_state_hash(struct dt_train_state *state, uint64_t *hash,
                        struct dt_error *err) DT_MUST_CHECK;

#endif
