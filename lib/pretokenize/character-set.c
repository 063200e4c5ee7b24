/* SPDX-License-Identifier: MIT */
#include "pretokenize/character-set.h"

#include <string.h>

#include "base/buffer.h"
#include "unicode/unicode.h"

struct dt_character_set *dt_character_set_new(void)
{
    return dt_alloc(1, sizeof(struct dt_character_set));
}

void dt_character_set_add(struct dt_character_set *s, uint32_t first, uint32_t last)
{
    for (uint32_t code = first; code <= last; code++)
        s->bits[code >> 3] |= (uint8_t)(1 << (code & 7));
}

void dt_character_set_unite(struct dt_character_set *s, const struct dt_character_set *other)
{
    for (size_t i = 0; i < DT_CHARACTER_SET_BYTES; i++)
        s->bits[i] |= other->bits[i];
}

void dt_character_set_intersect(struct dt_character_set *s, const struct dt_character_set *other)
{
    for (size_t i = 0; i < DT_CHARACTER_SET_BYTES; i++)
        s->bits[i] &= other->bits[i];
}

void dt_character_set_invert(struct dt_character_set *s)
{
    for (size_t i = 0; i < DT_CHARACTER_SET_BYTES; i++)
        s->bits[i] = (uint8_t)~s->bits[i];
}

#define LAST_FOLDED 0x212a /* the last character that folds to an ASCII one: the Kelvin sign */

bool dt_character_set_fold(struct dt_character_set *s)
{
    uint32_t folded[DT_UNICODE_FOLD_MAX];
    bool wanted[128] = {false};
    for (size_t i = 16; i < DT_CHARACTER_SET_BYTES; i++)
        if (s->bits[i])
            return false;
    for (uint32_t code = 0; code < 128; code++) {
        dt_unicode_fold(code, folded);
        wanted[folded[0]] |= dt_character_set_has(s, code);
    }
    for (uint32_t code = 0; code <= LAST_FOLDED; code++)
        if (dt_unicode_fold(code, folded) == 1 && folded[0] < 128 && wanted[folded[0]])
            dt_character_set_add(s, code, code);
    return true;
}

/* --- properties --------------------------------------------------------------------------------
 */

struct range {
    uint32_t first, last;
};

/* White_Space, which Oniguruma's \s is, too. */
static const struct range spaces[] = {
    {0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};
/* Scripts of Unicode 15 that published expressions name. */
static const struct range han[] = {{0x2e80, 0x2e99},   {0x2e9b, 0x2ef3},   {0x2f00, 0x2fd5},
                                   {0x3005, 0x3005},   {0x3007, 0x3007},   {0x3021, 0x3029},
                                   {0x3038, 0x303b},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
                                   {0xf900, 0xfa6d},   {0xfa70, 0xfad9},   {0x16fe2, 0x16fe3},
                                   {0x16ff0, 0x16ff1}, {0x20000, 0x2a6df}, {0x2a700, 0x2b739},
                                   {0x2b740, 0x2b81d}, {0x2b820, 0x2cea1}, {0x2ceb0, 0x2ebe0},
                                   {0x2f800, 0x2fa1d}, {0x30000, 0x3134a}, {0x31350, 0x323af}};
/* Of Oniguruma's \\w, which is these and the categories L, M, Nd, Nl and Pc. */
static const struct range other_word[] = {
    {0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
/* These, too, outside of a class. */
static const struct range latin_numbers[] = {{0xb2, 0xb3}, {0xb9, 0xb9}, {0xbc, 0xbe}};
static const struct range ascii_digits[] = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};

static const struct {
    const char *name;
    const struct range *ranges;
    size_t count;
} listed[] = {
#define LISTED(name, ranges)                                                                       \
    {                                                                                              \
        name, ranges, sizeof(ranges) / sizeof *(ranges)                                            \
    }
    LISTED("space", spaces),
    LISTED("whitespace", spaces),
    LISTED("han", han),
    LISTED("xdigit", ascii_digits),
};

/* A group of general categories, which are contiguous. */
static const struct {
    const char *name, *long_name;
    enum dt_category first, last;
} categories[] = {
    {"l", "letter", DT_CATEGORY_LU, DT_CATEGORY_LO},
    {"lu", "uppercaseletter", DT_CATEGORY_LU, DT_CATEGORY_LU},
    {"ll", "lowercaseletter", DT_CATEGORY_LL, DT_CATEGORY_LL},
    {"lt", "titlecaseletter", DT_CATEGORY_LT, DT_CATEGORY_LT},
    {"lm", "modifierletter", DT_CATEGORY_LM, DT_CATEGORY_LM},
    {"lo", "otherletter", DT_CATEGORY_LO, DT_CATEGORY_LO},
    {"m", "mark", DT_CATEGORY_MN, DT_CATEGORY_ME},
    {"mn", "nonspacingmark", DT_CATEGORY_MN, DT_CATEGORY_MN},
    {"mc", "spacingmark", DT_CATEGORY_MC, DT_CATEGORY_MC},
    {"me", "enclosingmark", DT_CATEGORY_ME, DT_CATEGORY_ME},
    {"n", "number", DT_CATEGORY_ND, DT_CATEGORY_NO},
    {"nd", "decimalnumber", DT_CATEGORY_ND, DT_CATEGORY_ND},
    {"nl", "letternumber", DT_CATEGORY_NL, DT_CATEGORY_NL},
    {"no", "othernumber", DT_CATEGORY_NO, DT_CATEGORY_NO},
    {"p", "punctuation", DT_CATEGORY_PC, DT_CATEGORY_PO},
    {"pc", "connectorpunctuation", DT_CATEGORY_PC, DT_CATEGORY_PC},
    {"pd", "dashpunctuation", DT_CATEGORY_PD, DT_CATEGORY_PD},
    {"ps", "openpunctuation", DT_CATEGORY_PS, DT_CATEGORY_PS},
    {"pe", "closepunctuation", DT_CATEGORY_PE, DT_CATEGORY_PE},
    {"pi", "initialpunctuation", DT_CATEGORY_PI, DT_CATEGORY_PI},
    {"pf", "finalpunctuation", DT_CATEGORY_PF, DT_CATEGORY_PF},
    {"po", "otherpunctuation", DT_CATEGORY_PO, DT_CATEGORY_PO},
    {"s", "symbol", DT_CATEGORY_SM, DT_CATEGORY_SO},
    {"sm", "mathsymbol", DT_CATEGORY_SM, DT_CATEGORY_SM},
    {"sc", "currencysymbol", DT_CATEGORY_SC, DT_CATEGORY_SC},
    {"sk", "modifiersymbol", DT_CATEGORY_SK, DT_CATEGORY_SK},
    {"so", "othersymbol", DT_CATEGORY_SO, DT_CATEGORY_SO},
    {"z", "separator", DT_CATEGORY_ZS, DT_CATEGORY_ZP},
    {"zs", "spaceseparator", DT_CATEGORY_ZS, DT_CATEGORY_ZS},
    {"zl", "lineseparator", DT_CATEGORY_ZL, DT_CATEGORY_ZL},
    {"zp", "paragraphseparator", DT_CATEGORY_ZP, DT_CATEGORY_ZP},
    {"cc", "control", DT_CATEGORY_CC, DT_CATEGORY_CC},
    {"cf", "format", DT_CATEGORY_CF, DT_CATEGORY_CF},
    {"co", "privateuse", DT_CATEGORY_CO, DT_CATEGORY_CO},
    {"digit", "decimalnumber", DT_CATEGORY_ND, DT_CATEGORY_ND},
};

static void add_categories(struct dt_character_set *s, enum dt_category first,
                           enum dt_category last)
{
    for (uint32_t code = 0; code < 0x110000; code++) {
        enum dt_category category = dt_unicode_category(code);
        if (category >= first && category <= last)
            dt_character_set_add(s, code, code);
    }
}

/* Oniguruma's names ignore case, spaces, hyphens and underscores. */
static void simplify(const char *name, size_t size, char simple[32])
{
    size_t n = 0;
    for (size_t i = 0; i < size && n < 31; i++)
        if (name[i] != ' ' && name[i] != '-' && name[i] != '_')
            simple[n++] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 0x20 : name[i]);
    simple[n] = '\0';
}

static void add_ranges(struct dt_character_set *s, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dt_character_set_add(s, ranges[i].first, ranges[i].last);
}

static void add_word(struct dt_character_set *s, bool in_class)
{
    add_categories(s, DT_CATEGORY_LU, DT_CATEGORY_NL); /* L, M, Nd, Nl */
    add_categories(s, DT_CATEGORY_PC, DT_CATEGORY_PC);
    add_ranges(s, other_word, sizeof other_word / sizeof *other_word);
    if (!in_class)
        add_ranges(s, latin_numbers, sizeof latin_numbers / sizeof *latin_numbers);
}

bool dt_character_set_add_property(struct dt_character_set *s, const char *name, size_t size,
                                   bool in_class)
{
    char simple[32];
    simplify(name, size, simple);
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
        if (strcmp(simple, listed[i].name) == 0)
            return add_ranges(s, listed[i].ranges, listed[i].count), true;
    if (strcmp(simple, "word") == 0)
        return add_word(s, in_class), true;
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (strcmp(simple, categories[i].name) == 0 || strcmp(simple, categories[i].long_name) == 0)
            return add_categories(s, categories[i].first, categories[i].last), true;
    return false;
}

bool dt_character_set_add_python_class(struct dt_character_set *set, char letter)
{
    static const char *const names[][4] = {
        {"d", "nd", NULL, NULL}, {"s", "space", NULL, NULL}, {"w", "l", "n", NULL}};
    for (size_t i = 0; i < 3; i++) {
        if ((letter | 0x20) != names[i][0][0])
            continue;
        for (size_t n = 1; names[i][n]; n++)
            dt_character_set_add_property(set, names[i][n], strlen(names[i][n]), false);
        if (i == 1)
            dt_character_set_add(set, 0x1c, 0x1f); /* str.isspace() */
        if (i == 2)
            dt_character_set_add(set, '_', '_');
        if (letter < 'a')
            dt_character_set_invert(set);
        return true;
    }
    return false;
}
