/* SPDX-License-Identifier: MIT */
#include "eval/text-coder.h"

#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "eval/translation-words.h"

/* Some classes of transformers before 5 obey add_bos_token; others, and 5, only the template. */
static void warn_of_other_beginning(const struct dt_text_frame *f, const char *model)
{
    bool begins = f->in_tokenizer && f->frame.before_count > 0;
    if (f->tokens.adds_bos >= 0 && begins != (f->tokens.adds_bos == 1))
        dt_program_warn("warning: %s says add_bos_token %s, but its tokenizer's template puts %s "
                        "before a text: prompts begin %s, as the template says",
                        model, f->tokens.adds_bos ? "true" : "false",
                        begins ? "a token" : "no token", begins ? "with it" : "without one");
}

int dt_text_coder_open(struct dt_text_coder *c, struct dt_scored_model *subject,
                       struct dt_error *err)
{
    c->subject = subject;
    DT_TRY(dt_text_frame_read(&c->frame, subject->tokenizer, subject->directory, err));
    warn_of_other_beginning(&c->frame, subject->directory);
    return 0;
}

void dt_text_coder_release(struct dt_text_coder *c)
{
    dt_text_frame_release(&c->frame);
}

static void add_beginning(const struct dt_text_coder *c, struct dt_ids *ids)
{
    if (c->frame.in_tokenizer && c->frame.frame.before_count > 0)
        dt_ids_append(ids, c->frame.frame.before, c->frame.frame.before_count);
}

void dt_text_coder_encode(const struct dt_text_coder *c, const char *text, size_t size,
                          struct dt_ids *ids)
{
    add_beginning(c, ids);
    dt_encoder_encode(c->subject->encoder, text, size, ids);
}

uint32_t dt_text_coder_prefix(const struct dt_text_coder *c)
{
    uint32_t bos = c->frame.tokens.bos;
    return bos != UINT32_MAX ? bos : dt_tokenizer_eot(c->subject->tokenizer);
}

/* ids: from the token at from on those of the answer. */
static int check_length(const struct dt_text_coder *c, const char *answer, size_t ids, size_t from,
                        struct dt_error *err)
{
    size_t most = (size_t)c->subject->model->config.max_seq_len;
    if (ids <= from)
        return dt_fail(err, DT_EFORMAT,
                       "the answer '%s' adds no token to those of its context, so that it has no "
                       "probability",
                       answer);
    if (ids - from <= most)
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "the answer '%s' has %zu tokens, and the model's context only %zu", answer,
                   ids - from, most);
}

/* As in lm-evaluation-harness: trailing white space of the context moves to the answer, since
 * tokens begin with it. The answer's tokens are those of context + answer after the first n, where
 * n is the number of the context's tokens; they are predicted from the context's tokens. */
int dt_text_coder_add_answer(const struct dt_text_coder *c, const char *context, const char *answer,
                             struct dt_likelihoods *l, struct dt_error *err)
{
    struct dt_ids ids = DT_IDS_EMPTY, before = DT_IDS_EMPTY;
    size_t kept = dt_translation_words_trim(context, strlen(context));
    char *text = dt_asprintf("%s%s", context, answer);
    if (kept > 0)
        add_beginning(c, &before);
    else if (dt_text_coder_prefix(c) != DT_NO_TOKEN)
        dt_ids_add(&before, dt_text_coder_prefix(c));
    dt_ids_append(&ids, before.data, before.count);
    dt_encoder_encode(c->subject->encoder, text, kept, &before);
    dt_encoder_encode(c->subject->encoder, text, strlen(text), &ids);
    for (size_t i = 0; i < before.count && i < ids.count; i++)
        ids.data[i] = before.data[i];
    size_t from = before.count > 0 ? before.count : 1;
    int rc = check_length(c, answer, ids.count, from, err);
    if (rc == 0)
        dt_likelihoods_add(l, dt_likelihoods_item(l), ids.data, ids.count, from);
    free(text);
    dt_ids_release(&ids);
    dt_ids_release(&before);
    return rc;
}
