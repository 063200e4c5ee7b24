/* SPDX-License-Identifier: MIT */
/*
 * Completions sampled by a model for training on them. The KV cache and the products are those of
 * dt-generate (model/decode.h), with the weights of the model itself: nothing is copied.
 *
 * Each token's loss (-log-probability, at the temperature) is computed as the training pass
 * computes it; on the cpu engine it has the same bits, but of adapters with dropout, which sampling
 * leaves out.
 */
#ifndef DT_PREFER_ROLLOUT_H
#define DT_PREFER_ROLLOUT_H

#include "model/model.h"
#include "token/tokenizer.h"

struct dt_rollout_options {
    long prompts, group; /* at most, of dt_rollout_run; completions of each */
    long length;         /* tokens of prompt and completion at most, less 1 */
    long max_new_tokens;
    double temperature;
    uint32_t vocabulary; /* tokens that may be sampled */
    uint32_t ends[2];    /* that end a completion, which includes them; DT_NO_TOKEN: none */
};

struct dt_completion {
    uint32_t *ids; /* max_new_tokens; owned by the rollout */
    float *losses;
    long count;
    bool ended; /* by one of the ends */
};

struct dt_rollout;
/* model: borrowed, of one device and not divided. */
int dt_rollout_new(struct dt_rollout **rollout, const struct dt_model *model,
                   const struct dt_rollout_options *how, struct dt_error *err) DT_MUST_CHECK;
/* The device memory of a rollout. */
size_t dt_rollout_bytes(const struct dt_model *model, const struct dt_rollout_options *how);
/* The group of prompt i begins at completion i * group of dt_rollout_completion. keys: of each
 * prompt's random numbers. DT_EFORMAT if a logit is not finite. */
int dt_rollout_run(struct dt_rollout *rollout, const struct dt_ids *const *prompts,
                   const uint64_t *keys, long count, struct dt_error *err) DT_MUST_CHECK;
const struct dt_completion *dt_rollout_completion(const struct dt_rollout *rollout, long i);
void dt_rollout_free(struct dt_rollout *rollout); /* NULL is fine */

#endif
