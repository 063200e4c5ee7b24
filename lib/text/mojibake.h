/* SPDX-License-Identifier: MIT */
/*
 * Text that was UTF-8, was taken for Windows-1252 or Latin-1, and was made UTF-8
 * again: "CafÃ©" for "Café", "â€™" for an apostrophe.
 *
 *     changes = dt_mojibake_repair(text, size, &out);
 *
 * A sequence of such characters is put back where its bytes are well-formed UTF-8
 * and nobody would have meant it: of three or four characters; of two that begin
 * with U+00C2 or U+00C3, unless a capital stands before them; of two that begin
 * with another letter, if another such sequence follows or goes before. What was
 * mangled several times is repaired up to three times.
 */
#ifndef DT_TEXT_MOJIBAKE_H
#define DT_TEXT_MOJIBAKE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Replaces out by the repaired text, and returns the number of characters put
 * back; with 0, out holds nothing of use. text must be valid UTF-8. */
uint64_t dt_mojibake_repair(const char *text, size_t size, struct dt_buffer *out);

#endif
