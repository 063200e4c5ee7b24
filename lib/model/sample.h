/* SPDX-License-Identifier: MIT */
/* Choosing the next token from logits. */
#ifndef DT_MODEL_SAMPLE_H
#define DT_MODEL_SAMPLE_H

#include <stdint.h>

struct dt_sampling {
    double temperature; /* 0: always the most probable token */
    long top_k;         /* only the k most probable tokens; 0: all */
    double top_p;       /* only the smallest set of most probable tokens whose
                         * probabilities reach p (Holtzman et al. 2020); 1: all */
};

struct dt_sampler;

/* vocab_size: how many logits there will be. */
struct dt_sampler *dt_sampler_new(const struct dt_sampling *how, uint32_t vocab_size);
/* uniform: a random number in [0, 1). Equal logits rank by id, so that the
 * choice is a function of its arguments alone. */
uint32_t dt_sampler_choose(struct dt_sampler *sampler, const float *logits, double uniform);
void dt_sampler_free(struct dt_sampler *sampler); /* NULL is fine */

#endif
