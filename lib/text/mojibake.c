/* SPDX-License-Identifier: MIT */
#include "text/mojibake.h"

#include <stdbool.h>
#include <string.h>

#include "text/utf8.h"

#define TIMES 3

/* Windows-1252, 0x80 - 0x9f; 0 where it has none and Latin-1's control is meant. */
static const uint16_t windows[32] = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

/* The byte that was taken for the character, or -1. */
static int byte_of(uint32_t point)
{
    if (point < 0x100)
        return (int)point;
    for (int i = 0; i < 32; i++)
        if (windows[i] == point)
            return 0x80 + i;
    return -1;
}

/* Bytes of text that a mangled character takes at p, and what it was; 0 if none
 * is there. */
static size_t mangled(const char *p, size_t size, char was[4], size_t *length)
{
    unsigned char lead = size >= 2 ? (unsigned char)byte_of(dt_utf8_decode(p)) : 0;
    if (lead < 0xc2 || lead > 0xf4 || dt_utf8_decode(p) > 0xff)
        return 0;
    size_t taken = 2;
    *length = dt_utf8_length((char)lead);
    was[0] = (char)lead;
    for (size_t k = 1; k < *length; k++) {
        int byte = taken < size ? byte_of(dt_utf8_decode(p + taken)) : -1;
        if (byte < 0x80 || byte > 0xbf)
            return 0;
        was[k] = (char)byte;
        taken += dt_utf8_length(p[taken]);
    }
    return dt_utf8_valid_prefix(was, *length) == *length ? taken : 0;
}

static bool is_convincing(const char *text, size_t size, size_t at, size_t taken, size_t length,
                          bool behind_another)
{
    char next[4];
    size_t next_length;
    if (length >= 3 || behind_another)
        return true;
    if ((unsigned char)text[at + 1] == 0x82 || (unsigned char)text[at + 1] == 0x83) /* U+00C2, 3 */
        return at == 0 || text[at - 1] < 'A' || text[at - 1] > 'Z';
    return mangled(text + at + taken, size - at - taken, next, &next_length) > 0;
}

static uint64_t repair_once(const char *text, size_t size, struct dt_buffer *out)
{
    uint64_t repaired = 0;
    size_t done = 0, last = SIZE_MAX;
    dt_buffer_clear(out);
    for (size_t i = 0; i < size;) {
        char was[4];
        size_t length, taken = 0;
        if ((text[i] & 0x80) == 0) {
            i += dt_ascii_prefix(text + i, size - i);
            continue;
        }
        if (text[i] == '\xc3')
            taken = mangled(text + i, size - i, was, &length);
        if (taken == 0 || !is_convincing(text, size, i, taken, length, last == i)) {
            i += dt_utf8_length(text[i]);
            continue;
        }
        dt_buffer_append(out, text + done, i - done);
        dt_buffer_append(out, was, length);
        done = last = i += taken;
        repaired++;
    }
    if (repaired > 0)
        dt_buffer_append(out, text + done, size - done);
    return repaired;
}

uint64_t dt_mojibake_repair(const char *text, size_t size, struct dt_buffer *out)
{
    uint64_t all = repair_once(text, size, out), more = all;
    for (int i = 1; i < TIMES && more > 0; i++) {
        struct dt_buffer again = DT_BUFFER_EMPTY;
        more = repair_once(out->data, out->size, &again);
        if (more > 0) {
            dt_buffer_clear(out);
            dt_buffer_append(out, again.data, again.size);
        }
        all += more;
        dt_buffer_release(&again);
    }
    return all;
}
