/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* Llama (Touvron et al. 2023); with norms of queries and keys, Qwen3 (Yang et al. 2025). */
const struct dt_tensor_spec dt_llama_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "model.embed_tokens.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.input_layernorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_Q_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_proj.weight",
     DT_DIMENSION_QUERIES, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_K_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_proj.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_V_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.v_proj.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_Q_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_norm.weight",
     DT_DIMENSION_HEAD, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_K_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_norm.weight",
     DT_DIMENSION_HEAD, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.o_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_QUERIES, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL},
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.post_attention_layernorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_GATE_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.gate_proj.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_UP_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.up_proj.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_DOWN_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.down_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_INNER, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL},
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "model.norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_HEAD_WEIGHT, DT_TENSOR_SITE_AFTER, "lm_head.weight", DT_DIMENSION_VOCABULARY,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {.site = DT_TENSOR_SITE_END},
};

const struct dt_extra_spec dt_llama_extras[] = {
    {"lm_head.weight", DT_EXTRA_SAME, DT_ROLE_TOKEN_EMBEDDING},
    {".rotary_emb.inv_freq", DT_EXTRA_FREQUENCIES, DT_ROLE_NONE},
    {NULL},
};

static const struct dt_dialect_spec llama_dialects[] = {
    {"llama", "LlamaForCausalLM", false, 0},
    {"qwen3", "Qwen3ForCausalLM", true, 128},
    {NULL},
};

const struct dt_member_spec dt_llama_members[] = {
    {"vocab_size", AT(vocab_size), DT_MEMBER_REQUIRED},
    {"max_position_embeddings", AT(max_seq_len), DT_MEMBER_REQUIRED},
    {"hidden_size", AT(hidden_size), DT_MEMBER_REQUIRED},
    {"num_hidden_layers", AT(num_layers), DT_MEMBER_REQUIRED},
    {"num_attention_heads", AT(num_heads), DT_MEMBER_REQUIRED},
    {"num_key_value_heads", AT(num_kv_heads), DT_MEMBER_OPTIONAL},
    {"intermediate_size", AT(intermediate_size), DT_MEMBER_REQUIRED},
    {NULL},
};

static const struct dt_fixed_spec llama_fixed[] = {
    {"attention_bias", false, .otherwise = false},
    {"mlp_bias", false, .otherwise = false},
    {"use_sliding_window", false, .otherwise = false},
    {NULL},
};

const struct dt_rate_spec dt_llama_rates[] = {
    {"attention_dropout", AT(attention_dropout), 0},
    {NULL},
};

#define llama_tensors dt_llama_tensors
#define llama_extras  dt_llama_extras
#define llama_members dt_llama_members
#define llama_rates   dt_llama_rates
JSON(llama, "hidden_act", "silu", "rms_norm_eps", 1e-6, false);

static const struct dt_family_gguf llama_gguf = {"llama", "attention.layer_norm_rms_epsilon", true};

FAMILY(llama, RMS, PRE, SWIGLU, ROPE, CAUSAL, NONE, GROUPED, OPTIONAL, CONFIGURED, 1e-5,
       &llama_gguf);
