/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

/* ModernBERT (Warner et al. 2024) with its head for masked tokens. */
static const struct dt_tensor_spec modernbert_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "model.embeddings.tok_embeddings.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_FIRST, "model.embeddings.norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_LATER, "model.layers.%d.attn_norm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_Q_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.attn.Wq.weight", DT_DIMENSION_QUERIES,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED, "model.layers.%d.attn.Wqkv.weight"},
    {DT_ROLE_K_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.attn.Wk.weight", DT_DIMENSION_KEYS,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED, "model.layers.%d.attn.Wqkv.weight"},
    {DT_ROLE_V_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.attn.Wv.weight", DT_DIMENSION_KEYS,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED, "model.layers.%d.attn.Wqkv.weight"},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.attn.Wo.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_QUERIES, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL},
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp_norm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_GATE_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.W1.weight", DT_DIMENSION_INNER,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED, "model.layers.%d.mlp.Wi.weight"},
    {DT_ROLE_UP_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.W2.weight", DT_DIMENSION_INNER,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED, "model.layers.%d.mlp.Wi.weight"},
    {DT_ROLE_DOWN_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.Wo.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_INNER, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL},
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "model.final_norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_HEAD_DENSE_WEIGHT, DT_TENSOR_SITE_AFTER, "head.dense.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_HEAD_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "head.norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_HEAD_BIAS, DT_TENSOR_SITE_AFTER, "decoder.bias", DT_DIMENSION_VOCABULARY},
    {DT_ROLE_HEAD_DENSE_WEIGHT, DT_TENSOR_SITE_LABELS, "head.dense.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_HEAD_NORM_WEIGHT, DT_TENSOR_SITE_LABELS, "head.norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    CLASSIFIER_HEAD("classifier"),
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_extra_spec modernbert_extras[] = {
    {"decoder.weight", DT_EXTRA_SAME, DT_ROLE_TOKEN_EMBEDDING},
    {".rotary_emb.inv_freq", DT_EXTRA_FREQUENCIES, DT_ROLE_NONE},
    {NULL},
};

static const struct dt_member_spec modernbert_members[] = {
    {"vocab_size", AT(vocab_size), DT_MEMBER_REQUIRED},
    {"max_position_embeddings", AT(max_seq_len), DT_MEMBER_REQUIRED},
    {"hidden_size", AT(hidden_size), DT_MEMBER_REQUIRED},
    {"num_hidden_layers", AT(num_layers), DT_MEMBER_REQUIRED},
    {"num_attention_heads", AT(num_heads), DT_MEMBER_REQUIRED},
    {"intermediate_size", AT(intermediate_size), DT_MEMBER_REQUIRED},
    EPSILON("norm_eps", 1e-5),
    {"layer_norm_eps", AT(layer_norm_epsilon), DT_MEMBER_ALIAS, DT_MEMBER_POSITIVE},
    THETA("global_rope_theta", 160000),
    {"rope_theta", AT(rope_theta), DT_MEMBER_ALIAS, DT_MEMBER_POSITIVE},
    {"local_rope_theta", AT(rope_local_theta), DT_MEMBER_NULLABLE, DT_MEMBER_POSITIVE,
     DT_ROPE_THETA},
    {"local_attention", AT(sliding_window), DT_MEMBER_OPTIONAL, DT_MEMBER_INT, 128},
    {"global_attn_every_n_layers", AT(global_every), DT_MEMBER_OPTIONAL, DT_MEMBER_INT, 3},
    {NULL},
};

/* It drops inside of the MLP, and with the rate of attention also attention's output. */
static const struct dt_fixed_spec modernbert_fixed[] = {
    {"embedding_dropout", "0.0"},          {"mlp_dropout", "0.0"},
    {"attention_dropout", "0.0"},          {"hidden_activation", "\"gelu\"", .written = true},
    {"classifier_activation", "\"gelu\""}, {"norm_bias", "false"},
    {"attention_bias", "false"},           {"mlp_bias", "false"},
    {"classifier_bias", "false"},          {"decoder_bias", "true"},
    {"tie_word_embeddings", "true"},       {NULL},
};

static const char *const modernbert_ignored[] = {
    "classifier_dropout",       "classifier_pooling",
    "deterministic_flash_attn", "initializer_cutoff_factor",
    "position_embedding_type",  "reference_compile",
    "repad_logits_with_grad",   "sparse_pred_ignore_index",
    "sparse_prediction",        NULL};

static const struct dt_family_json modernbert_json = {
    .architecture = "ModernBertForMaskedLM",
    .classifier = "ModernBertForSequenceClassification",
    .tied = true,
    .members = modernbert_members,
    .fixed = modernbert_fixed,
    .ignored = modernbert_ignored,
    .local_layers = DT_LOCAL_LAYERS_MEMBER,
    .attention_biases = ONLY(DT_ATTENTION_BIAS_NONE),
    .scalings = ONLY(DT_ROPE_SCALING_NONE),
};

FAMILY(modernbert, LAYER, PRE, GEGLU_ERF, ROPE, MASKED, NONE, EQUAL, ALWAYS, CONFIGURED, 1e-5,
       .embedding_norm = true, .other_dropout = true, .classifier = DT_CLASSIFIER_FIRST_GELU);
