/* SPDX-License-Identifier: MIT */
/*
 * The Unigram tokenizers that dt-vocab trains: lines are separate, and their words begin with
 * their space, written U+2581; characters beyond the alphabet are bytes. For
 * dt_vocab_trainer_finish.
 */
#ifndef DT_VOCAB_UNIGRAM_VOCABULARY_H
#define DT_VOCAB_UNIGRAM_VOCABULARY_H

#include "steps/steps.h"
#include "token/vocabulary.h"
#include "vocab/word-count.h"

#define DT_UNIGRAM_VOCABULARY_FIXED 257 /* <unk> and the bytes */

/* Appends the pre-tokenizer. */
int dt_unigram_vocabulary_read_splitter(struct dt_steps *splitter,
                                        struct dt_error *err) DT_MUST_CHECK;
/* Counts the words of a text. */
void dt_unigram_vocabulary_count(struct dt_word_table *counts, const struct dt_steps *splitter,
                                 const char *text, size_t size);
/* Makes t, which holds <unk> as id 0 and the special tokens, a Unigram tokenizer of up to size
 * tokens: dt_learn_unigram. DT_EINVALID if the characters alone are more. */
int dt_unigram_vocabulary_learn(struct dt_tokenizer *t, const struct dt_word_table *words,
                                uint32_t size, uint32_t alphabet,
                                struct dt_error *err) DT_MUST_CHECK;

#endif
