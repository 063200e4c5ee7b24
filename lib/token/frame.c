/* SPDX-License-Identifier: MIT */
/* Tokens around documents. */
#include <string.h>

#include "token/vocabulary.h"

const char *const dt_frame_policies[] = {"auto", "none", "eot", "bos", "bos-eot", "template", NULL};

static int use_template(const struct dt_tokenizer *t, struct dt_frame *frame, struct dt_error *err)
{
    if (t->before.count + t->after.count == 0)
        return dt_fail(err, DT_EINVALID, "the tokenizer's file has no template for documents");
    frame->before_count = t->before.count;
    frame->after_count = t->after.count;
    if (t->before.count)
        memcpy(frame->before, t->before.data, t->before.count * sizeof *frame->before);
    if (t->after.count)
        memcpy(frame->after, t->after.data, t->after.count * sizeof *frame->after);
    return 0;
}

int dt_tokenizer_frame(const struct dt_tokenizer *t, enum dt_frame_policy policy,
                       struct dt_frame *frame, struct dt_error *err)
{
    bool bos = policy == DT_FRAME_BOS || policy == DT_FRAME_BOS_EOT;
    bool eot = policy == DT_FRAME_EOT || policy == DT_FRAME_BOS_EOT;
    *frame = (struct dt_frame){.before_count = 0};
    if (policy == DT_FRAME_AUTO && t->model == DT_TOKEN_WORD_PIECE)
        return t->before.count + t->after.count ? use_template(t, frame, err) : 0;
    if (policy == DT_FRAME_TEMPLATE)
        return use_template(t, frame, err);
    if (policy == DT_FRAME_AUTO)
        eot = t->eot != DT_NO_TOKEN;
    if (bos && t->bos == DT_NO_TOKEN)
        return dt_fail(err, DT_EINVALID, "the tokenizer has no token that begins documents");
    if (eot && t->eot == DT_NO_TOKEN)
        return dt_fail(err, DT_EINVALID, "the tokenizer has no token that ends documents");
    frame->before_count = bos;
    frame->before[0] = t->bos;
    frame->after_count = eot;
    frame->after[0] = t->eot;
    return 0;
}
