/* SPDX-License-Identifier: MIT */
/*
 * The byte-level alphabet of GPT-2 (bytes_to_unicode; Radford et al., "Language models are
 * unsupervised multitask learners", 2019): one printable character per byte, so that a
 * vocabulary is readable JSON. Bytes that are printable in Latin-1 map to themselves; the
 * others map, in order, to U+0100 and up. A space is U+0120.
 */
#ifndef DT_PRETOKENIZE_BYTE_LEVEL_H
#define DT_PRETOKENIZE_BYTE_LEVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* The character of a byte. */
uint32_t dt_byte_level_char(unsigned char byte);
/* The bytes, ordered by their characters: the order of ids 0 .. 255 in GPT-2's vocabulary
 * and in those that Hugging Face trains. */
void dt_byte_level_order(unsigned char order[256]);

/* Appends the characters of bytes, in UTF-8. */
void dt_byte_level_encode(const char *bytes, size_t size, struct dt_buffer *text);
/* Appends the bytes of the characters in text. Returns false and leaves bytes unchanged if a
 * character is outside the alphabet. */
bool dt_byte_level_decode(const char *text, size_t size, struct dt_buffer *bytes);

#endif
