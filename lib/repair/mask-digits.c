/* SPDX-License-Identifier: MIT */
#include "repair/mask-digits.h"

#include <stdlib.h>

#include "unicode/unicode.h"
#include "unicode/utf8.h"

/* The value of a decimal digit: Unicode has them in contiguous runs of 10 codes. */
static char ascii_digit(uint32_t code)
{
    uint32_t first = code;
    while (dt_unicode_category(first - 1) == DT_CATEGORY_ND)
        first--;
    return (char)('0' + (code - first) % 10);
}

/* The offset of the first decimal digit beyond ASCII at or after i; size if there is none. */
static size_t find_digit(const char *text, size_t size, size_t i)
{
    for (;;) {
        i += dt_utf8_ascii_prefix(text + i, size - i);
        if (i == size || dt_unicode_category(dt_utf8_decode(text + i)) == DT_CATEGORY_ND)
            return i;
        i += dt_utf8_length(text[i]);
    }
}

bool dt_mask_digits_fold(struct dt_mask_digits *d, const char *text, size_t size)
{
    size_t done = 0, removed = 0, i;
    while ((i = find_digit(text, size, done)) < size) {
        size_t length = dt_utf8_length(text[i]);
        dt_buffer_append(&d->text, text + done, i - done);
        dt_buffer_add_char(&d->text, ascii_digit(dt_utf8_decode(text + i)));
        removed += length - 1;
        DT_GROW(d->digits, d->count, d->capacity);
        d->digits[d->count].offset = d->text.size;
        d->digits[d->count++].removed = removed;
        done = i + length;
    }
    if (d->count > 0)
        dt_buffer_append(&d->text, text + done, size - done);
    return d->count > 0;
}

size_t dt_mask_digits_original(struct dt_mask_digits *d, size_t offset)
{
    while (d->next < d->count && d->digits[d->next].offset <= offset)
        d->next++;
    return offset + (d->next > 0 ? d->digits[d->next - 1].removed : 0);
}

void dt_mask_digits_release(struct dt_mask_digits *d)
{
    dt_buffer_release(&d->text);
    free(d->digits);
    *d = (struct dt_mask_digits){0};
}
