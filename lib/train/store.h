/* SPDX-License-Identifier: MIT */
/* The parameter store: gradients and optimizer state beside a model's
 * parameters, flat arenas in the order of the tensor table, and the update that
 * goes over them. */
#ifndef DT_TRAIN_STORE_H
#define DT_TRAIN_STORE_H

#include "model/model.h"
#include "train/data-parallel.h"
#include "train/optimizer.h"
#include "train/settings.h"

struct dt_store {
    struct dt_model *model; /* borrowed */
    struct dt_optimizer optimizer;
    struct dt_parallel parallel;
    struct dt_arena arena;
    float *gradients; /* parallel.gradients */
    float *average;   /* of the parameters over the updates; NULL: none */
    int64_t elements;
    struct {
        size_t gradients, moments, average, scratch;
    } bytes; /* of the arena */
};

/* A store without memory yet; released like one that has it. comm, of the ranks that train
 * together, is borrowed. DT_EINVALID if they are more than a step has micro-batches. */
int dt_store_plan(struct dt_store *store, struct dt_model *model,
                  const struct dt_settings *settings, struct dt_comm *comm,
                  struct dt_error *err) DT_MUST_CHECK;
int dt_store_allocate(struct dt_store *store, struct dt_error *err) DT_MUST_CHECK;
void dt_store_release(struct dt_store *store);

/* One update of the model, and of the average; step counts from 0. The gradients are
 * factor times what they should be (loss scaling); those whose norm, without that, is
 * above grad_clip are scaled down to it. */
void dt_store_update(struct dt_store *store, const struct dt_settings *settings, long step,
                     double gradient_norm, double factor);
/* The average begins as the parameters are now. */
void dt_store_begin_average(struct dt_store *store);

#endif
