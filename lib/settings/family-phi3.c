/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* Phi-3 (Abdin et al. 2024): Llama with fused tensors in files. */
static const struct dt_tensor_spec phi3_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "model.embed_tokens.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.input_layernorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_Q_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_proj.weight",
     DT_DIMENSION_QUERIES, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED,
     "model.layers.%d.self_attn.qkv_proj.weight"},
    {DT_ROLE_K_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_proj.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED,
     "model.layers.%d.self_attn.qkv_proj.weight"},
    {DT_ROLE_V_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.v_proj.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED,
     "model.layers.%d.self_attn.qkv_proj.weight"},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.o_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_QUERIES, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL},
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.post_attention_layernorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_GATE_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.gate_proj.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED,
     "model.layers.%d.mlp.gate_up_proj.weight"},
    {DT_ROLE_UP_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.up_proj.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED,
     "model.layers.%d.mlp.gate_up_proj.weight"},
    {DT_ROLE_DOWN_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.down_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_INNER, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL},
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "model.norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_HEAD_WEIGHT, DT_TENSOR_SITE_AFTER, "lm_head.weight", DT_DIMENSION_VOCABULARY,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    SCORE_HEAD,
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_member_spec phi3_members[] = {
    LLAMA_SIZES(0, 0),
    EPSILON("rms_norm_eps", 1e-5),
    THETA("rope_theta", DT_ROPE_THETA),
    {"partial_rotary_factor", AT(rotary_dim), DT_MEMBER_OPTIONAL, DT_MEMBER_SHARE, 1},
    RATE("attention_dropout", attention_dropout, 0),
    {"sliding_window", AT(sliding_window), DT_MEMBER_NULLABLE},
    {NULL},
};

static const struct dt_fixed_spec phi3_fixed[] = {
    {"hidden_act", "\"silu\"", .written = true},
    {"resid_pdrop", "0.0"}, /* embeddings are not dropped */
    {NULL},
};

/* Members of longrope, which other models may have too, and of models with other code. */
static const char *const phi3_ignored[] = {"auto_map", "embd_pdrop",
                                           "original_max_position_embeddings", NULL};

static const struct dt_family_json phi3_json = {
    .architecture = "Phi3ForCausalLM",
    .classifier = "Phi3ForSequenceClassification",
    .members = phi3_members,
    .fixed = phi3_fixed,
    .ignored = phi3_ignored,
    .local_layers = DT_LOCAL_LAYERS_ALL,
    .attention_biases = ONLY(DT_ATTENTION_BIAS_NONE),
    .scalings = ONLY(DT_ROPE_SCALING_NONE) | ONLY(DT_ROPE_SCALING_LONGROPE),
    .scaling_name = "type",
    .original_length = 4096,
};

#define phi3_extras dt_llama_extras
FAMILY(phi3, RMS, PRE, SWIGLU, ROPE, CAUSAL, NONE, GROUPED, OPTIONAL, CONFIGURED, 1e-5,
       .qk_norm = DT_QK_NORM_NONE, .other_dropout = true);
