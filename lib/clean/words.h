/* SPDX-License-Identifier: MIT */
/*
 * Splits a text into words and punctuation as spaCy's tokenizer of its language does; dt-rules(5)
 * has the definition. Words are identified by hash.
 *
 *     struct dt_words words = {.traits = dt_words_traits("en")};
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

#include "language/script.h"

enum dt_word_flag {
    DT_WORD_HAS_LETTER = 1 << 0,
    DT_WORD_IS_SYMBOL = 1 << 1, /* all characters are DT_CHARACTER_SYMBOL */
    DT_WORD_IS_MARK = 1 << 2,   /* all characters are DT_CHARACTER_PUNCTUATION */
    DT_WORD_IS_STOP = 1 << 3,   /* one character, which ends a sentence */
    DT_WORD_STARTS_LINE = 1 << 4
};

/* How a language differs in what is split; 0 is what most have. */
enum dt_word_trait {
    DT_WORD_TRAIT_ENGLISH = 1 << 0,      /* contractions, abbreviations and "cannot" */
    DT_WORD_TRAIT_DIGIT_HYPHEN = 1 << 1, /* a hyphen between a digit and a letter splits */
    DT_WORD_TRAIT_HYPHEN = 1 << 2,       /* a hyphen between letters does not split */
    DT_WORD_TRAIT_DASH = 1 << 3,         /* nor a dash */
    DT_WORD_TRAIT_ELISION = 1 << 4,      /* an apostrophe between letters ends a word */
    DT_WORD_TRAIT_QUOTE = 1 << 5,        /* a quotation mark or bracket between letters splits */
    DT_WORD_TRAIT_ORDINAL = 1 << 6,      /* a full stop after a digit is part of the number */
    DT_WORD_TRAIT_LAST_SLASH = 1 << 7,   /* a slash at the end is split off */
    DT_WORD_TRAIT_NO_S = 1 << 8,         /* 's is not split off, */
    DT_WORD_TRAIT_NO_SLASH = 1 << 9,     /* a slash between letters does not split, */
    DT_WORD_TRAIT_NO_COLON = 1 << 10,    /* nor a colon, */
    DT_WORD_TRAIT_NO_OPERATOR = 1 << 11, /* nor an operator between digits, */
    DT_WORD_TRAIT_NO_PERCENT = 1 << 12,  /* nor a per cent sign after one, */
    DT_WORD_TRAIT_NO_RANGE = 1 << 13,    /* nor a hyphen between digits */
    DT_WORD_TRAIT_FEW_STOPS = 1 << 14,   /* a full stop is split off only after two letters that are
                                          * capitals or without case */
    DT_WORD_TRAIT_MARKS = 1 << 15        /* every mark and symbol splits, but . and , in a number */
};
#define DT_WORD_TRAITS_ENGLISH (DT_WORD_TRAIT_ENGLISH | DT_WORD_TRAIT_DIGIT_HYPHEN)
/* Those of a language by its code ("de", "deu_Latn"); "" is English. */
unsigned dt_words_traits(const char *language);

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
    struct dt_chunk_character *chunk; /* the characters between two blanks or scripts */
    size_t chunk_size, chunk_capacity;
    enum dt_segmentation
        segmentation; /* set by the caller, before the first text: language/script.h */
    unsigned traits;  /* of the language; set by the caller */
    struct dt_segmenter *segmenter; /* made when needed */
};

/* Replaces the words by those of text, which must be valid UTF-8. */
void dt_words_split(struct dt_words *words, const char *text, size_t size);
/* The number of sentences. A sentence ends with its line, and where a word other than
 * punctuation follows a stop. */
size_t dt_words_sentences(const struct dt_words *words);
uint64_t dt_word_hash(const char *word, size_t size);
void dt_words_release(struct dt_words *words);

#endif
