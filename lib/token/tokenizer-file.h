/* SPDX-License-Identifier: MIT */
/* What the readers of tokenizer files share, inside lib/token. */
#ifndef DT_TOKEN_TOKENIZER_FILE_H
#define DT_TOKEN_TOKENIZER_FILE_H

#include <json-c/json.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "token/vocabulary.h"

/* Adds all tokens of {"spelled token": id}, but those that added, an object
 * {"text": added token} or NULL, holds too. What is spelled outside the
 * byte-level alphabet stands for itself. */
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

/* Loads a tokenizer.json. *t may be set after a failure too: free it. */
int dt_tokenizer_load_json(struct dt_tokenizer **t, const char *path,
                           struct dt_error *err) DT_MUST_CHECK;

#endif
