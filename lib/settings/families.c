/* SPDX-License-Identifier: MIT */
#include "settings/families.h"

#include <stdlib.h>

#include "settings/model-config.h"

#define AT(field) offsetof(struct dt_model_config, field)

/* What config.json calls a family's settings; a macro, as below. */
#define JSON(variable, activation_name, activation, epsilon_name, epsilon, tied)                   \
    static const struct dt_family_json variable##_json = {                                         \
        variable##_dialects, activation_name,  activation,      epsilon_name, epsilon, tied,       \
        variable##_members,  variable##_fixed, variable##_rates}

/* A descriptor; a macro, so that one with a field left out does not compile. */
#define FAMILY(variable, norm, placement, mlp, positions, objective, biases, kv_heads, tying,      \
               epsilon_kind, epsilon, gguf)                                                        \
    static const struct dt_family_descriptor variable = {DT_NORM_##norm,                           \
                                                         DT_NORM_PLACEMENT_##placement,            \
                                                         DT_MLP_##mlp,                             \
                                                         DT_POSITION_##positions,                  \
                                                         DT_OBJECTIVE_##objective,                 \
                                                         DT_BIAS_##biases,                         \
                                                         DT_KV_HEADS_##kv_heads,                   \
                                                         DT_TYING_##tying,                         \
                                                         DT_EPSILON_##epsilon_kind,                \
                                                         epsilon,                                  \
                                                         variable##_tensors,                       \
                                                         variable##_extras,                        \
                                                         &variable##_json,                         \
                                                         gguf}

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
     DT_DIMENSION_WIDTH, DT_DIMENSION_WIDTH, DT_TENSOR_RESIDUAL},
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
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_extra_spec gpt2_extras[] = {
    {"lm_head.weight", DT_EXTRA_SAME, DT_ROLE_TOKEN_EMBEDDING},
    {".attn.bias", DT_EXTRA_CAUSAL_MASK, DT_ROLE_NONE},
    {".attn.masked_bias", DT_EXTRA_MASKED_SCORE, DT_ROLE_NONE},
    {NULL},
};

static const struct dt_dialect_spec gpt2_dialects[] = {
    {"gpt2", "GPT2LMHeadModel", false, 0},
    {NULL},
};

static const struct dt_member_spec gpt2_members[] = {
    {"vocab_size", AT(vocab_size), DT_MEMBER_REQUIRED},
    {"n_positions", AT(max_seq_len), DT_MEMBER_REQUIRED},
    {"n_embd", AT(hidden_size), DT_MEMBER_REQUIRED},
    {"n_layer", AT(num_layers), DT_MEMBER_REQUIRED},
    {"n_head", AT(num_heads), DT_MEMBER_REQUIRED},
    {"n_inner", AT(intermediate_size), DT_MEMBER_OPTIONAL},
    {"n_ctx", AT(max_seq_len), DT_MEMBER_REPEATED},
    {"max_position_embeddings", AT(max_seq_len), DT_MEMBER_ALIAS},
    {"hidden_size", AT(hidden_size), DT_MEMBER_ALIAS},
    {"num_hidden_layers", AT(num_layers), DT_MEMBER_ALIAS},
    {"num_attention_heads", AT(num_heads), DT_MEMBER_ALIAS},
    {NULL},
};

static const struct dt_fixed_spec gpt2_fixed[] = {
    {"scale_attn_by_inverse_layer_idx", false, .otherwise = false},
    {"scale_attn_weights", true, .otherwise = true},
    {"add_cross_attention", false, .otherwise = false},
    {"tie_word_embeddings", true, .otherwise = true},
    {NULL},
};

static const struct dt_rate_spec gpt2_rates[] = {
    {"embd_pdrop", AT(dropout), 0.1},
    {"resid_pdrop", AT(dropout), 0.1},
    {"attn_pdrop", AT(attention_dropout), 0.1},
    {NULL},
};

JSON(gpt2, "activation_function", "gelu_new", "layer_norm_epsilon", 1e-5, true);

static const struct dt_family_gguf gpt2_gguf = {"gpt2", "attention.layer_norm_epsilon", false};

FAMILY(gpt2, LAYER, PRE, GELU_TANH, LEARNED, CAUSAL, ALL, EQUAL, ALWAYS, CONFIGURED, 1e-5,
       &gpt2_gguf);

/* Llama (Touvron et al. 2023); with norms of queries and keys, Qwen3 (Yang et al. 2025). */
static const struct dt_tensor_spec llama_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "model.embed_tokens.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.input_layernorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_Q_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_K_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_proj.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_V_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.v_proj.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_Q_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_norm.weight",
     DT_DIMENSION_HEAD, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_K_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_norm.weight",
     DT_DIMENSION_HEAD, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.o_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL},
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.post_attention_layernorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_GATE_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.gate_proj.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_UP_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.up_proj.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_DOWN_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.down_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_INNER, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL},
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "model.norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_HEAD_WEIGHT, DT_TENSOR_SITE_AFTER, "lm_head.weight", DT_DIMENSION_VOCABULARY,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_extra_spec llama_extras[] = {
    {"lm_head.weight", DT_EXTRA_SAME, DT_ROLE_TOKEN_EMBEDDING},
    {".rotary_emb.inv_freq", DT_EXTRA_FREQUENCIES, DT_ROLE_NONE},
    {NULL},
};

static const struct dt_dialect_spec llama_dialects[] = {
    {"llama", "LlamaForCausalLM", false, 0},
    {"qwen3", "Qwen3ForCausalLM", true, 128},
    {NULL},
};

static const struct dt_member_spec llama_members[] = {
    {"vocab_size", AT(vocab_size), DT_MEMBER_REQUIRED},
    {"max_position_embeddings", AT(max_seq_len), DT_MEMBER_REQUIRED},
    {"hidden_size", AT(hidden_size), DT_MEMBER_REQUIRED},
    {"num_hidden_layers", AT(num_layers), DT_MEMBER_REQUIRED},
    {"num_attention_heads", AT(num_heads), DT_MEMBER_REQUIRED},
    {"num_key_value_heads", AT(num_kv_heads), DT_MEMBER_OPTIONAL},
    {"intermediate_size", AT(intermediate_size), DT_MEMBER_REQUIRED},
    {NULL},
};

static const struct dt_fixed_spec llama_fixed[] = {
    {"attention_bias", false, .otherwise = false},
    {"mlp_bias", false, .otherwise = false},
    {"use_sliding_window", false, .otherwise = false},
    {NULL},
};

static const struct dt_rate_spec llama_rates[] = {
    {"attention_dropout", AT(attention_dropout), 0},
    {NULL},
};

JSON(llama, "hidden_act", "silu", "rms_norm_eps", 1e-6, false);

static const struct dt_family_gguf llama_gguf = {"llama", "attention.layer_norm_rms_epsilon", true};

FAMILY(llama, RMS, PRE, SWIGLU, ROPE, CAUSAL, NONE, GROUPED, OPTIONAL, CONFIGURED, 1e-5,
       &llama_gguf);

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
     DT_DIMENSION_WIDTH, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_Q_BIAS, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.attention.self.query.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_K_WEIGHT, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.attention.self.key.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_K_BIAS, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.attention.self.key.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_V_WEIGHT, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.attention.self.value.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_V_BIAS, DT_TENSOR_SITE_BLOCK, "bert.encoder.layer.%d.attention.self.value.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "bert.encoder.layer.%d.attention.output.dense.weight", DT_DIMENSION_WIDTH, DT_DIMENSION_WIDTH,
     DT_TENSOR_TRANSPOSED},
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
     "distilbert.transformer.layer.%d.attention.q_lin.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_Q_BIAS, DT_TENSOR_SITE_BLOCK, "distilbert.transformer.layer.%d.attention.q_lin.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_K_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "distilbert.transformer.layer.%d.attention.k_lin.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_K_BIAS, DT_TENSOR_SITE_BLOCK, "distilbert.transformer.layer.%d.attention.k_lin.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_V_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "distilbert.transformer.layer.%d.attention.v_lin.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_V_BIAS, DT_TENSOR_SITE_BLOCK, "distilbert.transformer.layer.%d.attention.v_lin.bias",
     DT_DIMENSION_WIDTH},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "distilbert.transformer.layer.%d.attention.out_lin.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
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
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_extra_spec distilbert_extras[] = {
    {"vocab_projector.weight", DT_EXTRA_SAME, DT_ROLE_TOKEN_EMBEDDING},
    {".position_ids", DT_EXTRA_POSITION_IDS, DT_ROLE_NONE},
    {NULL},
};

static const struct dt_dialect_spec distilbert_dialects[] = {
    {"distilbert", "DistilBertForMaskedLM", false, 0},
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
    {NULL},
};

static const struct dt_fixed_spec distilbert_fixed[] = {
    {"sinusoidal_pos_embds", false, .written = true, .otherwise = false},
    {"tie_word_embeddings", true, .otherwise = true},
    {NULL},
};

static const struct dt_rate_spec distilbert_rates[] = {
    {"dropout", AT(dropout), 0.1},
    {"attention_dropout", AT(attention_dropout), 0.1},
    {NULL},
};

JSON(distilbert, "activation", "gelu", NULL, 1e-12, true);

FAMILY(distilbert, LAYER, POST, GELU_ERF, LEARNED, MASKED, ALL, EQUAL, ALWAYS, FIXED, 1e-12, NULL);

/* OLMo 2 (Walsh et al. 2025). */
static const struct dt_tensor_spec olmo2_tensors[] = {
    {DT_ROLE_TOKEN_EMBEDDING, DT_TENSOR_SITE_BEFORE, "model.embed_tokens.weight",
     DT_DIMENSION_VOCABULARY, DT_DIMENSION_WIDTH},
    {DT_ROLE_Q_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_K_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_proj.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_V_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.v_proj.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_Q_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_norm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_K_NORM_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_norm.weight",
     DT_DIMENSION_KEYS, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.o_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_NORM1_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.post_attention_layernorm.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_GATE_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.gate_proj.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_UP_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.up_proj.weight",
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_DOWN_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.down_proj.weight",
     DT_DIMENSION_WIDTH, DT_DIMENSION_INNER, DT_TENSOR_TRANSPOSED},
    {DT_ROLE_NORM2_WEIGHT, DT_TENSOR_SITE_BLOCK,
     "model.layers.%d.post_feedforward_layernorm.weight", DT_DIMENSION_WIDTH, DT_DIMENSION_ONE,
     DT_TENSOR_SCALE},
    {DT_ROLE_FINAL_NORM_WEIGHT, DT_TENSOR_SITE_AFTER, "model.norm.weight", DT_DIMENSION_WIDTH,
     DT_DIMENSION_ONE, DT_TENSOR_SCALE},
    {DT_ROLE_HEAD_WEIGHT, DT_TENSOR_SITE_AFTER, "lm_head.weight", DT_DIMENSION_VOCABULARY,
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED},
    {.site = DT_TENSOR_SITE_END},
};

static const struct dt_dialect_spec olmo2_dialects[] = {
    {"olmo2", "Olmo2ForCausalLM", true, 0},
    {NULL},
};

static const struct dt_fixed_spec olmo2_fixed[] = {
    {"attention_bias", false, .otherwise = false},
    {NULL},
};

#define olmo2_extras  llama_extras
#define olmo2_members llama_members
#define olmo2_rates   llama_rates
JSON(olmo2, "hidden_act", "silu", "rms_norm_eps", 1e-5, false);

FAMILY(olmo2, RMS, OUTPUT, SWIGLU, ROPE, CAUSAL, NONE, GROUPED, OPTIONAL, CONFIGURED, 1e-5, NULL);

/* In the order of enum dt_family. */
#define EACH_FAMILY(F) F(gpt2) F(llama) F(bert) F(distilbert) F(olmo2)

#define NAME(family) #family,
const char *const dt_family_names[] = {EACH_FAMILY(NAME) NULL};

#define ADDRESS(family) &family,
static const struct dt_family_descriptor *const families[] = {EACH_FAMILY(ADDRESS)};

_Static_assert(sizeof families / sizeof *families == DT_FAMILY_COUNT, "a descriptor a family");

const struct dt_family_descriptor *dt_family_of(const struct dt_model_config *c)
{
    return families[c->family];
}
