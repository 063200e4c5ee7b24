/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* DistilBERT (Sanh et al. 2019), likewise. */
static const struct dt_tensor_spec distilbert_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "distilbert.embeddings.word_embeddings.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_POSITION_EMBEDDING, DT_TENSOR_SITE_BEFORE,
     "distilbert.embeddings.position_embeddings.weight", DT_DIMENSION_POSITIONS, DT_DIMENSION_WIDTH,
     DT_TENSOR_SINUSOIDAL},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_FIRST, "distilbert.embeddings.LayerNorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_NORM1_BIAS, DT_TENSOR_SITE_FIRST, "distilbert.embeddings.LayerNorm.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BETWEEN,
     "distilbert.transformer.layer.%d.output_layer_norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_NORM1_BIAS, DT_TENSOR_SITE_BETWEEN,
     "distilbert.transformer.layer.%d.output_layer_norm.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_Q_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "distilbert.transformer.layer.%d.attention.q_lin.weight", DT_DIMENSION_QUERIES,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_Q_BIAS, DT_TENSOR_SITE_BLOCK, "distilbert.transformer.layer.%d.attention.q_lin.bias",
     DT_DIMENSION_QUERIES},
    {DT_ROLE_K_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "distilbert.transformer.layer.%d.attention.k_lin.weight", DT_DIMENSION_KEYS,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_K_BIAS, DT_TENSOR_SITE_BLOCK, "distilbert.transformer.layer.%d.attention.k_lin.bias",
     DT_DIMENSION_KEYS},
    {DT_ROLE_V_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "distilbert.transformer.layer.%d.attention.v_lin.weight", DT_DIMENSION_KEYS,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_V_BIAS, DT_TENSOR_SITE_BLOCK, "distilbert.transformer.layer.%d.attention.v_lin.bias",
     DT_DIMENSION_KEYS},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "distilbert.transformer.layer.%d.attention.out_lin.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_QUERIES, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_PROJECTION_BIAS, DT_TENSOR_SITE_BLOCK,
     "distilbert.transformer.layer.%d.attention.out_lin.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "distilbert.transformer.layer.%d.sa_layer_norm.weight", DT_DIMENSION_WIDTH, DT_DIMENSION_ONE,
     DT_TENSOR_SCALE},
    {DT_ROLE_NORM2_BIAS, DT_TENSOR_SITE_BLOCK, "distilbert.transformer.layer.%d.sa_layer_norm.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_UP_WEIGHT, DT_TENSOR_SITE_BLOCK, "distilbert.transformer.layer.%d.ffn.lin1.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_UP_BIAS, DT_TENSOR_SITE_BLOCK, "distilbert.transformer.layer.%d.ffn.lin1.bias",
     DT_DIMENSION_INNER},
    {DT_ROLE_DOWN_WEIGHT, DT_TENSOR_SITE_BLOCK, "distilbert.transformer.layer.%d.ffn.lin2.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_INNER, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_DOWN_BIAS, DT_TENSOR_SITE_BLOCK, "distilbert.transformer.layer.%d.ffn.lin2.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER,
     "distilbert.transformer.layer.%d.output_layer_norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_FINAL_NORM_BIAS, DT_TENSOR_SITE_AFTER,
     "distilbert.transformer.layer.%d.output_layer_norm.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_HEAD_DENSE_WEIGHT, DT_TENSOR_SITE_AFTER, "vocab_transform.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_HEAD_DENSE_BIAS, DT_TENSOR_SITE_AFTER, "vocab_transform.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_HEAD_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "vocab_layer_norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_HEAD_NORM_BIAS, DT_TENSOR_SITE_AFTER, "vocab_layer_norm.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_HEAD_BIAS, DT_TENSOR_SITE_AFTER, "vocab_projector.bias", DT_DIMENSION_VOCABULARY},
    CLASSIFIER_DENSE("pre_classifier"),
    CLASSIFIER_HEAD("classifier"),
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_extra_spec distilbert_extras[] = {
    {"vocab_projector.weight", DT_EXTRA_SAME, DT_ROLE_TOKEN_EMBEDDING},
    {".position_ids", DT_EXTRA_POSITION_IDS, DT_ROLE_NONE},
    {NULL},
};

static const struct dt_member_spec distilbert_members[] = {
    {"vocab_size", AT(vocab_size), DT_MEMBER_REQUIRED},
    {"max_position_embeddings", AT(max_seq_len), DT_MEMBER_REQUIRED},
    {"dim", AT(hidden_size), DT_MEMBER_REQUIRED},
    {"n_layers", AT(num_layers), DT_MEMBER_REQUIRED},
    {"n_heads", AT(num_heads), DT_MEMBER_REQUIRED},
    {"hidden_dim", AT(intermediate_size), DT_MEMBER_REQUIRED},
    {"hidden_size", AT(hidden_size), DT_MEMBER_ALIAS},
    {"num_hidden_layers", AT(num_layers), DT_MEMBER_ALIAS},
    {"num_attention_heads", AT(num_heads), DT_MEMBER_ALIAS},
    RATE("dropout", dropout, 0.1),
    RATE("attention_dropout", attention_dropout, 0.1),
    {NULL},
};

static const struct dt_fixed_spec distilbert_fixed[] = {
    {"activation", "\"gelu\"", .written = true},
    {"sinusoidal_pos_embds", "false", .written = true},
    {"tie_word_embeddings", "true"},
    {NULL},
};

static const char *const distilbert_ignored[] = {"qa_dropout", "seq_classif_dropout",
                                                 "tie_weights_", NULL};

static const struct dt_family_json distilbert_json = {
    .architecture = "DistilBertForMaskedLM",
    .classifier = "DistilBertForSequenceClassification",
    .tied = true,
    .members = distilbert_members,
    .fixed = distilbert_fixed,
    .ignored = distilbert_ignored,
    .attention_biases = ONLY(DT_ATTENTION_BIAS_NONE),
};

FAMILY(distilbert, LAYER, POST, GELU_ERF, LEARNED, MASKED, ALL, EQUAL, ALWAYS, FIXED, 1e-12,
       .position_offset = 0, .classifier = DT_CLASSIFIER_FIRST_RELU);
