/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* GPT-NeoX (Black et al. 2022) and Pythia: attention and MLP in parallel, and RoPE of some
 * channels. */
static const struct dt_tensor_spec gpt_neox_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "gpt_neox.embed_in.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.input_layernorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_NORM1_BIAS, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.input_layernorm.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_Q_WEIGHT, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.attention.query.weight",
     DT_DIMENSION_QUERIES, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED + DT_TENSOR_BY_HEAD,
     "gpt_neox.layers.%d.attention.query_key_value.weight"},
    {DT_ROLE_K_WEIGHT, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.attention.key.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED + DT_TENSOR_BY_HEAD,
     "gpt_neox.layers.%d.attention.query_key_value.weight"},
    {DT_ROLE_V_WEIGHT, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.attention.value.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED + DT_TENSOR_BY_HEAD,
     "gpt_neox.layers.%d.attention.query_key_value.weight"},
    {DT_ROLE_Q_BIAS, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.attention.query.bias",
     DT_DIMENSION_QUERIES, DT_DIMENSION_ONE, DT_TENSOR_BY_HEAD,
     "gpt_neox.layers.%d.attention.query_key_value.bias"},
    {DT_ROLE_K_BIAS, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.attention.key.bias",
     DT_DIMENSION_KEYS, DT_DIMENSION_ONE, DT_TENSOR_BY_HEAD,
     "gpt_neox.layers.%d.attention.query_key_value.bias"},
    {DT_ROLE_V_BIAS, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.attention.value.bias",
     DT_DIMENSION_KEYS, DT_DIMENSION_ONE, DT_TENSOR_BY_HEAD,
     "gpt_neox.layers.%d.attention.query_key_value.bias"},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.attention.dense.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_QUERIES, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL},
    {DT_ROLE_PROJECTION_BIAS, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.attention.dense.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "gpt_neox.layers.%d.post_attention_layernorm.weight", DT_DIMENSION_WIDTH, DT_DIMENSION_ONE,
     DT_TENSOR_SCALE},
    {DT_ROLE_NORM2_BIAS, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.post_attention_layernorm.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_UP_WEIGHT, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.mlp.dense_h_to_4h.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_UP_BIAS, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.mlp.dense_h_to_4h.bias",
     DT_DIMENSION_INNER},
    {DT_ROLE_DOWN_WEIGHT, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.mlp.dense_4h_to_h.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_INNER, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL},
    {DT_ROLE_DOWN_BIAS, DT_TENSOR_SITE_BLOCK, "gpt_neox.layers.%d.mlp.dense_4h_to_h.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "gpt_neox.final_layer_norm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_FINAL_NORM_BIAS, DT_TENSOR_SITE_AFTER, "gpt_neox.final_layer_norm.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_HEAD_WEIGHT, DT_TENSOR_SITE_AFTER, "embed_out.weight", DT_DIMENSION_VOCABULARY,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    SCORE_HEAD,
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_extra_spec gpt_neox_extras[] = {
    {"embed_out.weight", DT_EXTRA_SAME, DT_ROLE_TOKEN_EMBEDDING},
    {".attention.bias", DT_EXTRA_CAUSAL_MASK, DT_ROLE_NONE},
    {".attention.masked_bias", DT_EXTRA_MASKED_SCORE, DT_ROLE_NONE},
    {".rotary_emb.inv_freq", DT_EXTRA_FREQUENCIES, DT_ROLE_NONE},
    {NULL},
};

static const struct dt_member_spec gpt_neox_members[] = {
    {"vocab_size", AT(vocab_size), DT_MEMBER_REQUIRED},
    {"max_position_embeddings", AT(max_seq_len), DT_MEMBER_REQUIRED},
    {"hidden_size", AT(hidden_size), DT_MEMBER_REQUIRED},
    {"num_hidden_layers", AT(num_layers), DT_MEMBER_REQUIRED},
    {"num_attention_heads", AT(num_heads), DT_MEMBER_REQUIRED},
    {"intermediate_size", AT(intermediate_size), DT_MEMBER_REQUIRED},
    EPSILON("layer_norm_eps", 1e-5),
    THETA("rotary_emb_base", DT_ROPE_THETA),
    {"rope_theta", AT(rope_theta), DT_MEMBER_ALIAS, DT_MEMBER_POSITIVE},
    {"rotary_pct", AT(rotary_dim), DT_MEMBER_OPTIONAL, DT_MEMBER_SHARE, 0.25},
    {"partial_rotary_factor", AT(rotary_dim), DT_MEMBER_ALIAS, DT_MEMBER_SHARE},
    {"use_parallel_residual", AT(parallel_residual), DT_MEMBER_OPTIONAL, DT_MEMBER_TRUTH, true},
    RATE("hidden_dropout", dropout, 0),
    RATE("attention_dropout", attention_dropout, 0),
    GELU("hidden_act", EXACT),
    {NULL},
};

static const struct dt_fixed_spec gpt_neox_fixed[] = {
    {"attention_bias", "true"},
    {NULL},
};

static const struct dt_family_json gpt_neox_json = {
    .architecture = "GPTNeoXForCausalLM",
    .classifier = "GPTNeoXForSequenceClassification",
    .members = gpt_neox_members,
    .fixed = gpt_neox_fixed,
    .attention_biases = ONLY(DT_ATTENTION_BIAS_NONE),
    .scalings = ALL_SCALINGS,
    .scaling_name = "rope_type",
};

FAMILY(gpt_neox, LAYER, PRE, GELU_ERF, ROPE, CAUSAL, ALL, EQUAL, OPTIONAL, CONFIGURED, 1e-5,
       .qk_norm = DT_QK_NORM_NONE);
