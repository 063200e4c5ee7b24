/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* Qwen3 (Yang et al. 2025): norms of each head of queries and keys. */
static const struct dt_member_spec qwen3_members[] = {
    LLAMA_SIZES(32, 128),
    EPSILON("rms_norm_eps", 1e-6),
    THETA("rope_theta", DT_ROPE_THETA),
    RATE("attention_dropout", attention_dropout, 0),
    ATTENTION_BIAS,
    {"sliding_window", AT(sliding_window), DT_MEMBER_NULLABLE, DT_MEMBER_INT, 4096},
    {NULL},
};

static const struct dt_fixed_spec qwen3_fixed[] = {
    {"hidden_act", "\"silu\"", .written = true},
    {NULL},
};

static const struct dt_family_json qwen3_json = {
    .architecture = "Qwen3ForCausalLM",
    .classifier = "Qwen3ForSequenceClassification",
    .members = qwen3_members,
    .fixed = qwen3_fixed,
    .local_layers = DT_LOCAL_LAYERS_UPPER,
    .attention_biases = CONFIGURED_BIASES,
    .scalings = ALL_SCALINGS,
    .scaling_name = "rope_type",
};

#define qwen3_tensors dt_llama_tensors
#define qwen3_extras  dt_llama_extras
FAMILY(qwen3, RMS, PRE, SWIGLU, ROPE, CAUSAL, CONFIGURED, GROUPED, OPTIONAL, CONFIGURED, 1e-5,
       .qk_norm = DT_QK_NORM_ALWAYS);
