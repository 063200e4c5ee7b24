/* SPDX-License-Identifier: MIT */
/*
 * A scanner for JSON (RFC 8259) that finds the bounds of values without building them. Bytes in
 * strings need not be UTF-8.
 *
 *     struct dt_json_scan s = {.p = text, .end = text + size};
 *     if (!dt_json_skip_value(&s, 0))
 *         return dt_fail(err, DT_EFORMAT, "byte %zu: %s", (size_t)(s.p - text), s.reason);
 */
#ifndef DT_JSON_JSON_SCAN_H
#define DT_JSON_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

#define DT_JSON_DEEPEST 32 /* nested objects and arrays; also the depth of recursion */

/* A position in a text of JSON. */
struct dt_json_scan {
    const char *p, *end;
    const char *reason; /* why the last function returned false */
};

struct dt_json_span {
    const char *from, *to;
};

/* The next byte; 0, which JSON cannot contain, at the end. */
static inline char dt_json_peek(const struct dt_json_scan *s)
{
    return s->p < s->end ? *s->p : '\0';
}

/* Sets the reason; returns false. */
bool dt_json_scan_fail(struct dt_json_scan *s, const char *reason);

/* The functions below move s->p past what they name and return true; or leave it at the error,
 * set the reason and return false. */

void dt_json_skip_space(struct dt_json_scan *s);
/* c, after white space, if it is next; sets no reason. */
bool dt_json_skip_char(struct dt_json_scan *s, char c);
/* A string in quotes, after white space; content is what is between them, escapes as they are. */
bool dt_json_skip_string(struct dt_json_scan *s, struct dt_json_span *content);
/* The name of a member as such a string, the colon after it, and white space. */
bool dt_json_skip_name(struct dt_json_scan *s, struct dt_json_span *name);
bool dt_json_skip_number(struct dt_json_scan *s);
bool dt_json_skip_word(struct dt_json_scan *s, const char *word);
/* Any value, after white space. depth: objects and arrays around it. */
bool dt_json_skip_value(struct dt_json_scan *s, int depth);

/* Sets b to the content of a string with its escapes resolved; it never becomes longer. Half a
 * surrogate pair is U+FFFD. */
void dt_json_unescape(struct dt_json_span string, struct dt_buffer *b);

/* The length of the prefix of text that needs no escape in a string: no control character, 0x7f,
 * quotation mark or backslash. */
size_t dt_json_plain(const char *text, size_t size);

#endif
