/* SPDX-License-Identifier: MIT */
/* The configuration of a model, as in configuration files and checkpoints. */
#ifndef DT_SETTINGS_MODEL_CONFIG_H
#define DT_SETTINGS_MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "settings/families.h"

struct dt_model_config {
    int family;             /* enum dt_family */
    long vocab_size;        /* V */
    long max_seq_len;       /* the longest context, in tokens */
    long hidden_size;       /* C */
    long num_layers;        /* L */
    long num_heads;         /* H; C is a multiple of it */
    long num_kv_heads;      /* heads of keys and values; H is a multiple of it; 0 means H */
    long intermediate_size; /* of the MLP; 0 means 4 C, with Llama 8/3 C up to a multiple of 64 */
    bool qk_norm;           /* RMSNorm of each head of queries and keys, with Llama: Qwen3 */
    double layer_norm_epsilon; /* added to the variance, or to the mean square; 0 means 1e-12
                                * with BERT and DistilBERT, otherwise 1e-5 */
    double rope_theta;         /* base of RoPE */
    double initializer_range;  /* standard deviation of initial weights; 0 means 0.02 */
    bool tie_word_embeddings;  /* the head is the token embedding */
    double dropout; /* rate in training, of embeddings and of the outputs of attention and MLP */
    double attention_dropout; /* rate in training, of attention's weights */
};

#define DT_ROPE_THETA 10000 /* the default (Su et al. 2021) */

/* Replaces each 0 by its default. */
void dt_model_config_derive(struct dt_model_config *config);
/* The same, and DT_EINVALID if a value is out of range or not supported by the family. subject
 * begins errors: "FILE: model" or "FILE". */
int dt_model_config_check(struct dt_model_config *config, const char *subject,
                          struct dt_error *err) DT_MUST_CHECK;

/* Whether it is a masked model, with bidirectional attention (BERT, DistilBERT), or a causal one.
 */
bool dt_model_is_masked(const struct dt_model_config *config);

/* Whether positions are RoPE, not learned embeddings. */
bool dt_model_is_rotary(const struct dt_model_config *config);

/* A dimension in elements. */
int64_t dt_dimension_size(enum dt_dimension dimension, const struct dt_model_config *config);

/* Columns of the keys, and of the values: C num_kv_heads / H. */
int64_t dt_model_kv_width(const struct dt_model_config *config);

/* Floating-point operations of forward and backward for one token at context length T:
 * 6 N + 6 L C T, where N is the number of parameters in matrix products (not in embedding look-ups)
 * and causal attention counts half. Masked models: 12 L C T, and 15% of the head, as only these
 * tokens are targets. */
double dt_model_flops_per_token(const struct dt_model_config *config, int64_t length);

/* config.json of a Hugging Face model directory. */
#define DT_CONFIG_FILE "config.json"
int dt_model_config_read(struct dt_model_config *config, const char *path,
                         struct dt_error *err) DT_MUST_CHECK;
/* eot: id of the token that begins and ends documents, or UINT32_MAX. */
int dt_model_config_write(const struct dt_model_config *config, uint32_t eot, const char *path,
                          struct dt_error *err) DT_MUST_CHECK;

#endif
