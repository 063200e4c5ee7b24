/* SPDX-License-Identifier: MIT */
/*
 * The weights that passes read, where ranks share out parameters (zero_stage 1 to 3).
 *
 * A rank keeps parameters, fp32, of its own blocks of each bucket alone. At stages 1 and 2
 * it has the weights of all in the compute type: after an update ranks gather them, bucket
 * by bucket, and a pass waits for a bucket when it enters it. At stage 3 a bucket is
 * gathered when a pass enters it, the next layer's meanwhile, and stays until another
 * needs its slot.
 */
#ifndef DT_PARALLEL_PARAMETER_GATHER_H
#define DT_PARALLEL_PARAMETER_GATHER_H

#include "model/model.h"
#include "parallel/data-parallel.h"

struct dt_bucket_weights; /* of one bucket */

struct dt_parameter_gather {
    struct dt_model *model; /* borrowed, as are these */
    const struct dt_data_parallel *parallel;
    const struct dt_range *kept;
    float **parameters; /* of each bucket, what is kept */
    struct dt_bucket_weights *buckets;
    void *whole;                  /* stages 1 and 2: all, in the compute type */
    struct dt_bucket_slots slots; /* stage 3 */
    int failed;                   /* code of the first failure */
    struct dt_error error;
};

void dt_parameter_gather_init(struct dt_parameter_gather *weights, struct dt_model *model,
                              const struct dt_data_parallel *parallel, const struct dt_range *kept,
                              float **parameters);
void dt_parameter_gather_layout(struct dt_parameter_gather *weights, struct dt_arena *arena);
void dt_parameter_gather_release(struct dt_parameter_gather *weights);

/* The parameters have changed: weights are to be theirs. */
void dt_parameter_gather_publish(struct dt_parameter_gather *weights);
/* Around the use of a bucket; backward: the layer before it is next. */
void dt_parameter_gather_enter(struct dt_parameter_gather *weights, int bucket, bool backward);
/* Waits for all that is under way, and reports what has failed. */
int dt_parameter_gather_wait(struct dt_parameter_gather *weights,
                             struct dt_error *err) DT_MUST_CHECK;

#endif
