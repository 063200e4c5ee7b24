/* SPDX-License-Identifier: MIT */
/* The special tokens around documents. */
#include <string.h>

#include "token/vocabulary.h"

const char *const dt_frame_policies[] = {
    [DT_FRAME_AUTO] = "auto",       [DT_FRAME_NONE] = "none",
    [DT_FRAME_EOT] = "eot",         [DT_FRAME_BOS] = "bos",
    [DT_FRAME_BOS_EOT] = "bos-eot", [DT_FRAME_TEMPLATE] = "template",
    [DT_FRAME_TEMPLATE + 1] = NULL,
};

static int use_template(const struct dt_tokenizer *t, struct dt_frame *frame, struct dt_error *err)
{
    if (t->before.count + t->after.count == 0)
        return dt_fail(err, DT_EINVALID,
                       "the tokenizer's file does not define a template for documents: choose "
                       "another --frame");
    frame->before_count = t->before.count;
    frame->after_count = t->after.count;
    if (t->before.count)
        memcpy(frame->before, t->before.data, t->before.count * sizeof *frame->before);
    if (t->after.count)
        memcpy(frame->after, t->after.data, t->after.count * sizeof *frame->after);
    return 0;
}

static int use_tokens(const struct dt_tokenizer *t, bool bos, bool eot, struct dt_frame *frame,
                      struct dt_error *err)
{
    if (bos && t->bos == DT_NO_TOKEN)
        return dt_fail(err, DT_EINVALID, "the tokenizer does not define a beginning-of-text token");
    if (eot && t->eot == DT_NO_TOKEN)
        return dt_fail(err, DT_EINVALID, "the tokenizer does not define an end-of-text token");
    frame->before_count = bos;
    frame->before[0] = t->bos;
    frame->after_count = eot;
    frame->after[0] = t->eot;
    return 0;
}

static int use_default(const struct dt_tokenizer *t, struct dt_frame *frame, struct dt_error *err)
{
    if (!dt_vocabulary_is_word_piece(t))
        return use_tokens(t, false, t->eot != DT_NO_TOKEN, frame, err);
    return t->before.count + t->after.count ? use_template(t, frame, err) : 0;
}

int dt_tokenizer_frame(const struct dt_tokenizer *t, enum dt_frame_policy policy,
                       struct dt_frame *frame, struct dt_error *err)
{
    *frame = (struct dt_frame){.before_count = 0};
    switch (policy) {
    case DT_FRAME_AUTO:
        return use_default(t, frame, err);
    case DT_FRAME_NONE:
        return 0;
    case DT_FRAME_EOT:
        return use_tokens(t, false, true, frame, err);
    case DT_FRAME_BOS:
        return use_tokens(t, true, false, frame, err);
    case DT_FRAME_BOS_EOT:
        return use_tokens(t, true, true, frame, err);
    case DT_FRAME_TEMPLATE:
        return use_template(t, frame, err);
    }
    return dt_fail(err, DT_EINVALID, "unknown frame policy %d", (int)policy);
}

size_t dt_frame_fit(const struct dt_frame *f, const uint32_t *ids, size_t count, size_t most,
                    uint32_t *to)
{
    size_t around = f->before_count + f->after_count;
    size_t kept = count + around > most ? most - around : count;
    for (size_t i = 0; i < f->before_count; i++)
        *to++ = f->before[i];
    for (size_t i = 0; i < kept; i++)
        *to++ = ids[i];
    for (size_t i = 0; i < f->after_count; i++)
        *to++ = f->after[i];
    return kept + around;
}
