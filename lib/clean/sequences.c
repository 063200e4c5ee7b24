/* SPDX-License-Identifier: MIT */
/*
 * Repeated sequences of 2 to 10 words.
 *
 * A sequence can be repeated only if both of its shorter subsequences are, so each length examines
 * only the candidates of the previous length: after pairs, few remain. (The Apriori principle,
 * Agrawal and Srikant 1994.)
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "clean/measure.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b;
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

static uint64_t chars_of(const struct dt_word *words, size_t n)
{
    uint64_t chars = 0;
    for (size_t i = 0; i < n; i++)
        chars += words[i].chars;
    return chars;
}

/* Keeps the candidates whose slots have a count of at least 2; their ids are their slots.
 * names[i] is the slot of candidate i. */
static void keep_repeated(struct dt_hash_table *t, struct dt_candidates *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        c->place[kept] = c->place[i];
        c->name[kept] = c->name[i];
        kept += t->slots[c->name[i]].count >= 2; /* branchless: mispredicted often */
    }
    c->count = kept;
}

#define FACTOR UINT64_C(0x9e3779b97f4a7c15)

/* A polynomial of the hashes of n words. */
static uint64_t key_of(const struct dt_word *words, size_t n)
{
    uint64_t key = 0;
    for (size_t i = 0; i < n; i++)
        key = key * FACTOR + words[i].hash;
    return key;
}

/* Counts the candidates, of n words, by key in the table and keeps the repeated ones. */
static void name_candidates(struct dt_measures *m, struct dt_candidates *c, size_t n)
{
    dt_hash_table_clear(&m->table, c->count);
    for (size_t i = 0; i < c->count; i++) {
        uint64_t key = key_of(m->words.items + c->place[i], n);
        struct dt_hash_slot *slot = dt_hash_table_find(&m->table, key);
        slot->count++;
        c->name[i] = (uint32_t)(slot - m->table.slots);
    }
    keep_repeated(&m->table, c);
}

#define BITS_A_PLACE 8
#define MOST_SEEN    (1u << 26) /* words of 64 bits: a bit index has 32 bits */

/* Two zeroed bit sets of a power of two bits each, in words of 64. */
static size_t clear_seen(struct dt_measures *m, size_t bits)
{
    size_t words = 1;
    while (words * 64 < bits && words < MOST_SEEN)
        words *= 2;
    if (2 * words > m->seen_capacity) {
        free(m->seen);
        m->seen = dt_alloc(2 * words, sizeof *m->seen);
        m->seen_capacity = 2 * words;
    } else {
        memset(m->seen, 0, 2 * words * sizeof *m->seen);
    }
    return words;
}

/* The sequences of n words. Most are unique and need no table slot: those whose bit (eight bits per
 * place) no other sequence sets. */
static void find_candidates(struct dt_measures *m, struct dt_candidates *c, size_t n)
{
    const struct dt_word *words = m->words.items;
    size_t count = m->words.count - n + 1, kept = 0;
    size_t mask = clear_seen(m, count * BITS_A_PLACE) - 1;
    uint64_t *seen = m->seen, *again = m->seen + mask + 1;
    uint64_t key = key_of(words, n - 1), oldest = 1; /* the factor of the first of n words */
    for (size_t i = 1; i < n; i++)
        oldest *= FACTOR;
    for (size_t i = 0; i < count; i++) {
        key = key * FACTOR + words[i + n - 1].hash;
        uint64_t bit = UINT64_C(1) << (key >> 58);
        again[key & mask] |= seen[key & mask] & bit;
        seen[key & mask] |= bit;
        c->name[i] = (uint32_t)(key & mask) << 6 | (uint32_t)(key >> 58);
        key -= words[i].hash * oldest;
    }
    for (size_t i = 0; i < count; i++) {
        c->place[kept] = (uint32_t)i;
        kept += again[c->name[i] >> 6] >> (c->name[i] & 63) & 1;
    }
    c->count = kept;
    name_candidates(m, c, n);
}

/* Candidates of one more word: those whose next position is a candidate, too. */
static void lengthen(struct dt_measures *m, struct dt_candidates *c)
{
    size_t kept = 0;
    for (size_t i = 0; i + 1 < c->count; i++) {
        bool goes_on = c->place[i + 1] == c->place[i] + 1;
        c->place[kept] = c->place[i];
        m->names[kept] = c->name[i + 1];
        c->name[kept] = c->name[i];
        kept += goes_on;
    }
    c->count = kept;
    dt_hash_table_clear(&m->table, kept);
    for (size_t i = 0; i < kept; i++) {
        struct dt_hash_slot *slot =
            dt_hash_table_find(&m->table, mix(c->name[i], m->names[i] + UINT64_C(1)));
        slot->count++;
        c->name[i] = (uint32_t)(slot - m->table.slots);
    }
    keep_repeated(&m->table, c);
}

/* The most frequent sequence, the first among equals; the first of the text if none is repeated. */
static uint64_t top_chars(const struct dt_measures *m, const struct dt_candidates *c, size_t n)
{
    uint32_t most = 1;
    size_t place = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (m->table.slots[c->name[i]].count > most) {
            most = m->table.slots[c->name[i]].count;
            place = c->place[i];
        }
    }
    return most * (chars_of(m->words.items + place, n) + n - 1);
}

enum { COUNTED = 1, LATER = 2 }; /* marks of slots: a sequence came before */

/* Scans the text; a repeated sequence is counted and skipped as a whole, so that each word is
 * counted once. */
static uint64_t repeated_chars(struct dt_measures *m, const struct dt_candidates *c, size_t n)
{
    uint64_t chars = 0;
    size_t next = 0;
    for (size_t i = 0; i < c->count; i++) {
        struct dt_hash_slot *slot = &m->table.slots[c->name[i]];
        if (c->place[i] < next)
            continue;
        if (slot->mark & COUNTED) {
            chars += chars_of(m->words.items + c->place[i], n);
            next = c->place[i] + n;
        }
        slot->mark |= COUNTED;
    }
    return chars;
}

/* Characters of the words of sequences that came before. Those of a longer sequence that did are
 * among them. */
static uint64_t later_chars(struct dt_measures *m, const struct dt_candidates *c, size_t n)
{
    uint64_t chars = 0;
    size_t end = 0; /* of the last one */
    for (size_t i = 0; i < c->count; i++) {
        struct dt_hash_slot *slot = &m->table.slots[c->name[i]];
        size_t from = c->place[i] > end ? c->place[i] : end;
        if (slot->mark & LATER) {
            end = c->place[i] + n;
            chars += chars_of(m->words.items + from, end - from);
        }
        slot->mark |= LATER;
    }
    return chars;
}

static void reserve(struct dt_measures *m, size_t words)
{
    uint32_t **all[] = {&m->short_ones.place, &m->short_ones.name, &m->long_ones.place,
                        &m->long_ones.name, &m->names};
    if (words <= m->places_capacity)
        return;
    m->places_capacity = words + words / 2;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = dt_realloc(*all[i], m->places_capacity, sizeof **all[i]);
}

#define MOST_BOUNDED UINT16_MAX /* words */

void dt_measure_range_of_sequences(struct dt_measures *m, size_t from, size_t to)
{
    struct dt_candidates *c = from > DT_SHORT_SEQUENCE ? &m->long_ones : &m->short_ones;
    size_t count = dt_measure_words(m)->count;
    for (size_t n = from; n <= to; n++)
        m->sequences[n] = (struct dt_sequences){0};
    if (count < from || count > UINT32_MAX)
        return;
    reserve(m, count);
    for (size_t n = from; n <= to && n <= count; n++) {
        if (n == DT_SHORT_SEQUENCE + 1 && count <= MOST_BOUNDED)
            name_candidates(m, c, n); /* of dt_measure_bounds_of_sequences() */
        else if (n == 2 || n == DT_SHORT_SEQUENCE + 1)
            find_candidates(m, c, n);
        else if (c->count > 0)
            lengthen(m, c);
        if (n <= DT_SHORT_SEQUENCE)
            m->sequences[n].top_chars = top_chars(m, c, n);
        if (n == DT_SHORT_SEQUENCE + 1)
            m->sequences[n].later_chars = later_chars(m, c, n);
        if (n > DT_SHORT_SEQUENCE)
            m->sequences[n].repeated_chars = repeated_chars(m, c, n);
    }
}

/* --- bounds ----------------------------------------------------------------------------------- */

/* Counts the pairs by hash; names[i] is the place of pair i among the counts. Pairs of equal hash
 * are counted together. */
static void count_pairs(struct dt_measures *m, uint16_t *counts, size_t mask)
{
    const struct dt_word *words = m->words.items;
    uint32_t *names = m->names;
    for (size_t i = 0, pairs = m->words.count - 1; i < pairs; i++) {
        size_t at = (words[i].hash * FACTOR + words[i + 1].hash) & mask;
        counts[at]++;
        names[i] = (uint32_t)at;
    }
}

static inline uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* A sequence is not more frequent than its rarest pair. Candidates of DT_SHORT_SEQUENCE + 1 words
 * are those whose pairs are all repeated. */
static void bound_top_chars(struct dt_measures *m, const uint16_t *counts)
{
    const struct dt_word *words = m->words.items;
    const uint32_t *names = m->names;
    uint64_t two = 0, three = 0, four = 0;
    uint32_t rarest[3] = {0};     /* of the counts of the last pair, of two and of three */
    uint64_t chars = 0, more = 0; /* of the word before, of two words, with blanks */
    size_t kept = 0;
    for (size_t i = 0, pairs = m->words.count - 1; i < pairs; i++) {
        uint32_t count = counts[names[i]], both = smaller(count, rarest[0]),
                 all = smaller(count, rarest[1]);
        uint64_t here = words[i].chars + UINT64_C(1), pair = here + words[i + 1].chars;
        two = larger(two, count * pair);
        three = larger(three, both * (pair + chars));
        four = larger(four, all * (pair + more));
        m->long_ones.place[kept] = (uint32_t)i - 3;
        kept += smaller(count, rarest[2]) >= 2; /* branchless: mispredicted often */
        rarest[0] = count, rarest[1] = both, rarest[2] = all;
        more = chars + here, chars = here;
    }
    m->bounds = (struct dt_sequence_bounds){.top_chars = {0, 0, two, three, four}};
    m->long_ones.count = kept;
}

void dt_measure_bounds_of_sequences(struct dt_measures *m)
{
    size_t count = dt_measure_words(m)->count;
    m->bounds = (struct dt_sequence_bounds){0};
    if (count < 2)
        return;
    if (count > MOST_BOUNDED) {
        memset(&m->bounds, 0xff, sizeof m->bounds);
        return;
    }
    reserve(m, count);
    size_t words = 2 * clear_seen(m, 16 * count); /* of 64 bits: two counts and more for a pair */
    uint16_t *counts = (uint16_t *)m->seen;
    count_pairs(m, counts, 4 * words - 1);
    bound_top_chars(m, counts);
}
