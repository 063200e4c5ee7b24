/* SPDX-License-Identifier: MIT */
#include "vocab/learn.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pretokenize/character.h"
#include "token/word-piece.h"

#define EMPTY UINT32_MAX

/* A word as its current tokens, at symbols[start]. */
struct word {
    size_t start;
    uint32_t length;
    int64_t count;
};

/* A pair that occurs or occurred. words is a superset of the words that contain it. */
struct pair {
    uint32_t left, right;
    int64_t count;
    uint32_t *words;
    uint32_t word_count, word_capacity;
};

/* The heap is lazy: an entry has the count of its pair when it was pushed. All occurrences of
 * a pair arise in one merge, after which its count only falls, so an entry is an upper
 * bound. */
struct entry {
    int64_t count;
    uint32_t left, right, pair;
};

struct learner {
    uint32_t *symbols;
    struct word *words;
    struct pair *pairs;
    uint32_t pair_count, pair_capacity;
    uint32_t *index; /* hash table of indices into pairs */
    unsigned index_bits;
    struct entry *heap;
    size_t heap_count, heap_capacity;
};

static bool ranks_before(const struct entry *a, const struct entry *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    return a->left != b->left ? a->left < b->left : a->right < b->right;
}

static void push(struct learner *l, struct entry entry)
{
    DT_GROW(l->heap, l->heap_count, l->heap_capacity);
    size_t i = l->heap_count++;
    for (; i > 0 && ranks_before(&entry, &l->heap[(i - 1) / 2]); i = (i - 1) / 2)
        l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = entry;
}

static struct entry pop(struct learner *l)
{
    struct entry first = l->heap[0], moving = l->heap[--l->heap_count];
    size_t i = 0, n = l->heap_count;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && ranks_before(&l->heap[child + 1], &l->heap[child]);
        if (!ranks_before(&l->heap[child], &moving))
            break;
        l->heap[i] = l->heap[child];
    }
    if (n > 0)
        l->heap[i] = moving;
    return first;
}

static void queue(struct learner *l, uint32_t number)
{
    const struct pair *p = &l->pairs[number];
    if (p->count > 0)
        push(l, (struct entry){p->count, p->left, p->right, number});
}

/* The slot of the pair in the index, or the empty slot for it. */
static uint32_t *pair_slot(const struct learner *l, uint32_t left, uint32_t right)
{
    uint32_t mask = (1u << l->index_bits) - 1;
    uint64_t hash = dt_pairs_hash(dt_pairs_key(left, right));
    for (uint64_t i = hash >> (64 - l->index_bits);; i = (i + 1) & mask) {
        uint32_t number = l->index[i];
        if (number == EMPTY || (l->pairs[number].left == left && l->pairs[number].right == right))
            return &l->index[i];
    }
}

static void grow_index(struct learner *l)
{
    l->index_bits = l->index_bits ? l->index_bits + 1 : 16;
    l->index = dt_realloc(l->index, (size_t)1 << l->index_bits, sizeof *l->index);
    memset(l->index, 0xff, sizeof *l->index << l->index_bits);
    for (uint32_t i = 0; i < l->pair_count; i++)
        *pair_slot(l, l->pairs[i].left, l->pairs[i].right) = i;
}

static struct pair *find_pair(struct learner *l, uint32_t left, uint32_t right)
{
    uint32_t *slot = pair_slot(l, left, right);
    if (*slot != EMPTY)
        return &l->pairs[*slot];
    if (2 * l->pair_count >= 1u << l->index_bits) {
        grow_index(l);
        slot = pair_slot(l, left, right);
    }
    DT_GROW(l->pairs, l->pair_count, l->pair_capacity);
    *slot = l->pair_count++;
    l->pairs[*slot] = (struct pair){.left = left, .right = right};
    return &l->pairs[*slot];
}

/* Adds count occurrences of the pair in word. */
static void add_occurrences(struct learner *l, uint32_t left, uint32_t right, uint32_t word,
                            int64_t count)
{
    struct pair *p = find_pair(l, left, right);
    p->count += count;
    if (p->word_count == 0 || p->words[p->word_count - 1] != word) {
        if (p->word_count == p->word_capacity) {
            p->word_capacity = p->word_capacity ? 2 * p->word_capacity : 4;
            p->words = dt_realloc(p->words, p->word_capacity, sizeof *p->words);
        }
        p->words[p->word_count++] = word;
    }
}

static void remove_occurrences(struct learner *l, uint32_t left, uint32_t right, int64_t count)
{
    find_pair(l, left, right)->count -= count;
}

/* Replaces left right by made in the word, from the left. A neighbouring pair that the next
 * replacement also removes is counted and then uncounted, so the final counts are right. */
static void merge_in_word(struct learner *l, uint32_t number, uint32_t left, uint32_t right,
                          uint32_t made)
{
    struct word *w = &l->words[number];
    uint32_t *s = l->symbols + w->start, n = w->length, to = 0;
    for (uint32_t i = 0; i < n;) {
        if (i + 1 == n || s[i] != left || s[i + 1] != right) {
            s[to++] = s[i++];
            continue;
        }
        if (to > 0) {
            remove_occurrences(l, s[to - 1], left, w->count);
            add_occurrences(l, s[to - 1], made, number, w->count);
        }
        if (i + 2 < n) {
            remove_occurrences(l, right, s[i + 2], w->count);
            add_occurrences(l, made, s[i + 2], number, w->count);
        }
        s[to++] = made;
        i += 2;
    }
    w->length = to;
}

static void merge_pair(struct learner *l, uint32_t number, uint32_t made)
{
    struct pair p = l->pairs[number];
    uint32_t old_pairs = l->pair_count;
    l->pairs[number].words = NULL;
    for (uint32_t i = 0; i < p.word_count; i++)
        merge_in_word(l, p.words[i], p.left, p.right, made);
    free(p.words);
    for (uint32_t i = old_pairs; i < l->pair_count; i++)
        queue(l, i);
}

/* The most frequent pair; false if none occurs min_count times. */
static bool pop_best(struct learner *l, int64_t min_count, uint32_t *number)
{
    while (l->heap_count > 0 && l->heap[0].count >= min_count) {
        struct entry e = pop(l);
        *number = e.pair;
        if (l->pairs[e.pair].count == e.count)
            return true;
        queue(l, e.pair);
    }
    return false;
}

/* The byte tokens of a word; returns their number. */
static uint32_t take_bytes(const struct dt_tokenizer *t, const char *bytes, uint32_t size,
                           uint32_t *symbols)
{
    for (uint32_t i = 0; i < size; i++)
        symbols[i] = dt_tokenizer_find(t, bytes + i, 1);
    return size;
}

/* The character tokens of a word; 0 if a character is not a token. */
static uint32_t take_characters(const struct dt_tokenizer *t, const char *bytes, uint32_t size,
                                uint32_t *symbols)
{
    char spelled[2 + 4] = DT_WORD_PIECE_PREFIX;
    uint32_t count = 0;
    for (uint32_t i = 0; i < size;) {
        uint32_t code;
        unsigned length = dt_character((const unsigned char *)bytes + i,
                                       (const unsigned char *)bytes + size, &code);
        memcpy(spelled + 2, bytes + i, length);
        symbols[count] = i == 0 ? dt_tokenizer_find(t, spelled + 2, length)
                                : dt_tokenizer_find(t, spelled, 2 + length);
        if (symbols[count++] == DT_NO_TOKEN)
            return 0;
        i += length;
    }
    return count;
}

static void take_words(struct learner *l, const struct dt_tokenizer *t,
                       const struct dt_word_table *counts)
{
    l->words = dt_alloc(counts->count, sizeof *l->words);
    l->symbols = dt_alloc(counts->bytes.size, sizeof *l->symbols);
    for (uint32_t i = 0; i < counts->count; i++) {
        const struct dt_counted_word *w = &counts->words[i];
        const char *bytes = counts->bytes.data + w->start;
        uint32_t *symbols = l->symbols + w->start;
        uint32_t length = dt_vocabulary_is_word_piece(t)
                              ? take_characters(t, bytes, w->length, symbols)
                              : take_bytes(t, bytes, w->length, symbols);
        l->words[i] = (struct word){w->start, length, (int64_t)w->count};
        for (uint32_t k = 0; k + 1 < length; k++)
            add_occurrences(l, symbols[k], symbols[k + 1], i, (int64_t)w->count);
    }
    for (uint32_t i = 0; i < l->pair_count; i++)
        queue(l, i);
}

/* Adds the token that a pair makes. No merge has made it before: an existing token's bytes, between
 * two boundaries that no merge crossed, have already been merged into that token. But the special
 * tokens of WordPiece come first. */
static int add_merge(struct dt_tokenizer *t, const struct pair *p, struct dt_error *err)
{
    struct dt_buffer bytes = DT_BUFFER_EMPTY;
    uint32_t made = t->size;
    size_t left_size, right_size, prefix = dt_vocabulary_is_word_piece(t) ? 2 : 0;
    const char *left = dt_tokenizer_bytes(t, p->left, &left_size);
    const char *right = dt_tokenizer_bytes(t, p->right, &right_size);
    dt_buffer_append(&bytes, left, left_size);
    dt_buffer_append(&bytes, right + prefix, right_size - prefix);
    bool taken = dt_tokenizer_find(t, bytes.data, bytes.size) != DT_NO_TOKEN;
    assert(!taken || prefix > 0);
    if (prefix == 0)
        dt_tokenizer_add_merge(t, (struct dt_merge){p->left, p->right, made});
    int rc = taken ? dt_fail(err, DT_EINVALID, "the special token '%s' is also an ordinary one",
                             bytes.data)
                   : dt_tokenizer_add(t, made, bytes.data, bytes.size, err);
    dt_buffer_release(&bytes);
    return rc;
}

static void release(struct learner *l)
{
    for (uint32_t i = 0; i < l->pair_count; i++)
        free(l->pairs[i].words);
    free(l->pairs);
    free(l->symbols);
    free(l->words);
    free(l->index);
    free(l->heap);
}

int dt_learn_merges(struct dt_tokenizer *t, struct dt_word_table *words, uint32_t size,
                    uint64_t min_count, struct dt_error *err)
{
    struct learner l = {.symbols = NULL};
    int64_t least = min_count > 1 ? (int64_t)min_count : 1;
    uint32_t best;
    int rc = 0;
    grow_index(&l);
    take_words(&l, t, words);
    dt_word_counts_release(words);
    while (rc == 0 && t->size < size && pop_best(&l, least, &best)) {
        rc = add_merge(t, &l.pairs[best], err);
        if (rc == 0)
            merge_pair(&l, best, t->size - 1);
    }
    release(&l);
    return rc;
}
