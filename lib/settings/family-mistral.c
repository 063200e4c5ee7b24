/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* Mistral (Jiang et al. 2023). */
static const struct dt_member_spec mistral_members[] = {
    LLAMA_SIZES(8, 0),
    EPSILON("rms_norm_eps", 1e-6),
    THETA("rope_theta", DT_ROPE_THETA),
    RATE("attention_dropout", attention_dropout, 0),
    {"sliding_window", AT(sliding_window), DT_MEMBER_NULLABLE, DT_MEMBER_INT, 4096},
    {NULL},
};

static const struct dt_fixed_spec mistral_fixed[] = {
    {"hidden_act", "\"silu\"", .written = true},
    {NULL},
};

static const struct dt_family_json mistral_json = {
    .architecture = "MistralForCausalLM",
    .classifier = "MistralForSequenceClassification",
    .members = mistral_members,
    .fixed = mistral_fixed,
    .local_layers = DT_LOCAL_LAYERS_ALL,
    .attention_biases = ONLY(DT_ATTENTION_BIAS_NONE),
    .scalings = ALL_SCALINGS,
    .scaling_name = "rope_type",
};

#define mistral_tensors dt_llama_tensors
#define mistral_extras  dt_llama_extras
FAMILY(mistral, RMS, PRE, SWIGLU, ROPE, CAUSAL, CONFIGURED, GROUPED, OPTIONAL, CONFIGURED, 1e-5,
       .qk_norm = DT_QK_NORM_NONE);
