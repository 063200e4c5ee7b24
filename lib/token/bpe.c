/* SPDX-License-Identifier: MIT */
#include "token/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "pretokenize/character.h"

#define SHORT_PIECE 48 /* bytes up to which a linear scan is faster than a heap */
#define NONE        UINT32_MAX

/* A node of the linked list of symbols of a long piece. rank is the rank of the pair with the
 * next symbol. */
struct dt_bpe_symbol {
    uint32_t id, rank, previous, next;
};

void dt_bpe_work_release(struct dt_bpe_work *w)
{
    free(w->symbols);
    free(w->heap);
    dt_buffer_release(&w->spelled);
    *w = (struct dt_bpe_work){.symbols = NULL};
}

/* --- first symbols -----------------------------------------------------------------------------
 */

/* The token of a character, or DT_NO_TOKEN. */
static uint32_t plain_symbol(const struct dt_tokenizer *t, const unsigned char *p, unsigned length,
                             uint32_t code)
{
    if (!t->byte_level && code < 65536)
        return t->char_ids[code];
    return dt_tokenizer_find(t, (const char *)p, length);
}

static uint32_t affixed_symbol(const struct dt_tokenizer *t, struct dt_buffer *spelled,
                               const unsigned char *p, unsigned length, bool first, bool last)
{
    dt_buffer_clear(spelled);
    if (!first && t->rules.prefix)
        dt_buffer_add_string(spelled, t->rules.prefix);
    dt_buffer_append(spelled, p, length);
    if (last && t->rules.suffix)
        dt_buffer_add_string(spelled, t->rules.suffix);
    return dt_tokenizer_find(t, spelled->data, spelled->size);
}

/* The list of symbols under construction. An unknown token waits for characters to fuse. */
struct symbols {
    uint32_t *ids;
    size_t *ends; /* NULL: not kept */
    size_t count, end, unknown_size;
};

static void add_symbol(struct symbols *s, uint32_t id, size_t size)
{
    s->end += size;
    if (s->ends)
        s->ends[s->count] = s->end;
    s->ids[s->count++] = id;
}

static void add_unknown(const struct dt_tokenizer *t, struct symbols *s)
{
    if (s->unknown_size > 0)
        add_symbol(s, t->unknown, s->unknown_size);
    s->unknown_size = 0;
}

/* Appends the byte tokens of a character; false if one is missing. With affixes `tokenizers` spells
 * their bytes, too. */
static bool add_bytes(const struct dt_tokenizer *t, struct symbols *s, const unsigned char *p,
                      size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (t->byte_ids[p[i]] == DT_NO_TOKEN)
            return false;
    for (size_t i = 0; i < size; i++)
        add_symbol(s, t->byte_ids[p[i]], 1);
    return true;
}

/* As merge_word of `tokenizers` 0.22, in which an unknown token comes after byte tokens that follow
 * it directly. */
static size_t find_symbols(const struct dt_tokenizer *t, struct dt_bpe_work *w,
                           const unsigned char *piece, size_t size, uint32_t *ids, size_t *ends)
{
    struct symbols s = {.ids = ids, .ends = ends};
    bool affixes = t->rules.prefix || t->rules.suffix;
    for (size_t i = 0, length; i < size; i += length) {
        uint32_t code = piece[i];
        length = t->byte_level ? 1 : dt_character(piece + i, piece + size, &code);
        uint32_t id = affixes ? affixed_symbol(t, &w->spelled, piece + i, (unsigned)length, i == 0,
                                               i + length == size)
                              : plain_symbol(t, piece + i, (unsigned)length, code);
        if (id != DT_NO_TOKEN) {
            add_unknown(t, &s);
            add_symbol(&s, id, length);
        } else if (!t->rules.byte_fallback || !add_bytes(t, &s, piece + i, length)) {
            if (!t->rules.fuse_unknown)
                add_unknown(t, &s);
            s.unknown_size += t->unknown == DT_NO_TOKEN ? 0 : length;
        }
    }
    add_unknown(t, &s);
    return s.count;
}

/* --- short pieces ------------------------------------------------------------------------------
 */

/* Merges up to SHORT_PIECE symbols; ranks[i] is that of the pair i, i + 1. */
static size_t merge_short(const struct dt_tokenizer *t, uint32_t *ids, uint32_t *ranks, size_t size)
{
    while (size > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < size; i++)
            best = ranks[i] < ranks[best] ? i : best;
        if (ranks[best] == DT_NO_RANK)
            break;
        if (ranks[best] >= t->first_tied)
            for (best = 0; ranks[best] == DT_NO_RANK;)
                best++;
        ids[best] = t->results[ranks[best]];
        size--;
        for (size_t i = best + 1; i < size; i++) {
            ids[i] = ids[i + 1];
            ranks[i - 1] = ranks[i];
        }
        if (best > 0)
            ranks[best - 1] = dt_vocabulary_pair_rank(t, ids[best - 1], ids[best]);
        if (best + 1 < size)
            ranks[best] = dt_vocabulary_pair_rank(t, ids[best], ids[best + 1]);
    }
    return size;
}

static size_t encode_short_bytes(const struct dt_tokenizer *t, const unsigned char *piece,
                                 size_t size, uint32_t *ids)
{
    uint32_t ranks[SHORT_PIECE];
    for (size_t i = 0; i < size; i++)
        ids[i] = t->byte_ids[piece[i]];
    for (size_t i = 0; i + 1 < size; i++)
        ranks[i] = t->byte_pairs[piece[i] << 8 | piece[i + 1]];
    return merge_short(t, ids, ranks, size);
}

static size_t encode_short(const struct dt_tokenizer *t, uint32_t *ids, size_t count)
{
    uint32_t ranks[SHORT_PIECE];
    for (size_t i = 0; i + 1 < count; i++)
        ranks[i] = dt_vocabulary_pair_rank(t, ids[i], ids[i + 1]);
    return merge_short(t, ids, ranks, count);
}

/* --- long pieces -------------------------------------------------------------------------------
 */

/* An entry of the heap, which has the next merge as its minimum. It is stale if that of its symbol
 * has changed. */
static inline uint64_t entry_of(const struct dt_tokenizer *t, uint32_t rank, uint32_t position)
{
    bool tied = rank >= t->first_tied && rank != DT_NO_RANK;
    return (uint64_t)(tied ? t->first_tied : rank) << 32 | position;
}

static void sift_down(uint64_t *heap, size_t count, size_t i)
{
    uint64_t moving = heap[i];
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        child += child + 1 < count && heap[child + 1] < heap[child];
        if (heap[child] >= moving)
            break;
        heap[i] = heap[child];
    }
    heap[i] = moving;
}

static void push(uint64_t *heap, size_t *count, uint64_t entry)
{
    size_t i = (*count)++;
    for (; i > 0 && heap[(i - 1) / 2] > entry; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = entry;
}

static uint64_t pop(uint64_t *heap, size_t *count)
{
    uint64_t least = heap[0];
    heap[0] = heap[--*count];
    if (*count > 0)
        sift_down(heap, *count, 0);
    return least;
}

static void reserve(struct dt_bpe_work *w, size_t size)
{
    if (size <= w->capacity)
        return;
    w->capacity = size;
    w->symbols = dt_realloc(w->symbols, size, sizeof *w->symbols);
    w->heap = dt_realloc(w->heap, 2 * size, sizeof *w->heap); /* a merge pops one, pushes two */
}

static size_t fill_symbols(const struct dt_tokenizer *t, struct dt_bpe_work *w, const uint32_t *ids,
                           size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++) {
        uint32_t here = (uint32_t)i;
        uint32_t rank = i + 1 < size ? dt_vocabulary_pair_rank(t, ids[i], ids[i + 1]) : DT_NO_RANK;
        w->symbols[i] = (struct dt_bpe_symbol){ids[i], rank, i ? here - 1 : NONE,
                                               i + 1 < size ? here + 1 : NONE};
        if (rank != DT_NO_RANK)
            w->heap[count++] = entry_of(t, rank, here);
    }
    for (size_t i = count / 2; i-- > 0;)
        sift_down(w->heap, count, i);
    return count;
}

static void update_rank(const struct dt_tokenizer *t, struct dt_bpe_work *w, size_t *count,
                        uint32_t i)
{
    struct dt_bpe_symbol *s = &w->symbols[i];
    s->rank =
        s->next == NONE ? DT_NO_RANK : dt_vocabulary_pair_rank(t, s->id, w->symbols[s->next].id);
    if (s->rank != DT_NO_RANK)
        push(w->heap, count, entry_of(t, s->rank, i));
}

static void merge_at(const struct dt_tokenizer *t, struct dt_bpe_work *w, size_t *count, uint32_t i)
{
    struct dt_bpe_symbol *s = &w->symbols[i], *absorbed = &w->symbols[s->next];
    s->id = t->results[s->rank];
    s->next = absorbed->next;
    absorbed->rank = DT_NO_RANK;
    if (s->next != NONE)
        w->symbols[s->next].previous = i;
    update_rank(t, w, count, i);
    if (s->previous != NONE)
        update_rank(t, w, count, s->previous);
}

/* ends, unless NULL, holds those of the symbols, and then those of the ids. */
static size_t encode_long(const struct dt_tokenizer *t, struct dt_bpe_work *w, uint32_t *ids,
                          size_t size, size_t *ends)
{
    reserve(w, size);
    size_t count = fill_symbols(t, w, ids, size), n = 0;
    while (count > 0) {
        uint64_t least = pop(w->heap, &count);
        uint32_t i = (uint32_t)least;
        if (entry_of(t, w->symbols[i].rank, i) == least)
            merge_at(t, w, &count, i);
    }
    for (uint32_t i = 0, next; i != NONE; i = next, n++) {
        next = w->symbols[i].next;
        ids[n] = w->symbols[i].id;
        if (ends)
            ends[n] = ends[next == NONE ? size - 1 : next - 1];
    }
    return n;
}

static size_t encode_bytes(const struct dt_tokenizer *t, struct dt_bpe_work *work,
                           const unsigned char *piece, size_t size, uint32_t *ids)
{
    if (size <= SHORT_PIECE)
        return encode_short_bytes(t, piece, size, ids);
    for (size_t i = 0; i < size; i++)
        ids[i] = t->byte_ids[piece[i]];
    return encode_long(t, work, ids, size, NULL);
}

size_t dt_bpe_encode(const struct dt_tokenizer *t, struct dt_bpe_work *work,
                     const unsigned char *piece, size_t size, uint32_t *ids, size_t *ends)
{
    if (dt_vocabulary_is_plain_bytes(t)) {
        size_t count = encode_bytes(t, work, piece, size, ids), end = 0;
        for (size_t i = 0; ends && i < count; i++)
            ends[i] = end += t->tokens[ids[i]].length;
        return count;
    }
    size_t count = find_symbols(t, work, piece, size, ids, ends);
    if (count <= SHORT_PIECE && ends == NULL)
        return encode_short(t, ids, count);
    return count > 0 ? encode_long(t, work, ids, count, ends) : 0;
}

/* --- cuts --------------------------------------------------------------------------------------
 */

static const unsigned char mark[] = {0xe2, 0x96, 0x81}; /* U+2581 in UTF-8 */
#define MARK 0x2581u

/* Remembers the characters before the marks inside a token. */
static void add_joined(struct dt_bpe_cuts *cuts, const char *token, size_t size)
{
    const unsigned char *p = (const unsigned char *)token, *end = p + size;
    uint32_t before = 0, code;
    for (bool first = true; p < end; first = false, before = code) {
        p += dt_character(p, end, &code);
        if (first || code != MARK)
            continue;
        if (before < 128) {
            cuts->ascii[before] = true;
            continue;
        }
        DT_GROW(cuts->others, cuts->count, cuts->capacity);
        cuts->others[cuts->count++] = before;
    }
}

static int by_code(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void sort_others(struct dt_bpe_cuts *cuts)
{
    size_t kept = 0;
    if (cuts->count > 0)
        qsort(cuts->others, cuts->count, sizeof *cuts->others, by_code);
    for (size_t i = 0; i < cuts->count; i++)
        if (i == 0 || cuts->others[i] != cuts->others[i - 1])
            cuts->others[kept++] = cuts->others[i];
    cuts->count = kept;
}

/* Whether a merge takes a token that does not spell its text: the unknown token, or a byte. */
static bool merges_unspelled(const struct dt_tokenizer *t)
{
    bool *unspelled = dt_alloc(t->size, sizeof *unspelled), found = false;
    if (t->unknown != DT_NO_TOKEN)
        unspelled[t->unknown] = true;
    for (int c = 0; t->rules.byte_fallback && c < 256; c++)
        if (t->byte_ids[c] != DT_NO_TOKEN)
            unspelled[t->byte_ids[c]] = true;
    for (size_t i = 0; i < (size_t)1 << t->slot_bits; i++)
        found |= t->slots[i].rank != DT_NO_RANK &&
                 (unspelled[t->slots[i].left] || unspelled[t->slots[i].right]);
    free(unspelled);
    return found;
}

struct dt_bpe_cuts *dt_bpe_cuts_new(const struct dt_tokenizer *t)
{
    if (t->byte_level || t->rules.prefix || t->rules.suffix || t->ignore_merges ||
        t->char_ids[MARK] == DT_NO_TOKEN || merges_unspelled(t))
        return NULL;
    struct dt_bpe_cuts *cuts = dt_alloc(1, sizeof *cuts);
    for (size_t i = 0; i < (size_t)1 << t->slot_bits; i++) {
        size_t size;
        if (t->slots[i].rank == DT_NO_RANK)
            continue;
        const char *bytes = dt_tokenizer_bytes(t, t->results[t->slots[i].rank], &size);
        add_joined(cuts, bytes, size);
    }
    sort_others(cuts);
    return cuts;
}

void dt_bpe_cuts_free(struct dt_bpe_cuts *cuts)
{
    if (cuts)
        free(cuts->others);
    free(cuts);
}

/* Whether a token may join the character before p with the mark at p. */
static bool may_join(const struct dt_bpe_cuts *cuts, const unsigned char *start,
                     const unsigned char *p)
{
    if (p[-1] < 128)
        return cuts->ascii[p[-1]];
    const unsigned char *before = p - 1;
    while (before > start && p - before < 4 && (*before & 0xc0) == 0x80)
        before--;
    uint32_t code;
    dt_character(before, p, &code);
    return cuts->count > 0 &&
           bsearch(&code, cuts->others, cuts->count, sizeof code, by_code) != NULL;
}

static const unsigned char *next_mark(const unsigned char *p, const unsigned char *end)
{
    while (end - p >= (long)sizeof mark) {
        p = memchr(p, mark[0], (size_t)(end - p) - 2);
        if (p == NULL)
            return end;
        if (p[1] == mark[1] && p[2] == mark[2])
            return p;
        p++;
    }
    return end;
}

size_t dt_bpe_cuts_split(const struct dt_bpe_cuts *cuts, const unsigned char *text,
                         const unsigned char *end, size_t *ends, size_t capacity)
{
    size_t count = 0;
    for (const unsigned char *p = text; count < capacity;) {
        p = next_mark(p + 1, end);
        if (p < end && may_join(cuts, text, p))
            continue;
        ends[count++] = (size_t)(p - text);
        if (p == end)
            break;
    }
    return count;
}
