/* SPDX-License-Identifier: MIT */
/*
 * The character encoding of an HTML page, and its text in UTF-8. Labels are those of the WHATWG
 * Encoding Standard; iconv(3) decodes.
 *
 *     struct dt_charset_clues clues = dt_charset_clues(page, size, content_type, n);
 *     const struct dt_charset *charset = dt_charset_detect(page, size, &clues);
 *     replaced = dt_charset_decode(charset, page, size, &text);
 */
#ifndef DT_EXTRACT_CHARSET_H
#define DT_EXTRACT_CHARSET_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "extract/charset-detector.h"

struct dt_charset {
    const char *name;   /* as the standard writes it: "windows-1252" */
    const char *iconv;  /* as glibc names it; NULL: the standard decodes nothing of it */
    const char *labels; /* separated by spaces, lower case */
};

/* The encoding with this label, without regard to case and to white space around it; NULL if there
 * is none. */
const struct dt_charset *dt_charset_find(const char *label, size_t size);

/* What a page states about itself; pointers into the page and into the header. */
struct dt_charset_clues {
    const struct dt_charset *header; /* of the HTTP header Content-Type, or NULL */
    const struct dt_charset *meta;   /* of the element meta, else of <?xml?>, or NULL */
    const char *language;            /* of <html lang>, or NULL */
    size_t language_size;
    const struct dt_charset_detector *detector; /* set by the caller, or NULL */
};

/* Searches the first bytes of a page. content_type: the value of the HTTP header, or NULL. */
struct dt_charset_clues dt_charset_clues(const char *page, size_t size, const char *content_type,
                                         size_t content_type_size);

/* A byte order mark decides; then the first statement (header, meta) that the bytes do not
 * contradict: bytes that are not UTF-8 contradict UTF-8, and UTF-8 beyond ASCII contradicts
 * other encodings. Without one UTF-8 if the bytes are. Else the encoding that the detector finds,
 * if it is one of those that are usual in a language, unless the page is in a language of
 * windows-1252; else the usual one of the language, which is windows-1252 for most. Never NULL. */
const struct dt_charset *dt_charset_detect(const char *page, size_t size,
                                           const struct dt_charset_clues *clues);

/* Replaces *text by the page in UTF-8, without a byte order mark; U+FFFD stands for what the
 * encoding does not have. Returns the number of U+FFFD that were inserted, or -1 if the C
 * library cannot decode this encoding. */
int64_t dt_charset_decode(const struct dt_charset *charset, const char *page, size_t size,
                          struct dt_buffer *text);

#endif
