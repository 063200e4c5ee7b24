/* SPDX-License-Identifier: MIT */
/*
 * The tensor table: every tensor that a rank holds of a model, in a fixed order.
 *
 * Names are Hugging Face's. The order is the order of computation, layer by
 * layer, and gives each tensor its place in a flat arena, so that parameters,
 * gradients and optimizer moments are arrays of dt_table.elements floats cut
 * at the same offsets. Initialisation, optimizer, checkpoints and tests walk
 * this table and know nothing else of the model's inside.
 *
 * The arena is cut into buckets, which are brought, summed and put away as one:
 * the token embedding; what else stands before the blocks; a bucket for each layer;
 * what stands behind the blocks; and the head that is the token embedding, where it
 * lies apart from it (model-part.h).
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

/* How a tensor is cut into slices: a linear map along its outputs or its inputs. */
enum dt_split { DT_SPLIT_NONE, DT_SPLIT_COLUMN, DT_SPLIT_ROW };

enum dt_init { DT_INIT_ZERO, DT_INIT_ONE, DT_INIT_NORMAL, DT_INIT_SINUSOIDAL };

struct dt_param {
    char name[64];
    enum dt_role role;
    int layer; /* 0 .. L-1; -1 before the first block, L behind the last */
    int bucket;
    int number;       /* in the table of the whole model */
    bool copy;        /* of a tensor that another stage holds: the token embedding, as head */
    int rank;         /* 1 or 2 dimensions */
    int64_t shape[2]; /* of what lies here; shape[1] is 1 for vectors */
    int64_t full[2];  /* as in the file */
    enum dt_split split;
    int axis;                  /* that is cut: 0 rows, 1 columns */
    struct dt_range ranges[3]; /* of that axis: what lies here, in its order; all where it is
                                * not cut */
    int range_count;
    struct dt_range holders; /* the slices where the same elements lie */
    bool leads;              /* the first of these is here: it counts and writes them */
    bool partial;            /* each holder computes a part of the gradient: their sum is it */
    int64_t partial_offset;  /* of this part among those of the bucket */
    bool transposed;         /* a linear map's matrix that lies as output x input */
    bool decay;              /* subject to weight decay: matrices */
    enum dt_init init;
    float init_std;
    int64_t offset; /* in a flat arena, in elements; a multiple of 16 */
    int64_t count;
};

/* Parts of gradients in a bucket, in floats: those that all slices add up, and behind them
 * those of the holders of the same keys and values. */
struct dt_partials {
    int64_t of_all, of_holders;
};

struct dt_table {
    struct dt_param *params;
    int count;
    int64_t elements;          /* of a flat arena, padding included */
    int64_t gradient_elements; /* of gradients: these, and the bucket of a head apart */
    int64_t parameters;        /* of the whole model, without padding */
    int bucket_count;
    int64_t *buckets;             /* bucket_count + 1: where each begins in the arena */
    struct dt_partials *partials; /* one a bucket */
    bool has[DT_ROLE_COUNT];      /* the whole model has a tensor of that role */
    int *index;                   /* index[role * (L + 2) + layer + 1]: place in params, or -1 */
    int layers;                   /* L, of the whole model */
};

/* Bucket of what a layer (-1 .. L) has; the token embedding is bucket 0. */
int dt_table_layer_bucket(int layer);
#define DT_TOKEN_BUCKET 0
/* That of a head apart. */
int dt_head_bucket(const struct dt_table *table);

/* Of the part that a rank holds, borrowed; NULL: the whole model. Free with
 * dt_table_release. config has been checked. */
void dt_table_init(struct dt_table *table, const struct dt_model_config *config,
                   const struct dt_model_part *part);
void dt_table_release(struct dt_table *table);

/* NULL if the table has no such tensor. */
const struct dt_param *dt_table_find(const struct dt_table *table, enum dt_role role, int layer);

/* An arena in the order of a table whose buckets may lie anywhere. */
struct dt_flat {
    enum dt_dtype dtype;
    void **buckets; /* where each lies; NULL: it is not at hand */
    float *partial; /* where parts of gradients (dt_param.partial) are put together, those of
                     * the bucket in use; NULL: with the others */
};

/* Of a whole arena at base. Release with dt_flat_release; may be set again without. */
void dt_flat_set(struct dt_flat *flat, const struct dt_table *table, enum dt_dtype dtype,
                 void *base);
void dt_flat_release(struct dt_flat *flat);

/* A tensor of the table as a view into an arena; vectors are 1 x C. All zero, data
 * NULL, if the table has no such tensor. */
struct dt_tensor dt_table_view(const struct dt_table *table, const struct dt_flat *flat,
                               enum dt_role role, int layer);

/* Elements of a tensor that lie side by side here as in the file. */
struct dt_param_run {
    int64_t here, there; /* the first one's number in either */
    int64_t count;
};
/* Runs that make up a tensor, and number i of them, in the order of both. */
int64_t dt_param_runs(const struct dt_param *param);
struct dt_param_run dt_param_run(const struct dt_param *param, int64_t i);

/* A flat arena of a part of a model, from that of the whole; both in host memory. */
void dt_table_shard(const struct dt_table *part, float *to, const struct dt_table *whole,
                    const float *from);

/* Writes the initial values of a flat arena in host memory: weights normal
 * with standard deviation initializer_range, those that write into the residual
 * stream divided by sqrt(2 L) (Radford et al. 2019); positions of masked models as
 * waves (Vaswani et al. 2017) of that deviation. A pure function of the seed, and of the
 * places of elements in the whole model. */
void dt_table_initialize(const struct dt_table *table, uint64_t seed, float *parameters);

#endif
