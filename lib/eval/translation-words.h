/* SPDX-License-Identifier: MIT */
/*
 * Sentences as code points, and their words as sacreBLEU (Post 2018) cuts them,
 * so that scores can be compared with published ones.
 *
 *     struct dt_ids points = DT_IDS_EMPTY, words = DT_IDS_EMPTY;
 *     DT_TRY(dt_code_points(line, size, &points, err));
 *     dt_translation_words(DT_TRANSLATION_WORDS_13A, &points, &words);
 *
 * Words are code points with one space between two of them. White space is what
 * Python takes for it.
 */
#ifndef DT_EVAL_TRANSLATION_WORDS_H
#define DT_EVAL_TRANSLATION_WORDS_H

#include <stdbool.h>

#include "base/buffer.h"

enum dt_translation_words_kind {
    DT_TRANSLATION_WORDS_13A,  /* mteval-v13a: ASCII punctuation apart, numbers together */
    DT_TRANSLATION_WORDS_CHAR, /* every character is a word */
    DT_TRANSLATION_WORDS_INTL, /* mteval-v14: punctuation and symbols of Unicode apart */
    DT_TRANSLATION_WORDS_NONE  /* at white space alone */
};
/* Names as in sacreBLEU's signatures, in the order above, ended by NULL. */
extern const char *const dt_translation_words_names[];

/* Replaces points by those of UTF-8 text; DT_EFORMAT if it is none. */
int dt_code_points(const char *text, size_t size, struct dt_ids *points,
                   struct dt_error *err) DT_MUST_CHECK;

bool dt_translation_words_is_space(uint32_t point);

/* Replaces words by those of the sentence. */
void dt_translation_words(enum dt_translation_words_kind kind, const struct dt_ids *sentence,
                          struct dt_ids *words);

#endif
