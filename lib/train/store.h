/* SPDX-License-Identifier: MIT */
/* The parameter store: gradients and optimizer moments beside a model's
 * parameters, all flat arenas in tensor-table order, and the update that goes
 * over them. */
#ifndef DT_TRAIN_STORE_H
#define DT_TRAIN_STORE_H

#include "model/model.h"
#include "train/settings.h"

struct dt_store {
    struct dt_model *model; /* borrowed */
    struct dt_arena arena;
    float *gradients, *first_moment, *second_moment;
    int64_t elements;
};

int dt_store_init(struct dt_store *store, struct dt_model *model,
                  struct dt_error *err) DT_MUST_CHECK;
void dt_store_release(struct dt_store *store);

void dt_store_zero_gradients(struct dt_store *store);
/* Euclidean norm of all gradients. */
double dt_store_gradient_norm(struct dt_store *store);
/* One AdamW step; step counts from 0. Gradients of norm above grad_clip are
 * scaled down to it. */
void dt_store_update(struct dt_store *store, const struct dt_settings *settings, long step,
                     double gradient_norm);

#endif
