/* SPDX-License-Identifier: MIT */
/*
 * Compressed all-reduce of gradients (distributed.compress): fewer bytes, less precision.
 *
 *     bf16      values and partial sums are rounded to bf16 when they are sent
 *     topk      each rank sends the fraction of largest magnitude of each bucket, with indices
 *               (Aji and Heafield 2017)
 *     powersgd  a gradient matrix M, rows x columns, is sent as P' Q: rank x rows and
 *               rank x columns, from one step of the power method, which starts with the last
 *               step's Q (Vogels et al. 2019)
 *
 * topk and powersgd use error feedback: what was not sent stays in a residual, which is added to
 * the next step's gradients. Checkpoints store it (checkpoint/error-feedback.h). If any gradient is
 * not finite, the sum is not either. The residual of the step before is kept, since the update may
 * be skipped. All ranks get the same bits.
 */
#ifndef DT_PARALLEL_GRADIENT_COMPRESSION_H
#define DT_PARALLEL_GRADIENT_COMPRESSION_H

#include "device/arena.h"
#include "model/table.h"
#include "parallel/host-staging.h"
#include "settings/settings.h"

struct dt_compression {
    enum dt_compress kind;
    struct dt_host_staging *staging; /* borrowed, as are these */
    struct dt_comm *comm;
    struct dt_device *device;
    const struct dt_table *table;
    double fraction; /* topk: of the elements of a bucket */
    int64_t rank;    /* powersgd: of P and Q */
    float *residual; /* topk, powersgd: a flat arena; of this rank */
    float *q;        /* powersgd: Q of every matrix, in the order of the table */
    int64_t q_elements;
    float *kept; /* the residual and q before the step */
    /* Scratch for the largest bucket: */
    uint16_t *rounded, *received; /* bf16: this rank's values; the pieces of all ranks, */
    float *sum;                   /* and their sum */
    int32_t *indices;             /* topk: of all ranks, in order, */
    float *values;                /* and the values at these */
    float *packed;                /* powersgd: P of matrices, and tensors that are not compressed */
};

/* staging: of the ranks whose gradients are reduced. */
void dt_compression_init(struct dt_compression *compression, struct dt_host_staging *staging,
                         const struct dt_table *table, const struct dt_settings *settings);
void dt_compression_layout(struct dt_compression *compression, struct dt_arena *arena);
/* Elements of a tensor's Q: rank x columns of a matrix with powersgd; 0 without Q. */
int64_t dt_compression_q_elements(const struct dt_compression *compression,
                                  const struct dt_param *p);

/* Multiplies the residual: gradients are scaled by factor from now on, because the loss scale
 * changed. */
void dt_compression_rescale(struct dt_compression *compression, double factor);

/* Before a step's buckets are reduced; and after, if its update is skipped: the residual and q are
 * those of before. */
void dt_compression_begin(struct dt_compression *compression);
void dt_compression_undo(struct dt_compression *compression);

/* All-reduces a bucket's gradients in place. */
int dt_compression_all_reduce(struct dt_compression *compression, int bucket, float *gradients,
                              struct dt_error *err) DT_MUST_CHECK;

#endif
