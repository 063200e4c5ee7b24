/* SPDX-License-Identifier: MIT */
/*
 * A model on a device: its parameters, and the weights that computing reads.
 *
 *     struct dt_model *model;
 *     DT_TRY(dt_model_new(&model, dev, &config, DT_DTYPE_F32, err));
 *     dt_model_initialize(model, seed);
 *
 * forward-backward.h computes with it over batches, decode.h token by token.
 *
 * Parameters are fp32. A model that computes in a 16-bit type holds its weights a
 * second time in that type; whoever changes parameters calls dt_model_refresh.
 * C = hidden_size, H = num_heads, V = vocab_size.
 */
#ifndef DT_MODEL_MODEL_H
#define DT_MODEL_MODEL_H

#include "device/arena.h"
#include "device/device.h"
#include "model/table.h"
#include "settings/model-config.h"

/* Who brings buckets (table.h) when a pass needs them and takes them away again. */
struct dt_bucket_hooks {
    void *context;
    /* A pass is about to read a bucket's weights, and with gradients to add to its gradients. */
    void (*enter)(void *context, int bucket, bool gradients);
    /* It is over with that. With gradients: those of this pass are complete. */
    void (*leave)(void *context, int bucket, bool gradients);
};

/* Where slices add up what they have in parts (tensor-parallel.h). */
struct dt_tensor_parallel_scratch {
    void *received; /* DT_SCRATCH_ELEMENTS of each slice, of up to 4 bytes */
    float *sum;     /* DT_SCRATCH_ELEMENTS */
    float *partial; /* of the bucket that has most parts of gradients */
};
#define DT_SCRATCH_ELEMENTS ((int64_t)1 << 18)

struct dt_model {
    struct dt_device *device; /* borrowed */
    struct dt_model_config config;
    struct dt_model_part part;
    struct dt_tensor_partition partition;
    struct dt_table table;
    enum dt_dtype compute;  /* element type of weights and activations */
    struct dt_arena arena;  /* of what follows */
    bool bare;              /* without parameters of its own: hooks bring weights */
    float *parameters;      /* a flat arena in the order of the table; NULL of a bare one */
    void *narrow;           /* the same in the compute type; with fp32 the parameters themselves */
    struct dt_flat weights; /* what computing reads: those, unless hooks bring others */
    const struct dt_bucket_hooks *hooks;       /* NULL: all buckets are always at hand */
    struct dt_tensor_parallel_scratch scratch; /* where there are several slices */
    struct dt_tensor rope; /* max_seq_len x C/H: cosines and sines of rotary positions, as
                            * ops->rope reads them; data NULL where positions are learnt */
};

/* A part of a model (NULL: the whole) without memory yet: dt_model_bytes says how much it will
 * take. */
struct dt_model *dt_model_plan(struct dt_device *dev, const struct dt_model_config *config,
                               enum dt_dtype compute, const struct dt_model_part *part);
/* Takes parameters and weights out of a plan: somebody else will have them. */
void dt_model_strip(struct dt_model *model);
int dt_model_allocate(struct dt_model *model, struct dt_error *err) DT_MUST_CHECK;
/* Both at once, of a whole model. */
int dt_model_new(struct dt_model **model, struct dt_device *dev,
                 const struct dt_model_config *config, enum dt_dtype compute,
                 struct dt_error *err) DT_MUST_CHECK;
size_t dt_model_bytes(const struct dt_model *model); /* on the device */
void dt_model_free(struct dt_model *model);          /* NULL is fine */

void dt_model_initialize(struct dt_model *model, uint64_t seed);
/* Makes the weights those of the parameters, which have changed. */
void dt_model_refresh(struct dt_model *model);
/* The model has other parameters, a flat arena on the device, and gives back those it had. */
float *dt_model_exchange(struct dt_model *model, float *parameters);
/* Replaces the parameters by those in host memory, a flat arena. */
void dt_model_set_parameters(struct dt_model *model, const float *parameters);

/* Calls of the hooks, if there are any. */
void dt_model_bucket_enter(const struct dt_model *model, int bucket, bool gradients);
void dt_model_bucket_leave(const struct dt_model *model, int bucket, bool gradients);

/* A tensor of the table in the compute type; data NULL if the model has none such. */
struct dt_tensor dt_model_weight(const struct dt_model *model, enum dt_role role, int layer);

/* Columns of queries and of keys that lie here; all of them where there is one slice. */
int64_t dt_model_query_columns(const struct dt_model *model);
int64_t dt_model_key_columns(const struct dt_model *model);

/* Attention of the heads that lie here inside batch sequences of length tokens each, of which
 * queries are one stretch (context-parallel.h). */
struct dt_attention dt_model_attention(const struct dt_model *model, int64_t batch, int64_t length);

#endif
