/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* StableLM (Bellagente et al. 2024): Llama with LayerNorm and RoPE of some channels. */
static const struct dt_tensor_spec stablelm_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "model.embed_tokens.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.input_layernorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_NORM1_BIAS, DT_TENSOR_SITE_BLOCK, "model.layers.%d.input_layernorm.bias",
     DT_DIMENSION_WIDTH},
    LLAMA_QKV,
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.o_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_QUERIES, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL},
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.post_attention_layernorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_NORM2_BIAS, DT_TENSOR_SITE_BLOCK, "model.layers.%d.post_attention_layernorm.bias",
     DT_DIMENSION_WIDTH},
    LLAMA_MLP,
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "model.norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_FINAL_NORM_BIAS, DT_TENSOR_SITE_AFTER, "model.norm.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_HEAD_WEIGHT, DT_TENSOR_SITE_AFTER, "lm_head.weight", DT_DIMENSION_VOCABULARY,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    SCORE_HEAD,
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_member_spec stablelm_members[] = {
    {"vocab_size", AT(vocab_size), DT_MEMBER_REQUIRED},
    {"max_position_embeddings", AT(max_seq_len), DT_MEMBER_REQUIRED},
    {"hidden_size", AT(hidden_size), DT_MEMBER_REQUIRED},
    {"num_hidden_layers", AT(num_layers), DT_MEMBER_REQUIRED},
    {"num_attention_heads", AT(num_heads), DT_MEMBER_REQUIRED},
    {"num_key_value_heads", AT(num_kv_heads), DT_MEMBER_OPTIONAL, DT_MEMBER_INT, 32},
    {"intermediate_size", AT(intermediate_size), DT_MEMBER_REQUIRED},
    EPSILON("layer_norm_eps", 1e-5),
    THETA("rope_theta", DT_ROPE_THETA),
    {"partial_rotary_factor", AT(rotary_dim), DT_MEMBER_OPTIONAL, DT_MEMBER_SHARE, 0.25},
    {"use_qkv_bias", AT(attention_bias), DT_MEMBER_OPTIONAL, DT_MEMBER_BIAS},
    RATE("attention_dropout", attention_dropout, 0),
    {NULL},
};

static const struct dt_fixed_spec stablelm_fixed[] = {
    {"hidden_act", "\"silu\"", .written = true},
    {"hidden_dropout", "0.0"},          /* of the MLP only */
    {"qk_layernorm", "false"},          /* LayerNorm with weights of each head */
    {"use_parallel_residual", "false"}, /* one norm for attention and MLP */
    {NULL},
};

static const struct dt_family_json stablelm_json = {
    .architecture = "StableLmForCausalLM",
    .classifier = "StableLmForSequenceClassification",
    .members = stablelm_members,
    .fixed = stablelm_fixed,
    .attention_biases = ONLY(DT_ATTENTION_BIAS_NONE) | ONLY(DT_ATTENTION_BIAS_QKV),
    .scalings = ALL_SCALINGS,
    .scaling_name = "rope_type",
};

#define stablelm_extras dt_llama_extras
FAMILY(stablelm, LAYER, PRE, SWIGLU, ROPE, CAUSAL, CONFIGURED, GROUPED, OPTIONAL, CONFIGURED, 1e-5,
       .other_dropout = true);
