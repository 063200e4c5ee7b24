/* SPDX-License-Identifier: MIT */
#include "unicode/casefold.h"

#include "unicode/unicode.h"
#include "unicode/utf8.h"

/* Appends the folded character at text. Returns 1 if it changed, else 0. */
static unsigned fold(const char *text, struct dt_buffer *out)
{
    uint32_t code = dt_utf8_decode(text), parts[DT_UNICODE_FOLD_MAX];
    unsigned count = dt_unicode_fold(code, parts);
    char bytes[4];
    for (unsigned i = 0; i < count; i++)
        dt_buffer_append(out, bytes, dt_utf8_encode(parts[i], bytes));
    return count > 1 || parts[0] != code;
}

uint64_t dt_casefold(const char *text, size_t size, struct dt_buffer *out)
{
    uint64_t changed = 0;
    for (size_t i = 0; i < size;) {
        size_t plain = dt_utf8_ascii_prefix(text + i, size - i);
        dt_buffer_append(out, text + i, plain);
        for (char *p = out->data + out->size - plain; plain > 0; plain--, p++, i++) {
            if (*p < 'A' || *p > 'Z')
                continue;
            *p = (char)(*p | 0x20);
            changed++;
        }
        if (i == size)
            break;
        changed += fold(text + i, out);
        i += dt_utf8_length(text[i]);
    }
    return changed;
}
