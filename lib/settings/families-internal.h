/* SPDX-License-Identifier: MIT */
/*
 * Private to the descriptors of families, family-*.c: what they share.
 */
#ifndef DT_SETTINGS_FAMILIES_INTERNAL_H
#define DT_SETTINGS_FAMILIES_INTERNAL_H

#include "settings/families.h"
#include "settings/model-config.h"

#define AT(field) offsetof(struct dt_model_config, field)

/* A descriptor; a macro, so that one with a field left out does not compile. What follows
 * epsilon are designated initializers of the fields after it. */
#define FAMILY(variable, norm, placement, mlp, positions, objective, biases, kv_heads, tying,      \
               epsilon_kind, epsilon, ...)                                                         \
    const struct dt_family_descriptor dt_family_##variable = {DT_NORM_##norm,                      \
                                                              DT_NORM_PLACEMENT_##placement,       \
                                                              DT_MLP_##mlp,                        \
                                                              DT_POSITION_##positions,             \
                                                              DT_OBJECTIVE_##objective,            \
                                                              DT_BIAS_##biases,                    \
                                                              DT_KV_HEADS_##kv_heads,              \
                                                              DT_TYING_##tying,                    \
                                                              DT_EPSILON_##epsilon_kind,           \
                                                              epsilon,                             \
                                                              variable##_tensors,                  \
                                                              variable##_extras,                   \
                                                              &variable##_json,                    \
                                                              __VA_ARGS__}

#define ONLY(enumerator) (1u << (enumerator))

/* Kinds of RoPE scaling that transformers computes with any rotary model. */
#define ALL_SCALINGS                                                                               \
    (ONLY(DT_ROPE_SCALING_NONE) | ONLY(DT_ROPE_SCALING_LINEAR) | ONLY(DT_ROPE_SCALING_DYNAMIC) |   \
     ONLY(DT_ROPE_SCALING_LLAMA3) | ONLY(DT_ROPE_SCALING_YARN))

/* Rows that the families derived from Llama share. */
extern const struct dt_tensor_spec dt_llama_tensors[], dt_gemma3_tensors[];
extern const struct dt_extra_spec dt_llama_extras[];

/* clang-format off */
/* Rows of queries, keys and values, of the output of attention, and of a gated MLP without biases,
 * in the names of Llama. */
#define LLAMA_QKV \
    {DT_ROLE_Q_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_proj.weight", \
     DT_DIMENSION_QUERIES, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED}, \
    {DT_ROLE_Q_BIAS, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.q_proj.bias", \
     DT_DIMENSION_QUERIES}, \
    {DT_ROLE_K_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_proj.weight", \
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED}, \
    {DT_ROLE_K_BIAS, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.k_proj.bias", \
     DT_DIMENSION_KEYS}, \
    {DT_ROLE_V_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.v_proj.weight", \
     DT_DIMENSION_KEYS, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED}, \
    {DT_ROLE_V_BIAS, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.v_proj.bias", \
     DT_DIMENSION_KEYS}
#define LLAMA_ATTENTION_OUTPUT \
    {DT_ROLE_PROJECTION_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.o_proj.weight", \
     DT_DIMENSION_WIDTH, DT_DIMENSION_QUERIES, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL}, \
    {DT_ROLE_PROJECTION_BIAS, DT_TENSOR_SITE_BLOCK, "model.layers.%d.self_attn.o_proj.bias", \
     DT_DIMENSION_WIDTH}
#define SCORE_HEAD \
    {DT_ROLE_HEAD_WEIGHT, DT_TENSOR_SITE_LABELS, "score.weight", DT_DIMENSION_LABELS, \
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED}
#define CLASSIFIER_DENSE(name) \
    {DT_ROLE_HEAD_DENSE_WEIGHT, DT_TENSOR_SITE_LABELS, name ".weight", DT_DIMENSION_WIDTH, \
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED}, \
    {DT_ROLE_HEAD_DENSE_BIAS, DT_TENSOR_SITE_LABELS, name ".bias", DT_DIMENSION_WIDTH}
#define CLASSIFIER_HEAD(name) \
    {DT_ROLE_HEAD_WEIGHT, DT_TENSOR_SITE_LABELS, name ".weight", DT_DIMENSION_LABELS, \
     DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED}, \
    {DT_ROLE_HEAD_BIAS, DT_TENSOR_SITE_LABELS, name ".bias", DT_DIMENSION_LABELS}
#define LLAMA_MLP \
    {DT_ROLE_GATE_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.gate_proj.weight", \
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED}, \
    {DT_ROLE_UP_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.up_proj.weight", \
     DT_DIMENSION_INNER, DT_DIMENSION_WIDTH, DT_TENSOR_TRANSPOSED}, \
    {DT_ROLE_DOWN_WEIGHT, DT_TENSOR_SITE_BLOCK, "model.layers.%d.mlp.down_proj.weight", \
     DT_DIMENSION_WIDTH, DT_DIMENSION_INNER, DT_TENSOR_TRANSPOSED + DT_TENSOR_RESIDUAL}
/* clang-format on */

/* Sizes of a family with these names, the default of num_key_value_heads (null: H) and of head_dim
 * (0: C / H), and whether these may be null. */
#define LLAMA_SIZES(kv_heads, head) SIZES_WITH(NULLABLE, kv_heads, head)
#define SIZES_WITH(use, kv_heads, head)                                                            \
    {"vocab_size", AT(vocab_size), DT_MEMBER_REQUIRED},                                            \
        {"max_position_embeddings", AT(max_seq_len), DT_MEMBER_REQUIRED},                          \
        {"hidden_size", AT(hidden_size), DT_MEMBER_REQUIRED},                                      \
        {"num_hidden_layers", AT(num_layers), DT_MEMBER_REQUIRED},                                 \
        {"num_attention_heads", AT(num_heads), DT_MEMBER_REQUIRED},                                \
        {"num_key_value_heads", AT(num_kv_heads), DT_MEMBER_##use, DT_MEMBER_INT, kv_heads},       \
        {"head_dim", AT(head_dim), DT_MEMBER_##use, DT_MEMBER_INT, head},                          \
    {                                                                                              \
        "intermediate_size", AT(intermediate_size), DT_MEMBER_REQUIRED                             \
    }

/* Reals. */
#define EPSILON(name, otherwise)                                                                   \
    {                                                                                              \
        name, AT(layer_norm_epsilon), DT_MEMBER_OPTIONAL, DT_MEMBER_POSITIVE, otherwise            \
    }
#define THETA(name, otherwise)                                                                     \
    {                                                                                              \
        name, AT(rope_theta), DT_MEMBER_OPTIONAL, DT_MEMBER_POSITIVE, otherwise                    \
    }
#define RATE(name, field, otherwise)                                                               \
    {                                                                                              \
        name, AT(field), DT_MEMBER_OPTIONAL, DT_MEMBER_REAL, otherwise                             \
    }

/* Truths. */
#define ATTENTION_BIAS                                                                             \
    {                                                                                              \
        "attention_bias", AT(attention_bias), DT_MEMBER_OPTIONAL, DT_MEMBER_BIAS                   \
    }
#define MLP_BIAS                                                                                   \
    {                                                                                              \
        "mlp_bias", AT(mlp_bias), DT_MEMBER_OPTIONAL, DT_MEMBER_TRUTH                              \
    }
/* otherwise: the end of an enum dt_gelu_name. */
#define GELU(name, otherwise)                                                                      \
    {                                                                                              \
        name, AT(gelu), DT_MEMBER_OPTIONAL, DT_MEMBER_GELU, DT_GELU_NAME_##otherwise               \
    }
#define CONFIGURED_BIASES (ONLY(DT_ATTENTION_BIAS_NONE) | ONLY(DT_ATTENTION_BIAS_ALL))

/* The families: an enumerator, a row here, and family-NAME.c. */
#define DT_EACH_FAMILY(F)                                                                          \
    F(gpt2)                                                                                        \
    F(llama)                                                                                       \
    F(bert)                                                                                        \
    F(distilbert)                                                                                  \
    F(olmo2)                                                                                       \
    F(mistral)                                                                                     \
    F(qwen2)                                                                                       \
    F(qwen3)                                                                                       \
    F(smollm3)                                                                                     \
    F(granite)                                                                                     \
    F(phi3)                                                                                        \
    F(gemma)                                                                                       \
    F(gemma2)                                                                                      \
    F(gemma3_text)                                                                                 \
    F(gpt_neox)                                                                                    \
    F(roberta)                                                                                     \
    F(modernbert)                                                                                  \
    F(stablelm)

#define DT_DECLARE_FAMILY(family) extern const struct dt_family_descriptor dt_family_##family;
DT_EACH_FAMILY(DT_DECLARE_FAMILY)

#endif
