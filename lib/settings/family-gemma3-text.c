/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* Gemma 3 (Gemma Team 2025), of text: norms of queries and keys, and two bases of RoPE.
 * Without those norms the tensors are those of Gemma 2. */
const struct dt_tensor_spec dt_gemma3_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "model.embed_tokens.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.input_layernorm.weight",
     DT_DIMENSION_WIDTH},
    LLAMA_QKV,
    {DT_ROLE_Q_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_norm.weight",
     DT_DIMENSION_HEAD},
    {DT_ROLE_K_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_norm.weight",
     DT_DIMENSION_HEAD},
    LLAMA_ATTENTION_OUTPUT,
    {DT_ROLE_NORM1_OUTPUT_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "model.layers.%d.post_attention_layernorm.weight", DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.pre_feedforward_layernorm.weight",
     DT_DIMENSION_WIDTH},
    LLAMA_MLP,
    {DT_ROLE_NORM2_OUTPUT_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "model.layers.%d.post_feedforward_layernorm.weight", DT_DIMENSION_WIDTH},
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "model.norm.weight", DT_DIMENSION_WIDTH},
    {DT_ROLE_HEAD_WEIGHT, DT_TENSOR_SITE_AFTER, "lm_head.weight", DT_DIMENSION_VOCABULARY,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    SCORE_HEAD,
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_member_spec gemma3_text_members[] = {
    SIZES_WITH(OPTIONAL, 4, 256),
    EPSILON("rms_norm_eps", 1e-6),
    THETA("rope_theta", 1e6),
    RATE("attention_dropout", attention_dropout, 0),
    ATTENTION_BIAS,
    {"query_pre_attn_scalar", AT(attention_scale), DT_MEMBER_OPTIONAL, DT_MEMBER_INVERSE_ROOT, 256},
    {"sliding_window", AT(sliding_window), DT_MEMBER_OPTIONAL, DT_MEMBER_INT, 4096},
    {"final_logit_softcapping", AT(logit_softcap), DT_MEMBER_NULLABLE, DT_MEMBER_POSITIVE, 0},
    {"rope_local_base_freq", AT(rope_local_theta), DT_MEMBER_OPTIONAL, DT_MEMBER_POSITIVE,
     DT_ROPE_THETA},
    GELU("hidden_activation", PYTORCH_TANH),
    {NULL},
};

static const struct dt_fixed_spec gemma3_text_fixed[] = {
    {"attn_logit_softcapping", "null"},
    {"use_bidirectional_attention", "false"},
    {NULL},
};

static const char *const gemma3_text_ignored[] = {"_sliding_window_pattern", NULL};

static const struct dt_family_json gemma3_text_json = {
    .architecture = "Gemma3ForCausalLM",
    .classifier = "Gemma3TextForSequenceClassification",
    .tied = true,
    .members = gemma3_text_members,
    .fixed = gemma3_text_fixed,
    .ignored = gemma3_text_ignored,
    .local_layers = DT_LOCAL_LAYERS_PATTERN,
    .attention_biases = CONFIGURED_BIASES,
    .scalings = ALL_SCALINGS,
    .scaling_name = "rope_type",
};

#define gemma3_text_tensors dt_gemma3_tensors
#define gemma3_text_extras  dt_llama_extras
FAMILY(gemma3_text, RMS_PLUS_ONE, BOTH, GEGLU_TANH, ROPE, CAUSAL, CONFIGURED, GROUPED, OPTIONAL,
       CONFIGURED, 1e-6, .embedding_scale = DT_EMBEDDING_SCALE_ROOT, .qk_norm = DT_QK_NORM_ALWAYS);
