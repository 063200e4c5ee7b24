/* SPDX-License-Identifier: MIT */
/*
 * Conversations as text: a model's chat template, its special tokens, and which bytes of the text
 * a model learns to write.
 *
 *     struct dt_chat *chat;
 *     struct dt_conversation conversation;
 *     DT_TRY(dt_chat_open(&chat, "model", NULL, tokenizer, err));
 *     DT_TRY(dt_conversation_parse(&conversation, record, size, "data.jsonl:3", err));
 *     DT_TRY(dt_chat_training_text(chat, &conversation, DT_CHAT_LOSS_ASSISTANT, &text, &spans,
 *                                  err));
 */
#ifndef DT_CHAT_CHAT_H
#define DT_CHAT_CHAT_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "template/template.h"
#include "token/tokenizer.h"
#include "json/json.h"

/* A record of a data set. */
struct dt_conversation {
    struct json_object *messages; /* list of {"role", "content", ...}; NULL: prompt and completion
                                     are plain text */
    size_t given;                 /* messages of a prompt, which carry no loss */
    const char *prompt, *completion; /* of record, or shared; borrowed */
    char *shared;                    /* the prompt with which two texts begin; NULL: none */
    struct json_object *record;      /* may have "tools", "documents", "chat_template_kwargs" */
    struct json_object *tools;       /* of record, or the JSON that is a text there; NULL: none */
    char *subject;                   /* names the record in errors */
};

/* Reads an object with one of
 *
 *     messages                       [{"role": "user", "content": "..."}, ...]
 *     conversations                  [{"from": "human", "value": "..."}, ...], or as messages
 *     instruction, input?, output    one question and its answer
 *     prompt, completion             two texts, or two lists of messages
 *
 * and perhaps "system" beside the second and third. DT_EFORMAT names what is wrong. *c owns what
 * dt_conversation_release frees, also after a failure. */
int dt_conversation_parse(struct dt_conversation *c, const char *record, size_t size,
                          const char *subject, struct dt_error *err) DT_MUST_CHECK;
void dt_conversation_release(struct dt_conversation *c);
/* The same of a prompt and one of its answers, which are lists of messages or texts:
 *
 *     prompt, chosen, rejected       answer "chosen" or "rejected"
 *     chosen, rejected               the same; the prompt is what both begin with
 *     prompt                         answer NULL: the prompt alone
 *
 * The prompt that two texts share ends before a space that they share, too, as TRL's does. */
int dt_conversation_parse_answer(struct dt_conversation *c, const char *record, size_t size,
                                 const char *subject, const char *answer,
                                 struct dt_error *err) DT_MUST_CHECK;

struct dt_chat;

/* path: the tokenizer's file, or a model's directory or GGUF file, for the special tokens and the
 * template; template_path: another template, or NULL. t is borrowed. */
int dt_chat_open(struct dt_chat **chat, const char *path, const char *template_path,
                 const struct dt_tokenizer *t, struct dt_error *err) DT_MUST_CHECK;
void dt_chat_free(struct dt_chat *chat); /* NULL is fine */

/* Appends the messages and the beginning of an answer, as a model continues them. If the last
 * message is one of the assistant, the text ends with it, and the model continues that. */
int dt_chat_prompt(const struct dt_chat *chat, const struct dt_conversation *c,
                   struct dt_buffer *text, struct dt_error *err) DT_MUST_CHECK;

/* The special token with which the template ends an answer; DT_NO_TOKEN if it is not one. */
uint32_t dt_chat_end(const struct dt_chat *chat, const struct dt_tokenizer *t);

enum dt_chat_loss {
    DT_CHAT_LOSS_ASSISTANT, /* all answers, or the completion of a prompt */
    DT_CHAT_LOSS_LAST,      /* the last answer */
    DT_CHAT_LOSS_ALL        /* the whole text */
};
extern const char *const dt_chat_losses[]; /* names by enumerator, NULL-terminated */

/* Appends the whole conversation, and to spans the byte ranges that carry loss: what {% generation
 * %} blocks of the template wrote, or for a template without them what it writes after the
 * beginning of an answer up to the end of the message. DT_EFORMAT without an answer, or if the
 * template rewrites earlier messages, so that the end of an answer is not found. */
int dt_chat_training_text(const struct dt_chat *chat, const struct dt_conversation *c,
                          enum dt_chat_loss loss, struct dt_buffer *text,
                          struct dt_template_spans *spans, struct dt_error *err) DT_MUST_CHECK;

#endif
