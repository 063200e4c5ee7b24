/* SPDX-License-Identifier: MIT */
/*
 * Unicode normalization (UAX #15): NFC makes "e" + U+0301 the one character
 * U+00E9; NFKC does that and also replaces compatibility characters (the
 * ligature U+FB01 by "fi", full-width letters by ASCII, U+00B2 by "2"), which
 * loses distinctions.
 *
 * Most text is in the form already, and only the stretches that may not be are
 * given to utf8proc. Time is linear in the size of the text, whatever it holds.
 */
#ifndef DT_CLEAN_NORMALIZE_H
#define DT_CLEAN_NORMALIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum dt_normal_form { DT_NORMAL_FORM_NONE, DT_NORMAL_FORM_NFC, DT_NORMAL_FORM_NFKC };
/* Names for the option table, in the order above: none nfc nfkc. */
extern const char *const dt_normal_form_names[];

/* Working memory, one a thread; all-zero is valid. */
struct dt_code_points {
    int32_t *data;
    size_t count, capacity;
};

void dt_code_points_release(struct dt_code_points *points);

/* Appends the form of text, which must be valid UTF-8, to out. False if
 * text is in the form already: out is then unchanged. */
bool dt_normalize(enum dt_normal_form form, const char *text, size_t size,
                  struct dt_code_points *scratch, struct dt_buffer *out);

/* Appends text, which must be valid UTF-8, in folded case (full case folding, C + F)
 * to out. Returns the number of characters changed; with 0, out is of no use. */
uint64_t dt_normalize_casefold(const char *text, size_t size, struct dt_buffer *out);

#endif
