/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* Qwen2 and Qwen2.5 (Yang et al. 2024): biases of queries, keys and values. */
static const struct dt_member_spec qwen2_members[] = {
    LLAMA_SIZES(32, 0),
    EPSILON("rms_norm_eps", 1e-6),
    THETA("rope_theta", DT_ROPE_THETA),
    RATE("attention_dropout", attention_dropout, 0),
    {"sliding_window", AT(sliding_window), DT_MEMBER_NULLABLE, DT_MEMBER_INT, 4096},
    {NULL},
};

static const struct dt_fixed_spec qwen2_fixed[] = {
    {"hidden_act", "\"silu\"", .written = true},
    {NULL},
};

static const struct dt_family_json qwen2_json = {
    .architecture = "Qwen2ForCausalLM",
    .classifier = "Qwen2ForSequenceClassification",
    .members = qwen2_members,
    .fixed = qwen2_fixed,
    .local_layers = DT_LOCAL_LAYERS_UPPER,
    .attention_biases = ONLY(DT_ATTENTION_BIAS_QKV),
    .scalings = ALL_SCALINGS,
    .scaling_name = "rope_type",
};

#define qwen2_tensors dt_llama_tensors
#define qwen2_extras  dt_llama_extras
FAMILY(qwen2, RMS, PRE, SWIGLU, ROPE, CAUSAL, CONFIGURED, GROUPED, OPTIONAL, CONFIGURED, 1e-5,
       .qk_norm = DT_QK_NORM_NONE);
