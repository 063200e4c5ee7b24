/* SPDX-License-Identifier: MIT */
/* Shared by gguf-read.c and gguf-write.c. */
#ifndef DT_FORMATS_GGUF_INTERNAL_H
#define DT_FORMATS_GGUF_INTERNAL_H

#include "formats/gguf.h"
#include "gguf/gguf-file.h"
#include "json/json.h"

enum dt_gguf_key_kind {
    DT_GGUF_KEY_INT,
    DT_GGUF_KEY_REAL,
    DT_GGUF_KEY_SAME,    /* an integer that must equal the member's */
    DT_GGUF_KEY_SCALING, /* the kind of RoPE scaling, a string */
    DT_GGUF_KEY_TRUTH,
    DT_GGUF_KEY_ROTARY /* rotary_dim; the member is its share of a head */
};

/* Members of config.json's rope_scaling begin with this. */
#define DT_GGUF_SCALING "rope_scaling."

/* A key, without its prefix "ARCHITECTURE.", and the member of config.json. */
struct dt_gguf_key {
    const char *key; /* NULL ends a list */
    const char *member;
    enum dt_gguf_key_kind kind;
    bool needed; /* a file without the key means another value than config.json without it */
};

struct dt_gguf_architecture {
    const char *name;       /* general.architecture, and the prefix of keys */
    const char *model_type; /* of config.json. Of two with one name, the first is read */
    const struct dt_gguf_key *keys;
    bool permuted; /* rows of queries and keys are interleaved for RoPE */
    bool tied;     /* output.weight, where it is stored, equals the token embedding */
    bool has_head; /* llama.cpp needs output.weight: a tied one is stored twice */
    const char
        *qkv_bias;    /* member whose value is whether the file has DT_GGUF_QKV_BIAS; NULL: none */
    bool has_factors; /* RoPE has the factors of rope_freqs.weight: llama3 scaling */
    /* What llama.cpp computes without a key: */
    int rope_skip_every; /* layer i has no RoPE if i + 1 is a multiple of it; 0: all have it */
    int window_period;   /* layer i is global if i + 1 is a multiple of it, unless the key
                          * attention.sliding_window_pattern has another number; 0: all are */
    int wide_layers; /* attention is scaled by 1 / sqrt(C / H) in models with this number of layers,
                      * by 1 / sqrt(D) in others; 0: config.json has no such scale */
};

#define DT_GGUF_QKV_BIAS "blk.0.attn_q.bias"

/* NULL: none. */
const struct dt_gguf_architecture *dt_gguf_architecture_of_name(struct dt_gguf_text name);
const struct dt_gguf_architecture *dt_gguf_architecture_of(const struct dt_model_config *config);
/* "gpt2, llama": the architectures, or config.json's model_type of each. Owned by the caller. */
char *dt_gguf_architecture_list(void);
char *dt_gguf_model_type_list(void);

/* DT_EFORMAT names a key of the file's architecture that has no row and matters. */
int dt_gguf_check_keys(const struct dt_gguf_architecture *a, const struct dt_gguf_file *file,
                       struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID names a member of config.json that has no row and matters, or whose value llama.cpp
 * takes to be another one; config is c as JSON. */
int dt_gguf_check_members(const struct dt_gguf_architecture *a, const struct dt_model_config *c,
                          struct json_object *config, struct dt_error *err) DT_MUST_CHECK;
/* n, where llama.cpp scales attention by 1 / sqrt(n); a->wide_layers > 0. */
int64_t dt_gguf_query_scalar(const struct dt_gguf_architecture *a, const struct dt_model_config *c);

/* With llama3 scaling: what RoPE's frequencies are divided by, of dt_rope_columns / 2. */
#define DT_GGUF_FACTORS "rope_freqs.weight"
#define DT_GGUF_LOW     1 /* low_freq_factor and high_freq_factor of published models: the file */
#define DT_GGUF_HIGH    4 /* does not have them */
void dt_gguf_rope_factors(const struct dt_model_config *config, float *factors);

/* Whether p and q are rows of one tensor of the file: queries, keys and values, or gate and up. */
bool dt_gguf_is_fused(const struct dt_gguf_architecture *a, const struct dt_param *p,
                      const struct dt_param *q);
/* Writes the name of a parameter in GGUF to name; returns false if GGUF does not have it. */
bool dt_gguf_name(const struct dt_gguf_architecture *a, const struct dt_param *p, char name[64]);
/* Whether the file stores the transpose of the table's matrix. */
bool dt_gguf_is_transposed(const struct dt_param *p);
/* Whether the file stores 1 + the weight: a norm of Gemma. */
bool dt_gguf_is_shifted(const struct dt_model_config *config, const struct dt_param *p);
/* The number of heads whose rows are permuted for RoPE; 0: not permuted. */
int64_t dt_gguf_permuted_heads(const struct dt_gguf_architecture *a,
                               const struct dt_model_config *config, const struct dt_param *p);
/* Permutes the rows of each head from Hugging Face's order (halves) to GGUF's (interleaved), or
 * back. */
void dt_gguf_permute(float *to, const float *from, int64_t rows, int64_t columns, int64_t heads,
                     bool back);
void dt_gguf_transpose(float *to, const float *from, int64_t rows, int64_t columns);

#endif
