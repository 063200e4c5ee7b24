/* SPDX-License-Identifier: MIT */
/*
 * The alphabet in which byte-level BPE files spell bytes: a printable
 * character for each byte, so that a vocabulary is readable JSON (Radford et
 * al., "Language models are unsupervised multitask learners", 2019). Bytes
 * that print in Latin-1 stand for themselves; the others, in order, are
 * U+0100 and up: a blank is U+0120.
 */
#ifndef DT_PRETOKENIZE_BYTE_LEVEL_H
#define DT_PRETOKENIZE_BYTE_LEVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* The character that spells a byte. */
uint32_t dt_byte_level_char(unsigned char byte);
/* The bytes in the order of their characters: the order of ids 0 .. 255 in
 * GPT-2's vocabulary and in those that Hugging Face trains. */
void dt_byte_level_order(unsigned char order[256]);

/* Appends bytes as their characters, in UTF-8. */
void dt_byte_level_spell(const char *bytes, size_t size, struct dt_buffer *text);
/* Appends the bytes that text spells; false, and bytes unchanged, if text
 * holds a character outside the alphabet. */
bool dt_byte_level_read(const char *text, size_t size, struct dt_buffer *bytes);

#endif
