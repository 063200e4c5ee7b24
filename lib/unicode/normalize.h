/* SPDX-License-Identifier: MIT */
/*
 * Unicode normalization (UAX #15) of the version of lib/unicode: NFC composes "e" + U+0301 to
 * U+00E9; NFKC also replaces compatibility characters (the ligature U+FB01 by "fi", full-width
 * letters by ASCII, U+00B2 by "2"), which loses distinctions.
 *
 * Time is linear in the size of the text, whatever it holds. Most text is in the form already:
 * dt_normalize() skips characters that are settled (struct dt_unicode_record).
 */
#ifndef DT_UNICODE_NORMALIZE_H
#define DT_UNICODE_NORMALIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum dt_normal_form {
    DT_NORMAL_FORM_NONE,
    DT_NORMAL_FORM_NFC,
    DT_NORMAL_FORM_NFKC,
    DT_NORMAL_FORM_NFD, /* these two only for dt_normalize_segment */
    DT_NORMAL_FORM_NFKD
};
/* Names for the option table, in the order above: none nfc nfkc. */
extern const char *const dt_normal_form_names[];

/* Appends the normal form of text, which must be valid UTF-8, to out. Returns false and leaves out
 * unchanged if text is already in that form. scratch: one per thread; its contents are replaced. */
bool dt_normalize(enum dt_normal_form form, const char *text, size_t size, struct dt_ids *scratch,
                  struct dt_buffer *out);

/* Appends the normal form of the first segment of text, which need not be valid UTF-8, to out: a
 * character with those after it that may combine with it, or a byte that is not UTF-8. Returns the
 * bytes of the segment. size is not 0. The form of a text is that of its segments. */
size_t dt_normalize_segment(enum dt_normal_form form, const char *text, size_t size,
                            struct dt_ids *scratch, struct dt_buffer *out);

/* Replaces result by the NFC of count code points. */
void dt_unicode_nfc(const uint32_t *points, size_t count, struct dt_ids *result);

#endif
