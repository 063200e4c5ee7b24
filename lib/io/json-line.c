/* SPDX-License-Identifier: MIT */
#include "io/json-line.h"

#include <stdint.h>
#include <string.h>

#define DEEPEST 30 /* the general parser goes to 32 */

struct span {
    const char *from, *to;
};

/* The functions below move *p behind what they name and return true, or
 * return false. The text ends with a 0 byte, which no JSON may contain, so they
 * need not know its size. */

static void skip_space(const char **p)
{
    while (**p == ' ' || **p == '\t' || **p == '\r')
        ++*p;
}

static bool skip_char(const char **p, char c)
{
    skip_space(p);
    if (**p != c)
        return false;
    ++*p;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number that four hexadecimal digits make; -1 if they are none. */
static int32_t hex4(const char *p)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* A string in quotes; content is what stands between them, escapes as they are. */
static bool skip_string(const char **p, struct span *content)
{
    static const char letters[] = "\"\\/bfnrt";
    if (!skip_char(p, '"'))
        return false;
    const char *s = content->from = *p;
    for (; *s != '"'; s++) {
        if ((unsigned char)*s < 0x20)
            return false;
        if (*s != '\\')
            continue;
        s++;
        if (*s == 'u' && hex4(s + 1) >= 0)
            s += 4;
        else if (*s == '\0' || strchr(letters, *s) == NULL)
            return false;
    }
    content->to = s;
    *p = s + 1;
    return true;
}

static bool skip_digits(const char **p)
{
    const char *start = *p;
    while (**p >= '0' && **p <= '9')
        ++*p;
    return *p > start;
}

static bool skip_number(const char **p)
{
    *p += **p == '-';
    const char *first = *p;
    if (!skip_digits(p) || (*first == '0' && *p > first + 1))
        return false;
    if (**p == '.' && (++*p, !skip_digits(p)))
        return false;
    if (**p == 'e' || **p == 'E') {
        ++*p;
        *p += **p == '+' || **p == '-';
        return skip_digits(p);
    }
    return true;
}

static bool skip_word(const char **p)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]);
        if (strncmp(*p, words[i], n) == 0) {
            *p += n;
            return true;
        }
    }
    return false;
}

static bool skip_value(const char **p, int depth);

/* The members of an object or the elements of an array, behind its bracket. */
static bool skip_inside(const char **p, char closing, int depth)
{
    struct span name;
    if (depth > DEEPEST)
        return false;
    if (skip_char(p, closing))
        return true;
    do {
        if (closing == '}' && !(skip_string(p, &name) && skip_char(p, ':')))
            return false;
        if (!skip_value(p, depth))
            return false;
    } while (skip_char(p, ','));
    return skip_char(p, closing);
}

static bool skip_value(const char **p, int depth)
{
    struct span ignored;
    skip_space(p);
    switch (**p) {
    case '{':
        ++*p;
        return skip_inside(p, '}', depth + 1);
    case '[':
        ++*p;
        return skip_inside(p, ']', depth + 1);
    case '"':
        return skip_string(p, &ignored);
    case 't':
    case 'f':
    case 'n':
        return skip_word(p);
    default:
        return skip_number(p);
    }
}

static char *put_utf8(char *out, int32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return out;
}

/* The character that "uXXXX" at *p stands for, or a pair of them; *p is moved
 * to the last digit. Half a pair is U+FFFD. */
static int32_t unicode_escape(const char **p)
{
    int32_t c = hex4(*p + 1);
    *p += 4;
    if (c < 0xd800 || c > 0xdfff)
        return c;
    if (c > 0xdbff || (*p)[1] != '\\' || (*p)[2] != 'u')
        return 0xfffd;
    int32_t low = hex4(*p + 3);
    if (low < 0xdc00 || low > 0xdfff)
        return 0xfffd;
    *p += 6;
    return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

/* Sets b to the string with its escapes resolved; the result is never longer. */
static void unescape(struct span string, struct dt_buffer *b)
{
    static const char letters[] = "bfnrt", meaning[] = "\b\f\n\r\t";
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
        const char *letter = strchr(letters, *p);
        if (*p == 'u')
            out = put_utf8(out, unicode_escape(&p));
        else
            *out++ = letter ? meaning[letter - letters] : *p;
    }
    *out = '\0';
    b->size = (size_t)(out - b->data);
}

static bool is_named(struct span name, const char *expected)
{
    size_t n = (size_t)(name.to - name.from);
    return n == strlen(expected) && memcmp(name.from, expected, n) == 0;
}

/* What a line has been found to hold. */
struct found {
    struct span text, id, meta; /* from is NULL where there is none */
};

static bool take_string(const char **p, struct span *string)
{
    return string->from == NULL && skip_string(p, string);
}

static bool take_member(const char **p, const char *field, struct found *found,
                        struct dt_buffer *others)
{
    struct span name;
    if (!skip_string(p, &name) || memchr(name.from, '\\', (size_t)(name.to - name.from)) ||
        !skip_char(p, ':'))
        return false;
    if (is_named(name, field))
        return take_string(p, &found->text);
    if (is_named(name, "id"))
        return take_string(p, &found->id);
    skip_space(p);
    const char *value = *p;
    if (!skip_value(p, 1))
        return false;
    if (is_named(name, "meta")) {
        bool is_first = found->meta.from == NULL;
        found->meta = (struct span){value, *p};
        return is_first && *value == '{';
    }
    dt_buffer_add_string(others, others->size ? ",\"" : "{\"");
    dt_buffer_append(others, name.from, (size_t)(name.to - name.from));
    dt_buffer_add_string(others, "\":");
    dt_buffer_append(others, value, (size_t)(*p - value));
    return true;
}

bool dt_json_line_read(const char *line, size_t size, const char *field, struct dt_document *doc)
{
    struct found found = {0};
    const char *p = line;
    dt_buffer_clear(&doc->meta);
    if (!skip_char(&p, '{'))
        return false;
    do {
        if (!take_member(&p, field, &found, &doc->meta))
            return false;
    } while (skip_char(&p, ','));
    if (!skip_char(&p, '}') || (skip_space(&p), p != line + size) || found.text.from == NULL)
        return false;
    if (found.meta.from && doc->meta.size > 0)
        return false;
    unescape(found.text, &doc->text);
    if (found.id.from)
        unescape(found.id, &doc->id);
    if (doc->meta.size > 0)
        dt_buffer_add_char(&doc->meta, '}');
    if (found.meta.from)
        dt_buffer_append(&doc->meta, found.meta.from, (size_t)(found.meta.to - found.meta.from));
    return true;
}
