/* SPDX-License-Identifier: MIT */
/*
 * Model families: one descriptor each, from which everything else follows: the tensor table,
 * forward and backward, FLOPs and cost model, config.json and safetensors, and the checks of a
 * configuration.
 *
 *     const struct dt_family_descriptor *family = dt_family_of(&config);
 *     if (family->mlp == DT_MLP_SWIGLU) ...
 *
 * To add a family: an enumerator here, a row in families-internal.h, its descriptor in
 * family-NAME.c, and, if it needs an operation that no other family has, an enumerator for it. Code
 * switches over these enumerators without `default`, so the compiler names every place that lacks
 * the new one.
 */
#ifndef DT_SETTINGS_FAMILIES_H
#define DT_SETTINGS_FAMILIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_model_config;

/* model.name, and model_type of config.json. */
enum dt_family {
    DT_FAMILY_GPT2,
    DT_FAMILY_LLAMA,
    DT_FAMILY_BERT,
    DT_FAMILY_DISTILBERT,
    DT_FAMILY_OLMO2,
    DT_FAMILY_MISTRAL,
    DT_FAMILY_QWEN2,
    DT_FAMILY_QWEN3,
    DT_FAMILY_SMOLLM3,
    DT_FAMILY_GRANITE,
    DT_FAMILY_PHI3,
    DT_FAMILY_GEMMA,
    DT_FAMILY_GEMMA2,
    DT_FAMILY_GEMMA3_TEXT,
    DT_FAMILY_GPT_NEOX,
    DT_FAMILY_ROBERTA,
    DT_FAMILY_MODERNBERT,
    DT_FAMILY_STABLELM,
    DT_FAMILY_COUNT
};
extern const char *const dt_family_names[]; /* by enum dt_family, ended by NULL */

/* --- tensors --- */

/* What a tensor is used for in forward. Shapes in elements, row-major; linear maps are given as
 * input x output, and DT_TENSOR_TRANSPOSED ones are stored as output x input.
 * C = hidden_size, H = num_heads, D = head_dim, V = vocab_size, I = intermediate_size. */
enum dt_role {
    DT_ROLE_TOKEN_EMBEDDING,    /* V x C */
    DT_ROLE_POSITION_EMBEDDING, /* max_seq_len x C */
    DT_ROLE_TYPE_EMBEDDING,     /* 2 x C: token types; row 0 is added to every token */
    DT_ROLE_NORM1_WEIGHT,       /* C; of attention */
    DT_ROLE_NORM1_BIAS,
    DT_ROLE_QKV_WEIGHT, /* C x 3C: queries, keys and values fused, or apart: */
    DT_ROLE_QKV_BIAS,
    DT_ROLE_Q_WEIGHT, /* C x H D */
    DT_ROLE_Q_BIAS,
    DT_ROLE_K_WEIGHT, /* C x dt_model_kv_width */
    DT_ROLE_K_BIAS,
    DT_ROLE_V_WEIGHT, /* C x dt_model_kv_width */
    DT_ROLE_V_BIAS,
    DT_ROLE_Q_NORM_WEIGHT, /* before RoPE: D, of each head of queries; H D, of all of them */
    DT_ROLE_K_NORM_WEIGHT,
    DT_ROLE_PROJECTION_WEIGHT, /* H D x C */
    DT_ROLE_PROJECTION_BIAS,
    DT_ROLE_NORM1_OUTPUT_WEIGHT, /* C; of attention's output, DT_NORM_PLACEMENT_BOTH */
    DT_ROLE_NORM2_WEIGHT,        /* C; of the MLP */
    DT_ROLE_NORM2_BIAS,
    DT_ROLE_GATE_WEIGHT, /* C x I */
    DT_ROLE_GATE_BIAS,
    DT_ROLE_UP_WEIGHT, /* C x I */
    DT_ROLE_UP_BIAS,
    DT_ROLE_DOWN_WEIGHT, /* I x C */
    DT_ROLE_DOWN_BIAS,
    DT_ROLE_NORM2_OUTPUT_WEIGHT, /* C; of the MLP's output, DT_NORM_PLACEMENT_BOTH */
    DT_ROLE_FINAL_NORM_WEIGHT,   /* C */
    DT_ROLE_FINAL_NORM_BIAS,
    DT_ROLE_HEAD_DENSE_WEIGHT, /* C x C: head transform, followed by activation and norm */
    DT_ROLE_HEAD_DENSE_BIAS,
    DT_ROLE_HEAD_NORM_WEIGHT, /* C */
    DT_ROLE_HEAD_NORM_BIAS,
    DT_ROLE_HEAD_WEIGHT, /* V x C; absent: tied to the token embedding. Of classifiers labels x C */
    DT_ROLE_HEAD_BIAS,   /* V, or labels */
    DT_ROLE_COUNT,
    DT_ROLE_NONE = DT_ROLE_COUNT
};
/* What tensor parallelism splits the weight of a linear map of a layer by; NONE: another tensor. */
enum dt_role_split { DT_ROLE_SPLIT_NONE, DT_ROLE_SPLIT_HEADS, DT_ROLE_SPLIT_CHANNELS };
enum dt_role_split dt_role_split_of(enum dt_role role);
/* Whether a tensor is the weight of a linear map of a layer. */
bool dt_role_is_layer_map(enum dt_role role);

/* Sizes of tensors, in terms of the configuration. */
enum dt_dimension {
    DT_DIMENSION_ONE = 0, /* the columns of a vector */
    DT_DIMENSION_VOCABULARY,
    DT_DIMENSION_LABELS,    /* num_labels */
    DT_DIMENSION_POSITIONS, /* max_seq_len + position_offset */
    DT_DIMENSION_TYPES,     /* token types: 2 */
    DT_DIMENSION_WIDTH,     /* C */
    DT_DIMENSION_WIDTH3,    /* 3 C */
    DT_DIMENSION_KEYS,      /* dt_model_kv_width */
    DT_DIMENSION_HEAD,      /* D */
    DT_DIMENSION_QUERIES,   /* H D */
    DT_DIMENSION_INNER      /* I */
};

/* Position of a tensor in the table. A name's %d is the index of the block, or where noted that
 * of the block before. */
enum dt_tensor_site {
    DT_TENSOR_SITE_END,     /* ends a list */
    DT_TENSOR_SITE_BEFORE,  /* before the blocks */
    DT_TENSOR_SITE_FIRST,   /* at the entry of block 0 */
    DT_TENSOR_SITE_BETWEEN, /* at the entry of the other blocks; %d is the block before */
    DT_TENSOR_SITE_LATER,   /* in the blocks but the first */
    DT_TENSOR_SITE_BLOCK,
    DT_TENSOR_SITE_AFTER, /* after the blocks; %d is the last block */
    DT_TENSOR_SITE_LABELS /* there, in place of roles HEAD_...: the head of classifiers */
};

/* Flags. */
enum dt_tensor_kind {
    DT_TENSOR_RESIDUAL = 1,   /* writes into the residual stream: smaller initial weights */
    DT_TENSOR_TRANSPOSED = 2, /* stored as output x input */
    DT_TENSOR_SCALE = 4,      /* a norm's weight, initially 1; other vectors are initially 0 */
    DT_TENSOR_SINUSOIDAL = 8, /* position embeddings with a sinusoidal initial value */
    DT_TENSOR_BY_HEAD = 16    /* with fused: the rows of head 0 of each, then of head 1, ... */
};

struct dt_tensor_spec {
    enum dt_role role;
    enum dt_tensor_site site;
    const char *name; /* Hugging Face's */
    enum dt_dimension rows, columns;
    int kind; /* bitwise or of enum dt_tensor_kind */
    /* Name of the tensor in files of weights that has the rows of this one after those of the
     * tensors before it with the same name; NULL: its own (Phi-3, GPT-NeoX, ModernBERT). */
    const char *fused;
};

/* Tensors that published checkpoints hold besides those of the table, and how dt checks that
 * ignoring them is right. */
enum dt_extra_kind {
    DT_EXTRA_SAME,         /* equals the tensor of a role (tied weights) */
    DT_EXTRA_CAUSAL_MASK,  /* max_seq_len x max_seq_len, 1 up to the diagonal */
    DT_EXTRA_MASKED_SCORE, /* the attention score of hidden tokens, at most -10000 */
    DT_EXTRA_FREQUENCIES,  /* RoPE's inverse frequencies */
    DT_EXTRA_POSITION_IDS, /* 0, 1, ... */
    DT_EXTRA_UNUSED        /* weights of heads for other tasks */
};

struct dt_extra_spec {
    const char *name; /* NULL ends a list; one that begins with '.' is a suffix */
    enum dt_extra_kind kind;
    enum dt_role same_as; /* with DT_EXTRA_SAME */
};

/* --- config.json --- */

enum dt_member_use {
    DT_MEMBER_REQUIRED,
    DT_MEMBER_OPTIONAL, /* absent: otherwise */
    DT_MEMBER_NULLABLE, /* the same, and null is the field's 0 */
    DT_MEMBER_REPEATED, /* a second name, written too; where given it must agree with the first */
    DT_MEMBER_ALIAS     /* likewise, not written */
};

/* What the file has for a field of struct dt_model_config. */
enum dt_member_kind {
    DT_MEMBER_INT,          /* long: an integer of at least 1 */
    DT_MEMBER_POSITIONS,    /* long: the same plus position_offset */
    DT_MEMBER_REAL,         /* double: a number of at least 0 */
    DT_MEMBER_POSITIVE,     /* double: a number above 0 */
    DT_MEMBER_INVERSE,      /* double x: 1 / x, above 0 */
    DT_MEMBER_INVERSE_ROOT, /* double x: 1 / x^2, above 0 */
    DT_MEMBER_SHARE,        /* long, rotary_dim: its share of the channels of a head */
    DT_MEMBER_TRUTH,        /* bool */
    DT_MEMBER_BIAS,         /* int: DT_ATTENTION_BIAS_NONE, or _ALL, or where the family does not
                             * have that, _QKV; as a truth */
    DT_MEMBER_GELU          /* int, gelu: enum dt_gelu_name, as a string */
};

/* Names of GELU in files, from 1 on; all but the last are its approximation by tanh. */
enum dt_gelu_name {
    DT_GELU_NAME_PYTORCH_TANH = 1,
    DT_GELU_NAME_NEW,
    DT_GELU_NAME_FAST,
    DT_GELU_NAME_EXACT
};

struct dt_member_spec {
    const char *name; /* NULL ends a list */
    size_t offset;    /* of the field. Where several names have one, the last one given is used */
    enum dt_member_use use;
    enum dt_member_kind kind;
    double otherwise; /* in the file's terms; 0: the field is 0 */
};

/* A member that dt supports with one value only. */
struct dt_fixed_spec {
    const char *name;      /* NULL ends a list */
    const char *value;     /* as compact JSON */
    const char *otherwise; /* what an absent member means; NULL: value */
    bool written;          /* because readers assume another value where it is absent */
};

/* How the file tells which layers have a sliding window. Lists of layer_types are read in all but
 * the first. */
enum dt_local_layers {
    DT_LOCAL_LAYERS_NONE,     /* no layer */
    DT_LOCAL_LAYERS_ALL,      /* every layer (Mistral) */
    DT_LOCAL_LAYERS_UPPER,    /* with use_sliding_window, from max_window_layers on (Qwen) */
    DT_LOCAL_LAYERS_SKIPPING, /* with use_sliding_window, those without RoPE (SmolLM3) */
    DT_LOCAL_LAYERS_PAIRS,    /* the first of each two (Gemma 2) */
    DT_LOCAL_LAYERS_PATTERN,  /* all but the last of sliding_window_pattern (Gemma 3) */
    DT_LOCAL_LAYERS_MEMBER    /* all but multiples of global_every, a member (ModernBERT) */
};

struct dt_family_json {
    const char *architecture; /* the model of tokens; */
    const char *classifier;   /* of texts; NULL: none */
    bool tied;                /* tie_word_embeddings where the file does not say */
    const struct dt_member_spec *members;
    const struct dt_fixed_spec *fixed; /* NULL: none */
    const char *const *ignored; /* members without influence on logits, ended by NULL, besides those
                                 * that all families ignore */
    enum dt_local_layers local_layers;
    unsigned attention_biases; /* 1 << enum dt_attention_bias for each that it has */
    unsigned scalings;         /* 1 << enum dt_rope_scaling likewise */
    const char *scaling_name;  /* member of rope_scaling that is written with its kind */
    long original_length;      /* of longrope, where the file has no original_max_... */
};

/* --- the descriptor --- */

/* DT_NORM_RMS_PLUS_ONE multiplies by 1 + weight (Gemma); its weights are initially 0. */
enum dt_norm_kind { DT_NORM_LAYER, DT_NORM_RMS, DT_NORM_RMS_PLUS_ONE };

/* Where a block's norms are: before attention and MLP (GPT-2), after the residual additions
 * (the original transformer, BERT), of the outputs of attention and MLP (OLMo 2), or of inputs and
 * outputs (Gemma 2).
 *
 *     PRE    x = x + attention(norm1(x))         x = x + mlp(norm2(x))
 *     POST   x = norm2(x + attention(x))         x = norm1 of the next block(x + mlp(x))
 *     OUTPUT x = x + norm1(attention(x))         x = x + norm2(mlp(x))
 *     BOTH   x = x + norm1_output(attention(norm1(x)))
 *            x = x + norm2_output(mlp(norm2(x)))
 *
 * A post-norm block is computed as a pre-norm one whose residual stream continues from the
 * norm's output instead of its input. So norm1 of block 0 is the norm of the embeddings, that of
 * another block is the one that ends the block before, and the one that ends the last block is the
 * final norm. */
enum dt_norm_placement {
    DT_NORM_PLACEMENT_PRE,
    DT_NORM_PLACEMENT_POST,
    DT_NORM_PLACEMENT_OUTPUT,
    DT_NORM_PLACEMENT_BOTH
};

/* Biases of linear maps. CONFIGURED: attention_bias and mlp_bias. */
enum dt_bias_kind { DT_BIAS_NONE, DT_BIAS_ALL, DT_BIAS_CONFIGURED };

/* GEGLU: a gated MLP with GELU (Shazeer 2020). The activation of a head transform is the same. */
enum dt_mlp_kind {
    DT_MLP_GELU_TANH,
    DT_MLP_GELU_ERF,
    DT_MLP_SWIGLU,
    DT_MLP_GEGLU_TANH,
    DT_MLP_GEGLU_ERF
};

enum dt_position_kind { DT_POSITION_LEARNED, DT_POSITION_ROPE };

/* Next token with causal attention, or masked tokens with bidirectional attention. */
enum dt_objective_kind { DT_OBJECTIVE_CAUSAL, DT_OBJECTIVE_MASKED };

enum dt_kv_heads_kind { DT_KV_HEADS_EQUAL, DT_KV_HEADS_GROUPED };

enum dt_tying_kind { DT_TYING_ALWAYS, DT_TYING_OPTIONAL };

enum dt_epsilon_kind { DT_EPSILON_FIXED, DT_EPSILON_CONFIGURED };

/* RMSNorm of queries and keys before RoPE. Llama with qk_norm is Qwen3. */
enum dt_qk_norm_kind { DT_QK_NORM_NONE, DT_QK_NORM_ALWAYS };

/* The classifier of texts, from the final norm of one token to its labels: of the last token by a
 * linear map (Llama), or of the first by a linear map, an activation, and another one. */
enum dt_classifier_kind {
    DT_CLASSIFIER_LAST,
    DT_CLASSIFIER_FIRST_TANH,
    DT_CLASSIFIER_FIRST_RELU,
    DT_CLASSIFIER_FIRST_GELU
};

/* What embeddings are multiplied by. */
enum dt_embedding_scale_kind {
    DT_EMBEDDING_SCALE_NONE,
    DT_EMBEDDING_SCALE_ROOT,      /* sqrt(C) (Gemma) */
    DT_EMBEDDING_SCALE_CONFIGURED /* embedding_scale (Granite) */
};

struct dt_family_descriptor {
    enum dt_norm_kind norm;
    enum dt_norm_placement norm_placement;
    enum dt_mlp_kind mlp;
    enum dt_position_kind positions;
    enum dt_objective_kind objective;
    enum dt_bias_kind biases;
    enum dt_kv_heads_kind kv_heads;
    enum dt_tying_kind tying; /* of the head to the token embedding */
    enum dt_epsilon_kind epsilon_kind;
    double epsilon;                       /* of norms where the configuration has 0 */
    const struct dt_tensor_spec *tensors; /* in table order */
    const struct dt_extra_spec *extras;
    const struct dt_family_json *json;
    /* What most families do not have: */
    enum dt_qk_norm_kind qk_norm;
    enum dt_embedding_scale_kind embedding_scale;
    /* With DT_NORM_PLACEMENT_PRE: the norm of block 0 is that of the embeddings, and the residual
     * stream continues from its output (ModernBERT). */
    bool embedding_norm;
    int position_offset; /* position t has row t + position_offset (RoBERTa) */
    bool other_dropout;  /* transformers drops elsewhere than dt, whose rate must be 0 */
    enum dt_classifier_kind classifier; /* where json->classifier is not NULL */
};

/* The descriptor of a family; static. */
const struct dt_family_descriptor *dt_family_of(const struct dt_model_config *config);

/* The first member of config.json for the field at this offset of struct dt_model_config; NULL:
 * none. */
const struct dt_member_spec *dt_family_member_of(const struct dt_family_json *family,
                                                 size_t offset);

#endif
