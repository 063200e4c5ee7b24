/* SPDX-License-Identifier: MIT */
/*
 * UTF-8 decoding and character classes for pre-tokenizers: one table look-up per character.
 *
 * A byte that is not part of valid UTF-8 counts as one character of class DT_CHAR_OTHER, so
 * any bytes can be scanned and none is lost.
 */
#ifndef DT_PRETOKENIZE_CHARACTER_H
#define DT_PRETOKENIZE_CHARACTER_H

#include <stdint.h>

/* General categories, grouped as the patterns distinguish them; Unicode version of
 * lib/unicode. */
enum dt_char_class {
    DT_CHAR_OTHER,
    DT_CHAR_UPPER,   /* Lu and Lt */
    DT_CHAR_LOWER,   /* Ll */
    DT_CHAR_UNCASED, /* Lm and Lo */
    DT_CHAR_MARK,    /* M */
    DT_CHAR_NUMBER,  /* N */
    DT_CHAR_SPACE,   /* White_Space except the newlines */
    DT_CHAR_NEWLINE, /* \r and \n */
    DT_CHAR_CLASSES
};

/* Sets of classes: bit C for class C. */
#define DT_SET(class) (1u << (class))
#define DT_SET_LETTERS                                                                             \
    (DT_SET(DT_CHAR_UPPER) | DT_SET(DT_CHAR_LOWER) | DT_SET(DT_CHAR_UNCASED)) /* \p{L} */
#define DT_SET_SPACES (DT_SET(DT_CHAR_SPACE) | DT_SET(DT_CHAR_NEWLINE))       /* \s */
#define DT_SET_OTHERS (DT_SET(DT_CHAR_OTHER) | DT_SET(DT_CHAR_MARK))          /* [^\s\p{L}\p{N}] */

#define DT_CHAR_MULTIBYTE 31 /* in byte[]: part of a multibyte character; in none of the sets */
#define DT_CHAR_INVALID   UINT32_MAX
#define DT_CHAR_BLOCKS    256

struct dt_character_table {
    uint8_t byte[256]; /* class of an ASCII byte, or DT_CHAR_MULTIBYTE */
    uint8_t block[0x110000 >> 8];
    uint8_t classes[DT_CHAR_BLOCKS][256]; /* distinct blocks */
};

extern struct dt_character_table dt_character_table_all;

/* Fills dt_character_table_all once; thread-safe. */
void dt_character_table_init(void);

/* Decodes the character at p < end. Returns its length in bytes. An invalid byte has length 1
 * and code DT_CHAR_INVALID. */
static inline unsigned dt_character(const unsigned char *p, const unsigned char *end,
                                    uint32_t *code)
{
    unsigned c = *p;
    long left = end - p;
    *code = c;
    if (c < 0x80)
        return 1;
    if (c >= 0xc2 && c < 0xe0 && left > 1 && (p[1] & 0xc0) == 0x80) {
        *code = (c & 0x1f) << 6 | (p[1] & 0x3fu);
        return 2;
    }
    if ((c & 0xf0) == 0xe0 && left > 2 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80) {
        *code = (c & 0xf) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
        if (*code >= 0x800 && (*code < 0xd800 || *code > 0xdfff))
            return 3;
    }
    if ((c & 0xf8) == 0xf0 && left > 3 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80 &&
        (p[3] & 0xc0) == 0x80) {
        *code = (c & 7) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
        if (*code >= 0x10000 && *code <= 0x10ffff)
            return 4;
    }
    *code = DT_CHAR_INVALID;
    return 1;
}

/* The class of a code point; not for DT_CHAR_INVALID. */
static inline unsigned dt_character_class_of(uint32_t code)
{
    return dt_character_table_all.classes[dt_character_table_all.block[code >> 8]][code & 0xff];
}

/* The class of the character at p < end, and its length. */
static inline unsigned dt_character_class(const unsigned char *p, const unsigned char *end,
                                          unsigned *length)
{
    uint32_t code;
    *length = dt_character(p, end, &code);
    return code == DT_CHAR_INVALID ? DT_CHAR_OTHER : dt_character_class_of(code);
}

#endif
