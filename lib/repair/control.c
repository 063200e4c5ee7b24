/* SPDX-License-Identifier: MIT */
#include "repair/control.h"

#include <stdbool.h>
#include <string.h>

#include "base/byte-scan.h"

/* Bytes that are a control character, or may be the first byte of one. */
static const bool suspect[256] = {
    [0x00] = true, [0x01] = true, [0x02] = true, [0x03] = true, [0x04] = true, [0x05] = true,
    [0x06] = true, [0x07] = true, [0x08] = true, [0x0b] = true, [0x0c] = true, [0x0e] = true,
    [0x0f] = true, [0x10] = true, [0x11] = true, [0x12] = true, [0x13] = true, [0x14] = true,
    [0x15] = true, [0x16] = true, [0x17] = true, [0x18] = true, [0x19] = true, [0x1a] = true,
    [0x1b] = true, [0x1c] = true, [0x1d] = true, [0x1e] = true, [0x1f] = true, [0x7f] = true,
    [0xc2] = true, [0xef] = true,
};

/* The length of the prefix of text without suspect bytes. */
static size_t plain_prefix(const char *text, size_t size)
{
    size_t i = 0;
    for (; i + DT_BLOCK <= size; i += DT_BLOCK) {
        dt_block b = dt_block_load(text + i), low = (dt_block)(b < 0x20);
        dt_block space = (dt_block)((b == '\t') | (b == '\n') | (b == '\r'));
        dt_block high = (dt_block)((b == 0x7f) | (b == 0xc2) | (b == 0xef));
        size_t n = dt_block_first((low & ~space) | high);
        if (n < DT_BLOCK)
            return i + n;
    }
    while (i < size && !suspect[(unsigned char)text[i]])
        i++;
    return i;
}

/* Bytes of the control character at p; 0 if another character is there. */
static size_t control_length(const char *p, size_t size)
{
    if (!suspect[(unsigned char)*p])
        return 0;
    if (*p == '\xc2')
        return size >= 2 && (unsigned char)p[1] < 0xa0 ? 2 : 0;
    if (*p == '\xef')
        return size >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    return 1;
}

uint64_t dt_control_remove(char *text, size_t *size)
{
    uint64_t removed = 0;
    size_t kept = 0, from = 0; /* [from, i) stays and must move to kept */
    for (size_t i = 0; (i += plain_prefix(text + i, *size - i)) < *size;) {
        size_t n = control_length(text + i, *size - i);
        if (n == 0) {
            i++;
            continue;
        }
        if (kept < from)
            memmove(text + kept, text + from, i - from);
        kept += i - from;
        from = i += n;
        removed++;
    }
    if (removed == 0)
        return 0;
    memmove(text + kept, text + from, *size - from);
    *size = kept + *size - from;
    return removed;
}

uint64_t dt_control_unify_line_ends(char *text, size_t *size)
{
    const char *first = *size ? memchr(text, '\r', *size) : NULL;
    if (first == NULL)
        return 0;
    uint64_t changed = 0;
    size_t kept = (size_t)(first - text);
    for (size_t i = kept; i < *size; i++) {
        char c = text[i];
        if (c == '\r') {
            changed++;
            if (i + 1 < *size && text[i + 1] == '\n')
                i++;
            c = '\n';
        }
        text[kept++] = c;
    }
    *size = kept;
    return changed;
}
