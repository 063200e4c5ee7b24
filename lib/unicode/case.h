/* SPDX-License-Identifier: MIT */
/*
 * Upper and lower case of texts by the full mappings of Unicode (chapter 3.13, SpecialCasing.txt
 * without those of a language), as Python's str.upper(), str.lower() and str.capitalize(): "Straße"
 * becomes "STRASSE", and the sigma at the end of a word U+03C2.
 *
 *     dt_case_change(DT_CASE_UPPER, text, size, &out);
 */
#ifndef DT_UNICODE_CASE_H
#define DT_UNICODE_CASE_H

#include <stddef.h>

#include "base/buffer.h"

enum dt_case {
    DT_CASE_UPPER,
    DT_CASE_LOWER,
    DT_CASE_CAPITALIZE /* the first character in title case, the others in lower case */
};

/* Appends the changed text to out; bytes that are not UTF-8 stay. */
void dt_case_change(enum dt_case how, const char *text, size_t size, struct dt_buffer *out);

#endif
