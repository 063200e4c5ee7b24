/* SPDX-License-Identifier: MIT */
/* How SentencePiece spells spaces and bytes in its pieces. */
#ifndef DT_STEPS_SENTENCEPIECE_PIECES_H
#define DT_STEPS_SENTENCEPIECE_PIECES_H

#include <stddef.h>

#define DT_SENTENCEPIECE_MARK "\xe2\x96\x81" /* U+2581, written for a space */

/* The byte of a piece "<0x00>" to "<0xFF>"; -1 of another. */
int dt_sentencepiece_byte(const char *text, size_t size);

#endif
