/* SPDX-License-Identifier: MIT */
/*
 * Character classes of the published BERT tokenizers, which use Unicode 8. Punctuation, marks
 * and format characters added later are not in these classes, so newer tables would give
 * other ids.
 */
#ifndef DT_STEPS_BERT_UNICODE_H
#define DT_STEPS_BERT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

bool dt_bert_unicode_is_punctuation(uint32_t code); /* P, and the symbols of ASCII */
bool dt_bert_unicode_is_mark(uint32_t code);        /* Mn */
/* Combining marks of any kind, of Unicode 9. */
bool dt_bert_unicode_is_combining(uint32_t code);
bool dt_bert_unicode_is_format(uint32_t code); /* Cf */
bool dt_bert_unicode_is_cjk(uint32_t code);    /* the blocks of Chinese characters */

#endif
