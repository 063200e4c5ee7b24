/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* Gemma (Gemma Team 2024). */
static const struct dt_tensor_spec gemma_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "model.embed_tokens.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.input_layernorm.weight",
     DT_DIMENSION_WIDTH},
    LLAMA_QKV,
    LLAMA_ATTENTION_OUTPUT,
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.post_attention_layernorm.weight",
     DT_DIMENSION_WIDTH},
    LLAMA_MLP,
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "model.norm.weight", DT_DIMENSION_WIDTH},
    {DT_ROLE_HEAD_WEIGHT, DT_TENSOR_SITE_AFTER, "lm_head.weight", DT_DIMENSION_VOCABULARY,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    SCORE_HEAD,
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_member_spec gemma_members[] = {
    SIZES_WITH(OPTIONAL, 16, 256),
    EPSILON("rms_norm_eps", 1e-6),
    THETA("rope_theta", DT_ROPE_THETA),
    RATE("attention_dropout", attention_dropout, 0),
    ATTENTION_BIAS,
    GELU("hidden_act", PYTORCH_TANH),
    {NULL},
};

static const char *const gemma_ignored[] = {"hidden_activation", NULL};

static const struct dt_family_json gemma_json = {
    .architecture = "GemmaForCausalLM",
    .classifier = "GemmaForSequenceClassification",
    .tied = true,
    .members = gemma_members,
    .ignored = gemma_ignored,
    .attention_biases = CONFIGURED_BIASES,
    .scalings = ALL_SCALINGS,
    .scaling_name = "rope_type",
};

#define gemma_extras dt_llama_extras
FAMILY(gemma, RMS_PLUS_ONE, PRE, GEGLU_TANH, ROPE, CAUSAL, CONFIGURED, GROUPED, OPTIONAL,
       CONFIGURED, 1e-6, .embedding_scale = DT_EMBEDDING_SCALE_ROOT);
