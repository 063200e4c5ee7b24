/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* Llama (Touvron et al. 2023). Its rows are also those of Mistral, Qwen2, Qwen3, SmolLM3 and
 * Granite: rows that a configuration does not have are left out (dt_model_has_role). */
const struct dt_tensor_spec dt_llama_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "model.embed_tokens.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.input_layernorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    LLAMA_QKV,
    {DT_ROLE_Q_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_norm.weight",
     DT_DIMENSION_HEAD, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_K_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_norm.weight",
     DT_DIMENSION_HEAD, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    LLAMA_ATTENTION_OUTPUT,
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.post_attention_layernorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_GATE_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.gate_proj.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_GATE_BIAS, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.gate_proj.bias",
     DT_DIMENSION_INNER},
    {DT_ROLE_UP_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.up_proj.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_UP_BIAS, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.up_proj.bias", DT_DIMENSION_INNER},
    {DT_ROLE_DOWN_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.down_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_INNER, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL},
    {DT_ROLE_DOWN_BIAS, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.down_proj.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "model.norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_HEAD_WEIGHT, DT_TENSOR_SITE_AFTER, "lm_head.weight", DT_DIMENSION_VOCABULARY,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    SCORE_HEAD,
    {.site = DT_TENSOR_SITE_END},
};

const struct dt_extra_spec dt_llama_extras[] = {
    {"lm_head.weight", DT_EXTRA_SAME, DT_ROLE_TOKEN_EMBEDDING},
    {".rotary_emb.inv_freq", DT_EXTRA_FREQUENCIES, DT_ROLE_NONE},
    {NULL},
};

static const struct dt_member_spec llama_members[] = {
    LLAMA_SIZES(0, 0),
    EPSILON("rms_norm_eps", 1e-6),
    THETA("rope_theta", DT_ROPE_THETA),
    RATE("attention_dropout", attention_dropout, 0),
    ATTENTION_BIAS,
    MLP_BIAS,
    {NULL},
};

static const struct dt_fixed_spec llama_fixed[] = {
    {"hidden_act", "\"silu\"", .written = true},
    {NULL},
};

static const char *const llama_ignored[] = {"pretraining_tp", NULL};

static const struct dt_family_json llama_json = {
    .architecture = "LlamaForCausalLM",
    .classifier = "LlamaForSequenceClassification",
    .members = llama_members,
    .fixed = llama_fixed,
    .ignored = llama_ignored,
    .attention_biases = CONFIGURED_BIASES,
    .scalings = ALL_SCALINGS,
    .scaling_name = "rope_type",
};

#define llama_tensors dt_llama_tensors
#define llama_extras  dt_llama_extras
FAMILY(llama, RMS, PRE, SWIGLU, ROPE, CAUSAL, CONFIGURED, GROUPED, OPTIONAL, CONFIGURED, 1e-5,
       .qk_norm = DT_QK_NORM_NONE);
