/* SPDX-License-Identifier: MIT */
#include "token/model.h"

#include "steps/bert-words.h"
#include "token/word-piece.h"

void dt_model_work_init(struct dt_model_work *work, const struct dt_tokenizer *t)
{
    *work = (struct dt_model_work){.continues = false};
    if (t->model == DT_TOKEN_UNIGRAM)
        work->unigram = dt_unigram_work_new();
}

void dt_model_work_release(struct dt_model_work *work)
{
    dt_bpe_work_release(&work->bpe);
    dt_buffer_release(&work->word);
    dt_unigram_work_free(work->unigram);
}

size_t dt_model_longest_piece(const struct dt_tokenizer *t)
{
    return t->model == DT_TOKEN_UNIGRAM ? SIZE_MAX : DT_BPE_MAX_PIECE;
}

uint32_t dt_model_find_whole(const struct dt_tokenizer *t, const unsigned char *piece, size_t size)
{
    if (!t->ignore_merges || size > t->longest)
        return DT_NO_TOKEN;
    uint32_t id = dt_vocabulary_find(t, (const char *)piece, size);
    return dt_tokenizer_is_special(t, id) ? DT_NO_TOKEN : id;
}

static size_t encode_bpe(const struct dt_tokenizer *t, struct dt_model_work *work,
                         const unsigned char *piece, size_t size, uint32_t *ids, size_t *ends)
{
    uint32_t whole = dt_model_find_whole(t, piece, size);
    if (whole == DT_NO_TOKEN)
        return dt_bpe_encode(t, &work->bpe, piece, size, ids, ends);
    ids[0] = whole;
    if (ends)
        ends[0] = size;
    return 1;
}

static size_t encode_word_level(const struct dt_tokenizer *t, const unsigned char *piece,
                                size_t size, uint32_t *ids, size_t *ends)
{
    uint32_t id = dt_vocabulary_find(t, (const char *)piece, size);
    ids[0] = id == DT_NO_TOKEN ? t->unknown : id;
    if (ends)
        ends[0] = size;
    return ids[0] != DT_NO_TOKEN;
}

/* Copies the piece, which dt_word_piece_encode overwrites. */
static size_t encode_word_piece(const struct dt_tokenizer *t, struct dt_model_work *work,
                                const unsigned char *piece, size_t size, uint32_t *ids,
                                size_t *ends)
{
    size_t characters = 0;
    for (size_t i = 0; i < size; i++)
        characters += (piece[i] & 0xc0) != 0x80;
    dt_buffer_clear(&work->word);
    dt_buffer_append(&work->word, "##", DT_BERT_HEADROOM);
    dt_buffer_append(&work->word, piece, size);
    return dt_word_piece_encode(t, work->word.data + DT_BERT_HEADROOM, size, characters, ids, ends);
}

size_t dt_model_split(const struct dt_tokenizer *t, const unsigned char *text,
                      const unsigned char *end, size_t *ends, size_t capacity)
{
    if (t->cuts)
        return dt_bpe_cuts_split(t->cuts, text, end, ends, capacity);
    ends[0] = (size_t)(end - text);
    return 1;
}

static size_t encode_unigram(const struct dt_tokenizer *t, struct dt_model_work *work,
                             const unsigned char *piece, size_t size, uint32_t *ids, size_t *ends)
{
    if (!work->continues)
        dt_unigram_start(work->unigram);
    return dt_unigram_encode(t->unigram, work->unigram, (const char *)piece, size, ids, ends);
}

size_t dt_model_encode(const struct dt_tokenizer *t, struct dt_model_work *work,
                       const unsigned char *piece, size_t size, uint32_t *ids, size_t *ends)
{
    switch (t->model) {
    case DT_TOKEN_BPE_MERGES:
    case DT_TOKEN_BPE_RANKS:
        return encode_bpe(t, work, piece, size, ids, ends);
    case DT_TOKEN_WORD_LEVEL:
        return encode_word_level(t, piece, size, ids, ends);
    case DT_TOKEN_UNIGRAM:
        return encode_unigram(t, work, piece, size, ids, ends);
    case DT_TOKEN_WORD_PIECE:
        return encode_word_piece(t, work, piece, size, ids, ends);
    }
    return 0;
}

void dt_model_encode_pieces(const struct dt_tokenizer *t, struct dt_model_work *work,
                            struct dt_bpe_piece *pieces, size_t count)
{
    if (t->model == DT_TOKEN_BPE_MERGES || t->model == DT_TOKEN_BPE_RANKS) {
        dt_bpe_encode_pieces(t, &work->bpe, pieces, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        pieces[i].count =
            dt_model_encode(t, work, pieces[i].bytes, pieces[i].size, pieces[i].ids, NULL);
}
