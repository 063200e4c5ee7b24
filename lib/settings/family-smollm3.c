/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* SmolLM3 (Bakouch et al. 2025): some layers have no RoPE. */
static const struct dt_member_spec smollm3_members[] = {
    LLAMA_SIZES(4, 0),
    EPSILON("rms_norm_eps", 1e-6),
    THETA("rope_theta", 2e6),
    RATE("attention_dropout", attention_dropout, 0),
    ATTENTION_BIAS,
    MLP_BIAS,
    {"sliding_window", AT(sliding_window), DT_MEMBER_NULLABLE, DT_MEMBER_INT, 0},
    {NULL},
};

static const struct dt_fixed_spec smollm3_fixed[] = {
    {"hidden_act", "\"silu\"", .written = true},
    {NULL},
};

static const struct dt_family_json smollm3_json = {
    .architecture = "SmolLM3ForCausalLM",
    .classifier = "SmolLM3ForSequenceClassification",
    .tied = true,
    .members = smollm3_members,
    .fixed = smollm3_fixed,
    .local_layers = DT_LOCAL_LAYERS_SKIPPING,
    .attention_biases = CONFIGURED_BIASES,
    .scalings = ALL_SCALINGS,
    .scaling_name = "rope_type",
};

#define smollm3_tensors dt_llama_tensors
#define smollm3_extras  dt_llama_extras
FAMILY(smollm3, RMS, PRE, SWIGLU, ROPE, CAUSAL, CONFIGURED, GROUPED, OPTIONAL, CONFIGURED, 1e-5,
       .qk_norm = DT_QK_NORM_NONE);
