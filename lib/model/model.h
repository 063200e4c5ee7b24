/* SPDX-License-Identifier: MIT */
/*
 * A model on a device: its parameters, and the weights that computing reads.
 *
 *     struct dt_model *model;
 *     DT_TRY(dt_model_new(&model, dev, &config, DT_F32, err));
 *     dt_model_initialize(model, seed);
 *
 * pass.h computes with it over batches, decode.h token by token.
 *
 * Parameters are fp32. A model that computes in a 16-bit type holds its weights a
 * second time in that type; whoever changes parameters calls dt_model_refresh.
 * C = hidden_size, H = num_heads, V = vocab_size.
 */
#ifndef DT_MODEL_MODEL_H
#define DT_MODEL_MODEL_H

#include "device/arena.h"
#include "device/device.h"
#include "model/model-config.h"
#include "model/table.h"

struct dt_model {
    struct dt_device *device; /* borrowed */
    struct dt_model_config config;
    struct dt_table table;
    enum dt_dtype compute;  /* element type of weights and activations */
    struct dt_arena arena;  /* of what follows */
    float *parameters;      /* a flat arena in the order of the table */
    void *weights;          /* the same in the compute type; with fp32 the parameters themselves */
    struct dt_tensor turns; /* max_seq_len x C/H: cosines and sines of rotary positions, as
                             * ops->rope reads them; data NULL where positions are learnt */
};

/* A model without memory yet: dt_model_bytes says how much it will take. */
struct dt_model *dt_model_plan(struct dt_device *dev, const struct dt_model_config *config,
                               enum dt_dtype compute);
int dt_model_allocate(struct dt_model *model, struct dt_error *err) DT_MUST_CHECK;
/* Both at once. */
int dt_model_new(struct dt_model **model, struct dt_device *dev,
                 const struct dt_model_config *config, enum dt_dtype compute,
                 struct dt_error *err) DT_MUST_CHECK;
size_t dt_model_bytes(const struct dt_model *model); /* on the device */
void dt_model_free(struct dt_model *model);          /* NULL is fine */

void dt_model_initialize(struct dt_model *model, uint64_t seed);
/* Makes the weights those of the parameters, which have changed. */
void dt_model_refresh(struct dt_model *model);
/* Replaces the parameters by those in host memory, a flat arena. */
void dt_model_set_parameters(struct dt_model *model, const float *parameters);

/* A tensor of the table in the compute type; data NULL if the model has none such. */
struct dt_tensor dt_model_weight(const struct dt_model *model, enum dt_role role, int layer);

/* Attention inside batch whole sequences of length tokens each. */
struct dt_attention dt_model_attention(const struct dt_model *model, int64_t batch, int64_t length);

#endif
