/* SPDX-License-Identifier: MIT */
/*
 * The tokens around a text and the chat template, as the files of a model give them: config.json,
 * generation_config.json (whose ids precede) and tokenizer_config.json, or the values of a GGUF
 * file. Where the directory of an adapter gives no ids, those of its model count.
 */
#ifndef DT_FORMATS_TEXT_TOKENS_H
#define DT_FORMATS_TEXT_TOKENS_H

#include <stdint.h>

#include "base/error.h"

#define DT_GENERATION_CONFIG_FILE "generation_config.json"
#define DT_CHAT_TEMPLATE_FILE     "chat_template.jinja"
#define DT_SPECIAL_TOKENS_FILE    "special_tokens_map.json"
#define DT_TEXT_ENDS              8

struct dt_lineage;

struct dt_text_tokens {
    uint32_t bos;                /* UINT32_MAX: not given */
    uint32_t ends[DT_TEXT_ENDS]; /* tokens that end a text: eos_token_id, one or a list */
    int end_count;
    int adds_bos;        /* add_bos_token: 0 or 1; -1: not given */
    char *chat_template; /* NULL: none */
};

/* path: of a model's directory or GGUF file. Ids that are not below size, the number of tokens,
 * count as not given. Release with dt_text_tokens_release, also after a failure. */
int dt_text_tokens_read(struct dt_text_tokens *tokens, const char *path, uint32_t size,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_text_tokens_release(struct dt_text_tokens *tokens);

/* Writes generation_config.json into a directory. */
int dt_text_tokens_write(const struct dt_text_tokens *tokens, const char *directory,
                         struct dt_error *err) DT_MUST_CHECK;

/* Copies the chat template beside a tokenizer's file, or in a GGUF file, if there is one, to
 * chat_template.jinja in a directory. */
int dt_chat_template_copy(const char *tokenizer, const char *directory,
                          struct dt_error *err) DT_MUST_CHECK;

/* Adds a tokenizer, and those files beside it that chats and dt_chat_template_copy() read. */
int dt_text_tokens_add_inputs(const char *tokenizer, struct dt_lineage *lineage,
                              struct dt_error *err) DT_MUST_CHECK;

#endif
