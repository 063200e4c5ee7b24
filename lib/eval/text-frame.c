/* SPDX-License-Identifier: MIT */
#include "eval/text-frame.h"

bool dt_text_frame_ends(const struct dt_text_frame *f, uint32_t id)
{
    for (int i = 0; i < f->tokens.end_count; i++)
        if (f->tokens.ends[i] == id)
            return true;
    return false;
}

void dt_text_frame_add_end(struct dt_text_frame *f, uint32_t id)
{
    if (id != DT_NO_TOKEN && !dt_text_frame_ends(f, id) && f->tokens.end_count < DT_TEXT_ENDS)
        f->tokens.ends[f->tokens.end_count++] = id;
}

int dt_text_frame_read(struct dt_text_frame *f, const struct dt_tokenizer *t, const char *model,
                       struct dt_error *err)
{
    struct dt_error none;
    uint32_t eot = dt_tokenizer_eot(t);
    *f = (struct dt_text_frame){.tokens = {.bos = UINT32_MAX, .adds_bos = -1}};
    if (model)
        DT_TRY(dt_text_tokens_read(&f->tokens, model, dt_tokenizer_size(t), err));
    f->in_tokenizer = dt_tokenizer_frame(t, DT_FRAME_TEMPLATE, &f->frame, &none) == 0;
    uint32_t first = f->tokens.adds_bos == 1 && f->tokens.bos != UINT32_MAX ? f->tokens.bos : eot;
    if (!f->in_tokenizer && f->tokens.adds_bos != 0 && first != DT_NO_TOKEN)
        f->frame = (struct dt_frame){.before = {first}, .before_count = 1};
    if (f->frame.before_count > 0)
        f->tokens.bos = f->frame.before[0];
    dt_text_frame_add_end(f, eot);
    return 0;
}

void dt_text_frame_release(struct dt_text_frame *f)
{
    dt_text_tokens_release(&f->tokens);
}
