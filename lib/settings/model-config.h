/* SPDX-License-Identifier: MIT */
/* The configuration of a model, as in configuration files and checkpoints. */
#ifndef DT_SETTINGS_MODEL_CONFIG_H
#define DT_SETTINGS_MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "settings/families.h"
#include "settings/lora.h"

/* How RoPE's angles depend on positions beyond the original context; as "rope_type" in
 * config.json. */
enum dt_rope_scaling {
    DT_ROPE_SCALING_NONE,
    DT_ROPE_SCALING_LINEAR,
    DT_ROPE_SCALING_DYNAMIC, /* NTK-aware, by the length of the sequence */
    DT_ROPE_SCALING_LLAMA3,
    DT_ROPE_SCALING_YARN,    /* Peng et al. 2023 */
    DT_ROPE_SCALING_LONGROPE /* Ding et al. 2024 */
};
extern const char *const dt_rope_scaling_names[]; /* by enumerator, ended by NULL */

/* Biases of attention's linear maps: of queries, keys and values (Qwen2), or of the output too. */
enum dt_attention_bias { DT_ATTENTION_BIAS_NONE, DT_ATTENTION_BIAS_QKV, DT_ATTENTION_BIAS_ALL };
extern const char *const dt_attention_bias_names[]; /* likewise */

/* How GELU is computed in the MLP: as the family does, its approximation by tanh, or exactly. */
enum dt_gelu { DT_GELU_DEFAULT, DT_GELU_TANH, DT_GELU_ERF };
extern const char *const dt_gelu_names[]; /* likewise */

#define DT_ROPE_PAIRS 128 /* of longrope: heads of at most 256 rotated channels */

struct dt_model_config {
    int family;             /* enum dt_family */
    long vocab_size;        /* V */
    long max_seq_len;       /* the longest context, in tokens */
    long hidden_size;       /* C */
    long num_layers;        /* L */
    long num_heads;         /* H */
    long head_dim;          /* 0 means C / H: dt_model_head_dim */
    long num_kv_heads;      /* heads of keys and values; H is a multiple of it; 0 means H */
    long intermediate_size; /* of the MLP; 0 means 4 C, with Llama 8/3 C up to a multiple of 64 */
    bool qk_norm;           /* RMSNorm of queries and keys; with Llama: Qwen3 */
    double layer_norm_epsilon; /* added to the variance, or to the mean square; 0 means 1e-12
                                * with BERT and DistilBERT, otherwise 1e-5 */
    double rope_theta;         /* base of RoPE */
    double initializer_range;  /* standard deviation of initial weights; 0 means 0.02 */
    bool tie_word_embeddings;  /* the head is the token embedding */
    double dropout; /* rate in training, of embeddings and of the outputs of attention and MLP */
    double attention_dropout; /* rate in training, of attention's weights */
    /* Members of families that have them; 0: not used, or a scale of 1. */
    int attention_bias; /* enum dt_attention_bias; of families whose biases are configured */
    bool mlp_bias;
    int gelu;                         /* enum dt_gelu */
    int rope_scaling;                 /* enum dt_rope_scaling */
    double rope_factor;               /* s: longest context / original context */
    long rope_original_length;        /* the context before scaling; 0 means max_seq_len */
    double rope_low_frequency_factor; /* llama3: wavelengths above original / low are scaled */
    double rope_high_frequency_factor;
    double rope_beta_fast, rope_beta_slow; /* yarn: turns over the original context */
    double rope_attention_factor;          /* yarn: of cosines and sines; 0: from the factor */
    /* longrope, from config.json only: what each pair's frequency is divided by. The long factors
     * if max_seq_len is above rope_original_length, whatever the length of a sequence, so that a
     * token's key does not depend on what follows. */
    double rope_short_factors[DT_ROPE_PAIRS], rope_long_factors[DT_ROPE_PAIRS];
    long rotary_dim;          /* rotated channels of each head, the first ones; 0 means D */
    double rope_local_theta;  /* base of RoPE, not scaled, in local layers; 0 means rope_theta */
    long rope_skip_every;     /* layer i has no RoPE if i + 1 is a multiple of it (SmolLM3) */
    long sliding_window;      /* keys that a query of a local layer attends to, itself included; of
                               * masked models, keys at a distance up to W / 2. 0: all layers are
                               * global */
    long global_every;        /* layer i is global if i mod global_every is global_first; 0: all */
    long global_first;        /* layers are local */
    double attention_scale;   /* of scores; 0 means 1 / sqrt(D) */
    double attention_softcap; /* c: a score s becomes c tanh(s / c) (Gemma 2) */
    double logit_softcap;     /* likewise of logits */
    double embedding_scale;   /* of embeddings (Granite); with Gemma 0 means sqrt(C) */
    double residual_scale;    /* of the outputs of attention and MLP (Granite) */
    double logit_scale;       /* logits are multiplied by it (Granite: 1 / logits_scaling) */
    bool parallel_residual;   /* x + attention(norm1(x)) + mlp(norm2(x)) (GPT-NeoX) */
    long num_labels;     /* of a classifier of texts, at least 2; 0: the head predicts tokens */
    struct dt_lora lora; /* the adapter that is trained; never of files */
};

#define DT_ROPE_THETA 10000 /* the default (Su et al. 2021) */

/* Replaces each 0 by its default, and values with the same meaning by one of them: Llama with
 * qk_norm by Qwen3, a head_dim of C / H by 0, sets of local layers by the least global_every. */
void dt_model_config_derive(struct dt_model_config *config);
/* The same, and DT_EINVALID if a value is out of range or not supported by the family. subject
 * begins errors: "FILE: model" or "FILE". */
int dt_model_config_check(struct dt_model_config *config, const char *subject,
                          struct dt_error *err) DT_MUST_CHECK;

/* Changes max_seq_len, of a loaded model too: scalings keep the original context. DT_EINVALID where
 * positions are a tensor, or where no scaling has factors for the length. */
int dt_model_config_set_context(struct dt_model_config *config, long context, const char *subject,
                                struct dt_error *err) DT_MUST_CHECK;

/* Whether the model has tensors of a role that its family lists: biases, norms of queries and keys
 * and the head depend on the configuration. */
bool dt_model_has_role(const struct dt_model_config *config, enum dt_role role);

/* Whether it is a masked model, with bidirectional attention (BERT, DistilBERT), or a causal one.
 */
bool dt_model_is_masked(const struct dt_model_config *config);

/* Logits of a token: V, or num_labels. */
long dt_model_logit_count(const struct dt_model_config *config);

/* DT_EINVALID if the model is a classifier of texts, which predicts no tokens. subject begins the
 * error. */
int dt_model_need_tokens(const struct dt_model_config *config, const char *subject,
                         struct dt_error *err) DT_MUST_CHECK;

/* The MLP's kind: the family's, with the GELU of the configuration. */
enum dt_mlp_kind dt_model_mlp(const struct dt_model_config *config);

/* Whether the MLP has a gate. */
bool dt_model_is_gated(const struct dt_model_config *config);

/* Whether positions are RoPE, not learned embeddings. */
bool dt_model_is_rotary(const struct dt_model_config *config);

/* A dimension in elements. */
int64_t dt_dimension_size(enum dt_dimension dimension, const struct dt_model_config *config);

/* D, channels of a head. */
int64_t dt_model_head_dim(const struct dt_model_config *config);

/* Columns of the queries: H D; of the keys, and of the values: D num_kv_heads. */
int64_t dt_model_query_width(const struct dt_model_config *config);
int64_t dt_model_kv_width(const struct dt_model_config *config);
/* Whether norms of queries and keys are of all heads, not of each (OLMo 2). */
bool dt_model_has_joint_qk_norm(const struct dt_model_config *config);

/* Keys that a query of the layer attends to at most, by sliding_window; 0: all. */
int64_t dt_model_window(const struct dt_model_config *config, int64_t layer);

/* Keys that a query attends to at context length T, in the mean over queries: T / 2 of causal
 * attention, T of bidirectional attention; with a window W, W less what the ends of the sequence
 * cut off. */
double dt_model_keys_seen(const struct dt_model_config *config, int64_t layer, int64_t length);
/* The same in the mean over layers. */
double dt_model_mean_keys_seen(const struct dt_model_config *config, int64_t length);

/* Floating-point operations of forward and backward for one token at context length T:
 * 6 N + 12 L A dt_model_mean_keys_seen, where N is the number of parameters in matrix products (not
 * in embedding look-ups) and A are the columns of the queries. Masked models: the part mask_rate
 * of the head, as only these tokens are targets. 4 N with an adapter, itself not counted: frozen
 * weights have no gradient. */
double dt_model_flops_per_token(const struct dt_model_config *config, int64_t length,
                                double mask_rate);

/* config.json of a Hugging Face model directory. A member that dt does not know, or a value that it
 * does not support, is DT_EFORMAT with its name. */
#define DT_CONFIG_FILE "config.json"
int dt_model_config_read(struct dt_model_config *config, const char *path,
                         struct dt_error *err) DT_MUST_CHECK;
/* eot: id of the token that begins and ends documents, or UINT32_MAX. */
int dt_model_config_write(const struct dt_model_config *config, uint32_t eot, const char *path,
                          struct dt_error *err) DT_MUST_CHECK;

/* The same as a JSON object: subject begins errors; what to_json returns is owned by the caller
 * (json_object_put). */
struct json_object;
int dt_model_config_from_json(struct dt_model_config *config, struct json_object *object,
                              const char *subject, struct dt_error *err) DT_MUST_CHECK;
struct json_object *dt_model_config_to_json(const struct dt_model_config *config, uint32_t eot);

#endif
