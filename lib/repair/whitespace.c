/* SPDX-License-Identifier: MIT */
#include "repair/whitespace.h"

#include <stdbool.h>
#include <string.h>

const char *const dt_space_names[] = {"keep", "trim", "squeeze", NULL};

size_t dt_whitespace_blank(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] == ' ' || p[0] == '\t')
        return 1;
    if (p[0] == 0xc2)
        return size >= 2 && p[1] == 0xa0 ? 2 : 0;
    if (size < 3 || p[0] < 0xe1 || p[0] > 0xe3)
        return 0;
    unsigned tail = (unsigned)p[1] << 8 | p[2];
    bool is_blank = (p[0] == 0xe1 && tail == 0x9a80) ||
                    (p[0] == 0xe2 &&
                     ((tail >= 0x8080 && tail <= 0x808a) || tail == 0x80af || tail == 0x819f)) ||
                    (p[0] == 0xe3 && tail == 0x8080);
    return is_blank ? 3 : 0;
}

/* Bytes of blanks at the start of text. */
static size_t blanks(const char *text, size_t size)
{
    size_t i = 0;
    for (size_t n; i < size && (n = dt_whitespace_blank(text + i, size - i)) > 0;)
        i += n;
    return i;
}

/* The size of a line without the blanks at its end. */
static size_t trimmed(const char *line, size_t size)
{
    for (size_t n = 1; n <= 3 && n <= size;) {
        if (dt_whitespace_blank(line + size - n, n) == n)
            size -= n, n = 1;
        else
            n++;
    }
    return size;
}

/* Copies a line that begins and ends with no blank, each run of blanks as one
 * space; out may lie before or at line. Returns the bytes written. */
static size_t squeeze(char *out, const char *line, size_t size)
{
    size_t written = 0;
    for (size_t i = 0; i < size;) {
        size_t n = blanks(line + i, size - i);
        out[written++] = n ? ' ' : line[i];
        i += n ? n : 1;
    }
    return written;
}

static size_t put_line(char *out, const char *line, size_t size, bool squeezing)
{
    if (squeezing)
        return squeeze(out, line, size);
    memmove(out, line, size);
    return size;
}

static size_t put_feeds(char *out, size_t count)
{
    memset(out, '\n', count);
    return count;
}

size_t dt_whitespace_tidy(char *text, size_t size, enum dt_space policy)
{
    if (policy == DT_SPACE_KEEP)
        return size;
    bool squeezing = policy == DT_SPACE_SQUEEZE;
    size_t written = 0, feeds = 0; /* feeds: line feeds due before the next line with text */
    for (size_t i = 0, end; i < size; i = end + 1, feeds++) {
        const char *feed = memchr(text + i, '\n', size - i);
        end = feed ? (size_t)(feed - text) : size;
        size_t indent = blanks(text + i, end - i);
        if (i + indent == end)
            continue;
        size_t first = squeezing || written == 0 ? i + indent : i;
        size_t last = i + trimmed(text + i, end - i);
        if (written > 0)
            written += put_feeds(text + written, squeezing && feeds > 2 ? 2 : feeds);
        feeds = 0;
        written += put_line(text + written, text + first, last - first, squeezing);
    }
    return written;
}
