/* SPDX-License-Identifier: MIT */
/*
 * Sentences as code points, and their tokenization by sacreBLEU's rules (Post 2018), so that scores
 * are comparable with published ones.
 *
 *     struct dt_ids points = DT_IDS_EMPTY, words = DT_IDS_EMPTY;
 *     DT_TRY(dt_code_points(line, size, &points, err));
 *     dt_translation_words(DT_TRANSLATION_WORDS_13A, &points, &words);
 *
 * Words are separated by one space. White space is that of Python's str.isspace.
 */
#ifndef DT_EVAL_TRANSLATION_WORDS_H
#define DT_EVAL_TRANSLATION_WORDS_H

#include <stdbool.h>

#include "base/buffer.h"

enum dt_translation_words_kind {
    DT_TRANSLATION_WORDS_13A,  /* mteval-v13a: splits ASCII punctuation, keeps numbers */
    DT_TRANSLATION_WORDS_CHAR, /* every character is a word */
    DT_TRANSLATION_WORDS_INTL, /* mteval-v14: splits Unicode punctuation and symbols */
    DT_TRANSLATION_WORDS_NONE  /* white space only */
};
/* Names in sacreBLEU's signatures, in the order of the enum, NULL-terminated. */
extern const char *const dt_translation_words_names[];

/* Replaces points by the code points of text; DT_EFORMAT if it is not UTF-8. */
int dt_code_points(const char *text, size_t size, struct dt_ids *points,
                   struct dt_error *err) DT_MUST_CHECK;

bool dt_translation_words_is_space(uint32_t point);
/* Size of a text (UTF-8) without the white space at its end. */
size_t dt_translation_words_trim(const char *text, size_t size);

/* Replaces words by the words of the sentence. */
void dt_translation_words(enum dt_translation_words_kind kind, const struct dt_ids *sentence,
                          struct dt_ids *words);

#endif
