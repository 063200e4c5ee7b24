/* SPDX-License-Identifier: MIT */
/*
 * The tensor table: every tensor of a model that a rank holds, in a fixed order.
 *
 * Names are Hugging Face's. The order is that of computation, and gives each tensor an offset in
 * a flat arena: parameters, gradients and optimizer moments are arrays of dt_table.elements floats
 * with the same offsets. Initialization, optimizer, checkpoints and tests need only this table.
 *
 * The arena is divided into buckets, which are all-gathered, reduced and released as a whole:
 *
 *     bucket 0          1             2 .. L+1      L+2               L+3
 *     | token       | position,  | one a layer | final norm,   | tied head, where it has a     |
 *     | embedding   | token type |             | head          | separate gradient (tied_apart)|
 */
#ifndef DT_MODEL_TABLE_H
#define DT_MODEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "model/model-part.h"
#include "model/tensor-partition.h"
#include "settings/families.h"
#include "settings/model-config.h"

/* How tensor parallelism splits a linear map: along its outputs (column-parallel) or along its
 * inputs (row-parallel). */
enum dt_tensor_split { DT_TENSOR_SPLIT_NONE, DT_TENSOR_SPLIT_COLUMN, DT_TENSOR_SPLIT_ROW };

enum dt_init { DT_INIT_ZERO, DT_INIT_ONE, DT_INIT_NORMAL, DT_INIT_UNIFORM, DT_INIT_SINUSOIDAL };

/* Roles of the matrices of an adapter (settings/lora.h), by that of the weight that it adapts. */
#define DT_TABLE_ROLES           (3 * DT_ROLE_COUNT)
#define DT_TABLE_ADAPTER_A(role) ((enum dt_role)(DT_ROLE_COUNT + (int)(role)))
#define DT_TABLE_ADAPTER_B(role) ((enum dt_role)(2 * DT_ROLE_COUNT + (int)(role)))
#define DT_PARAM_NAME            112

struct dt_param {
    char name[DT_PARAM_NAME];
    char fused[DT_PARAM_NAME]; /* name of the tensor in files of weights that has these rows, with
                                * others; empty: name (settings/families.h) */
    int64_t head_rows;         /* of that tensor: rows of a head that follow each other; 0: all */
    enum dt_role role;
    int layer; /* 0 .. L-1; -1 before the first block, L after the last */
    int bucket;
    int number;       /* in the table of the whole model */
    bool copy;        /* of the token embedding, as tied head of the last pipeline stage */
    int rank;         /* 1 or 2 dimensions */
    int64_t shape[2]; /* of the shard held here; shape[1] is 1 for vectors */
    int64_t full[2];  /* of the whole tensor, as in the file */
    enum dt_tensor_split split;
    int axis;                  /* that is split: 0 rows, 1 columns */
    struct dt_range ranges[3]; /* of that axis, held here; the whole axis if it is not split */
    int range_count;
    struct dt_range holders; /* TP ranks that hold the same elements */
    bool leads;              /* this rank is the first of them, which counts and writes them */
    bool partial;            /* each holder computes a partial sum of the gradient */
    int64_t partial_offset;  /* among the partial sums of the bucket */
    int partial_parts;       /* of the rows; added after the sums of the ranks */
    bool transposed;         /* stored as output x input */
    bool decay;              /* subject to weight decay: matrices */
    enum dt_init init;
    float init_std; /* standard deviation; DT_INIT_UNIFORM: the largest value */
    int64_t offset; /* in a flat arena, in elements; a multiple of 16 */
    int64_t count;
};

/* Floats of partial gradients in a bucket: those summed over all TP ranks, followed by those summed
 * over the holders of the same keys and values. */
struct dt_partials {
    int64_t of_all, of_holders;
};

struct dt_table {
    struct dt_param *params;
    int count, capacity;
    int64_t elements;          /* of a flat arena, padding included */
    int64_t gradient_elements; /* of gradients: these and the last bucket */
    int64_t parameters;        /* of the whole model, without padding */
    int bucket_count;
    int64_t *buckets;             /* bucket_count + 1 offsets in the arena */
    struct dt_partials *partials; /* one a bucket */
    bool has[DT_TABLE_ROLES];     /* the whole model has a tensor of that role */
    int *index;                   /* index[role * (L + 2) + layer + 1]: index in params, or -1 */
    int layers;                   /* L, of the whole model */
};

/* Bucket of a layer (-1 .. L). */
int dt_table_layer_bucket(int layer);
#define DT_TOKEN_BUCKET 0
/* Bucket of a tied head with a separate gradient. */
int dt_head_bucket(const struct dt_table *table);

/* part: what the rank holds, borrowed; NULL: the whole model. config is valid
 * (dt_model_config_check). Release with dt_table_release. */
void dt_table_init(struct dt_table *table, const struct dt_model_config *config,
                   const struct dt_model_part *part);
/* The parameters that are trained: all or, with config->lora, those of the adapter, which have the
 * buckets of their layers. Their names are peft's. */
void dt_table_init_trained(struct dt_table *table, const struct dt_model_config *config,
                           const struct dt_model_part *part);
void dt_table_release(struct dt_table *table);

/* Returns NULL if the table does not have the tensor. */
const struct dt_param *dt_table_find(const struct dt_table *table, enum dt_role role, int layer);

/* An arena in the order of a table, whose buckets may be at any address. */
struct dt_flat {
    enum dt_dtype dtype;
    void **buckets; /* NULL: not resident */
    float *partial; /* partial gradients (dt_param.partial) of the current bucket; NULL:
                     * in buckets, with the others */
};

/* Sets the buckets of a whole arena at base. Release with dt_flat_release; may be called again
 * before that. */
void dt_flat_set(struct dt_flat *flat, const struct dt_table *table, enum dt_dtype dtype,
                 void *base);
void dt_flat_release(struct dt_flat *flat);

/* A tensor of the table as a view into an arena; vectors are 1 x C. All zero, with
 * data NULL, if the table does not have the tensor. */
struct dt_tensor dt_table_view(const struct dt_table *table, const struct dt_flat *flat,
                               enum dt_role role, int layer);

/* Elements of a tensor that are contiguous in the shard and in the whole tensor. */
struct dt_param_run {
    int64_t here, there; /* index of the first one in the shard, and in the whole */
    int64_t count;
};
/* The number of runs of a tensor, and run i, in ascending order. */
int64_t dt_param_runs(const struct dt_param *param);
struct dt_param_run dt_param_run(const struct dt_param *param, int64_t i);

/* Copies the shard of a flat arena of the whole model; both in host memory. */
void dt_table_shard(const struct dt_table *part, float *to, const struct dt_table *whole,
                    const float *from);

/* Writes the initial values of a flat arena in host memory: weights normal
 * with standard deviation initializer_range, those that write into the residual
 * stream divided by sqrt(2 L) (Radford et al. 2019); position embeddings of masked models
 * sinusoidal (Vaswani et al. 2017) with that deviation; A of adapters uniform up to
 * 1 / sqrt(inputs), as peft's, and B 0. A pure function of the seed and of the
 * indices of elements in the whole model, whatever the layout. */
void dt_table_initialize(const struct dt_table *table, uint64_t seed, float *parameters);

#endif
