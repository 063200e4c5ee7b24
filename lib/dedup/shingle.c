/* SPDX-License-Identifier: MIT */
#include "dedup/shingle.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "hash/hash.h"
#include "unicode/character.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

#define BASE UINT64_C(0x9e3779b97f4a7c15) /* of the rolling sum over words; odd */

/* Maps ASCII: a lower-case letter, '0' for a digit, 0 for all others. */
/* clang-format off */
static const char plain[128] = {
    ['0'] = '0', '0', '0', '0', '0', '0', '0', '0', '0', '0',
    ['A'] = 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm',
    'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z',
    ['a'] = 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm',
    'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z',
};
/* clang-format on */

/* Words are measured in sixths: a word between blanks has 6. */
#define WORD 6

/* Scripts that are written without blanks between words: each character is a part of a word. */
static const struct {
    uint32_t first, last;
    unsigned sixths;
} unspaced[] = {
    {0x0e01, 0x0eff, 2},   /* Thai, Lao */
    {0x1000, 0x109f, 2},   /* Myanmar */
    {0x1780, 0x17ff, 2},   /* Khmer */
    {0x1950, 0x19ff, 2},   /* Tai Le, New Tai Lue */
    {0x1a20, 0x1aaf, 2},   /* Tai Tham */
    {0x1b00, 0x1b7f, 2},   /* Balinese */
    {0x2e80, 0x2fdf, 4},   /* radicals */
    {0x3005, 0x312f, 3},   /* Hiragana, Katakana, Bopomofo */
    {0x31a0, 0x31ff, 3},   /* their extensions */
    {0x3400, 0x4dbf, 4},   /* Han */
    {0x4e00, 0xa4cf, 4},   /* Han, Yi */
    {0xa980, 0xa9ff, 2},   /* Javanese, Myanmar */
    {0xaa60, 0xaadf, 2},   /* Myanmar, Tai Viet */
    {0xf900, 0xfaff, 4},   /* Han */
    {0xff66, 0xff9f, 3},   /* Katakana of half width */
    {0x16fe0, 0x1b2ff, 3}, /* Tangut, Khitan, Kana, Nushu */
    {0x20000, 0x3ffff, 4}, /* Han */
};

#define RING 256 /* a power of two, above DT_SHINGLE_WORDS * WORD / 2 words */

struct reader {
    struct dt_shingles *shingles;
    struct {
        uint64_t hash;
        unsigned sixths;
    } recent[RING];        /* the last words, a ring */
    uint64_t powers[RING]; /* of BASE */
    uint64_t sum;          /* rolling hash of the words of the window: each times a power of BASE */
    uint64_t all;          /* hash of all words */
    size_t window;         /* words in it */
    unsigned sixths, needed; /* of the window; of a shingle */
    uint64_t word;           /* hash of the word being read */
    bool in_word, in_number;
};

static uint64_t scramble(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

static void drop_oldest(struct reader *r)
{
    size_t oldest = (r->shingles->words - r->window) % RING;
    r->sum -= r->recent[oldest].hash * r->powers[--r->window];
    r->sixths -= r->recent[oldest].sixths;
}

/* Adds a word to the window, which then is the shortest that ends with it and has enough. */
static void add_word(struct reader *r, uint64_t word, unsigned sixths)
{
    struct dt_shingles *s = r->shingles;
    uint64_t hash = scramble(word);
    r->all = r->all * BASE + hash;
    r->sum = r->sum * BASE + hash;
    r->recent[s->words % RING].hash = hash;
    r->recent[s->words++ % RING].sixths = sixths;
    r->sixths += sixths;
    r->window++;
    while (r->sixths - r->recent[(s->words - r->window) % RING].sixths >= r->needed)
        drop_oldest(r);
    if (r->sixths < r->needed)
        return;
    DT_GROW(s->items, s->count, s->capacity);
    s->items[s->count++] = scramble(r->sum);
}

static void end_word(struct reader *r)
{
    if (r->in_word)
        add_word(r, r->word, WORD);
    r->in_word = r->in_number = false;
}

static void add_to_word(struct reader *r, uint32_t c)
{
    if (!r->in_word)
        r->word = UINT64_C(0xcbf29ce484222325);
    r->in_word = true;
    if (c == '0' && r->in_number)
        return;
    r->in_number = c == '0';
    r->word = (r->word ^ c) * UINT64_C(0x100000001b3);
}

/* The part of a word that a letter of a script without blanks is; 0 for other scripts. */
static unsigned sixths_of(uint32_t point)
{
    size_t low = 0, high = sizeof unspaced / sizeof *unspaced;
    if (point < unspaced[0].first)
        return 0;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (unspaced[middle].first <= point)
            low = middle;
        else
            high = middle;
    }
    return point <= unspaced[low].last ? unspaced[low].sixths : 0;
}

static void add_letter(struct reader *r, uint32_t point)
{
    unsigned sixths = sixths_of(point);
    if (sixths == 0) {
        add_to_word(r, point);
        return;
    }
    end_word(r);
    add_to_word(r, point);
    add_word(r, r->word, sixths);
    r->in_word = false;
}

static void add_point(struct reader *r, uint32_t point)
{
    unsigned kind = dt_character_kind_of_code(point);
    if (kind & DT_CHARACTER_NUMBER)
        add_to_word(r, '0');
    else if (kind & (DT_CHARACTER_BLANK | DT_CHARACTER_SYMBOL | DT_CHARACTER_PUNCTUATION |
                     DT_CHARACTER_OPENING))
        end_word(r);
    else
        add_letter(r, point);
}

/* Not spacing marks (Mc): those are vowels. */
static bool is_mark(uint32_t code)
{
    return dt_unicode_category(code) == DT_CATEGORY_MN;
}

static void add_decomposed(struct reader *r, uint32_t code)
{
    uint32_t parts[DT_UNICODE_LONGEST];
    unsigned count = dt_unicode_decompose(code, parts);
    for (unsigned i = 0; i < count; i++)
        if (!is_mark(parts[i]))
            add_point(r, parts[i]);
}

/* A character beyond ASCII: case folded, decomposed, marks removed. */
static void add_character(struct reader *r, uint32_t code)
{
    uint32_t folded[DT_UNICODE_FOLD_MAX];
    unsigned count = is_mark(code) ? 0 : dt_unicode_fold(code, folded);
    for (unsigned i = 0; i < count; i++)
        add_decomposed(r, folded[i]);
}

static void read_text(struct reader *r, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i += dt_utf8_length(text[i])) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80)
            add_character(r, dt_utf8_decode(text + i));
        else if (plain[c])
            add_to_word(r, (uint32_t)plain[c]);
        else
            end_word(r);
    }
    end_word(r);
}

void dt_shingles_find(struct dt_shingles *s, int n, const char *text, size_t size)
{
    struct reader r;
    r.shingles = s;
    r.sum = r.all = r.window = r.sixths = 0;
    r.needed = WORD * (unsigned)n;
    r.in_word = r.in_number = false;
    r.powers[0] = 1;
    for (size_t i = 1; i < RING; i++)
        r.powers[i] = r.powers[i - 1] * BASE;
    s->count = s->words = 0;
    read_text(&r, text, size);
    s->whole = s->words > 0 ? scramble(r.all) : dt_hash(text, size);
}

void dt_shingles_release(struct dt_shingles *s)
{
    free(s->items);
    *s = (struct dt_shingles){0};
}
