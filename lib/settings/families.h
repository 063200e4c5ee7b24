/* SPDX-License-Identifier: MIT */
/*
 * Model families: one descriptor each, from which everything else follows: the tensor table,
 * forward and backward, FLOPs and cost model, config.json, safetensors and GGUF, and the checks
 * of a configuration.
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

/* model.name. config.json calls a Llama with qk_norm "qwen3". */
enum dt_family {
    DT_FAMILY_GPT2,
    DT_FAMILY_LLAMA,
    DT_FAMILY_BERT,
    DT_FAMILY_DISTILBERT,
    DT_FAMILY_OLMO2,
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
    DT_ROLE_HEAD_WEIGHT, /* V x C; absent: tied to the token embedding */
    DT_ROLE_HEAD_BIAS,   /* V */
    DT_ROLE_COUNT,
    DT_ROLE_NONE = DT_ROLE_COUNT
};

/* Sizes of tensors, in terms of the configuration. */
enum dt_dimension {
    DT_DIMENSION_ONE = 0, /* the columns of a vector */
    DT_DIMENSION_VOCABULARY,
    DT_DIMENSION_POSITIONS,
    DT_DIMENSION_TYPES,   /* token types: 2 */
    DT_DIMENSION_WIDTH,   /* C */
    DT_DIMENSION_WIDTH3,  /* 3 C */
    DT_DIMENSION_KEYS,    /* dt_model_kv_width */
    DT_DIMENSION_HEAD,    /* D */
    DT_DIMENSION_QUERIES, /* H D */
    DT_DIMENSION_INNER    /* I */
};

/* Position of a tensor in the table. A name's %d is the index of the block, or where noted that
 * of the block before. */
enum dt_tensor_site {
    DT_TENSOR_SITE_END,     /* ends a list */
    DT_TENSOR_SITE_BEFORE,  /* before the blocks */
    DT_TENSOR_SITE_FIRST,   /* at the entry of block 0 */
    DT_TENSOR_SITE_BETWEEN, /* at the entry of the other blocks; %d is the block before */
    DT_TENSOR_SITE_BLOCK,
    DT_TENSOR_SITE_AFTER /* after the blocks; %d is the last block */
};

/* Flags. */
enum dt_tensor_kind {
    DT_TENSOR_RESIDUAL = 1,   /* writes into the residual stream: smaller initial weights */
    DT_TENSOR_TRANSPOSED = 2, /* stored as output x input */
    DT_TENSOR_SCALE = 4,      /* a norm's weight, initially 1; other vectors are initially 0 */
    DT_TENSOR_SINUSOIDAL = 8, /* position embeddings with a sinusoidal initial value */
    /* The files' tensor of that name has the rows of several roles, in table order: */
    DT_TENSOR_FUSED = 16,        /* one after another (Phi-3) */
    DT_TENSOR_FUSED_BY_HEAD = 32 /* of head 0, then of head 1, ... (GPT-NeoX) */
};

struct dt_tensor_spec {
    enum dt_role role;
    enum dt_tensor_site site;
    const char *name; /* Hugging Face's */
    enum dt_dimension rows, columns;
    int kind; /* bitwise or of enum dt_tensor_kind */
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
    DT_MEMBER_OPTIONAL, /* may be absent, or null as transformers writes it */
    DT_MEMBER_REPEATED, /* a second name, written too; where given it must agree with the first */
    DT_MEMBER_ALIAS     /* likewise, not written */
};

struct dt_member_spec {
    const char *name; /* NULL ends a list */
    size_t offset;    /* of a long in struct dt_model_config */
    enum dt_member_use use;
};

/* A member that dt supports with one value only. */
struct dt_fixed_spec {
    const char *name; /* NULL ends a list */
    int value;        /* 0 and 1 are false and true of a switch */
    bool number;      /* an integer, not a switch */
    bool written;     /* because readers assume another value where it is absent */
    int otherwise;    /* what an absent member means */
};

/* Dropout rates. Where several names have one offset, the last one given is used. */
struct dt_rate_spec {
    const char *name; /* NULL ends a list */
    size_t offset;    /* of a double in struct dt_model_config */
    double otherwise;
};

/* model_type: one a family, or one with model.qk_norm (RMSNorm of queries and keys before RoPE) and
 * one without. */
struct dt_dialect_spec {
    const char *model_type; /* NULL ends a list */
    const char *architecture;
    bool qk_norm;
    long head_dim; /* what an absent head_dim means, and then it is written; 0: C / H */
};

struct dt_family_json {
    const struct dt_dialect_spec *dialects;
    const char *activation_name, *activation;
    const char *epsilon_name; /* NULL: the family has one value only */
    double epsilon;           /* where the file gives none */
    bool tied;                /* tie_word_embeddings where the file does not say */
    const struct dt_member_spec *members;
    const struct dt_fixed_spec *fixed;
    const struct dt_rate_spec *rates;
};

/* --- GGUF --- */

/* Names of tensors follow from roles (formats/gguf.c). */
struct dt_family_gguf {
    const char *architecture; /* general.architecture, and the prefix of keys */
    const char *epsilon_key;
    bool permuted; /* rows of queries and keys are interleaved for RoPE */
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

enum dt_bias_kind { DT_BIAS_NONE, DT_BIAS_ALL };

enum dt_kv_heads_kind { DT_KV_HEADS_EQUAL, DT_KV_HEADS_GROUPED };

enum dt_tying_kind { DT_TYING_ALWAYS, DT_TYING_OPTIONAL };

enum dt_epsilon_kind { DT_EPSILON_FIXED, DT_EPSILON_CONFIGURED };

struct dt_family_descriptor {
    enum dt_norm_kind norm;
    enum dt_norm_placement norm_placement;
    enum dt_mlp_kind mlp;
    enum dt_position_kind positions;
    enum dt_objective_kind objective;
    enum dt_bias_kind biases; /* of linear maps */
    enum dt_kv_heads_kind kv_heads;
    enum dt_tying_kind tying; /* of the head to the token embedding */
    enum dt_epsilon_kind epsilon_kind;
    double epsilon;                       /* of norms where the configuration has 0 */
    const struct dt_tensor_spec *tensors; /* in table order */
    const struct dt_extra_spec *extras;
    const struct dt_family_json *json;
    const struct dt_family_gguf *gguf; /* NULL: not supported in GGUF */
};

/* The descriptor of a family; static. */
const struct dt_family_descriptor *dt_family_of(const struct dt_model_config *config);

#endif
