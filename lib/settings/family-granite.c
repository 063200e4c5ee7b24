/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* Granite (IBM 2024): scales of embeddings, scores, residual branches and logits. */
static const struct dt_member_spec granite_members[] = {
    LLAMA_SIZES(0, 0),
    EPSILON("rms_norm_eps", 1e-6),
    THETA("rope_theta", DT_ROPE_THETA),
    RATE("attention_dropout", attention_dropout, 0),
    ATTENTION_BIAS,
    MLP_BIAS,
    {"embedding_multiplier", AT(embedding_scale), DT_MEMBER_OPTIONAL, DT_MEMBER_POSITIVE, 1},
    {"attention_multiplier", AT(attention_scale), DT_MEMBER_OPTIONAL, DT_MEMBER_POSITIVE, 1},
    {"residual_multiplier", AT(residual_scale), DT_MEMBER_OPTIONAL, DT_MEMBER_POSITIVE, 1},
    {"logits_scaling", AT(logit_scale), DT_MEMBER_OPTIONAL, DT_MEMBER_INVERSE, 1},
    {NULL},
};

static const struct dt_fixed_spec granite_fixed[] = {
    {"hidden_act", "\"silu\"", .written = true},
    {NULL},
};

static const struct dt_family_json granite_json = {
    .architecture = "GraniteForCausalLM",
    .members = granite_members,
    .fixed = granite_fixed,
    .attention_biases = CONFIGURED_BIASES,
    .scalings = ALL_SCALINGS,
    .scaling_name = "rope_type",
};

#define granite_tensors dt_llama_tensors
#define granite_extras  dt_llama_extras
FAMILY(granite, RMS, PRE, SWIGLU, ROPE, CAUSAL, CONFIGURED, GROUPED, OPTIONAL, CONFIGURED, 1e-5,
       .embedding_scale = DT_EMBEDDING_SCALE_CONFIGURED);
