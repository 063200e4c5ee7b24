/* SPDX-License-Identifier: MIT */
#include "json/json-scan.h"

#include <stdint.h>
#include <string.h>

#include "base/byte-scan.h"
#include "unicode/utf8.h"

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;
}

size_t dt_json_plain(const char *text, size_t size)
{
    size_t i = 0;
    for (; i + DT_BLOCK <= size; i += DT_BLOCK) {
        dt_block b = dt_block_load(text + i);
        size_t n = dt_block_first((dt_block)((b < 0x20) | (b == '"') | (b == '\\') | (b == 0x7f)));
        if (n < DT_BLOCK)
            return i + n;
    }
    while (i < size && is_plain((unsigned char)text[i]))
        i++;
    return i;
}

bool dt_json_scan_fail(struct dt_json_scan *s, const char *reason)
{
    s->reason = reason;
    return false;
}

void dt_json_skip_space(struct dt_json_scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\r' || *s->p == '\n'))
        s->p++;
}

bool dt_json_skip_char(struct dt_json_scan *s, char c)
{
    dt_json_skip_space(s);
    if (dt_json_peek(s) != c)
        return false;
    s->p++;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of four hexadecimal digits; -1 if they are not. */
static int32_t hex4(const char *p, const char *end)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = p + i < end ? hex_digit(p[i]) : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static bool skip_escape(struct dt_json_scan *s)
{
    s->p++;
    char c = dt_json_peek(s);
    if (c == 'u' && hex4(s->p + 1, s->end) < 0)
        return dt_json_scan_fail(s, "four hexadecimal digits expected");
    if (c == '\0' || strchr("\"\\/bfnrtu", c) == NULL)
        return dt_json_scan_fail(s, "unknown escape");
    s->p += c == 'u' ? 4 : 0;
    return true;
}

bool dt_json_skip_string(struct dt_json_scan *s, struct dt_json_span *content)
{
    if (!dt_json_skip_char(s, '"'))
        return dt_json_scan_fail(s, "string expected");
    for (content->from = s->p;; s->p++) {
        s->p += dt_json_plain(s->p, (size_t)(s->end - s->p));
        unsigned char c = (unsigned char)dt_json_peek(s);
        if (c == '"')
            break;
        if (c < 0x20)
            return dt_json_scan_fail(s, "control character in a string");
        if (c == '\\' && !skip_escape(s))
            return false;
    }
    content->to = s->p++;
    return true;
}

bool dt_json_skip_name(struct dt_json_scan *s, struct dt_json_span *name)
{
    if (!dt_json_skip_string(s, name))
        return false;
    if (!dt_json_skip_char(s, ':'))
        return dt_json_scan_fail(s, "':' expected");
    dt_json_skip_space(s);
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool skip_digits(struct dt_json_scan *s)
{
    if (!is_digit(dt_json_peek(s)))
        return dt_json_scan_fail(s, "digit expected");
    while (is_digit(dt_json_peek(s)))
        s->p++;
    return true;
}

bool dt_json_skip_number(struct dt_json_scan *s)
{
    s->p += dt_json_peek(s) == '-';
    if (dt_json_peek(s) == '0')
        s->p++; /* no digit may follow */
    else if (!skip_digits(s))
        return false;
    if (dt_json_peek(s) == '.' && (s->p++, !skip_digits(s)))
        return false;
    if (dt_json_peek(s) != 'e' && dt_json_peek(s) != 'E')
        return true;
    s->p++;
    s->p += dt_json_peek(s) == '+' || dt_json_peek(s) == '-';
    return skip_digits(s);
}

bool dt_json_skip_word(struct dt_json_scan *s, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return dt_json_scan_fail(s, "value expected");
    s->p += n;
    return true;
}

/* The members of an object or the elements of an array, after its bracket. */
static bool skip_inside(struct dt_json_scan *s, char closing, int depth)
{
    struct dt_json_span name;
    if (depth > DT_JSON_DEEPEST)
        return dt_json_scan_fail(s, "nesting too deep");
    if (dt_json_skip_char(s, closing))
        return true;
    do {
        if (closing == '}' && !dt_json_skip_name(s, &name))
            return false;
        if (!dt_json_skip_value(s, depth))
            return false;
    } while (dt_json_skip_char(s, ','));
    return dt_json_skip_char(s, closing) ||
           dt_json_scan_fail(s, closing == '}' ? "',' or '}' expected" : "',' or ']' expected");
}

bool dt_json_skip_value(struct dt_json_scan *s, int depth)
{
    struct dt_json_span ignored;
    dt_json_skip_space(s);
    char c = dt_json_peek(s);
    switch (c) {
    case '{':
    case '[':
        s->p++;
        return skip_inside(s, c == '{' ? '}' : ']', depth + 1);
    case '"':
        return dt_json_skip_string(s, &ignored);
    case 't':
        return dt_json_skip_word(s, "true");
    case 'f':
        return dt_json_skip_word(s, "false");
    case 'n':
        return dt_json_skip_word(s, "null");
    default:
        return c == '-' || is_digit(c) ? dt_json_skip_number(s)
                                       : dt_json_scan_fail(s, "value expected");
    }
}

/* Decodes "uHHHH", or a surrogate pair of them, at *p; moves *p to the last digit. An unpaired
 * surrogate is U+FFFD. */
static int32_t unicode_escape(const char **p, const char *end)
{
    int32_t c = hex4(*p + 1, end);
    *p += 4;
    if (c < 0xd800 || c > 0xdfff)
        return c;
    if (c > 0xdbff || (*p)[1] != '\\' || (*p)[2] != 'u')
        return 0xfffd;
    int32_t low = hex4(*p + 3, end);
    if (low < 0xdc00 || low > 0xdfff)
        return 0xfffd;
    *p += 6;
    return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

static char meaning_of(char letter)
{
    switch (letter) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    default:
        return letter;
    }
}

void dt_json_unescape(struct dt_json_span string, struct dt_buffer *b)
{
    dt_buffer_reserve(b, (size_t)(string.to - string.from));
    char *out = b->data;
    for (const char *p = string.from; p < string.to; p++) {
        const char *next = memchr(p, '\\', (size_t)(string.to - p));
        size_t plain = (size_t)((next ? next : string.to) - p);
        memcpy(out, p, plain);
        out += plain;
        if (next == NULL)
            break;
        p = next + 1;
        if (*p == 'u')
            out += dt_utf8_encode((uint32_t)unicode_escape(&p, string.to), out);
        else
            *out++ = meaning_of(*p);
    }
    *out = '\0';
    b->size = (size_t)(out - b->data);
}
