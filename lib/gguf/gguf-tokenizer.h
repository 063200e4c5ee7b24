/* SPDX-License-Identifier: MIT */
/*
 * Tokenizers in GGUF files, converted from and to the members of tokenizer.json.
 *
 *     tokenizer.ggml.model   tokenizer.json
 *     "gpt2"                 byte-level BPE, its pattern by tokenizer.ggml.pre
 *     "llama"                BPE of characters with byte_fallback, as converted from SentencePiece:
 *                            a merge's rank is the order of its token's score
 *
 * To add a pre-tokenizer: a row of the table in gguf-tokenizer-kinds.c. Other tokenizers are
 * refused by name, in both directions.
 */
#ifndef DT_GGUF_GGUF_TOKENIZER_H
#define DT_GGUF_GGUF_TOKENIZER_H

#include "base/buffer.h"
#include "gguf/gguf-file.h"
#include "json/json.h"

/* Returns whether the file has a tokenizer. */
bool dt_gguf_has_tokenizer(const struct dt_gguf_file *file);

/* A tokenizer.json, owned by the caller (json_object_put). Its template (post_processor) has the
 * tokens that add_bos_token and add_eos_token ask for. DT_EMISSING if the file has no tokenizer. */
int dt_gguf_tokenizer_read(const struct dt_gguf_file *file, struct json_object **tokenizer,
                           struct dt_error *err) DT_MUST_CHECK;
/* The same from the file at a path. */
int dt_gguf_tokenizer_load(const char *path, struct json_object **tokenizer,
                           struct dt_error *err) DT_MUST_CHECK;

/* Keys of the tokens that end a text, ended by NULL: first the one that may be put after each text,
 * then those that end an answer. */
#define DT_GGUF_ENDS 3
extern const char *const dt_gguf_end_keys[DT_GGUF_ENDS + 1];

/* Makes the tokenizer of a tokenizer.json put tokens around each text; NULL: none on that side. */
struct dt_gguf_template {
    char *before, *after;
    int64_t before_id, after_id;
};
void dt_gguf_tokenizer_set_template(struct json_object *tokenizer,
                                    const struct dt_gguf_template *around);

/* Values as in a file, and their number. */
struct dt_gguf_values {
    struct dt_buffer bytes;
    uint64_t count;
};

void dt_gguf_add_number(struct dt_buffer *bytes, uint64_t number, size_t size);
void dt_gguf_add_text(struct dt_buffer *bytes, const char *text, size_t size);
void dt_gguf_begin_value(struct dt_gguf_values *values, const char *key, enum dt_gguf_kind kind);
void dt_gguf_add_string(struct dt_gguf_values *values, const char *key, const char *text);
void dt_gguf_add_u32(struct dt_gguf_values *values, const char *key, uint32_t number);
void dt_gguf_add_f32(struct dt_gguf_values *values, const char *key, double number);
void dt_gguf_add_bool(struct dt_gguf_values *values, const char *key, bool truth);

/* Adds the tokenizer of a parsed tokenizer.json, padded to size tokens, the model's, whose name,
 * general.name, tells llama.cpp which added tokens take white space. subject begins errors. Ids of
 * the beginning and the end of text are the caller's to add. */
int dt_gguf_tokenizer_write(struct dt_gguf_values *values, struct json_object *tokenizer, long size,
                            const char *name, const char *subject,
                            struct dt_error *err) DT_MUST_CHECK;

#endif
