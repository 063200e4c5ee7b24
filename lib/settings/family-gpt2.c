/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* GPT-2 (Radford et al. 2019). */
static const struct dt_tensor_spec gpt2_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "transformer.wte.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_POSITION_EMBEDDING, DT_TENSOR_SITE_BEFORE, "transformer.wpe.weight",
     DT_DIMENSION_POSITIONS, DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BLOCK, "transformer.h.%d.ln_1.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_NORM1_BIAS, DT_TENSOR_SITE_BLOCK, "transformer.h.%d.ln_1.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_QKV_WEIGHT, DT_TENSOR_SITE_BLOCK, "transformer.h.%d.attn.c_attn.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_WIDTH3},
    {DT_ROLE_QKV_BIAS, DT_TENSOR_SITE_BLOCK, "transformer.h.%d.attn.c_attn.bias",
     DT_DIMENSION_WIDTH3},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK, "transformer.h.%d.attn.c_proj.weight",
     DT_DIMENSION_QUERIES, DT_DIMENSION_WIDTH, DT_TENSOR_RESIDUAL},
    {DT_ROLE_PROJECTION_BIAS, DT_TENSOR_SITE_BLOCK, "transformer.h.%d.attn.c_proj.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK, "transformer.h.%d.ln_2.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_NORM2_BIAS, DT_TENSOR_SITE_BLOCK, "transformer.h.%d.ln_2.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_UP_WEIGHT, DT_TENSOR_SITE_BLOCK, "transformer.h.%d.mlp.c_fc.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_INNER},
    {DT_ROLE_UP_BIAS, DT_TENSOR_SITE_BLOCK, "transformer.h.%d.mlp.c_fc.bias", DT_DIMENSION_INNER},
    {DT_ROLE_DOWN_WEIGHT, DT_TENSOR_SITE_BLOCK, "transformer.h.%d.mlp.c_proj.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_RESIDUAL},
    {DT_ROLE_DOWN_BIAS, DT_TENSOR_SITE_BLOCK, "transformer.h.%d.mlp.c_proj.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "transformer.ln_f.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_FINAL_NORM_BIAS, DT_TENSOR_SITE_AFTER, "transformer.ln_f.bias", DT_DIMENSION_WIDTH},
    SCORE_HEAD,
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_extra_spec gpt2_extras[] = {
    {"lm_head.weight", DT_EXTRA_SAME, DT_ROLE_TOKEN_EMBEDDING},
    {".attn.bias", DT_EXTRA_CAUSAL_MASK, DT_ROLE_NONE},
    {".attn.masked_bias", DT_EXTRA_MASKED_SCORE, DT_ROLE_NONE},
    {NULL},
};

static const struct dt_member_spec gpt2_members[] = {
    {"vocab_size", AT(vocab_size), DT_MEMBER_REQUIRED},
    {"n_positions", AT(max_seq_len), DT_MEMBER_REQUIRED},
    {"n_embd", AT(hidden_size), DT_MEMBER_REQUIRED},
    {"n_layer", AT(num_layers), DT_MEMBER_REQUIRED},
    {"n_head", AT(num_heads), DT_MEMBER_REQUIRED},
    {"n_inner", AT(intermediate_size), DT_MEMBER_NULLABLE},
    {"n_ctx", AT(max_seq_len), DT_MEMBER_REPEATED},
    {"max_position_embeddings", AT(max_seq_len), DT_MEMBER_ALIAS},
    {"hidden_size", AT(hidden_size), DT_MEMBER_ALIAS},
    {"num_hidden_layers", AT(num_layers), DT_MEMBER_ALIAS},
    {"num_attention_heads", AT(num_heads), DT_MEMBER_ALIAS},
    EPSILON("layer_norm_epsilon", 1e-5),
    RATE("embd_pdrop", dropout, 0.1),
    RATE("resid_pdrop", dropout, 0.1),
    RATE("attn_pdrop", attention_dropout, 0.1),
    GELU("activation_function", NEW),
    {NULL},
};

static const struct dt_fixed_spec gpt2_fixed[] = {
    {"scale_attn_by_inverse_layer_idx", "false"},
    {"scale_attn_weights", "true"},
    {"tie_word_embeddings", "true"},
    {NULL},
};

static const char *const gpt2_ignored[] = {"reorder_and_upcast_attn",
                                           "summary_activation",
                                           "summary_first_dropout",
                                           "summary_proj_to_labels",
                                           "summary_type",
                                           "summary_use_proj",
                                           NULL};

static const struct dt_family_json gpt2_json = {
    .architecture = "GPT2LMHeadModel",
    .classifier = "GPT2ForSequenceClassification",
    .tied = true,
    .members = gpt2_members,
    .fixed = gpt2_fixed,
    .ignored = gpt2_ignored,
    .attention_biases = ONLY(DT_ATTENTION_BIAS_NONE),
};

FAMILY(gpt2, LAYER, PRE, GELU_TANH, LEARNED, CAUSAL, ALL, EQUAL, ALWAYS, CONFIGURED, 1e-5,
       .position_offset = 0);
