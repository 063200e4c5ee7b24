/* SPDX-License-Identifier: MIT */
#include "base/json-number.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* --- writing ----------------------------------------------------------------------------------*/

struct json_object *dt_json_number(double x)
{
    return isfinite(x) ? json_object_new_double(x) : NULL;
}

void dt_json_add_number(struct dt_buffer *b, double x)
{
    if (isfinite(x))
        dt_buffer_add_real(b, x);
    else
        dt_buffer_add_string(b, "null");
}

static void add_name(struct dt_buffer *b, const char *name)
{
    bool first = b->size > 0 && b->data[b->size - 1] == '{';
    dt_buffer_printf(b, "%s\"%s\":", first ? "" : ",", name);
}

void dt_json_add_real(struct dt_buffer *b, const char *name, double x, int digits)
{
    add_name(b, name);
    if (isfinite(x))
        dt_buffer_printf(b, "%.*g", digits, x);
    else
        dt_buffer_add_string(b, "null");
}

void dt_json_add_fixed(struct dt_buffer *b, const char *name, double x, int decimals)
{
    add_name(b, name);
    if (isfinite(x))
        dt_buffer_printf(b, "%.*f", decimals, x);
    else
        dt_buffer_add_string(b, "null");
}

/* --- reading ----------------------------------------------------------------------------------*/

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Characters of numbers and of words. */
static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

/* By RFC 8259; *whole: without fraction and exponent. */
static bool is_number(const char *p, const char *end, bool *whole)
{
    p += p < end && *p == '-';
    const char *digits = p;
    p = skip_digits(p, end);
    *whole = p == end;
    if (p == digits || (*digits == '0' && p > digits + 1))
        return false;
    if (p < end && *p == '.') {
        digits = p + 1;
        p = skip_digits(digits, end);
        if (p == digits)
            return false;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '-' || *p == '+');
        digits = p;
        p = skip_digits(p, end);
        if (p == digits)
            return false;
    }
    return p == end;
}

/* Of a whole number of JSON, which text follows that is no digit. */
static bool fits_64_bits(const char *p, const char *end)
{
    if (end - p < 19)
        return true;
    char *copy = dt_strndup(p, (size_t)(end - p));
    errno = 0;
    if (*p == '-')
        (void)strtoll(copy, NULL, 10);
    else
        (void)strtoull(copy, NULL, 10);
    free(copy);
    return errno != ERANGE;
}

static bool is_text(const char *p, const char *end, const char *text)
{
    return (size_t)(end - p) == strlen(text) && memcmp(p, text, strlen(text)) == 0;
}

/* Looks at the word from p to end. *instead: what replaces it, NULL if nothing does; *keeps:
 * whether it goes before that. */
static int look_at_word(const char *p, const char *end, const char **instead, bool *keeps)
{
    bool whole;
    *instead = NULL;
    *keeps = false;
    if (is_text(p, end, "NaN") || is_text(p, end, "Infinity") || is_text(p, end, "-Infinity")) {
        *instead = "null";
        return 0;
    }
    if (*p != '-' && !is_digit(*p))
        return 0; /* true, null, or what json-c refuses */
    if (!is_number(p, end, &whole))
        return DT_EFORMAT;
    *keeps = whole && !fits_64_bits(p, end);
    *instead = *keeps ? "e0" : NULL;
    return 0;
}

/* Behind the string whose first quotation mark comes before p. */
static const char *skip_string(const char *p, const char *end)
{
    while (p < end) {
        p += dt_json_plain(p, (size_t)(end - p));
        if (p == end || *p == '"')
            break;
        p += *p == '\\' && p + 1 < end ? 2 : 1;
    }
    return p < end ? p + 1 : end;
}

int dt_json_resolve_numbers(const char *text, size_t size, struct dt_buffer *plain, size_t *at)
{
    const char *end = text + size, *copied = text, *instead, *next;
    bool keeps;
    for (const char *p = text; p < end; p = next) {
        next = p + 1;
        if (*p == '"') {
            next = skip_string(next, end);
        } else if (is_word(*p)) {
            while (next < end && is_word(*next))
                next++;
            *at = (size_t)(p - text);
            DT_TRY(look_at_word(p, next, &instead, &keeps));
            if (instead == NULL)
                continue;
            dt_buffer_append(plain, copied, (size_t)((keeps ? next : p) - copied));
            dt_buffer_add_string(plain, instead);
            copied = next;
        }
    }
    if (copied > text)
        dt_buffer_append(plain, copied, (size_t)(end - copied));
    return 0;
}
