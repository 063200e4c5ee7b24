/* SPDX-License-Identifier: MIT */
/*
 * The tensor table: every tensor of a model, in one list, in a fixed order.
 *
 * Names are Hugging Face's. The order is the order of computation, layer by
 * layer, and gives each tensor its place in a flat arena, so that parameters,
 * gradients and optimizer moments are arrays of dt_table.elements floats cut
 * at the same offsets. Initialisation, optimizer, checkpoints and tests walk
 * this table and know nothing else of the model's inside.
 */
#ifndef DT_MODEL_TABLE_H
#define DT_MODEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "model/model-config.h"

/* What a tensor is to the forward pass. Shapes in elements, row-major; matrices
 * are given as input x output, and those that are transposed lie the other way.
 * The roles that a model lacks say how it computes: without position embedding
 * positions are rotary, norms without bias are RMSNorm, an MLP with a gate is
 * SwiGLU, and without a head's weight the token embedding is it. */
enum dt_role {
    DT_TOKEN_EMBEDDING,    /* V x C */
    DT_POSITION_EMBEDDING, /* max_seq_len x C */
    DT_TYPE_EMBEDDING,     /* 2 x C: of segments; row 0 is added to every token */
    DT_NORM1_WEIGHT,       /* C; before attention */
    DT_NORM1_BIAS,
    DT_QKV_WEIGHT, /* C x 3C: queries, keys and values in one, or in three: */
    DT_QKV_BIAS,
    DT_Q_WEIGHT, /* C x C */
    DT_Q_BIAS,
    DT_K_WEIGHT, /* C x dt_model_kv_width */
    DT_K_BIAS,
    DT_V_WEIGHT, /* C x dt_model_kv_width */
    DT_V_BIAS,
    DT_Q_NORM_WEIGHT, /* C/H; of each head of queries, before they turn */
    DT_K_NORM_WEIGHT,
    DT_PROJECTION_WEIGHT, /* C x C */
    DT_PROJECTION_BIAS,
    DT_NORM2_WEIGHT, /* C; before the MLP */
    DT_NORM2_BIAS,
    DT_GATE_WEIGHT, /* C x intermediate */
    DT_UP_WEIGHT,   /* C x intermediate */
    DT_UP_BIAS,
    DT_DOWN_WEIGHT, /* intermediate x C */
    DT_DOWN_BIAS,
    DT_FINAL_NORM_WEIGHT, /* C */
    DT_FINAL_NORM_BIAS,
    DT_HEAD_DENSE_WEIGHT, /* C x C: a layer with activation and norm before the logits */
    DT_HEAD_DENSE_BIAS,
    DT_HEAD_NORM_WEIGHT, /* C */
    DT_HEAD_NORM_BIAS,
    DT_HEAD_WEIGHT, /* V x C */
    DT_HEAD_BIAS,   /* V */
    DT_ROLES,
    DT_NO_ROLE = DT_ROLES /* the bias of what never has one */
};

enum dt_init { DT_INIT_ZERO, DT_INIT_ONE, DT_INIT_NORMAL, DT_INIT_WAVES };

struct dt_param {
    char name[64];
    enum dt_role role;
    int layer;        /* 0 .. L-1; -1 before the first block, L behind the last */
    int rank;         /* 1 or 2 dimensions */
    int64_t shape[2]; /* as in the file; shape[1] is 1 for vectors */
    bool transposed;  /* a linear map's matrix that lies as output x input */
    bool decay;       /* subject to weight decay: matrices */
    enum dt_init init;
    float init_std;
    int64_t offset; /* in a flat arena, in elements; a multiple of 16 */
    int64_t count;
};

struct dt_table {
    struct dt_param *params;
    int count;
    int64_t elements;   /* of a flat arena, padding included */
    int64_t parameters; /* without padding */
    int *index;         /* index[role * (L + 2) + layer + 1]: place in params, or -1 */
    int layers;
};

/* Free with dt_table_release. config has been checked. */
void dt_table_init(struct dt_table *table, const struct dt_model_config *config);
void dt_table_release(struct dt_table *table);

/* NULL if the model has no such tensor. */
const struct dt_param *dt_table_find(const struct dt_table *table, enum dt_role role, int layer);
/* A tensor of the table as a view into a flat arena at base of that element type;
 * vectors are 1 x C. All zero, data NULL, if the model has no such tensor. */
struct dt_tensor dt_table_view(const struct dt_table *table, enum dt_dtype dtype, void *base,
                               enum dt_role role, int layer);

/* Writes the initial values of a flat arena in host memory: weights normal
 * with standard deviation initializer_range, those that write into the residual
 * stream divided by sqrt(2 L) (Radford et al. 2019); positions of masked models as
 * waves (Vaswani et al. 2017) of that deviation. A pure function of the seed. */
void dt_table_initialize(const struct dt_table *table, uint64_t seed, float *parameters);

#endif
