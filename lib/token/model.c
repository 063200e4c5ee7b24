/* SPDX-License-Identifier: MIT */
#include "token/model.h"

void dt_model_work_release(struct dt_model_work *work)
{
    dt_bpe_work_release(&work->bpe);
}

/* The token equal to the whole piece, with ignore_merges; else DT_NO_TOKEN. */
static uint32_t whole_token(const struct dt_tokenizer *t, const unsigned char *piece, size_t size)
{
    if (!t->ignore_merges || size > t->longest)
        return DT_NO_TOKEN;
    uint32_t id = dt_tokenizer_find(t, (const char *)piece, size);
    return dt_tokenizer_is_special(t, id) ? DT_NO_TOKEN : id;
}

static size_t encode_bpe(const struct dt_tokenizer *t, struct dt_model_work *work,
                         const unsigned char *piece, size_t size, uint32_t *ids, size_t *ends)
{
    size_t count = 1, end = 0;
    ids[0] = whole_token(t, piece, size);
    if (ids[0] == DT_NO_TOKEN)
        count = dt_bpe_encode(t, &work->bpe, piece, size, ids);
    for (size_t i = 0; ends && i < count; i++)
        ends[i] = end += t->tokens[ids[i]].length;
    return count;
}

size_t dt_model_encode(const struct dt_tokenizer *t, struct dt_model_work *work,
                       const unsigned char *piece, size_t size, uint32_t *ids, size_t *ends)
{
    switch (t->model) {
    case DT_TOKEN_BPE_MERGES:
    case DT_TOKEN_BPE_RANKS:
        return encode_bpe(t, work, piece, size, ids, ends);
    case DT_TOKEN_WORD_PIECE:
        break;
    }
    return 0;
}
