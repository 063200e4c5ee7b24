/* SPDX-License-Identifier: MIT */
#include "vocab/unigram-seeds.h"

#include <stdlib.h>
#include <string.h>

#include "math/math.h"
#include "unicode/utf8.h"

#define LONGEST_CHARACTERS 16
#define CODES              0x110000u

/* The characters of a word from one of them on: up to 16, and of the alphabet. */
struct suffix {
    const char *text;
    uint64_t count; /* occurrences of the word */
    uint32_t size;
};

struct candidate {
    const char *text;
    uint64_t count;
    uint32_t size, characters;
};

struct letter {
    uint64_t count;
    uint32_t code;
    const char *text;
};

struct finder {
    const struct dt_word_table *words;
    size_t longest;
    uint64_t *in_alphabet; /* bit per code point */
    struct letter *letters;
    uint32_t letter_count;
    struct suffix *suffixes;
    size_t count, capacity;
    struct candidate *candidates;
    size_t candidate_count, candidate_capacity;
};

/* --- characters ------------------------------------------------------------------------------- */

static int more_frequent_first(const void *a, const void *b)
{
    const struct letter *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                                : (x->code > y->code) - (x->code < y->code);
}

static void find_alphabet(struct finder *f, uint32_t limit)
{
    f->letters = dt_alloc(CODES, sizeof *f->letters);
    for (uint32_t i = 0; i < f->words->count; i++) {
        const struct dt_counted_word *w = &f->words->words[i];
        const char *word = f->words->bytes.data + w->start;
        for (size_t at = 0; w->length <= f->longest && at < w->length;
             at += dt_utf8_length(word[at])) {
            struct letter *l = &f->letters[dt_utf8_decode(word + at)];
            l->code = (uint32_t)(l - f->letters);
            l->text = word + at;
            l->count += w->count;
        }
    }
    qsort(f->letters, CODES, sizeof *f->letters, more_frequent_first);
    f->in_alphabet = dt_alloc(CODES / 64, sizeof *f->in_alphabet);
    while (f->letter_count < limit && f->letters[f->letter_count].count > 0) {
        uint32_t code = f->letters[f->letter_count++].code;
        f->in_alphabet[code / 64] |= (uint64_t)1 << code % 64;
    }
}

static bool is_in_alphabet(const struct finder *f, const char *text)
{
    uint32_t code = dt_utf8_decode(text);
    return f->in_alphabet[code / 64] >> code % 64 & 1;
}

/* --- substrings ------------------------------------------------------------------------------- */

static void add_suffixes(struct finder *f, const struct dt_counted_word *w)
{
    const char *word = f->words->bytes.data + w->start;
    for (size_t at = 0; at < w->length; at += dt_utf8_length(word[at])) {
        size_t end = at;
        for (int n = 0; n < LONGEST_CHARACTERS && end < w->length && is_in_alphabet(f, word + end);
             n++)
            end += dt_utf8_length(word[end]);
        if (end == at)
            continue;
        DT_GROW(f->suffixes, f->count, f->capacity);
        f->suffixes[f->count++] = (struct suffix){word + at, w->count, (uint32_t)(end - at)};
    }
}

static int by_text(const void *a, const void *b)
{
    const struct suffix *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* The bytes of the whole characters that two suffixes begin with. */
static uint32_t common(const struct suffix *a, const struct suffix *b)
{
    uint32_t n = 0, least = a->size < b->size ? a->size : b->size;
    while (n < least && a->text[n] == b->text[n])
        n++;
    while (n > 0 && n < a->size && (a->text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

static void add_candidate(struct finder *f, const char *text, uint32_t size, uint64_t count)
{
    uint32_t characters = (uint32_t)dt_utf8_count(text, size);
    if (characters < 2 || count < 2)
        return;
    DT_GROW(f->candidates, f->candidate_count, f->candidate_capacity);
    f->candidates[f->candidate_count++] = (struct candidate){text, count, size, characters};
}

/* An interval of suffixes with a common prefix that goes on to the current suffix. */
struct interval {
    uint32_t size;
    uint64_t count;
};

/* Adds the longest common prefix of each group of suffixes: what an inner node of a suffix tree
 * spells, and of a single suffix the whole. */
static void add_substrings(struct finder *f)
{
    struct interval open[LONGEST_CHARACTERS * 4 + 2];
    size_t depth = 0;
    for (size_t i = 0; i < f->count; i++) {
        const struct suffix *s = &f->suffixes[i];
        uint32_t next = i + 1 < f->count ? common(s, s + 1) : 0;
        uint32_t last = depth ? open[depth - 1].size : 0;
        uint64_t count = s->count;
        if (s->size > next && s->size > last)
            add_candidate(f, s->text, s->size, count);
        while (depth > 0 && open[depth - 1].size > next) {
            count += open[--depth].count;
            add_candidate(f, s->text, open[depth].size, count);
        }
        if (next == 0)
            continue;
        if (depth == 0 || open[depth - 1].size < next)
            open[depth++] = (struct interval){next, 0};
        open[depth - 1].count += count;
    }
}

static int higher_score_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    uint64_t m = x->count * x->characters, n = y->count * y->characters;
    if (m != n)
        return (m < n) - (m > n);
    int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* --- seeds ------------------------------------------------------------------------------------ */

static void collect(const struct finder *f, uint32_t most, struct dt_unigram_seeds *seeds)
{
    size_t substrings = f->candidate_count < most ? f->candidate_count : most;
    double sum = 0;
    seeds->characters = f->letter_count;
    seeds->count = f->letter_count + (uint32_t)substrings;
    seeds->pieces = dt_alloc(seeds->count, sizeof *seeds->pieces);
    seeds->scores = dt_alloc(seeds->count, sizeof *seeds->scores);
    for (uint32_t i = 0; i < seeds->count; i++) {
        const struct letter *l = &f->letters[i];
        const struct candidate *c = &f->candidates[i - f->letter_count];
        bool letter = i < f->letter_count;
        seeds->pieces[i] =
            letter ? (struct dt_trie_piece){l->text, (uint32_t)dt_utf8_length(*l->text), i}
                   : (struct dt_trie_piece){c->text, c->size, i};
        seeds->scores[i] = letter ? (double)l->count : (double)c->count * c->characters;
        sum += seeds->scores[i];
    }
    for (uint32_t i = 0; i < seeds->count; i++)
        seeds->scores[i] = dt_math_log(seeds->scores[i]) - dt_math_log(sum);
}

void dt_unigram_seeds_find(struct dt_unigram_seeds *seeds, const struct dt_word_table *words,
                           size_t longest, uint32_t alphabet, uint32_t most)
{
    struct finder f = {.words = words, .longest = longest};
    *seeds = (struct dt_unigram_seeds){.pieces = NULL};
    find_alphabet(&f, alphabet);
    for (uint32_t i = 0; i < words->count; i++)
        if (words->words[i].length <= longest)
            add_suffixes(&f, &words->words[i]);
    if (f.count > 0)
        qsort(f.suffixes, f.count, sizeof *f.suffixes, by_text);
    add_substrings(&f);
    if (f.candidate_count > 0)
        qsort(f.candidates, f.candidate_count, sizeof *f.candidates, higher_score_first);
    collect(&f, most, seeds);
    free(f.letters);
    free(f.in_alphabet);
    free(f.suffixes);
    free(f.candidates);
}

void dt_unigram_seeds_release(struct dt_unigram_seeds *seeds)
{
    free(seeds->pieces);
    free(seeds->scores);
    *seeds = (struct dt_unigram_seeds){.pieces = NULL};
}
