/* SPDX-License-Identifier: MIT */
/*
 * Training of a tokenizer on documents: byte-level BPE or WordPiece. Pieces are counted on
 * several threads as the documents come; only the counts stay in memory. The
 * result depends on nothing but the documents and the options.
 *
 *     DT_TRY(dt_bpe_trainer_new(&trainer, &options, err));
 *     dt_bpe_trainer_add(trainer, text, size);               for each document
 *     DT_TRY(dt_bpe_trainer_finish(trainer, &tokenizer, err));
 *     dt_bpe_trainer_free(trainer);
 *
 * Ids of BPE: the 256 bytes in dt_byte_level_order, then a token a merge, then
 * the special tokens in the order given. Ids of WordPiece: [PAD], [UNK], [CLS],
 * [SEP], [MASK], the special tokens given, the characters by code, each that
 * stands inside of words with "##" after all that begin them, then a token a
 * merge.
 */
#ifndef DT_TOKEN_VOCAB_TRAINER_H
#define DT_TOKEN_VOCAB_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "token/tokenizer.h"

struct dt_bpe_trainer_options {
    const char *pattern;    /* one of dt_pattern_names; for BPE */
    uint32_t size;          /* of the vocabulary: bytes, merges and special tokens */
    uint64_t min_frequency; /* a pair that occurs less often is not merged; 1 or more */
    const char **specials;  /* UTF-8; borrowed until the trainer is freed */
    int special_count;
    int threads;
    bool word_piece;   /* and not BPE */
    bool cased;        /* WordPiece: keep capitals and accents */
    uint32_t alphabet; /* WordPiece: at most that many characters, the most frequent */
};

struct dt_bpe_trainer;

/* DT_EINVALID if the options are impossible. */
int dt_bpe_trainer_new(struct dt_bpe_trainer **trainer,
                       const struct dt_bpe_trainer_options *options,
                       struct dt_error *err) DT_MUST_CHECK;
/* text is copied. */
void dt_bpe_trainer_add(struct dt_bpe_trainer *trainer, const char *text, size_t size);
/* *t is owned by the caller. It is smaller than asked for if the documents have
 * too few frequent pairs. */
int dt_bpe_trainer_finish(struct dt_bpe_trainer *trainer, struct dt_tokenizer **t,
                          struct dt_error *err) DT_MUST_CHECK;
void dt_bpe_trainer_free(struct dt_bpe_trainer *trainer); /* NULL is fine */

#endif
