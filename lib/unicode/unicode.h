/* SPDX-License-Identifier: MIT */
/*
 * The Unicode Character Database as tables in the source tree, so that results do not depend on an
 * installed library: the same text gives the same ids and the same cleaned text everywhere.
 * lib/unicode/make-tables.py writes the tables, of version dt_unicode_version.
 *
 *     if (dt_unicode_category(code) == DT_CATEGORY_MN)
 *         ...
 */
#ifndef DT_UNICODE_UNICODE_H
#define DT_UNICODE_UNICODE_H

#include <stdint.h>

/* General categories in the order letters, marks, numbers, punctuation, symbols, separators,
 * others; each of these is one contiguous range. */
enum dt_category {
    DT_CATEGORY_CN, /* not assigned, and values above U+10FFFF */
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

/* The most code points of a result. */
#define DT_UNICODE_LONGEST    4  /* full canonical decomposition */
#define DT_UNICODE_EXPAND_MAX 18 /* full compatibility decomposition: U+FDFA */
#define DT_UNICODE_FOLD_MAX   3  /* full case folding */
#define DT_UNICODE_CASE_MAX   3  /* full upper and title case */

/* lower, title and fold are the distance from the code to the mapped code, 0 where it maps to
 * itself. Hangul syllables decompose and compose by rule; splits and joins are 0 for them. */
struct dt_unicode_record {
    uint8_t category;
    uint8_t combining; /* class */
    int32_t lower, title;
    uint8_t splits;    /* has a canonical decomposition */
    uint8_t joins;     /* is the second code of a canonical composition */
    uint8_t expands;   /* its compatibility decomposition differs from the canonical one */
    uint8_t settled;   /* bit 0 NFC, bit 1 NFKC: stays as it is whatever precedes it */
    int32_t fold;      /* case folding to one code */
    uint8_t long_fold; /* case folding to several codes */
};

struct dt_unicode_decomposition {
    uint32_t code, first, second; /* second 0: the decomposition is one code */
};

struct dt_unicode_sequence {
    uint32_t code;
    uint16_t offset, length; /* in dt_unicode_sequence_points */
};

/* Classes of grapheme cluster boundaries (UAX #29). */
enum dt_unicode_break {
    DT_UNICODE_BREAK_OTHER,
    DT_UNICODE_BREAK_CR,
    DT_UNICODE_BREAK_LF,
    DT_UNICODE_BREAK_CONTROL,
    DT_UNICODE_BREAK_EXTEND,
    DT_UNICODE_BREAK_ZWJ,
    DT_UNICODE_BREAK_SPACING,
    DT_UNICODE_BREAK_PREPEND,
    DT_UNICODE_BREAK_REGIONAL,
    DT_UNICODE_BREAK_PICTURE,
    DT_UNICODE_BREAK_L,
    DT_UNICODE_BREAK_V,
    DT_UNICODE_BREAK_T,
    DT_UNICODE_BREAK_LV,
    DT_UNICODE_BREAK_LVT
};

struct dt_unicode_break_range {
    uint32_t first, last;
    uint8_t class;
};

/* The tables of tables.c. A record is found in two steps:
 *
 *     code 0x1E69        index[0x1E] = block       blocks[block << 8 | 0x69] = record
 *
 * Equal blocks of 256 codes are stored once. Record 0 is that of unassigned codes. */
extern const char dt_unicode_version[];
extern const struct dt_unicode_record dt_unicode_records[];
extern const uint8_t dt_unicode_index[];
extern const uint16_t dt_unicode_blocks[];
extern const struct dt_unicode_decomposition dt_unicode_decompositions[]; /* by code */
extern const uint16_t dt_unicode_compositions[]; /* indices there, by first and second */
extern const struct dt_unicode_sequence dt_unicode_expansions[], dt_unicode_folds[],
    dt_unicode_uppers[], dt_unicode_titles[]; /* by code */
extern const uint32_t dt_unicode_sequence_points[];
extern const struct dt_unicode_break_range dt_unicode_breaks[]; /* without Hangul syllables */
extern const unsigned dt_unicode_break_count, dt_unicode_decomposition_count,
    dt_unicode_composition_count, dt_unicode_expansion_count, dt_unicode_fold_count,
    dt_unicode_upper_count, dt_unicode_title_count;

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

static inline uint32_t dt_unicode_title(uint32_t code)
{
    return code + (uint32_t)dt_unicode_record(code)->title;
}

/* These write at least one code point, the code itself where it does not change, and return how
 * many. decompose: full canonical decomposition, of Hangul too, not reordered. expand: likewise,
 * full compatibility decomposition. fold: full case folding. full_upper, full_title: full mappings
 * to upper and title case. */
unsigned dt_unicode_decompose(uint32_t code, uint32_t parts[DT_UNICODE_LONGEST]);
unsigned dt_unicode_expand(uint32_t code, uint32_t parts[DT_UNICODE_EXPAND_MAX]);
unsigned dt_unicode_fold(uint32_t code, uint32_t parts[DT_UNICODE_FOLD_MAX]);
unsigned dt_unicode_full_upper(uint32_t code, uint32_t parts[DT_UNICODE_CASE_MAX]);
unsigned dt_unicode_full_title(uint32_t code, uint32_t parts[DT_UNICODE_CASE_MAX]);
enum dt_unicode_break dt_unicode_break_of(uint32_t code);
/* The canonical composition of two code points; 0 if there is none. */
uint32_t dt_unicode_compose(uint32_t first, uint32_t second);

#endif
