/* SPDX-License-Identifier: MIT */
/*
 * Optimizers: which tensor is updated by which rule, and the state that takes.
 *
 *     adamw   every tensor: a first and a second moment
 *     sgd     every tensor: a momentum
 *     muon    matrices of blocks by Muon: a momentum; the rest by AdamW
 *
 * First moments and momenta lie in one flat arena in the order of the table, second
 * moments, of the tensors that have one, packed in another.
 */
#ifndef DT_TRAIN_OPTIMIZER_H
#define DT_TRAIN_OPTIMIZER_H

#include "model/safetensors.h"
#include "model/table.h"
#include "train/muon.h"
#include "train/settings.h"

enum dt_rule { DT_RULE_ADAMW, DT_RULE_SGD, DT_RULE_MUON };

/* Names of training.optimizer in that order, ended by NULL. */
extern const char *const dt_optimizers[];

/* What a tensor has of the optimizer. */
struct dt_optimizer_part {
    enum dt_rule rule;
    int64_t second; /* place of its second moment among these; -1: none */
};

struct dt_optimizer {
    const struct dt_table *table;    /* borrowed */
    struct dt_optimizer_part *parts; /* one a tensor of the table */
    int64_t second_elements;
    float *first, *second; /* on the device: moments */
    struct dt_muon_scratch muon;
};

/* Decides the rules. Release with dt_optimizer_release. */
void dt_optimizer_init(struct dt_optimizer *optimizer, const struct dt_table *table,
                       const struct dt_settings *settings);
void dt_optimizer_release(struct dt_optimizer *optimizer);
void dt_optimizer_layout_moments(struct dt_optimizer *optimizer, struct dt_arena *arena);
void dt_optimizer_layout_scratch(struct dt_optimizer *optimizer, struct dt_arena *arena);

/* One update of flat arenas; step counts from 0; gradients count gradient_scale times. */
void dt_optimizer_update(struct dt_optimizer *optimizer, struct dt_device *dev, float *parameters,
                         float *gradients, const struct dt_settings *settings, long step,
                         double gradient_scale);

/* Bytes of the two arenas of moments. */
size_t dt_optimizer_first_bytes(const struct dt_optimizer *optimizer);
size_t dt_optimizer_second_bytes(const struct dt_optimizer *optimizer);
/* Where the second moments stand in a host copy of both arenas, of store->bytes.moments. */
float *dt_optimizer_second_moments(const struct dt_optimizer *optimizer, float *moments);
/* The state under the names of its files, over host copies of both arenas:
 * NAME.first_moment and NAME.second_moment, or NAME.momentum. Owned by the caller (free). */
struct dt_named_tensor *dt_optimizer_named_tensors(const struct dt_optimizer *optimizer,
                                                   float *first, float *second, int *count);

#endif
