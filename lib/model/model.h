/* SPDX-License-Identifier: MIT */
/*
 * A model on a device: its fp32 parameters, and the weights in the compute type.
 *
 *     struct dt_model *model;
 *     DT_TRY(dt_model_new(&model, dev, &config, DT_DTYPE_F32, err));
 *     dt_model_initialize(model, seed);
 *
 * forward-backward.h computes with batches, decode.h token by token.
 *
 * A model that computes in a 16-bit type holds a copy of its parameters in that type; whoever
 * changes parameters calls dt_model_refresh.
 * C = hidden_size, H = num_heads, V = vocab_size.
 */
#ifndef DT_MODEL_MODEL_H
#define DT_MODEL_MODEL_H

#include "device/arena.h"
#include "device/device.h"
#include "model/rope.h"
#include "model/table.h"
#include "settings/model-config.h"

/* Called around each use of a bucket (table.h), to all-gather and release its weights, and to
 * reduce its gradients (ZeRO, overlap). */
struct dt_bucket_hooks {
    void *context;
    /* Before the weights of a bucket are read and, with gradients, its gradients are added to. */
    void (*enter)(void *context, int bucket, bool gradients);
    /* After that. With gradients: those of this micro-batch are complete. */
    void (*leave)(void *context, int bucket, bool gradients);
};

/* Hidden states of a layer, S x C (block.h), that a trace sees: of layer L, the final norm's input,
 * its output and the gradient of its input. And logits. */
enum dt_trace_point {
    DT_TRACE_POINT_INPUT,    /* the residual stream at the layer's entry */
    DT_TRACE_POINT_MIDDLE,   /* between attention and MLP */
    DT_TRACE_POINT_OUTPUT,   /* of the final norm */
    DT_TRACE_POINT_GRADIENT, /* of the residual stream at the layer's entry */
    DT_TRACE_POINTS,
    /* Of some rows with a target, before dt_head_logit_map; those of the TP rank. */
    DT_TRACE_POINT_LOGITS = DT_TRACE_POINTS
};

struct dt_workspace;
/* Called by the forward and backward of training when such a tensor is complete. */
struct dt_trace_hook {
    void *context;
    /* work: NULL with logits, which backward computes. */
    void (*see)(void *context, const struct dt_workspace *work, enum dt_trace_point point,
                int layer, const struct dt_tensor *states);
    const struct dt_trace_hook *next; /* called after this one; borrowed, NULL: none */
};

struct dt_block_pass;
/* The current pass and the buffers of adapters (adapter.h). */
struct dt_adapter {
    const struct dt_block_pass *pass; /* for dropout; borrowed, NULL: none */
    struct dt_tensor low, dlow;       /* x A', and its gradient: DT_ADAPTER_ROWS x r */
    struct dt_tensor wide;            /* with dropout: x after it, or the gradient of that */
};

/* Scratch buffers of the collectives in tensor-parallel.h. */
struct dt_tensor_parallel_scratch {
    void *received; /* DT_SCRATCH_ELEMENTS of up to 4 bytes from each TP rank */
    float *sum;     /* DT_SCRATCH_ELEMENTS */
    float *partial; /* partial gradients of a bucket: the size of the largest */
};
#define DT_SCRATCH_ELEMENTS ((int64_t)1 << 18)

/* How a model that is loaded is to compute. */
struct dt_model_use {
    enum dt_dtype compute;
    long context; /* max_seq_len, by dt_model_config_set_context; 0: as the file says */
};

struct dt_model {
    struct dt_device *device; /* borrowed */
    struct dt_model_config config;
    struct dt_model_part part;
    struct dt_tensor_partition partition;
    struct dt_table table; /* of the parameters that are trained: all, or those of the adapter */
    /* The model without its adapter: table and weights or, with config.lora, what follows, which is
     * frozen. */
    const struct dt_table *base;
    struct dt_table frozen_table;
    void *frozen; /* a flat arena in the compute type, in the order of frozen_table */
    struct dt_flat frozen_weights;
    struct dt_adapter *adapter; /* NULL: none */
    enum dt_dtype compute;      /* element type of weights and activations */
    struct dt_arena arena;      /* of what follows */
    bool bare;                  /* without parameters and weights of table: hooks provide them */
    float *parameters;          /* a flat arena in the order of the table; NULL if bare */
    void *narrow;               /* the same in the compute type; with fp32 an alias of parameters */
    struct dt_flat weights;     /* read by forward and backward: narrow, or what hooks provide */
    bool in_panels;             /* dt_model_arrange_for_decoding */
    const struct dt_bucket_hooks *hooks;       /* NULL: all buckets are resident */
    const struct dt_trace_hook *trace;         /* a list; borrowed, NULL: none */
    struct dt_tensor_parallel_scratch scratch; /* with tensor parallelism */
    float *norm_sums; /* with qk_norm: gradients of a norm's weight, of DT_ROW_PARTS of rows and
                       * DT_TENSOR_PARTS of heads */
    /* Of a layer norm without bias: zeros in its place, 1 x C in the compute type; and, also of
     * frozen norms, memory for a gradient that nothing reads */
    struct dt_tensor no_bias, no_gradient;
    struct dt_tensor ropes[DT_ROPE_TABLE_COUNT]; /* rope.h; data NULL: no such table */
};

/* A model, or the part that a rank holds, before its memory is allocated; dt_model_bytes returns
 * the size. */
struct dt_model *dt_model_plan(struct dt_device *dev, const struct dt_model_config *config,
                               enum dt_dtype compute, const struct dt_model_part *part);
/* Removes parameters and weights from a plan: hooks will provide them. */
void dt_model_strip(struct dt_model *model);
int dt_model_allocate(struct dt_model *model, struct dt_error *err) DT_MUST_CHECK;
/* Plans and allocates a whole model. */
int dt_model_new(struct dt_model **model, struct dt_device *dev,
                 const struct dt_model_config *config, enum dt_dtype compute,
                 struct dt_error *err) DT_MUST_CHECK;
size_t dt_model_bytes(const struct dt_model *model); /* on the device */
void dt_model_free(struct dt_model *model);          /* NULL is fine */

void dt_model_initialize(struct dt_model *model, uint64_t seed);
/* Converts changed parameters to weights. */
void dt_model_refresh(struct dt_model *model);
/* Replaces the parameters, a flat arena on the device, and returns the old ones. */
float *dt_model_exchange(struct dt_model *model, float *parameters);
/* Sets the weights that an adapter leaves frozen from a flat arena of base in host memory. */
void dt_model_set_frozen(struct dt_model *model, const float *parameters);
/* Uploads parameters from a flat arena in host memory. */
void dt_model_set_parameters(struct dt_model *model, const float *parameters);

/* Rearranges the weights of linear maps and of the head, in place, into panels (device.h), which
 * products of few rows and of many read sequentially. From now on only decode.h may compute with
 * the model, and its parameters stay as they are. Bits do not change, but of fast products in bf16.
 * Does nothing where the engine or the type has no such layout. */
void dt_model_arrange_for_decoding(struct dt_model *model);

/* Call the hooks, if any. */
void dt_model_bucket_enter(const struct dt_model *model, int bucket, bool gradients);
void dt_model_bucket_leave(const struct dt_model *model, int bucket, bool gradients);

/* Shows a tensor to the model's trace. */
void dt_model_trace(const struct dt_model *model, const struct dt_workspace *work,
                    enum dt_trace_point point, int layer, const struct dt_tensor *states);

/* A tensor of base in the compute type; data NULL if the model does not have it. */
struct dt_tensor dt_model_weight(const struct dt_model *model, enum dt_role role, int layer);

/* Columns of queries and of keys that this TP rank holds. */
int64_t dt_model_query_columns(const struct dt_model *model);
int64_t dt_model_key_columns(const struct dt_model *model);

/* Attention of this TP rank's heads within batch sequences of length tokens each; queries are
 * one chunk of them (context-parallel.h). */
struct dt_attention dt_model_attention(const struct dt_model *model, int64_t batch, int64_t length);

#endif
