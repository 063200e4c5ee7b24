/* SPDX-License-Identifier: MIT */
/*
 * Statistics of a model's layers in a step: RMS of hidden states, entropies of attention, dead
 * units of the MLP (never activated), logits, and the gradient noise scale. Measured from what each
 * rank computes, for any parallel layout, and equal between layouts up to rounding.
 *
 *     dt_layer_metrics_begin(&metrics, samples);
 *     forward and backward, whose hook adds
 *     DT_TRY(dt_layer_metrics_end(&metrics, comm, err));
 *
 * A micro-batch that is computed again only to take part in collective calls (data-parallel.h)
 * counts once. L = layers, H = heads.
 */
#ifndef DT_TRAIN_LAYER_METRICS_H
#define DT_TRAIN_LAYER_METRICS_H

#include "model/forward-backward.h"
#include "settings/choices.h"

struct dt_layer_metrics {
    unsigned wanted; /* bits 1 << enum dt_layer_metric; 0: none */
    struct dt_model *model;
    const bool *padding;       /* backward computes a micro-batch again; NULL: never */
    int64_t sequences, length; /* of a micro-batch */
    int64_t batches;           /* the most micro-batches of a step */
    struct dt_trace_hook hook;
    uint64_t samples; /* sequences before the step */
    bool active;      /* between begin and end */
    double *sums;     /* layer-metrics.c */
    size_t sum_count;
    unsigned char *units;  /* L x intermediate_size: activated by a token */
    bool *seen;            /* of each layer and micro-batch */
    struct dt_arena arena; /* of rows: fp32, to read tensors of any type and stride */
    float *rows, *host;
};

/* A micro-batch has sequences x length tokens. model and padding are borrowed. */
int dt_layer_metrics_init(struct dt_layer_metrics *metrics, unsigned wanted, struct dt_model *model,
                          int64_t sequences, int64_t length, int64_t batches, const bool *padding,
                          struct dt_error *err) DT_MUST_CHECK;
void dt_layer_metrics_release(struct dt_layer_metrics *metrics); /* also of zeros */

/* Adds the hook to the model's trace, which the caller ends. samples: sequences before the step. */
void dt_layer_metrics_begin(struct dt_layer_metrics *metrics, uint64_t samples);
/* Adds squares of the gradients of one of the step's micro-batches, of this rank's tensors. */
void dt_layer_metrics_add_gradient(struct dt_layer_metrics *metrics, double squares);
/* Sums over the ranks. Collective: all ranks of comm. */
int dt_layer_metrics_end(struct dt_layer_metrics *metrics, struct dt_comm *comm,
                         struct dt_error *err) DT_MUST_CHECK;

/* After the end. NAN: not measured. Of hidden states of a layer, 0 .. L; see enum dt_trace_point.
 */
double dt_layer_metrics_rms(const struct dt_layer_metrics *metrics, int layer,
                            enum dt_trace_point point);
/* Mean entropy of attention's weights in nats, before dropout; head -1: of all heads. */
double dt_layer_metrics_entropy(const struct dt_layer_metrics *metrics, int layer, int head);
/* Fraction of dead units of the MLP: the input of the activation was above 0 for no token. */
double dt_layer_metrics_dead_units(const struct dt_layer_metrics *metrics, int layer);
/* RMS of the logits of the tokens with a target, and the largest magnitude. */
double dt_layer_metrics_logit_rms(const struct dt_layer_metrics *metrics);
double dt_layer_metrics_logit_max(const struct dt_layer_metrics *metrics);

/* McCandlish et al. 2018, appendix A.1: unbiased estimates of one step from the gradient of the
 * whole batch and those of single micro-batches. */
struct dt_gradient_noise {
    double signal; /* |G|^2: square of the norm of the true gradient */
    double noise;  /* tr(S): variance of the gradient of one token, summed over its elements */
};
/* norm: of the mean gradient of n micro-batches of that number of tokens; factor: gradients divided
 * by it are those of the mean loss; ranks: data-parallel ones, of which each has added one
 * micro-batch. NAN if n is 1. */
struct dt_gradient_noise dt_layer_metrics_noise(const struct dt_layer_metrics *metrics, double norm,
                                                double factor, int64_t n, double tokens, int ranks);

#endif
