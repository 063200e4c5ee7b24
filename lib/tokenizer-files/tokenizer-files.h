/* SPDX-License-Identifier: MIT */
/* Files of tokenizers: every kind of dt-tokenizer(5) is read, tokenizer.json is written. */
#ifndef DT_TOKENIZER_FILES_TOKENIZER_FILES_H
#define DT_TOKENIZER_FILES_TOKENIZER_FILES_H

#include "base/error.h"
#include "token/tokenizer.h"

/* Loads a tokenizer file, or the one in a directory. dt-tokenizer(5) lists the kinds; the file
 * name or, for JSON, the members select one. *t is owned by the caller. */
int dt_tokenizer_load(struct dt_tokenizer **t, const char *path,
                      struct dt_error *err) DT_MUST_CHECK;
/* The same, with the named pre-tokenizer pattern (dt_pattern_names) instead of the file's;
 * NULL: the file's. */
int dt_tokenizer_load_with(struct dt_tokenizer **t, const char *path, const char *pattern,
                           struct dt_error *err) DT_MUST_CHECK;
/* The same for a model's directory or GGUF file, with path, or the model's own if path is NULL;
 * where it has none, the error names the option -t. */
int dt_tokenizer_load_for_model(struct dt_tokenizer **t, const char *path, const char *model,
                                struct dt_error *err) DT_MUST_CHECK;

/* Prints a warning if a model's directory, or its GGUF file, has another tokenizer than t, which
 * was loaded from path. */
void dt_tokenizer_warn_of_other(const struct dt_tokenizer *t, const char *path, const char *model);

/* Writes a tokenizer.json atomically. DT_EINVALID for tiktoken-style ranks, which
 * tokenizer.json cannot represent. */
int dt_tokenizer_save(const struct dt_tokenizer *t, const char *path,
                      struct dt_error *err) DT_MUST_CHECK;

#endif
