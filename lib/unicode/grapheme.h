/* SPDX-License-Identifier: MIT */
/*
 * Extended grapheme clusters (UAX #29) of the version of lib/unicode: what a reader sees as one
 * character.
 *
 *     for (size_t at = 0; at < size; at += dt_grapheme_size(text + at, size - at))
 *         ...
 */
#ifndef DT_UNICODE_GRAPHEME_H
#define DT_UNICODE_GRAPHEME_H

#include <stddef.h>

/* The bytes of the first cluster of text, valid UTF-8 of size > 0. */
size_t dt_grapheme_size(const char *text, size_t size);

#endif
