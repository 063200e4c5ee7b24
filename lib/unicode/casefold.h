/* SPDX-License-Identifier: MIT */
/* Full case folding of Unicode (CaseFolding.txt, status C and F): "Straße" becomes "strasse". */
#ifndef DT_UNICODE_CASEFOLD_H
#define DT_UNICODE_CASEFOLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Appends the case folding of text, which must be valid UTF-8, to out. Returns the number of
 * characters that changed; with 0, out holds a copy of text. */
uint64_t dt_casefold(const char *text, size_t size, struct dt_buffer *out);

#endif
