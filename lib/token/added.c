/* SPDX-License-Identifier: MIT */
#include "token/added.h"

#include <stdlib.h>
#include <string.h>

#include "hash/hash.h"
#include "pretokenize/character.h"
#include "unicode/unicode.h"

#define EMPTY UINT32_MAX

void dt_added_release(struct dt_added_finder *f)
{
    free(f->slots);
    free(f->lengths);
    *f = (struct dt_added_finder){.tokenizer = NULL};
}

static const char *content(const struct dt_added_finder *f, uint32_t index, size_t *size)
{
    struct dt_token_extent match = f->tokenizer->added[index].match;
    *size = match.length;
    return f->tokenizer->bytes.data + match.start;
}

/* The slot of the token with this text, or the empty slot for it. */
static uint32_t *find_slot(const struct dt_added_finder *f, const char *text, size_t size)
{
    uint32_t mask = (1u << f->slot_bits) - 1;
    for (uint32_t i = (uint32_t)dt_hash(text, size) & mask;; i = (i + 1) & mask) {
        size_t length = 0;
        const char *bytes = f->slots[i] == EMPTY ? "" : content(f, f->slots[i], &length);
        if (f->slots[i] == EMPTY || (length == size && memcmp(bytes, text, size) == 0))
            return &f->slots[i];
    }
}

static int longer_first(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static void add_length(struct dt_added_finder *f, uint32_t length)
{
    for (uint32_t i = 0; i < f->length_count; i++)
        if (f->lengths[i] == length)
            return;
    f->lengths[f->length_count++] = length;
}

static void add_token(struct dt_added_finder *f, uint32_t index)
{
    size_t size;
    const char *bytes = content(f, index, &size);
    *find_slot(f, bytes, size) = index;
    add_length(f, (uint32_t)size);
    unsigned first = (unsigned char)bytes[0];
    f->starts[first] = true;
    for (unsigned second = 0; second < 256; second++)
        if (size == 1 || second == (unsigned char)bytes[1])
            f->pairs[(second << 8 | first) >> 3] |= (uint8_t)(1 << (first & 7));
}

/* Special tokens that are not allowed are searched only if others may overlap them. */
static bool is_searched(const struct dt_added_token *a, bool normalized, bool special, bool others)
{
    return a->normalized == normalized && (special || others || !a->special);
}

static void find_only_start(struct dt_added_finder *f)
{
    int count = 0;
    for (int c = 0; c < 256; c++)
        if (f->starts[c]) {
            f->only_start = c;
            count++;
        }
    if (count != 1)
        f->only_start = -1;
}

void dt_added_init(struct dt_added_finder *f, const struct dt_tokenizer *t, bool normalized,
                   bool special)
{
    bool others = false;
    *f = (struct dt_added_finder){.tokenizer = t, .special = special, .slot_bits = 4};
    for (uint32_t i = 0; i < t->added_count; i++)
        others |= t->added[i].normalized == normalized && !t->added[i].special;
    while (1u << f->slot_bits < 2 * t->added_count)
        f->slot_bits++;
    f->slots = dt_alloc((size_t)1 << f->slot_bits, sizeof *f->slots);
    memset(f->slots, 0xff, sizeof *f->slots << f->slot_bits);
    f->lengths = dt_alloc(t->added_count, sizeof *f->lengths);
    for (uint32_t i = 0; i < t->added_count; i++)
        if (is_searched(&t->added[i], normalized, special, others))
            add_token(f, i);
    find_only_start(f);
    qsort(f->lengths, f->length_count, sizeof *f->lengths, longer_first);
}

/* The longest token at text; NULL if none. */
static const struct dt_added_token *token_at(const struct dt_added_finder *f, const char *text,
                                             size_t size, size_t *length)
{
    for (uint32_t i = 0; i < f->length_count; i++) {
        *length = f->lengths[i];
        if (*length > size)
            continue;
        uint32_t index = *find_slot(f, text, *length);
        if (index != EMPTY)
            return &f->tokenizer->added[index];
    }
    return NULL;
}

/* \w: letters, marks, decimal digits, connectors and similar characters. */
static bool is_word_character(uint32_t code)
{
    if (code == DT_CHAR_INVALID)
        return false;
    if (code == 0x200c || code == 0x200d || (code >= 0x24b6 && code <= 0x24e9) ||
        (code >= 0x1f130 && code <= 0x1f149) || (code >= 0x1f150 && code <= 0x1f169) ||
        (code >= 0x1f170 && code <= 0x1f189))
        return true;
    enum dt_category category = dt_unicode_category(code);
    return (category >= DT_CATEGORY_LU && category <= DT_CATEGORY_NL) || category == DT_CATEGORY_PC;
}

/* The start of the character that ends at p > text. */
static const unsigned char *character_before(const unsigned char *text, const unsigned char *p)
{
    const unsigned char *start = p - 1;
    while (start > text && p - start < 4 && (*start & 0xc0) == 0x80)
        start--;
    uint32_t code;
    return start + dt_character(start, p, &code) == p ? start : p - 1;
}

static bool is_separate_word(const unsigned char *text, const unsigned char *start,
                             const unsigned char *stop, const unsigned char *end)
{
    uint32_t before = DT_CHAR_INVALID, after = DT_CHAR_INVALID;
    if (start > text)
        dt_character(character_before(text, start), start, &before);
    if (stop < end)
        dt_character(stop, end, &after);
    return !is_word_character(before) && !is_word_character(after);
}

static bool is_space(const unsigned char *p, const unsigned char *end, unsigned *length)
{
    return DT_SET_SPACES >> dt_character_class(p, end, length) & 1;
}

static size_t strip_left(const unsigned char *text, size_t from, size_t start)
{
    unsigned length;
    while (start > from) {
        const unsigned char *p = character_before(text + from, text + start);
        if (!is_space(p, text + start, &length))
            break;
        start = (size_t)(p - text);
    }
    return start;
}

static size_t strip_right(const unsigned char *text, size_t size, size_t end)
{
    unsigned length;
    while (end < size && is_space(text + end, text + size, &length))
        end += length;
    return end;
}

/* The next index, from at on, at which a token may start; size if absent. */
static size_t next_start(const struct dt_added_finder *f, const char *text, size_t size, size_t at)
{
    if (f->only_start >= 0) {
        const char *p = memchr(text + at, f->only_start, size - at);
        return p ? (size_t)(p - text) : size;
    }
    while (at < size && !f->starts[(unsigned char)text[at]])
        at++;
    return at;
}

/* Whether the two bytes at `at` start a token, or there is only one. */
static bool may_start(const struct dt_added_finder *f, const unsigned char *text, size_t size,
                      size_t at)
{
    unsigned pair = text[at] | (at + 1 < size ? (unsigned)text[at + 1] << 8 : 0);
    return at + 1 == size || f->pairs[pair >> 3] >> (pair & 7) & 1;
}

bool dt_added_next(const struct dt_added_finder *f, const char *text, size_t size, size_t from,
                   struct dt_added_match *match)
{
    const unsigned char *bytes = (const unsigned char *)text;
    if (!dt_added_any(f))
        return false;
    for (size_t at = from; (at = next_start(f, text, size, at)) < size;) {
        size_t length;
        const struct dt_added_token *token =
            may_start(f, bytes, size, at) ? token_at(f, text + at, size - at, &length) : NULL;
        if (token == NULL) {
            at++;
            continue;
        }
        size_t stop = at + length;
        if ((token->special && !f->special) ||
            (token->single_word &&
             !is_separate_word(bytes, bytes + at, bytes + stop, bytes + size))) {
            at = stop;
            continue;
        }
        match->id = token->id;
        match->start = token->strip_left ? strip_left(bytes, from, at) : at;
        match->end = token->strip_right ? strip_right(bytes, size, stop) : stop;
        return true;
    }
    return false;
}
