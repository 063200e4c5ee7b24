/* SPDX-License-Identifier: MIT */
/*
 * What Unicode says of characters, by tables in the source tree, so that it does not depend
 * on what is installed: the same text gets the same ids everywhere. lib/unicode/make-tables.py
 * makes the tables, of version dt_unicode_version.
 *
 *     if (dt_unicode_category(code) == DT_CATEGORY_MN)
 *         ...
 */
#ifndef DT_UNICODE_UNICODE_H
#define DT_UNICODE_UNICODE_H

#include <stdint.h>

#include "base/buffer.h"

/* General categories: letters, marks, numbers, punctuation, symbols, separators, others, each
 * kind without a gap. */
enum dt_category {
    DT_CATEGORY_CN, /* not assigned, and what is no code point */
    DT_CATEGORY_LU,
    DT_CATEGORY_LL,
    DT_CATEGORY_LT,
    DT_CATEGORY_LM,
    DT_CATEGORY_LO,
    DT_CATEGORY_MN,
    DT_CATEGORY_MC,
    DT_CATEGORY_ME,
    DT_CATEGORY_ND,
    DT_CATEGORY_NL,
    DT_CATEGORY_NO,
    DT_CATEGORY_PC,
    DT_CATEGORY_PD,
    DT_CATEGORY_PS,
    DT_CATEGORY_PE,
    DT_CATEGORY_PI,
    DT_CATEGORY_PF,
    DT_CATEGORY_PO,
    DT_CATEGORY_SM,
    DT_CATEGORY_SC,
    DT_CATEGORY_SK,
    DT_CATEGORY_SO,
    DT_CATEGORY_ZS,
    DT_CATEGORY_ZL,
    DT_CATEGORY_ZP,
    DT_CATEGORY_CC,
    DT_CATEGORY_CF,
    DT_CATEGORY_CS,
    DT_CATEGORY_CO
};

#define DT_UNICODE_LONGEST 4 /* code points of a full canonical decomposition */

struct dt_unicode_record {
    uint8_t category;
    uint8_t combining; /* class */
    int32_t lower;     /* from the code to its lower case, by itself */
    uint8_t splits;    /* has a canonical decomposition; Hangul syllables, which have one by
                          rule, are not marked */
    uint8_t joins;     /* is the second of a canonical composition; Hangul likewise */
};

struct dt_unicode_decomposition {
    uint32_t code, first, second; /* second 0: there is none */
};

/* The tables of tables.c. Record 0 is that of codes that are not assigned; dt_unicode_record
 * shows how the others are found. */
extern const char dt_unicode_version[];
extern const struct dt_unicode_record dt_unicode_records[];
extern const uint8_t dt_unicode_index[], dt_unicode_blocks[];
extern const struct dt_unicode_decomposition dt_unicode_decompositions[]; /* by code */
extern const uint16_t dt_unicode_compositions[]; /* places there, by first and second */
extern const unsigned dt_unicode_decomposition_count, dt_unicode_composition_count;

static inline const struct dt_unicode_record *dt_unicode_record(uint32_t code)
{
    if (code >= 0x110000)
        return &dt_unicode_records[0];
    uint32_t block = dt_unicode_index[code >> 8];
    return &dt_unicode_records[dt_unicode_blocks[block << 8 | (code & 0xff)]];
}

static inline enum dt_category dt_unicode_category(uint32_t code)
{
    return (enum dt_category)dt_unicode_record(code)->category;
}

static inline uint32_t dt_unicode_lower(uint32_t code)
{
    return code + (uint32_t)dt_unicode_record(code)->lower;
}

/* The full canonical decomposition, Hangul's too, in the order of the tables; the code
 * itself where it has none. Returns how many code points it has. */
unsigned dt_unicode_decompose(uint32_t code, uint32_t parts[DT_UNICODE_LONGEST]);
/* What the two compose to; 0 if nothing. */
uint32_t dt_unicode_compose(uint32_t first, uint32_t second);
/* Replaces result by the Normalization Form C of the points. Takes the square of the marks
 * of a base. */
void dt_unicode_nfc(const uint32_t *points, size_t count, struct dt_ids *result);

/* Writes the UTF-8 of a code point below 0x110000; returns how many bytes it has. */
unsigned dt_unicode_encode(uint32_t code, char bytes[4]);

#endif
