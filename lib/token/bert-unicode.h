/* SPDX-License-Identifier: MIT */
/*
 * Classes of characters as the published BERT tokenizers know them, those of
 * Unicode 8. What is punctuation, a mark or a format character since then is
 * none to them, so that words with it get other ids than by a newer table.
 */
#ifndef DT_TOKEN_BERT_UNICODE_H
#define DT_TOKEN_BERT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

bool dt_bert_unicode_is_punctuation(uint32_t code); /* P, and the symbols of ASCII */
bool dt_bert_unicode_is_mark(uint32_t code);        /* Mn */
bool dt_bert_unicode_is_format(uint32_t code);      /* Cf */
bool dt_bert_unicode_is_cjk(uint32_t code);         /* the blocks of Chinese characters */

#endif
