/* SPDX-License-Identifier: MIT */
/*
 * Splits a text into words and punctuation as spaCy's English tokenizer does; dt-rules(5) has the
 * definition. Words are identified by hash.
 *
 *     struct dt_words words = {0};
 *     dt_words_split(&words, text, size);
 *     if (words.count < 50)
 *         too_short();
 *     dt_words_release(&words);
 */
#ifndef DT_CLEAN_WORDS_H
#define DT_CLEAN_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dt_word_flag {
    DT_WORD_HAS_LETTER = 1 << 0,
    DT_WORD_IS_SYMBOL = 1 << 1, /* all characters are DT_CHARACTER_SYMBOL */
    DT_WORD_IS_MARK = 1 << 2,   /* all characters are DT_CHARACTER_PUNCTUATION */
    DT_WORD_IS_STOP = 1 << 3,   /* one character, which ends a sentence */
    DT_WORD_STARTS_LINE = 1 << 4
};

struct dt_word {
    uint64_t hash;  /* of its bytes */
    uint32_t chars; /* code points; at most UINT32_MAX */
    uint32_t kind;  /* of the above */
};

/* Scratch memory and result; all-zero is valid. */
struct dt_words {
    struct dt_word *items;
    size_t count, capacity;
    const char *end; /* of the text */
    const struct dt_word_tables *tables;
    struct dt_chunk_character *chunk; /* the characters between two blanks */
    size_t chunk_size, chunk_capacity;
};

/* Replaces the words by those of text, which must be valid UTF-8. */
void dt_words_split(struct dt_words *words, const char *text, size_t size);
/* The number of sentences. A sentence ends with its line, and where a word other than
 * punctuation follows a stop. */
size_t dt_words_sentences(const struct dt_words *words);
uint64_t dt_word_hash(const char *word, size_t size);
void dt_words_release(struct dt_words *words);

#endif
