/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* OLMo 2 (Walsh et al. 2025). */
static const struct dt_tensor_spec olmo2_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "model.embed_tokens.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    LLAMA_QKV,
    {DT_ROLE_Q_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_norm.weight",
     DT_DIMENSION_QUERIES, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_K_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_norm.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.o_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_QUERIES, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_PROJECTION_BIAS, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.o_proj.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.post_attention_layernorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_GATE_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.gate_proj.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_UP_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.up_proj.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_DOWN_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.down_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_INNER, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "model.layers.%d.post_feedforward_layernorm.weight", DT_DIMENSION_WIDTH, DT_DIMENSION_ONE,
     DT_TENSOR_SCALE},
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "model.norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_HEAD_WEIGHT, DT_TENSOR_SITE_AFTER, "lm_head.weight", DT_DIMENSION_VOCABULARY,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_member_spec olmo2_members[] = {
    LLAMA_SIZES(0, 0),
    EPSILON("rms_norm_eps", 1e-5),
    THETA("rope_theta", DT_ROPE_THETA),
    RATE("attention_dropout", attention_dropout, 0),
    ATTENTION_BIAS,
    {NULL},
};

static const struct dt_fixed_spec olmo2_fixed[] = {
    {"hidden_act", "\"silu\"", .written = true},
    {NULL},
};

/* transformers checks that rope_scaling has just the members type and factor. */
static const struct dt_family_json olmo2_json = {
    .architecture = "Olmo2ForCausalLM",
    .members = olmo2_members,
    .fixed = olmo2_fixed,
    .attention_biases = CONFIGURED_BIASES,
    .scalings =
        ONLY(DT_ROPE_SCALING_NONE) | ONLY(DT_ROPE_SCALING_LINEAR) | ONLY(DT_ROPE_SCALING_DYNAMIC),
    .scaling_name = "type",
};

#define olmo2_extras dt_llama_extras
FAMILY(olmo2, RMS, OUTPUT, SWIGLU, ROPE, CAUSAL, CONFIGURED, GROUPED, OPTIONAL, CONFIGURED, 1e-5,
       .qk_norm = DT_QK_NORM_ALWAYS);
