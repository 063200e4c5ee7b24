/* SPDX-License-Identifier: MIT */
/*
 * Text that was UTF-8, was taken for Windows-1252 or Latin-1, and was made UTF-8
 * again: "CafÃ©" for "Café", "â€™" for an apostrophe.
 *
 *     changes = dt_mojibake_repair(text, size, &out);
 *
 * A sequence of such characters is put back where its bytes are well-formed UTF-8
 * and nobody would have meant it, as dt-clean(1) says; so are ambiguous ones where
 * a document shows that it was mangled as a whole. What was mangled several times is
 * repaired up to three times. At last, controls of Latin-1 become what Windows-1252
 * has in their place.
 */
#ifndef DT_CLEAN_MOJIBAKE_H
#define DT_CLEAN_MOJIBAKE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Replaces out by the repaired text, and returns the number of characters put
 * back or replaced; with 0, out holds nothing of use. text must be valid UTF-8. */
uint64_t dt_mojibake_repair(const char *text, size_t size, struct dt_buffer *out);

#endif
