/* SPDX-License-Identifier: MIT */
/*
 * Training on rewards (GRPO): in each step the model completes the prompts of its micro-batches, a
 * program rewards the completions, and the pass weighs their tokens (struct dt_token_weights).
 *
 *     prompts --rollout--> completions --program--> rewards, advantages
 *                               |                        |
 *                               +--> batch --forward--> losses --> weights --> backward
 */
#ifndef DT_TRAIN_GROUPS_H
#define DT_TRAIN_GROUPS_H

#include "model/forward-backward.h"
#include "parallel/mesh.h"
#include "prefer/group-loss.h"
#include "prefer/prompts.h"
#include "prefer/reward.h"
#include "prefer/rollout.h"

/* Of a step, for metrics.jsonl; names in the same order. */
enum dt_group_metric {
    DT_GROUP_METRIC_REWARD,          /* mean over completions */
    DT_GROUP_METRIC_REWARD_STD,      /* mean over groups of the standard deviation */
    DT_GROUP_METRIC_TOKENS,          /* of a completion */
    DT_GROUP_METRIC_ENDED,           /* fraction of completions with an end */
    DT_GROUP_METRIC_RATIO_DEVIATION, /* mean over tokens of |ratio - 1| */
    DT_GROUP_METRIC_CLIPPED,         /* fraction of tokens */
    DT_GROUP_METRIC_KL,              /* mean over tokens, of the reference */
    DT_GROUP_METRICS
};
extern const char *const dt_group_metric_names[];

struct dt_groups {
    struct dt_group_loss loss;
    bool scale;
    long group, length;
    uint64_t seed;
    float temperature;
    const struct dt_tokenizer *tokenizer; /* borrowed */
    const struct dt_prompts *prompts;     /* borrowed */
    struct dt_rollout *rollout;
    struct dt_reward reward;
    struct dt_model *reference; /* with grpo.beta above 0 */
    struct dt_workspace *work;  /* of the reference */
    /* Of the current micro-batch: */
    float *sampled, *referred; /* losses of its tokens, under the sampler and the reference */
    double *rewards, *advantages;
    struct dt_buffer lines;
    const bool *padding;                        /* the pass is only a part of collective calls */
    struct dt_exact_sum sums[DT_GROUP_METRICS]; /* of the step, without padding */
    struct dt_token_weights weights;
};

struct dt_groups_source {
    const struct dt_model *model;
    const struct dt_prompts *prompts;
    const struct dt_tokenizer *tokenizer;
    uint32_t ends[2];      /* tokens that end completions */
    const char *reward;    /* command */
    const char *reference; /* model directory; used with grpo.beta above 0 */
};

/* Device memory of the sampler, with its KV cache, and of a reference model of the sizes of model,
 * which may be a plan. */
size_t dt_groups_bytes(const struct dt_model *model, const struct dt_settings *settings);
/* All pointers stay borrowed. Release with dt_groups_release, also after a failure. */
int dt_groups_open(struct dt_groups *groups, const struct dt_settings *settings,
                   const struct dt_groups_source *source, struct dt_error *err) DT_MUST_CHECK;
void dt_groups_release(struct dt_groups *groups);

/* Completes the prompts of a micro-batch, whose indices are numbers and whose first sample, over
 * all steps, is position; rewards them, and fills in the batch. *count: what its share of the loss
 * is divided by. */
int dt_groups_fill(struct dt_groups *groups, const uint64_t *numbers, uint64_t position, long count,
                   struct dt_batch *batch, int64_t *loss_count, struct dt_error *err) DT_MUST_CHECK;

/* Sums the metrics of a step of that many completions over the ranks. Begins the next. */
int dt_groups_means(struct dt_groups *groups, const struct dt_mesh *mesh, double completions,
                    double means[DT_GROUP_METRICS], struct dt_error *err) DT_MUST_CHECK;

#endif
