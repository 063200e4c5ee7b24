/* SPDX-License-Identifier: MIT */
/* The reader of the model Unigram of tokenizer.json (struct dt_model_format). */
#ifndef DT_TOKENIZER_FILES_LOAD_UNIGRAM_H
#define DT_TOKENIZER_FILES_LOAD_UNIGRAM_H

#include "json/json.h"

#include "base/error.h"
#include "token/vocabulary.h"

int dt_unigram_read_vocabulary(struct dt_tokenizer *t, struct json_object *model,
                               struct json_object *added, const char *path,
                               struct dt_error *err) DT_MUST_CHECK;
/* Fills t->unigram. DT_EFORMAT without "unk_id", which `tokenizers` needs for some texts. */
int dt_unigram_read_json(struct dt_tokenizer *t, struct json_object *model, const char *path,
                         struct dt_error *err) DT_MUST_CHECK;

#endif
