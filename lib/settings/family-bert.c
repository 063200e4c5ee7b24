/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* BERT (Devlin et al. 2019) with its head for masked tokens. */
static const struct dt_tensor_spec bert_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "bert.embeddings.word_embeddings.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_POSITION_EMBEDDING, DT_TENSOR_SITE_BEFORE,
     "bert.embeddings.position_embeddings.weight", DT_DIMENSION_POSITIONS, DT_DIMENSION_WIDTH,
     DT_TENSOR_SINUSOIDAL},
    {DT_ROLE_TYPE_EMBEDDING, DT_TENSOR_SITE_BEFORE, "bert.embeddings.token_type_embeddings.weight",
     DT_DIMENSION_TYPES, DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_FIRST, "bert.embeddings.LayerNorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_NORM1_BIAS, DT_TENSOR_SITE_FIRST, "bert.embeddings.LayerNorm.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BETWEEN, "bert.encoder.layer.%d.output.LayerNorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_NORM1_BIAS, DT_TENSOR_SITE_BETWEEN, "bert.encoder.layer.%d.output.LayerNorm.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_Q_WEIGHT, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.attention.self.query.weight",
     DT_DIMENSION_QUERIES, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_Q_BIAS, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.attention.self.query.bias",
     DT_DIMENSION_QUERIES},
    {DT_ROLE_K_WEIGHT, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.attention.self.key.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_K_BIAS, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.attention.self.key.bias",
     DT_DIMENSION_KEYS},
    {DT_ROLE_V_WEIGHT, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.attention.self.value.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_V_BIAS, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.attention.self.value.bias",
     DT_DIMENSION_KEYS},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "bert.encoder.layer.%d.attention.output.dense.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_QUERIES, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_PROJECTION_BIAS, DT_TENSOR_SITE_BLOCK,
     "bert.encoder.layer.%d.attention.output.dense.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "bert.encoder.layer.%d.attention.output.LayerNorm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_NORM2_BIAS, DT_TENSOR_SITE_BLOCK,
     "bert.encoder.layer.%d.attention.output.LayerNorm.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_UP_WEIGHT, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.intermediate.dense.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_UP_BIAS, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.intermediate.dense.bias",
     DT_DIMENSION_INNER},
    {DT_ROLE_DOWN_WEIGHT, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.output.dense.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_INNER, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_DOWN_BIAS, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.output.dense.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER,
     "bert.encoder.layer.%d.output.LayerNorm.weight", DT_DIMENSION_WIDTH, DT_DIMENSION_ONE,
     DT_TENSOR_SCALE},
    {DT_ROLE_FINAL_NORM_BIAS, DT_TENSOR_SITE_AFTER, "bert.encoder.layer.%d.output.LayerNorm.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_HEAD_DENSE_WEIGHT, DT_TENSOR_SITE_AFTER, "cls.predictions.transform.dense.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_HEAD_DENSE_BIAS, DT_TENSOR_SITE_AFTER, "cls.predictions.transform.dense.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_HEAD_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "cls.predictions.transform.LayerNorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_HEAD_NORM_BIAS, DT_TENSOR_SITE_AFTER, "cls.predictions.transform.LayerNorm.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_HEAD_BIAS, DT_TENSOR_SITE_AFTER, "cls.predictions.bias", DT_DIMENSION_VOCABULARY},
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_extra_spec bert_extras[] = {
    {"cls.predictions.decoder.weight", DT_EXTRA_SAME, DT_ROLE_TOKEN_EMBEDDING},
    {"cls.predictions.decoder.bias", DT_EXTRA_SAME, DT_ROLE_HEAD_BIAS},
    {".position_ids", DT_EXTRA_POSITION_IDS, DT_ROLE_NONE},
    {"cls.seq_relationship.weight", DT_EXTRA_UNUSED, DT_ROLE_NONE},
    {"cls.seq_relationship.bias", DT_EXTRA_UNUSED, DT_ROLE_NONE},
    {"bert.pooler.dense.weight", DT_EXTRA_UNUSED, DT_ROLE_NONE},
    {"bert.pooler.dense.bias", DT_EXTRA_UNUSED, DT_ROLE_NONE},
    {NULL},
};

static const struct dt_dialect_spec bert_dialects[] = {
    {"bert", "BertForMaskedLM", false, 0},
    {NULL},
};

static const struct dt_member_spec bert_members[] = {
    {"vocab_size", AT(vocab_size), DT_MEMBER_REQUIRED},
    {"max_position_embeddings", AT(max_seq_len), DT_MEMBER_REQUIRED},
    {"hidden_size", AT(hidden_size), DT_MEMBER_REQUIRED},
    {"num_hidden_layers", AT(num_layers), DT_MEMBER_REQUIRED},
    {"num_attention_heads", AT(num_heads), DT_MEMBER_REQUIRED},
    {"intermediate_size", AT(intermediate_size), DT_MEMBER_REQUIRED},
    {NULL},
};

static const struct dt_fixed_spec bert_fixed[] = {
    {"is_decoder", false, .otherwise = false},
    {"add_cross_attention", false, .otherwise = false},
    {"type_vocab_size", 2, .number = true, .written = true, .otherwise = 2},
    {"tie_word_embeddings", true, .otherwise = true},
    {NULL},
};

static const struct dt_rate_spec bert_rates[] = {
    {"hidden_dropout_prob", AT(dropout), 0.1},
    {"attention_probs_dropout_prob", AT(attention_dropout), 0.1},
    {NULL},
};

JSON(bert, "hidden_act", "gelu", "layer_norm_eps", 1e-12, true);

FAMILY(bert, LAYER, POST, GELU_ERF, LEARNED, MASKED, ALL, EQUAL, ALWAYS, CONFIGURED, 1e-12, NULL);
