/* SPDX-License-Identifier: MIT */
/*
 * Sums of gradients that cost fewer bytes than they have, at a loss of precision.
 *
 *     bf16      what ranks send each other, parts and sums, is rounded to bf16
 *     topk      a rank sends the numbers of largest magnitude of each bucket alone, with
 *               their places (Aji and Heafield 2017)
 *     powersgd  a matrix is sent as the product of two thin ones, found by one step of the
 *               power method from those of the step before (Vogels et al. 2019)
 *
 * What topk and powersgd leave out is added to the next step's gradients (error feedback);
 * checkpoints have it (checkpoint/error-feedback.h). Where a gradient is no number, so is the sum,
 * and what was left out stays as it was. All ranks have the same sum, bit for bit.
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
    double share;  /* of the numbers, with topk */
    int64_t rank;  /* of products, with powersgd */
    float *errors; /* a flat arena: what was left out */
    float *thin;   /* of every matrix, its second factor */
    int64_t thin_elements;
    /* Of the largest bucket, */
    uint16_t *rounded, *received; /* bf16: what is sent; parts that come, */
    float *sum;                   /* and their sum */
    int32_t *places;              /* topk: of the numbers of all ranks, rank by rank, */
    float *largest;               /* and they */
    float *packed;                /* powersgd: first factors and vectors */
};

/* staging: of the ranks whose gradients are added up. */
void dt_compression_init(struct dt_compression *compression, struct dt_host_staging *staging,
                         const struct dt_table *table, const struct dt_settings *settings);
void dt_compression_layout(struct dt_compression *compression, struct dt_arena *arena);
/* Elements of the second factor of a tensor: rank x columns of a matrix with powersgd, or 0.
 * They lie in thin in the order of the table. */
int64_t dt_compression_thin(const struct dt_compression *compression, const struct dt_param *p);

/* The next gradients count so many times what those before did: so does what is owed of them. */
void dt_compression_rescale(struct dt_compression *compression, double factor);

/* The gradients of a bucket become the sum of all ranks'. */
int dt_compression_sum(struct dt_compression *compression, int bucket, float *gradients,
                       struct dt_error *err) DT_MUST_CHECK;

#endif
