/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* OLMo 2 (Walsh et al. 2025). */
static const struct dt_tensor_spec olmo2_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "model.embed_tokens.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_Q_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_proj.weight",
     DT_DIMENSION_QUERIES, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_K_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_proj.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_V_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.v_proj.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_Q_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_norm.weight",
     DT_DIMENSION_QUERIES, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_K_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_norm.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.o_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_QUERIES, DT_TENSOR_TRANSPOSED},
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

static const struct dt_dialect_spec olmo2_dialects[] = {
    {"olmo2", "Olmo2ForCausalLM", true, 0},
    {NULL},
};

static const struct dt_fixed_spec olmo2_fixed[] = {
    {"attention_bias", false, .otherwise = false},
    {NULL},
};

#define olmo2_extras  dt_llama_extras
#define olmo2_members dt_llama_members
#define olmo2_rates   dt_llama_rates
JSON(olmo2, "hidden_act", "silu", "rms_norm_eps", 1e-5, false);

FAMILY(olmo2, RMS, OUTPUT, SWIGLU, ROPE, CAUSAL, NONE, GROUPED, OPTIONAL, CONFIGURED, 1e-5, NULL);
