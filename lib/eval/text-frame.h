/* SPDX-License-Identifier: MIT */
/*
 * How a causal model begins and ends a text, from its files.
 *
 * A text begins with the tokens of the tokenizer's template (post_processor), as readers of
 * tokenizer.json put them; without a template with the end-of-text token, as dt-shard separates
 * documents; with nothing where tokenizer_config.json has "add_bos_token": false, and with
 * bos_token_id, if given, where it has true. It ends at the
 * end-of-text token and at each eos_token_id.
 */
#ifndef DT_EVAL_TEXT_FRAME_H
#define DT_EVAL_TEXT_FRAME_H

#include "formats/text-tokens.h"
#include "token/tokenizer.h"

struct dt_text_frame {
    struct dt_frame frame;        /* before and after a text */
    bool in_tokenizer;            /* the tokenizer's template says so */
    struct dt_text_tokens tokens; /* with the end-of-text token among the ends */
};

/* model: path of a directory or GGUF file; NULL: the tokenizer alone decides. Release with
 * dt_text_frame_release, also after a failure. */
int dt_text_frame_read(struct dt_text_frame *frame, const struct dt_tokenizer *tokenizer,
                       const char *model, struct dt_error *err) DT_MUST_CHECK;
void dt_text_frame_release(struct dt_text_frame *frame);
/* Whether a token ends a text. */
bool dt_text_frame_ends(const struct dt_text_frame *frame, uint32_t id);
/* Makes a token end texts; DT_NO_TOKEN changes nothing, nor does one above DT_TEXT_ENDS. */
void dt_text_frame_add_end(struct dt_text_frame *frame, uint32_t id);

#endif
