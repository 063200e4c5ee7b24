/* SPDX-License-Identifier: MIT */
/*
 * Trains a tokenizer on documents: byte-level BPE, WordPiece or Unigram. A thread pool counts
 * pieces as documents are added; only the counts stay in memory. The result depends only on the
 * documents and the options.
 *
 *     DT_TRY(dt_vocab_trainer_new(&trainer, &options, err));
 *     dt_vocab_trainer_add(trainer, text, size);               for each document
 *     DT_TRY(dt_vocab_trainer_finish(trainer, &tokenizer, err));
 *     dt_vocab_trainer_free(trainer);
 *
 * Order of ids:
 *     BPE        256 bytes (dt_byte_level_order), merges, special tokens
 *     WordPiece  [PAD] [UNK] [CLS] [SEP] [MASK], special tokens, characters that start words
 *                by code, "##" characters inside words by code, merges
 *     Unigram    <unk>, special tokens, <0x00> to <0xFF>, pieces by probability
 */
#ifndef DT_VOCAB_VOCAB_TRAINER_H
#define DT_VOCAB_VOCAB_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "token/tokenizer.h"

enum dt_vocab_trainer_model {
    DT_VOCAB_TRAINER_BPE,
    DT_VOCAB_TRAINER_WORD_PIECE,
    DT_VOCAB_TRAINER_UNIGRAM
};

struct dt_vocab_trainer_options {
    const char *pattern;    /* one of dt_pattern_names; for BPE */
    uint32_t size;          /* tokens of the vocabulary, all kinds included */
    uint64_t min_frequency; /* of a pair to merge; 1 or more */
    const char **specials;  /* UTF-8; borrowed until the trainer is freed */
    int special_count;
    int threads;
    enum dt_vocab_trainer_model model;
    bool cased;        /* WordPiece: keep capitals and accents */
    uint32_t alphabet; /* WordPiece, Unigram: maximum number of characters, the most frequent */
};

struct dt_vocab_trainer;

/* DT_EINVALID if the options contradict each other. */
int dt_vocab_trainer_new(struct dt_vocab_trainer **trainer,
                         const struct dt_vocab_trainer_options *options,
                         struct dt_error *err) DT_MUST_CHECK;
/* text is copied. */
void dt_vocab_trainer_add(struct dt_vocab_trainer *trainer, const char *text, size_t size);
/* Writes what was counted so far to a file, instead of dt_vocab_trainer_finish. */
int dt_vocab_trainer_save_counts(struct dt_vocab_trainer *trainer, const char *path,
                                 struct dt_error *err) DT_MUST_CHECK;
/* Adds the counts of such a file. DT_EFORMAT if it is of another model, or of other options that
 * decide what is counted. */
int dt_vocab_trainer_add_counts(struct dt_vocab_trainer *trainer, const char *path,
                                struct dt_error *err) DT_MUST_CHECK;
/* *t is owned by the caller. It has fewer than size tokens if too few pairs reach
 * min_frequency, or too few pieces of Unigram are probable. */
int dt_vocab_trainer_finish(struct dt_vocab_trainer *trainer, struct dt_tokenizer **t,
                            struct dt_error *err) DT_MUST_CHECK;
void dt_vocab_trainer_free(struct dt_vocab_trainer *trainer); /* NULL is fine */

#endif
