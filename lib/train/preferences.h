/* SPDX-License-Identifier: MIT */
/*
 * Training on preferences (prefer/pairs.h): the log-probabilities that the reference model gives to
 * the answers are computed once, before the first step, and kept in RUN/reference.bin for the runs
 * that go on from it. In each step the pass asks for the weights of its tokens' gradients
 * (struct dt_token_weights), which follow from the losses of a pair's tokens.
 */
#ifndef DT_TRAIN_PREFERENCES_H
#define DT_TRAIN_PREFERENCES_H

#include "model/forward-backward.h"
#include "parallel/mesh.h"
#include "prefer/pair-loss.h"
#include "shard/dataset.h"

/* Means over the pairs of a step, for metrics.jsonl; names in the same order. */
enum dt_preference_metric {
    DT_PREFERENCE_REWARD_CHOSEN,
    DT_PREFERENCE_REWARD_REJECTED,
    DT_PREFERENCE_REWARD_MARGIN,
    DT_PREFERENCE_REWARD_ACCURACY, /* fraction of pairs whose chosen reward is the higher one */
    DT_PREFERENCE_LOG_PROBABILITY_CHOSEN,
    DT_PREFERENCE_LOG_PROBABILITY_REJECTED,
    DT_PREFERENCE_METRICS
};
extern const char *const dt_preference_metric_names[];

/* The pairs of a data set, and what the reference model gives to them. */
struct dt_reference_pairs {
    double *log_probabilities; /* of the chosen and the rejected answer of each pair */
    uint64_t count;
};

enum dt_pair_split { DT_PAIR_SPLIT_TRAIN, DT_PAIR_SPLIT_VALIDATION, DT_PAIR_SPLITS };

struct dt_preferences {
    struct dt_pair_loss loss;
    struct dt_reference_pairs pairs[DT_PAIR_SPLITS];
    struct dt_dataset *data; /* of the training split, and the order of its samples; borrowed */
    struct dt_sample_order order;
    uint32_t row;        /* length of its samples */
    const bool *padding; /* the pass is only a part of collective calls */
    struct dt_exact_sum sums[DT_PREFERENCE_METRICS]; /* of the step, without padding */
    struct dt_token_weights weights;
};

/* What is to be computed, or read. */
struct dt_reference_source {
    const char *model; /* directory of the reference model; NULL: the file has been written */
    const char *run;   /* with the file; NULL: none is written */
    struct dt_device *device;
    enum dt_dtype compute;
    struct dt_comm *comm;                    /* all ranks, each of which scores some pairs */
    struct dt_dataset *data[DT_PAIR_SPLITS]; /* NULL: none */
    uint32_t length;                         /* T */
    const struct dt_model_config *config;    /* of the model that is trained */
};

/* Reads or computes the log-probabilities of the reference. DT_EINVALID if the file is of another
 * model, or of other data. Collective. Release with dt_preferences_release. */
int dt_preferences_open(struct dt_preferences *p, const struct dt_settings *settings,
                        const struct dt_reference_source *source,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_preferences_release(struct dt_preferences *p);

/* Replaces the losses of the tokens of a batch of pairs by those of the pairs: each is at its
 * chosen answer's first token with loss, and the others are 0. weights, unless NULL: of their
 * gradients. sums, unless NULL: adds to the metrics. indices: of the pairs. */
void dt_preferences_judge(const struct dt_preferences *p, const struct dt_reference_pairs *pairs,
                          const uint64_t *indices, const struct dt_batch *batch, float *losses,
                          float *weights, struct dt_exact_sum *sums);

/* Sums the metrics of a step over the ranks; means[i] is that of count pairs. Begins the next. */
int dt_preferences_means(struct dt_preferences *p, const struct dt_mesh *mesh, double count,
                         double means[DT_PREFERENCE_METRICS], struct dt_error *err) DT_MUST_CHECK;

#endif
