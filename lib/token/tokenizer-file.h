/* SPDX-License-Identifier: MIT */
/* What the readers of tokenizer files share, inside lib/token. */
#ifndef DT_TOKEN_TOKENIZER_FILE_H
#define DT_TOKEN_TOKENIZER_FILE_H

#include "json/json.h"
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "token/vocabulary.h"

#define DT_TOKENIZER_LIMIT ((size_t)1 << 28) /* bytes of a file */

/* Adds all tokens of {"spelled token": id}, but those that added, an object
 * {"text": added token} or NULL, holds too. What is spelled outside the
 * byte-level alphabet stands for itself; in a vocabulary of WordPiece, all is. */
int dt_tokenizer_add_vocabulary(struct dt_tokenizer *t, struct json_object *vocabulary,
                                struct json_object *added, const char *path,
                                struct dt_error *err) DT_MUST_CHECK;

/* Adds the merge of two spelled tokens; they and what they make must be in the
 * vocabulary. place ("FILE:LINE") begins the errors. */
int dt_tokenizer_add_spelled_merge(struct dt_tokenizer *t, const char *left, size_t left_size,
                                   const char *right, size_t right_size, const char *place,
                                   struct dt_error *err) DT_MUST_CHECK;
/* The same from "left right". */
int dt_tokenizer_add_merge_line(struct dt_tokenizer *t, const char *line, size_t size,
                                const char *place, struct dt_error *err) DT_MUST_CHECK;

/* A tokenizer of WordPiece, of no token yet, with BERT's rules for text in lower
 * case or not. */
struct dt_tokenizer *dt_tokenizer_new_word_piece(bool lower);

/* The readers, a file each. pattern is the user's or NULL. *t may be set after a
 * failure too: free it. */
typedef int dt_tokenizer_reader(struct dt_tokenizer **t, const char *path,
                                const struct dt_pattern *pattern, struct dt_error *err);
dt_tokenizer_reader dt_tokenizer_load_json;     /* tokenizer.json, tekken.json */
dt_tokenizer_reader dt_tokenizer_load_tiktoken; /* lines of "base64 rank" */
dt_tokenizer_reader dt_tokenizer_load_bert;     /* vocab.txt */

/* Fills t, a tokenizer without model and pattern, from a parsed file of one kind. */
int dt_tokenizer_fill_from_tekken(struct dt_tokenizer *t, struct json_object *root,
                                  const struct dt_pattern *pattern, const char *path,
                                  struct dt_error *err) DT_MUST_CHECK;

#endif
