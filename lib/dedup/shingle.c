/* SPDX-License-Identifier: MIT */
#include "dedup/shingle.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/buffer.h"
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

struct reader {
    struct dt_shingles *shingles;
    uint64_t recent[DT_SHINGLE_WORDS]; /* hashes of the last words, a ring */
    uint64_t sum;                      /* rolling hash of the last n words: each times a power of
                                        * BASE */
    uint64_t oldest_power;             /* BASE to the n */
    int n;
    uint64_t word; /* hash of the word being read */
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

static void end_word(struct reader *r)
{
    struct dt_shingles *s = r->shingles;
    if (!r->in_word)
        return;
    uint64_t hash = scramble(r->word), *oldest = &r->recent[s->words % (size_t)r->n];
    r->sum = r->sum * BASE + hash - *oldest * r->oldest_power;
    *oldest = hash;
    s->words++;
    r->in_word = r->in_number = false;
    if (s->words < (size_t)r->n)
        return;
    DT_GROW(s->items, s->count, s->capacity);
    s->items[s->count++] = scramble(r->sum);
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

static void add_point(struct reader *r, uint32_t point)
{
    unsigned kind = dt_character_kind_of_code(point);
    if (kind & DT_CHARACTER_NUMBER)
        add_to_word(r, '0');
    else if (kind & (DT_CHARACTER_BLANK | DT_CHARACTER_SYMBOL | DT_CHARACTER_PUNCTUATION |
                     DT_CHARACTER_OPENING))
        end_word(r);
    else if (!(kind & DT_CHARACTER_MARK))
        add_to_word(r, point);
}

static bool is_mark(uint32_t code)
{
    enum dt_category category = dt_unicode_category(code);
    return category >= DT_CATEGORY_MN && category <= DT_CATEGORY_ME;
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

void dt_shingles_find(struct dt_shingles *s, int n, const char *text, size_t size)
{
    struct reader r = {.shingles = s, .n = n, .oldest_power = 1};
    for (int i = 0; i < n; i++)
        r.oldest_power *= BASE;
    s->count = s->words = 0;
    for (size_t i = 0; i < size; i += dt_utf8_length(text[i])) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80)
            add_character(&r, dt_utf8_decode(text + i));
        else if (plain[c])
            add_to_word(&r, (uint32_t)plain[c]);
        else
            end_word(&r);
    }
    end_word(&r);
}

void dt_shingles_release(struct dt_shingles *s)
{
    free(s->items);
    *s = (struct dt_shingles){0};
}
