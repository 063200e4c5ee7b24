/* SPDX-License-Identifier: MIT */
/* A tiny model of each family, and the device of the tests. */
#ifndef TESTS_MODEL_TINY_MODELS_H
#define TESTS_MODEL_TINY_MODELS_H

#include "model/model.h"

static struct dt_device *dev;
static struct dt_error err;
#define TINY                                                                                       \
    .vocab_size = 19, .max_seq_len = 12, .hidden_size = 8, .num_layers = 2,                        \
    .initializer_range = 0.02
#define TINY_GPT2                                                                                  \
    TINY, .num_heads = 2, .num_kv_heads = 2, .intermediate_size = 32, .tie_word_embeddings = true
#define TINY_ROTARY TINY, .intermediate_size = 20, .layer_norm_epsilon = 1e-6, .rope_theta = 100
#define TINY_LLAMA  TINY_ROTARY, .family = DT_FAMILY_LLAMA

static const struct dt_model_config tiny = {TINY_GPT2, .layer_norm_epsilon = 1e-5};
/* GQA with two query heads per key head, and an untied output head. */
static const struct dt_model_config tiny_llama = {TINY_LLAMA, .num_heads = 4, .num_kv_heads = 2};
/* Llama with norms of queries and keys. */
static const struct dt_model_config tiny_qwen3 = {
    TINY_ROTARY, .family = DT_FAMILY_QWEN3, .num_heads = 2, .num_kv_heads = 1, .qk_norm = true};
/* Biases of queries, keys and values. */
static const struct dt_model_config tiny_qwen2 = {TINY_ROTARY, .family = DT_FAMILY_QWEN2,
                                                  .num_heads = 4, .num_kv_heads = 2,
                                                  .attention_bias = DT_ATTENTION_BIAS_QKV};
/* One layer of two without positions. */
static const struct dt_model_config tiny_smollm3 = {TINY_ROTARY, .family = DT_FAMILY_SMOLLM3,
                                                    .num_heads = 4, .num_kv_heads = 2,
                                                    .rope_skip_every = 2};
static const struct dt_model_config tiny_granite = {
    TINY_ROTARY,       .family = DT_FAMILY_GRANITE, .num_heads = 4,
    .num_kv_heads = 2, .embedding_scale = 3.5,      .residual_scale = 0.22};
/* Attention and MLP in parallel; two of four channels are rotated. */
static const struct dt_model_config tiny_gpt_neox = {TINY_ROTARY,     .family = DT_FAMILY_GPT_NEOX,
                                                     .num_heads = 2,  .num_kv_heads = 2,
                                                     .rotary_dim = 2, .parallel_residual = true};
/* Llama with norms of the outputs of attention and MLP, and of all heads of queries or keys
 * together. */
static const struct dt_model_config tiny_olmo2 = {
    TINY_ROTARY, .family = DT_FAMILY_OLMO2, .num_heads = 4, .num_kv_heads = 2, .qk_norm = true};
/* With a map of logits. */
static const struct dt_model_config tiny_capped = {TINY_LLAMA, .num_heads = 4, .num_kv_heads = 2,
                                                   .logit_scale = 0.7, .logit_softcap = 1.5};
/* Llama with heads wider than C / H, a window in its first layer, a scale and a soft cap. */
static const struct dt_model_config tiny_window = {
    TINY_LLAMA,        .num_heads = 2,         .num_kv_heads = 1,
    .head_dim = 6,     .sliding_window = 3,    .global_every = 2,
    .global_first = 1, .attention_scale = 0.6, .attention_softcap = 1.5};
static const struct dt_model_config tiny_bert = {TINY_GPT2, .family = DT_FAMILY_BERT,
                                                 .layer_norm_epsilon = 1e-12};
static const struct dt_model_config tiny_distilbert = {TINY_GPT2, .family = DT_FAMILY_DISTILBERT,
                                                       .layer_norm_epsilon = 1e-12};

/* Norms of inputs and outputs, whose weights have an offset of 1, and GEGLU. */
static const struct dt_model_config tiny_gemma2 = {
    TINY_ROTARY,       .family = DT_FAMILY_GEMMA2,  .num_heads = 4,
    .num_kv_heads = 2, .tie_word_embeddings = true, .embedding_scale = 2.828};
/* Pre-norm blocks after a norm of the embeddings, without biases. */
static const struct dt_model_config tiny_modernbert = {TINY_ROTARY, .family = DT_FAMILY_MODERNBERT,
                                                       .num_heads = 2, .num_kv_heads = 2,
                                                       .tie_word_embeddings = true};
/* Positions begin at row 2. */
static const struct dt_model_config tiny_roberta = {TINY_GPT2, .family = DT_FAMILY_ROBERTA,
                                                    .layer_norm_epsilon = 1e-12};

static inline int open_device(void **state)
{
    (void)state;
    if (dt_device_open(&dev, "cpu", 2, &err) == 0)
        return 0;
    print_error("%s\n", err.text);
    return -1;
}

static inline int close_device(void **state)
{
    (void)state;
    dt_device_close(dev);
    return 0;
}

static inline struct dt_model *new_model_of(const struct dt_model_config *config)
{
    struct dt_model *m;
    assert_int_equal(dt_model_new(&m, dev, config, DT_DTYPE_F32, &err), 0);
    dt_model_initialize(m, 3);
    for (int64_t i = 0; i < m->table.elements; i++) /* so that the logits are not uniform */
        m->parameters[i] *= 8;
    return m;
}

#endif
