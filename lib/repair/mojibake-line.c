/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "repair/mojibake-internal.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

/* --- strangeness ------------------------------------------------------------------------------ */

/* Kinds of characters, as bits, so that pairs can be tested for sets of them. */
enum kind {
    KIND_OTHER = 0,
    KIND_SMALL = 1 << 0, /* a letter of ASCII */
    KIND_CAPITAL = 1 << 1,
    KIND_ACCENTED_SMALL = 1 << 2, /* another Latin letter */
    KIND_ACCENTED_CAPITAL = 1 << 3,
    KIND_GREEK_SMALL = 1 << 4,
    KIND_GREEK_CAPITAL = 1 << 5,
    KIND_CYRILLIC_SMALL = 1 << 6,
    KIND_CYRILLIC_CAPITAL = 1 << 7,
    KIND_FOREIGN = 1 << 8, /* a letter of another script */
    KIND_RARE = 1 << 9,    /* a letter that hardly a language has */
    KIND_CONTROL = 1 << 10,
    KIND_LOST = 1 << 11, /* U+FFFD */
    KIND_BOX = 1 << 12,
    KIND_SYMBOL = 1 << 13,
    KIND_SUFFIX = 1 << 14, /* trademarks, degrees: symbols after letters */
    KIND_OPENING = 1 << 15,
    KIND_CLOSING = 1 << 16,
    KIND_JOINT = 1 << 17, /* dashes, apostrophes, an ellipsis */
    KIND_POINT = 1 << 18, /* a mark of other scripts than Latin */
    KIND_DIGIT = 1 << 19,
    KIND_BLANK = 1 << 20,  /* a no-break space */
    KIND_A_TILDE = 1 << 21 /* U+00C2 and U+00C3 are also this */
};

#define ASCII    ((unsigned)KIND_SMALL | KIND_CAPITAL | KIND_DIGIT)
#define LATIN    (KIND_SMALL | KIND_CAPITAL | KIND_ACCENTED_SMALL | KIND_ACCENTED_CAPITAL)
#define GREEK    (KIND_GREEK_SMALL | KIND_GREEK_CAPITAL)
#define CYRILLIC (KIND_CYRILLIC_SMALL | KIND_CYRILLIC_CAPITAL)
#define LETTERS  (LATIN | GREEK | CYRILLIC | KIND_FOREIGN | KIND_RARE)
#define SMALL    (KIND_SMALL | KIND_ACCENTED_SMALL | KIND_GREEK_SMALL | KIND_CYRILLIC_SMALL)
#define ACCENTED (KIND_ACCENTED_SMALL | KIND_ACCENTED_CAPITAL | GREEK | CYRILLIC)

/* first is not followed by second. */
static const struct {
    unsigned first, second;
} strange_pairs[] = {
    {SMALL, KIND_ACCENTED_CAPITAL | KIND_GREEK_CAPITAL | KIND_CYRILLIC_CAPITAL},
    {LATIN, GREEK | CYRILLIC},
    {GREEK | CYRILLIC, LATIN},
    {GREEK, CYRILLIC},
    {CYRILLIC, GREEK},
    {LETTERS, KIND_BOX | KIND_OPENING},
    {ACCENTED, KIND_SYMBOL | KIND_LOST},
    {KIND_BOX, LETTERS | KIND_SUFFIX | KIND_SYMBOL},
    {KIND_SYMBOL, KIND_ACCENTED_SMALL | KIND_ACCENTED_CAPITAL | CYRILLIC},
    {KIND_SYMBOL, KIND_OPENING | KIND_CLOSING | KIND_SYMBOL | KIND_BOX | KIND_LOST},
    {KIND_OPENING | KIND_CLOSING | KIND_SUFFIX, KIND_SYMBOL | KIND_LOST},
    {KIND_CLOSING | KIND_SUFFIX, LETTERS},
    {KIND_A_TILDE, KIND_SUFFIX},
    {KIND_FOREIGN, KIND_DIGIT},
    {KIND_DIGIT, KIND_FOREIGN},
};

static enum kind kind_of_letter(uint32_t c, bool capital)
{
    if (c < 0x250 || (c >= 0x1e00 && c < 0x1f00))
        return capital ? KIND_ACCENTED_CAPITAL : KIND_ACCENTED_SMALL;
    if (c >= 0x370 && c < 0x400)
        return capital ? KIND_GREEK_CAPITAL : KIND_GREEK_SMALL;
    if (c >= 0x400 && c < 0x530)
        return capital ? KIND_CYRILLIC_CAPITAL : KIND_CYRILLIC_SMALL;
    return c < 0x2b0 ? KIND_RARE : KIND_FOREIGN;
}

static bool is_rare(uint32_t c)
{
    return c == 0x17f || (c >= 0x180 && c < 0x1a0) || (c >= 0x1b1 && c < 0x1cd) ||
           (c >= 0x1dd && c < 0x218) || (c >= 0x21c && c < 0x2b0) || (c >= 0x500 && c < 0x530);
}

/* Characters of the encodings that their category does not place. */
static enum kind kind_of_listed(uint32_t c)
{
    static const struct {
        uint16_t code;
        enum kind kind;
    } listed[] = {
        {0xa0, KIND_BLANK},    {0xa1, KIND_OPENING},  {0xa7, KIND_SYMBOL},    {0xa9, KIND_OPENING},
        {0xaa, KIND_SYMBOL},   {0xae, KIND_SUFFIX},   {0xb0, KIND_SUFFIX},    {0xb4, KIND_JOINT},
        {0xb6, KIND_SYMBOL},   {0xb7, KIND_JOINT},    {0xba, KIND_SYMBOL},    {0xbf, KIND_OPENING},
        {0x192, KIND_SYMBOL},  {0x2c6, KIND_SYMBOL},  {0x2c7, KIND_SYMBOL},   {0x2019, KIND_JOINT},
        {0x2020, KIND_SYMBOL}, {0x2021, KIND_SYMBOL}, {0x2022, KIND_OPENING}, {0x2026, KIND_JOINT},
        {0x2030, KIND_SYMBOL}, {0x2122, KIND_SUFFIX}, {0xf8ff, KIND_SYMBOL},  {0xfffd, KIND_LOST},
    };
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
        if (listed[i].code == c)
            return listed[i].kind;
    return KIND_OTHER;
}

static enum kind kind_of_ascii(uint32_t c)
{
    if (c >= 'a' && c <= 'z')
        return KIND_SMALL;
    if (c >= 'A' && c <= 'Z')
        return KIND_CAPITAL;
    return c >= '0' && c <= '9' ? KIND_DIGIT : KIND_OTHER;
}

static unsigned kind_of(uint32_t c)
{
    enum dt_category category = dt_unicode_category(c);
    enum kind kind = c < 0x80 ? kind_of_ascii(c) : kind_of_listed(c);
    if (c < 0x80 || kind != KIND_OTHER)
        return kind;
    if (c == 0xc2 || c == 0xc3)
        return KIND_ACCENTED_CAPITAL | KIND_A_TILDE;
    if (is_rare(c))
        return KIND_RARE;
    if (c >= 0x2500 && c < 0x25a0)
        return KIND_BOX;
    if (category >= DT_CATEGORY_LU && category <= DT_CATEGORY_LO)
        return kind_of_letter(c, category == DT_CATEGORY_LU);
    if ((category >= DT_CATEGORY_SM && category <= DT_CATEGORY_SO) || category == DT_CATEGORY_NO)
        return KIND_SYMBOL;
    if (category == DT_CATEGORY_PS || category == DT_CATEGORY_PI)
        return KIND_OPENING;
    if (category == DT_CATEGORY_PE || category == DT_CATEGORY_PF)
        return KIND_CLOSING;
    if (category == DT_CATEGORY_MN && c > 0x36f)
        return KIND_POINT;
    if (c < 0xa0)
        return KIND_CONTROL;
    return category == DT_CATEGORY_PD ? KIND_JOINT : KIND_OTHER;
}

unsigned dt_mojibake_strangeness(const char *text, size_t size)
{
    unsigned strange = 0, before = 0, last = 0; /* kinds of the two characters before */
    for (size_t i = 0; i < size; i += dt_utf8_length(text[i])) {
        unsigned kind = kind_of(dt_utf8_decode(text + i));
        bool plain = ((kind | last) & ~ASCII) == 0;
        for (size_t k = 0; k < sizeof strange_pairs / sizeof *strange_pairs && !plain; k++)
            strange += (strange_pairs[k].first & last) && (strange_pairs[k].second & kind);
        strange += kind & (KIND_CONTROL | KIND_RARE) ? 3 : 0;
        strange += (kind & KIND_POINT) && !(last & (LETTERS | KIND_POINT | KIND_LOST));
        strange +=
            (before & LATIN) && (last & KIND_SYMBOL) && kind != KIND_OTHER && kind != KIND_DIGIT;
        strange += (before & KIND_A_TILDE) && (last & KIND_BLANK) &&
                   ((kind & KIND_SMALL) || text[i] == ' ');
        strange += (before & KIND_A_TILDE) && (last & KIND_SUFFIX) && text[i] == ' ';
        before = last;
        last = kind;
    }
    return strange;
}

/* --- decoding --------------------------------------------------------------------------------- */

#define LOST 0x1a /* stands for U+FFFD, of which the byte is not known */

struct bytes {
    const unsigned char *data;
    size_t size;
    bool restores;  /* spaces that were no-break spaces, lost bytes */
    uint64_t whole; /* characters without a restored space, but for a letter a */
};

/* The bytes of the line in an encoding; false if it has other characters. */
static bool encode(const char *line, size_t size, const uint16_t *table, struct dt_buffer *bytes)
{
    dt_buffer_clear(bytes);
    for (size_t i = 0; i < size; i += dt_utf8_length(line[i])) {
        uint32_t c = dt_utf8_decode(line + i);
        int k = 0;
        while (c >= 0x80 && k < 128 && table[k] != c)
            k++;
        if (c == LOST || (k == 128 && c != 0xfffd))
            return false;
        dt_buffer_add_char(bytes, (char)(c < 0x80 ? (int)c : k == 128 ? LOST : 0x80 + k));
    }
    return true;
}

static bool starts_with(const struct bytes *b, size_t at, const char *word)
{
    return b->size - at >= strlen(word) && memcmp(b->data + at, word, strlen(word)) == 0;
}

/* C3 and a space, which was A0: a letter a with grave accent, with the space after it unless it is
 * the beginning of a Portuguese word. */
static size_t take_a_grave(const struct bytes *b, size_t at, struct dt_buffer *out)
{
    static const char *const words[] = {" ", "quele", "quela", "quilo", "s "};
    bool begins = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        begins = begins || starts_with(b, at + 2, words[i]);
    dt_buffer_add_string(out, begins ? "\xc3\xa0" : "\xc3\xa0 ");
    return 2;
}

/* A surrogate pair, 3 bytes each, as CESU-8 has it. */
static size_t take_surrogates(const struct bytes *b, size_t at, struct dt_buffer *out)
{
    unsigned char s[6];
    char utf8[4];
    if (b->size - at < 6)
        return 0;
    for (int k = 0; k < 6; k++)
        s[k] = b->data[at + (size_t)k] == ' ' && b->restores ? 0xa0 : b->data[at + (size_t)k];
    if (s[1] < 0xa0 || s[1] > 0xaf || s[3] != 0xed || s[4] < 0xb0 || s[4] > 0xbf ||
        (s[2] & 0xc0) != 0x80 || (s[5] & 0xc0) != 0x80)
        return 0;
    uint32_t high = (uint32_t)(s[1] & 15) << 6 | (s[2] & 63), low = (uint32_t)(s[4] & 15) << 6;
    uint32_t code = 0x10000 + (high << 10) + (low | (s[5] & 63));
    dt_buffer_append(out, utf8, dt_utf8_encode(code, utf8));
    return 6;
}

/* Appends the character that begins with byte at, and returns the bytes taken; 0 if it is none. */
static size_t take_sequence(struct bytes *b, size_t at, struct dt_buffer *out)
{
    char sequence[4] = {(char)b->data[at]};
    size_t length = dt_utf8_length(sequence[0]);
    unsigned lost = 0, real = 0; /* bytes after the first */
    if (b->data[at] < 0xc2 || b->data[at] > 0xf4 || b->size - at < length)
        return 0;
    for (size_t k = 1; k < length; k++) {
        unsigned char c = b->data[at + k];
        bool blank = b->restores && c == ' ' &&
                     (length > 2 || strchr("\xc2\xc3\xc5\xce\xd0\xd9", sequence[0]));
        bool is_lost = b->restores && (c == LOST || (c == '?' && length > 2));
        real += c >= 0x80;
        lost += is_lost;
        sequence[k] = blank ? '\xa0' : is_lost ? '\x80' : (char)c;
        if (((unsigned char)sequence[k] & 0xc0) != 0x80)
            return 0;
    }
    bool a_grave = b->data[at] == 0xc3 && b->data[at + 1] == ' ';
    b->whole += a_grave || lost > 0 || real == length - 1;
    if (a_grave)
        return take_a_grave(b, at, out);
    if (lost > 0 || (length > 2 && real == 0))
        dt_buffer_add_string(out, "\xef\xbf\xbd");
    else if (dt_utf8_valid_prefix(sequence, length) == length)
        dt_buffer_append(out, sequence, length);
    else
        return take_surrogates(b, at, out);
    return length > 2 && real == 0 ? 0 : length;
}

/* Appends what the bytes are in UTF-8, and returns the number of characters of several bytes; 0 if
 * they are not UTF-8. */
static uint64_t decode(struct bytes *b, struct dt_buffer *out)
{
    uint64_t decoded = 0;
    for (size_t i = 0, n; i < b->size; i += n) {
        n = 1;
        if (b->data[i] == LOST) {
            dt_buffer_add_string(out, "\xef\xbf\xbd");
        } else if (b->data[i] < 0x80) {
            dt_buffer_add_char(out, (char)b->data[i]);
        } else {
            n = take_sequence(b, i, out);
            decoded++;
        }
        if (n == 0)
            return 0;
    }
    return decoded;
}

uint64_t dt_mojibake_repair_line(const char *line, size_t size, struct dt_buffer *out)
{
    struct dt_buffer bytes = DT_BUFFER_EMPTY;
    size_t before = out->size;
    uint64_t repaired = 0;
    unsigned strange = dt_mojibake_strangeness(line, size);
    for (int e = 0; e < DT_MOJIBAKE_ENCODINGS && strange > 0 && repaired == 0; e++) {
        if (!encode(line, size, dt_mojibake_encodings[e], &bytes))
            continue;
        bool windows = e < 7;
        struct bytes b = {(const unsigned char *)bytes.data, bytes.size, windows, 0};
        repaired = decode(&b, out);
        unsigned after = out->size > before
                             ? dt_mojibake_strangeness(out->data + before, out->size - before)
                             : 0;
        if (after > strange || (after == strange && b.whole < 2) || b.whole == 0)
            repaired = 0;
        if (repaired == 0)
            out->size = before;
    }
    dt_buffer_release(&bytes);
    return repaired;
}
