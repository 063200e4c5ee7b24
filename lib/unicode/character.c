/* SPDX-License-Identifier: MIT */
#include "unicode/character.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "unicode/unicode.h"

#define SYM    DT_CHARACTER_SYMBOL
#define MARK   (DT_CHARACTER_SYMBOL | DT_CHARACTER_PUNCTUATION)
#define AFFIX  (MARK | DT_CHARACTER_OPENING | DT_CHARACTER_CLOSING)
#define STOP   (AFFIX | DT_CHARACTER_STOP)
#define QUOTE  (AFFIX | DT_CHARACTER_QUOTE)
#define BEFORE (DT_CHARACTER_SYMBOL | DT_CHARACTER_OPENING)
#define BLANK  DT_CHARACTER_BLANK
#define DIG    DT_CHARACTER_DIGIT | DT_CHARACTER_NUMBER
#define UP     (DT_CHARACTER_LETTER | DT_CHARACTER_UPPER)
#define LOW    (DT_CHARACTER_LETTER | DT_CHARACTER_LOWER)

/* clang-format off */
const uint16_t dt_character_ascii_kinds[128] = {
    SYM, SYM, SYM, SYM, SYM, SYM, SYM, SYM, SYM, BLANK, BLANK, BLANK | SYM, BLANK | SYM, BLANK | SYM,
    SYM, SYM, SYM, SYM, SYM, SYM, SYM, SYM, SYM, SYM, SYM, SYM, SYM, SYM,
    BLANK | SYM, BLANK | SYM, BLANK | SYM, BLANK | SYM, BLANK,
    ['!'] = STOP, ['"'] = QUOTE, ['#'] = AFFIX, ['$'] = BEFORE, ['%'] = MARK | DT_CHARACTER_OPENING,
    ['&'] = AFFIX, ['\''] = QUOTE, ['('] = AFFIX, [')'] = AFFIX, ['*'] = AFFIX, ['+'] = BEFORE,
    [','] = AFFIX, ['-'] = MARK, ['.'] = MARK | DT_CHARACTER_STOP, ['/'] = MARK,
    ['0'] = DIG, DIG, DIG, DIG, DIG, DIG, DIG, DIG, DIG, DIG,
    [':'] = AFFIX, [';'] = AFFIX, ['<'] = BEFORE | DT_CHARACTER_CLOSING, ['='] = BEFORE,
    ['>'] = BEFORE | DT_CHARACTER_CLOSING, ['?'] = STOP, ['@'] = MARK,
    ['A'] = UP, UP, UP, UP, UP, UP, UP, UP, UP, UP, UP, UP, UP,
    UP, UP, UP, UP, UP, UP, UP, UP, UP, UP, UP, UP, UP,
    ['['] = AFFIX, ['\\'] = MARK, [']'] = AFFIX, ['^'] = SYM, ['_'] = AFFIX,
    ['`'] = BEFORE | DT_CHARACTER_CLOSING | DT_CHARACTER_QUOTE,
    ['a'] = LOW, LOW, LOW, LOW, LOW, LOW, LOW, LOW, LOW, LOW, LOW, LOW, LOW,
    LOW, LOW, LOW, LOW, LOW, LOW, LOW, LOW, LOW, LOW, LOW, LOW, LOW,
    ['{'] = AFFIX, ['|'] = SYM, ['}'] = AFFIX, ['~'] = SYM, [0x7f] = SYM,
};

struct range {
    uint32_t first, last;
};

/* Sentence_Terminal beyond ASCII. */
static const struct range stops[] = {
    {0x0589, 0x0589}, {0x061d, 0x061f}, {0x06d4, 0x06d4}, {0x0700, 0x0702}, {0x07f9, 0x07f9},
    {0x0837, 0x0837}, {0x0839, 0x0839}, {0x083d, 0x083e}, {0x0964, 0x0965}, {0x104a, 0x104b},
    {0x1362, 0x1362}, {0x1367, 0x1368}, {0x166e, 0x166e}, {0x1735, 0x1736}, {0x17d4, 0x17d6},
    {0x17d9, 0x17da}, {0x1803, 0x1803}, {0x1809, 0x1809}, {0x1944, 0x1945}, {0x1aa8, 0x1aab},
    {0x1b5a, 0x1b5b}, {0x1b5e, 0x1b5f}, {0x1b7d, 0x1b7e}, {0x1c3b, 0x1c3c}, {0x1c7e, 0x1c7f},
    {0x203c, 0x203d}, {0x2047, 0x2049}, {0x2e2e, 0x2e2e}, {0x2e3c, 0x2e3c}, {0x2e53, 0x2e54},
    {0x3002, 0x3002}, {0xa4ff, 0xa4ff}, {0xa60e, 0xa60f}, {0xa6f3, 0xa6f3}, {0xa6f7, 0xa6f7},
    {0xa876, 0xa877}, {0xa8ce, 0xa8cf}, {0xa92f, 0xa92f}, {0xa9c8, 0xa9c9}, {0xaa5d, 0xaa5f},
    {0xaaf0, 0xaaf1}, {0xabeb, 0xabeb}, {0xfe52, 0xfe52}, {0xfe56, 0xfe57}, {0xff01, 0xff01},
    {0xff0e, 0xff0e}, {0xff1f, 0xff1f}, {0xff61, 0xff61}, {0x10a56, 0x10a57}, {0x10f55, 0x10f59},
    {0x10f86, 0x10f89}, {0x11047, 0x11048}, {0x110be, 0x110c1}, {0x11141, 0x11143},
    {0x111c5, 0x111c6}, {0x111cd, 0x111cd}, {0x111de, 0x111df}, {0x11238, 0x11239},
    {0x1123b, 0x1123c}, {0x112a9, 0x112a9}, {0x1144b, 0x1144c}, {0x115c2, 0x115c3},
    {0x115c9, 0x115d7}, {0x11641, 0x11642}, {0x1173c, 0x1173e}, {0x11944, 0x11944},
    {0x11946, 0x11946}, {0x11a42, 0x11a43}, {0x11a9b, 0x11a9c}, {0x11c41, 0x11c42},
    {0x11ef7, 0x11ef8}, {0x11f43, 0x11f44}, {0x16a6e, 0x16a6f}, {0x16af5, 0x16af5},
    {0x16b37, 0x16b38}, {0x16b44, 0x16b44}, {0x16e98, 0x16e98}, {0x1bc9f, 0x1bc9f},
    {0x1da88, 0x1da88},
};

static const struct range symbols[] = {
    {0x0080, 0x009f}, {0x00ab, 0x00ab}, {0x00b4, 0x00b4}, {0x00bb, 0x00bb}, {0x2013, 0x2014},
    {0x2019, 0x2019}, {0x201c, 0x201e}, {0x2026, 0x2026}, {0x2236, 0x2236}, {0x2501, 0x2501},
    {0x25ba, 0x25ba}, {0x3001, 0x3001}, {0x3008, 0x300d}, {0x3010, 0x3011}, {0xff05, 0xff05},
    {0xff08, 0xff09}, {0xff0c, 0xff0c}, {0xff11, 0xff11}, {0xff1a, 0xff1b}, {0xff5e, 0xff5e},
};

static const struct range affixes[] = {
    {0x00a1, 0x00a1}, {0x00a7, 0x00a7}, {0x00ab, 0x00ab}, {0x00b4, 0x00b4}, {0x00b7, 0x00b7},
    {0x00bb, 0x00bb}, {0x00bf, 0x00bf}, {0x060c, 0x060c}, {0x061b, 0x061b}, {0x061f, 0x061f},
    {0x066a, 0x066a}, {0x06d4, 0x06d4}, {0x0964, 0x0964}, {0x2013, 0x2014}, {0x2018, 0x201a},
    {0x201c, 0x201e}, {0x2026, 0x2026}, {0x2329, 0x232a}, {0x27e6, 0x27e7}, {0x3001, 0x3002},
    {0x3008, 0x3011}, {0x3014, 0x3015}, {0xff01, 0xff01}, {0xff08, 0xff09}, {0xff0c, 0xff0c},
    {0xff1a, 0xff1b}, {0xff1f, 0xff1f}, {0xff5e, 0xff5e},
};

static const struct range quotes[] = {
    {0x00ab, 0x00ab}, {0x00b4, 0x00b4}, {0x00bb, 0x00bb}, {0x2018, 0x201a}, {0x201c, 0x201e},
    {0x2329, 0x232a}, {0x27e6, 0x27e7}, {0x3008, 0x3011}, {0x3014, 0x3015}, {0xff08, 0xff09},
};

/* Letters and marks of Unicode 15 whose Script is Thai, Lao, Myanmar or Khmer; letters and numbers
 * of Han, Hiragana and Katakana, and the marks that all kana share. */
static const struct range unspaced[] = {
    {0x0e01, 0x0e3a},   {0x0e40, 0x0e4e},   {0x0e81, 0x0ecf},   {0x0edc, 0x0edf},
    {0x1000, 0x103f},   {0x1050, 0x108f},   {0x109a, 0x109d},   {0x1780, 0x17d3},
    {0x17d7, 0x17d7},   {0x17dc, 0x17dd},   {0x3005, 0x3007},   {0x3021, 0x3029},
    {0x3031, 0x3035},   {0x3038, 0x303b},   {0x3041, 0x309f},   {0x30a1, 0x30fa},
    {0x30fc, 0x30ff},   {0x31f0, 0x31ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
    {0xa9e0, 0xa9ef},   {0xa9fa, 0xa9fe},   {0xaa60, 0xaa76},   {0xaa7a, 0xaa7f},
    {0xf900, 0xfad9},   {0xff66, 0xff9f},   {0x16fe3, 0x16fe3}, {0x16ff0, 0x16ff1},
    {0x1aff0, 0x1b167}, {0x20000, 0x323af},
};
/* clang-format on */

static bool listed(const struct range *ranges, size_t count, uint32_t point)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (point > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && point >= ranges[low].first;
}

#define LISTED(ranges, point) listed(ranges, sizeof(ranges) / sizeof *(ranges), point)

static unsigned kind_of_category(enum dt_category category)
{
    switch (category) {
    case DT_CATEGORY_LU:
        return DT_CHARACTER_LETTER | DT_CHARACTER_UPPER;
    case DT_CATEGORY_LL:
        return DT_CHARACTER_LETTER | DT_CHARACTER_LOWER;
    case DT_CATEGORY_LT:
    case DT_CATEGORY_LM:
    case DT_CATEGORY_LO:
        return DT_CHARACTER_LETTER | DT_CHARACTER_UPPER | DT_CHARACTER_LOWER;
    case DT_CATEGORY_MN:
        return DT_CHARACTER_MARK;
    case DT_CATEGORY_ND:
        return DT_CHARACTER_NUMBER;
    case DT_CATEGORY_SO:
        return DT_CHARACTER_ICON | DT_CHARACTER_OPENING | DT_CHARACTER_CLOSING;
    case DT_CATEGORY_SC:
        return DT_CHARACTER_OPENING;
    case DT_CATEGORY_ZS:
    case DT_CATEGORY_ZL:
    case DT_CATEGORY_ZP:
        return DT_CHARACTER_BLANK;
    case DT_CATEGORY_PC:
    case DT_CATEGORY_PD:
    case DT_CATEGORY_PS:
    case DT_CATEGORY_PE:
    case DT_CATEGORY_PI:
    case DT_CATEGORY_PF:
    case DT_CATEGORY_PO:
        return DT_CHARACTER_PUNCTUATION;
    default:
        return 0;
    }
}

static unsigned kind_of_clusters(uint32_t point)
{
    enum dt_unicode_break b = dt_unicode_break_of(point);
    bool joins =
        b == DT_UNICODE_BREAK_EXTEND || b == DT_UNICODE_BREAK_ZWJ || b == DT_UNICODE_BREAK_SPACING;
    return (joins ? DT_CHARACTER_JOINS : 0) | (LISTED(unspaced, point) ? DT_CHARACTER_UNSPACED : 0);
}

static unsigned kind_of(uint32_t point)
{
    if (point < 128)
        return dt_character_ascii_kinds[point];
    unsigned kind = kind_of_category(dt_unicode_category(point)) | kind_of_clusters(point);
    if (kind & (DT_CHARACTER_LETTER | DT_CHARACTER_MARK))
        return kind;
    if (LISTED(stops, point))
        kind |= DT_CHARACTER_STOP | DT_CHARACTER_SYMBOL;
    if (LISTED(symbols, point))
        kind |= DT_CHARACTER_SYMBOL;
    if (LISTED(affixes, point))
        kind |= DT_CHARACTER_OPENING | DT_CHARACTER_CLOSING;
    if (LISTED(quotes, point))
        kind |= DT_CHARACTER_QUOTE;
    if (point == 0x2026)
        kind |= DT_CHARACTER_ICON;
    return point == 0x85 ? kind | DT_CHARACTER_BLANK : kind;
}

_Atomic(const uint16_t *) dt_character_blocks[DT_CHARACTER_BLOCKS];

/* Of several threads that make the same block, one keeps it. */
unsigned dt_character_find_kind(uint32_t point)
{
    uint32_t number = point / DT_CHARACTER_BLOCK;
    const uint16_t *expected = NULL;
    if (number >= DT_CHARACTER_BLOCKS)
        return kind_of(point);
    uint16_t *kinds = dt_alloc(DT_CHARACTER_BLOCK, sizeof *kinds);
    for (uint32_t i = 0; i < DT_CHARACTER_BLOCK; i++)
        kinds[i] = (uint16_t)kind_of(number * DT_CHARACTER_BLOCK + i);
    if (!atomic_compare_exchange_strong(&dt_character_blocks[number], &expected, kinds))
        free(kinds);
    return kind_of(point);
}
