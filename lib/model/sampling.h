/* SPDX-License-Identifier: MIT */
/* Sampling of the next token from logits. */
#ifndef DT_MODEL_SAMPLING_H
#define DT_MODEL_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_sampling {
    double temperature; /* 0: always the most probable token */
    long top_k;         /* only the k most probable tokens; 0: all */
    double top_p;       /* only the smallest set of most probable tokens whose
                         * probabilities reach p (Holtzman et al. 2020); 1: all */
    double min_p;       /* only tokens at least min_p times as probable as the most
                         * probable one (Nguyen et al. 2024); 0: all */
};

struct dt_sampler;

/* vocab_size: the number of logits. */
struct dt_sampler *dt_sampler_new(const struct dt_sampling *how, uint32_t vocab_size);
/* uniform: a random number in [0, 1). Equal logits rank by id, so that the
 * result depends on the arguments only. */
uint32_t dt_sampler_choose(struct dt_sampler *sampler, const float *logits, double uniform);
/* Makes the tokens in ids less probable (Keskar et al. 2019): positive logits are
 * divided by penalty, others multiplied; once per token, even if ids repeats it.
 * seen: for each token whether it was penalized; updated. */
void dt_sampling_penalize_repetition(float *logits, bool *seen, const uint32_t *ids, size_t count,
                                     double penalty);
void dt_sampler_free(struct dt_sampler *sampler); /* NULL is fine */

#endif
