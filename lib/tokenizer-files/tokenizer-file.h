/* SPDX-License-Identifier: MIT */
/* Shared by the readers of tokenizer files; private to lib/tokenizer-files. */
#ifndef DT_TOKENIZER_FILES_TOKENIZER_FILE_H
#define DT_TOKENIZER_FILES_TOKENIZER_FILE_H

#include "json/json.h"
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "token/vocabulary.h"

#define DT_TOKENIZER_LIMIT ((size_t)1 << 28) /* bytes of a file */

/* Adds the tokens of {"token": id}, except those in added, {"content": added token} or NULL.
 * Tokens are in the byte-level alphabet; a token outside it, and every token of WordPiece, is
 * plain text. */
int dt_tokenizer_add_vocabulary(struct dt_tokenizer *t, struct json_object *vocabulary,
                                struct json_object *added, const char *path,
                                struct dt_error *err) DT_MUST_CHECK;

/* Adds the merge of two tokens in the byte-level alphabet. Both and the result must be in the
 * vocabulary. location ("FILE:LINE") prefixes errors. */
int dt_tokenizer_add_spelled_merge(struct dt_tokenizer *t, const char *left, size_t left_size,
                                   const char *right, size_t right_size, const char *location,
                                   struct dt_error *err) DT_MUST_CHECK;
/* The same from "left right". */
int dt_tokenizer_add_merge_line(struct dt_tokenizer *t, const char *line, size_t size,
                                const char *location, struct dt_error *err) DT_MUST_CHECK;

/* An empty WordPiece tokenizer with BERT's normalization, lower-casing or not. */
struct dt_tokenizer *dt_tokenizer_new_word_piece(bool lower);

/* Readers. pattern is the user's choice or NULL. The caller frees *t also after a failure. */
typedef int dt_tokenizer_reader(struct dt_tokenizer **t, const char *path,
                                const struct dt_pattern *pattern, struct dt_error *err);
dt_tokenizer_reader dt_tokenizer_load_json;     /* tokenizer.json, tekken.json */
dt_tokenizer_reader dt_tokenizer_load_tiktoken; /* lines of "base64 rank" */
dt_tokenizer_reader dt_tokenizer_load_bert;     /* vocab.txt */
dt_tokenizer_reader dt_tokenizer_load_model;    /* tokenizer.model: SentencePiece or tiktoken */
dt_tokenizer_reader dt_tokenizer_load_gguf;     /* a model's file for llama.cpp */

/* The type of a component {"type": ...} of tokenizer.json; "null" for null. */
const char *dt_tokenizer_component_type(struct json_object *component);
bool dt_tokenizer_component_is(struct json_object *component, const char *name);

/* A model of tokenizer.json. read_vocabulary adds the tokens, except those in added, {"content":
 * added token}, which follow; read_rest reads the rest of the model. */
struct dt_model_format {
    const char *name; /* "type" */
    enum dt_token_model model;
    int (*read_vocabulary)(struct dt_tokenizer *t, struct json_object *model,
                           struct json_object *added, const char *path, struct dt_error *err);
    int (*read_rest)(struct dt_tokenizer *t, struct json_object *model, const char *path,
                     struct dt_error *err);
};
const struct dt_model_format *dt_model_format_find(const char *name); /* NULL if unknown */

/* Reads the template of special tokens around a document; post may be NULL. */
int dt_tokenizer_read_post_processor(struct dt_tokenizer *t, struct json_object *post,
                                     const char *path, struct dt_error *err) DT_MUST_CHECK;

/* Fills t, from dt_tokenizer_new(NULL), from a parsed tekken.json. */
int dt_tokenizer_fill_from_tekken(struct dt_tokenizer *t, struct json_object *root,
                                  const struct dt_pattern *pattern, const char *path,
                                  struct dt_error *err) DT_MUST_CHECK;

#endif
