/* SPDX-License-Identifier: MIT */
/*
 * A model in a file of GGUF version 3, as llama.cpp reads and writes it.
 *
 * Differences from Hugging Face's layout: tensor names; linear layers are always stored as
 * output x input; rows of Llama's query and key weights are permuted so that the two
 * channels of a RoPE pair are adjacent; norms of Gemma are stored as 1 + weight. Vectors and
 * learned position embeddings are always fp32.
 *
 * A model family needs, in formats/gguf.c:
 *
 * - a row of `architectures`: general.architecture, config.json's model_type, the keys, and whether
 *   queries and keys are permuted (where llama.cpp rotates adjacent channels), and what llama.cpp
 *   computes without a key;
 * - rows of keys: each pairs a GGUF key with a member of config.json. Shapes pass through
 *   config.json's reader and writer (settings/config-json.c), and so do their checks. A member
 *   without a row is refused in writing, unless it is false, null or listed in `silent`; a key
 *   without a row is refused in reading;
 * - a row of `names` for each enum dt_role that no other family has, or that this architecture
 *   names differently.
 */
#ifndef DT_FORMATS_GGUF_H
#define DT_FORMATS_GGUF_H

#include "model/model.h"
#include "json/json.h"

/* Q8_0: blocks of 32 int8 values with an fp16 scale. */
enum dt_gguf_weights { DT_GGUF_F32, DT_GGUF_F16, DT_GGUF_BF16, DT_GGUF_Q8_0 };

struct dt_gguf_options {
    const char *name; /* general.name, in UTF-8 */
    enum dt_gguf_weights type;
    struct json_object *tokenizer; /* a tokenizer.json to include; NULL: none */
    const char *tokenizer_path;    /* for errors */
    uint32_t bos;                  /* a token, or UINT32_MAX */
    const uint32_t *ends;  /* tokens that end a text; that which add_eos puts there is the first */
    int end_count;         /* at most DT_GGUF_ENDS, for which there are keys: else DT_EINVALID */
    bool add_bos, add_eos; /* put them around a text */
    const char *chat_template; /* NULL: none */
};

/* The model is on the cpu. */
int dt_gguf_write(const struct dt_model *model, const struct dt_gguf_options *options,
                  const char *path, struct dt_error *err) DT_MUST_CHECK;

/* Reads a model of any type that gguf-types.h decodes, to compute in this type. Refuses a file that
 * violates the format. */
int dt_gguf_read(struct dt_model **model, struct dt_device *dev, struct dt_model_use use,
                 const char *path, struct dt_error *err) DT_MUST_CHECK;
/* The configuration alone. */
int dt_gguf_read_config(struct dt_model_config *config, const char *path,
                        struct dt_error *err) DT_MUST_CHECK;
/* The parameters, into a flat arena (host memory) of the table of a whole model of the file's
 * configuration. Elements must be finite in the type compute. */
int dt_gguf_read_parameters(const struct dt_table *table, enum dt_dtype compute, const char *path,
                            float *parameters, struct dt_error *err) DT_MUST_CHECK;

/* Whether GGUF has the architecture of this configuration. */
bool dt_gguf_holds(const struct dt_model_config *config);

#endif
