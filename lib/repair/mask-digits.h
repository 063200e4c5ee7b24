/* SPDX-License-Identifier: MIT */
/*
 * Decimal digits of all scripts as ASCII, with a map back to the original text, so that the finders
 * of personal data look for ASCII digits only.
 *
 *     original   + U+0664 U+0664 ...    2 bytes a digit
 *     folded     + 4      4      ...    1 byte a digit
 */
#ifndef DT_REPAIR_MASK_DIGITS_H
#define DT_REPAIR_MASK_DIGITS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* All-zero is valid. */
struct dt_mask_digits {
    struct dt_buffer text; /* folded */
    struct {
        size_t offset, removed; /* after a folded digit: in text; bytes removed up to there */
    } * digits;
    size_t count, capacity, next;
};

/* Folds text, valid UTF-8. Returns false, with nothing allocated, if it has ASCII digits only. */
bool dt_mask_digits_fold(struct dt_mask_digits *d, const char *text, size_t size);
/* The offset in the original text; offsets must not decrease from call to call. */
size_t dt_mask_digits_original(struct dt_mask_digits *d, size_t offset);
void dt_mask_digits_release(struct dt_mask_digits *d);

#endif
