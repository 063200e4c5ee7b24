/* SPDX-License-Identifier: MIT */
#include "eval/translation-words.h"

#include "unicode/unicode.h"
#include "unicode/utf8.h"

#include <string.h>

const char *const dt_translation_words_names[] = {"13a", "char", "intl", "none", NULL};

int dt_code_points(const char *text, size_t size, struct dt_ids *points, struct dt_error *err)
{
    points->count = 0;
    for (size_t at = 0; at < size;) {
        uint32_t point;
        size_t taken = dt_utf8_next(text + at, size - at, &point);
        if (taken == 0)
            return dt_fail(err, DT_EFORMAT, "byte %zu: invalid UTF-8", at + 1);
        dt_ids_add(points, point);
        at += taken;
    }
    return 0;
}

bool dt_translation_words_is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

size_t dt_translation_words_trim(const char *text, size_t size)
{
    while (size > 0) {
        uint32_t point;
        size_t from = size - 1;
        while (from > 0 && ((unsigned char)text[from] & 0xc0) == 0x80)
            from--;
        if (dt_utf8_next(text + from, size - from, &point) == 0 ||
            !dt_translation_words_is_space(point))
            break;
        size = from;
    }
    return size;
}

/* --- classes of characters --------------------------------------------------------------------*/

typedef bool is_member(uint32_t point);

static bool is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_no_digit(uint32_t c)
{
    return !is_digit(c);
}

static bool is_stop(uint32_t c)
{
    return c == '.' || c == ',';
}

static bool is_dash(uint32_t c)
{
    return c == '-';
}

/* ASCII punctuation except full stop, comma, dash and apostrophe. */
static bool is_13a_symbol(uint32_t c)
{
    return c > ' ' && c < 0x7f && strchr("!\"#$%&()*+/:;<=>?@[\\]^_`{|}~", (int)c);
}

static bool is_13a_spaced(uint32_t c)
{
    return c == ' ' || is_13a_symbol(c);
}

static bool is_punctuation(uint32_t c)
{
    enum dt_category category = dt_unicode_category(c);
    return category >= DT_CATEGORY_PC && category <= DT_CATEGORY_PO;
}

static bool is_symbol(uint32_t c)
{
    enum dt_category category = dt_unicode_category(c);
    return category >= DT_CATEGORY_SM && category <= DT_CATEGORY_SO;
}

static bool is_no_number(uint32_t c)
{
    enum dt_category category = dt_unicode_category(c);
    return category < DT_CATEGORY_ND || category > DT_CATEGORY_NO;
}

/* --- rules ------------------------------------------------------------------------------------*/

/* Puts spaces around each member of the class. */
static void space_out(struct dt_ids *out, const struct dt_ids *in, is_member *member)
{
    out->count = 0;
    for (size_t i = 0; i < in->count; i++) {
        bool apart = member(in->data[i]);
        if (apart)
            dt_ids_add(out, ' ');
        dt_ids_add(out, in->data[i]);
        if (apart)
            dt_ids_add(out, ' ');
    }
}

/* Separates each pair of neighbours by a space, with another one before or after the pair; pairs
 * are matched from the left without overlap. */
static void split_pairs(struct dt_ids *out, const struct dt_ids *in, is_member *left,
                        is_member *right, bool space_before)
{
    out->count = 0;
    for (size_t i = 0; i < in->count; i++) {
        if (i + 1 == in->count || !left(in->data[i]) || !right(in->data[i + 1])) {
            dt_ids_add(out, in->data[i]);
            continue;
        }
        if (space_before)
            dt_ids_add(out, ' ');
        dt_ids_add(out, in->data[i]);
        dt_ids_add(out, ' ');
        dt_ids_add(out, in->data[++i]);
        if (!space_before)
            dt_ids_add(out, ' ');
    }
}

static void replace(struct dt_ids *text, const char *old, const char *by)
{
    size_t n = strlen(old), kept = 0;
    for (size_t i = 0; i < text->count;) {
        size_t same = 0;
        while (same < n && i + same < text->count &&
               text->data[i + same] == (unsigned char)old[same])
            same++;
        if (same < n) {
            text->data[kept++] = text->data[i++];
            continue;
        }
        for (const char *p = by; *p; p++)
            text->data[kept++] = (unsigned char)*p;
        i += n;
    }
    text->count = kept;
}

static void split_13a(struct dt_ids *a, struct dt_ids *b)
{
    static const char *const entities[][2] = {{"<skipped>", ""}, {"-\n", ""},    {"\n", " "},
                                              {"&quot;", "\""},  {"&amp;", "&"}, {"&lt;", "<"},
                                              {"&gt;", ">"},     {NULL}};
    for (int i = 0; entities[i][0]; i++)
        replace(b, entities[i][0], entities[i][1]);
    a->count = 0;
    dt_ids_add(a, ' ');
    dt_ids_append(a, b->data, b->count);
    dt_ids_add(a, ' ');
    space_out(b, a, is_13a_spaced);
    split_pairs(a, b, is_no_digit, is_stop, false);
    split_pairs(b, a, is_stop, is_no_digit, true);
    split_pairs(a, b, is_digit, is_dash, false);
}

static void split_intl(struct dt_ids *a, struct dt_ids *b)
{
    split_pairs(a, b, is_no_number, is_punctuation, false);
    split_pairs(b, a, is_punctuation, is_no_number, true);
    space_out(a, b, is_symbol);
}

static bool is_any(uint32_t c)
{
    (void)c;
    return true;
}

/* Collapses white space between words to one space. */
static void squeeze(struct dt_ids *words, const struct dt_ids *text)
{
    bool pending = false;
    words->count = 0;
    for (size_t i = 0; i < text->count; i++) {
        if (dt_translation_words_is_space(text->data[i])) {
            pending = words->count > 0;
            continue;
        }
        if (pending)
            dt_ids_add(words, ' ');
        dt_ids_add(words, text->data[i]);
        pending = false;
    }
}

void dt_translation_words(enum dt_translation_words_kind kind, const struct dt_ids *sentence,
                          struct dt_ids *words)
{
    struct dt_ids text = DT_IDS_EMPTY, copy = DT_IDS_EMPTY;
    size_t end = sentence->count;
    while (end > 0 && dt_translation_words_is_space(sentence->data[end - 1]))
        end--;
    if (end > 0)
        dt_ids_append(&copy, sentence->data, end);
    if (kind == DT_TRANSLATION_WORDS_13A)
        split_13a(&text, &copy);
    else if (kind == DT_TRANSLATION_WORDS_INTL)
        split_intl(&text, &copy);
    else if (kind == DT_TRANSLATION_WORDS_CHAR)
        space_out(&text, &copy, is_any);
    squeeze(words, kind == DT_TRANSLATION_WORDS_NONE ? &copy : &text);
    dt_ids_release(&text);
    dt_ids_release(&copy);
}
