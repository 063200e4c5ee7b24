/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* RoBERTa (Liu et al. 2019): BERT with one token type and positions that begin at 2, as token 1 is
 * padding. */
static const struct dt_tensor_spec roberta_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "roberta.embeddings.word_embeddings.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_POSITION_EMBEDDING, DT_TENSOR_SITE_BEFORE,
     "roberta.embeddings.position_embeddings.weight", DT_DIMENSION_POSITIONS, DT_DIMENSION_WIDTH,
     DT_TENSOR_SINUSOIDAL},
    {DT_ROLE_TYPE_EMBEDDING, DT_TENSOR_SITE_BEFORE,
     "roberta.embeddings.token_type_embeddings.weight", DT_DIMENSION_ONE, DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_FIRST, "roberta.embeddings.LayerNorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_NORM1_BIAS, DT_TENSOR_SITE_FIRST, "roberta.embeddings.LayerNorm.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BETWEEN,
     "roberta.encoder.layer.%d.output.LayerNorm.weight", DT_DIMENSION_WIDTH, DT_DIMENSION_ONE,
     DT_TENSOR_SCALE},
    {DT_ROLE_NORM1_BIAS, DT_TENSOR_SITE_BETWEEN, "roberta.encoder.layer.%d.output.LayerNorm.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_Q_WEIGHT, DT_TENSOR_SITE_BLOCK, "roberta.encoder.layer.%d.attention.self.query.weight",
     DT_DIMENSION_QUERIES, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_Q_BIAS, DT_TENSOR_SITE_BLOCK, "roberta.encoder.layer.%d.attention.self.query.bias",
     DT_DIMENSION_QUERIES},
    {DT_ROLE_K_WEIGHT, DT_TENSOR_SITE_BLOCK, "roberta.encoder.layer.%d.attention.self.key.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_K_BIAS, DT_TENSOR_SITE_BLOCK, "roberta.encoder.layer.%d.attention.self.key.bias",
     DT_DIMENSION_KEYS},
    {DT_ROLE_V_WEIGHT, DT_TENSOR_SITE_BLOCK, "roberta.encoder.layer.%d.attention.self.value.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_V_BIAS, DT_TENSOR_SITE_BLOCK, "roberta.encoder.layer.%d.attention.self.value.bias",
     DT_DIMENSION_KEYS},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "roberta.encoder.layer.%d.attention.output.dense.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_QUERIES, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_PROJECTION_BIAS, DT_TENSOR_SITE_BLOCK,
     "roberta.encoder.layer.%d.attention.output.dense.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "roberta.encoder.layer.%d.attention.output.LayerNorm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_NORM2_BIAS, DT_TENSOR_SITE_BLOCK,
     "roberta.encoder.layer.%d.attention.output.LayerNorm.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_UP_WEIGHT, DT_TENSOR_SITE_BLOCK, "roberta.encoder.layer.%d.intermediate.dense.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_UP_BIAS, DT_TENSOR_SITE_BLOCK, "roberta.encoder.layer.%d.intermediate.dense.bias",
     DT_DIMENSION_INNER},
    {DT_ROLE_DOWN_WEIGHT, DT_TENSOR_SITE_BLOCK, "roberta.encoder.layer.%d.output.dense.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_INNER, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_DOWN_BIAS, DT_TENSOR_SITE_BLOCK, "roberta.encoder.layer.%d.output.dense.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER,
     "roberta.encoder.layer.%d.output.LayerNorm.weight", DT_DIMENSION_WIDTH, DT_DIMENSION_ONE,
     DT_TENSOR_SCALE},
    {DT_ROLE_FINAL_NORM_BIAS, DT_TENSOR_SITE_AFTER,
     "roberta.encoder.layer.%d.output.LayerNorm.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_HEAD_DENSE_WEIGHT, DT_TENSOR_SITE_AFTER, "lm_head.dense.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_HEAD_DENSE_BIAS, DT_TENSOR_SITE_AFTER, "lm_head.dense.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_HEAD_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "lm_head.layer_norm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_HEAD_NORM_BIAS, DT_TENSOR_SITE_AFTER, "lm_head.layer_norm.bias", DT_DIMENSION_WIDTH},
    {DT_ROLE_HEAD_BIAS, DT_TENSOR_SITE_AFTER, "lm_head.bias", DT_DIMENSION_VOCABULARY},
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_extra_spec roberta_extras[] = {
    {"lm_head.decoder.weight", DT_EXTRA_SAME, DT_ROLE_TOKEN_EMBEDDING},
    {"lm_head.decoder.bias", DT_EXTRA_SAME, DT_ROLE_HEAD_BIAS},
    {".position_ids", DT_EXTRA_POSITION_IDS, DT_ROLE_NONE},
    {"roberta.pooler.dense.weight", DT_EXTRA_UNUSED, DT_ROLE_NONE},
    {"roberta.pooler.dense.bias", DT_EXTRA_UNUSED, DT_ROLE_NONE},
    {NULL},
};

static const struct dt_member_spec roberta_members[] = {
    {"vocab_size", AT(vocab_size), DT_MEMBER_REQUIRED},
    {"max_position_embeddings", AT(max_seq_len), DT_MEMBER_REQUIRED, DT_MEMBER_POSITIONS},
    {"hidden_size", AT(hidden_size), DT_MEMBER_REQUIRED},
    {"num_hidden_layers", AT(num_layers), DT_MEMBER_REQUIRED},
    {"num_attention_heads", AT(num_heads), DT_MEMBER_REQUIRED},
    {"intermediate_size", AT(intermediate_size), DT_MEMBER_REQUIRED},
    EPSILON("layer_norm_eps", 1e-12),
    RATE("hidden_dropout_prob", dropout, 0.1),
    RATE("attention_probs_dropout_prob", attention_dropout, 0.1),
    {NULL},
};

static const struct dt_fixed_spec roberta_fixed[] = {
    {"hidden_act", "\"gelu\"", .written = true},
    {"type_vocab_size", "1", "2", .written = true},
    {"pad_token_id", "1", .written = true},
    {"position_embedding_type", "\"absolute\""},
    {"tie_word_embeddings", "true"},
    {NULL},
};

static const struct dt_family_json roberta_json = {
    .architecture = "RobertaForMaskedLM",
    .tied = true,
    .members = roberta_members,
    .fixed = roberta_fixed,
    .attention_biases = ONLY(DT_ATTENTION_BIAS_NONE),
};

FAMILY(roberta, LAYER, POST, GELU_ERF, LEARNED, MASKED, ALL, EQUAL, ALWAYS, CONFIGURED, 1e-12,
       .position_offset = 2);
