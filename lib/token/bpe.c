/* SPDX-License-Identifier: MIT */
#include "token/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "pretokenize/character.h"

#define PLACES      64
#define SHORT_PIECE (PLACES - 2) /* symbols up to which a linear scan is faster than a heap */
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
    return dt_vocabulary_find(t, (const char *)p, length);
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
    return dt_vocabulary_find(t, spelled->data, spelled->size);
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

/* Appends the byte tokens of a character; false if one is missing. Not with affixes. */
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
 * Several merge in turn: while the ranks of one's new pairs are loaded from memory, others go on.
 */

#define TOGETHER 8
#define NO_KEY   ((int32_t)(DT_NO_PAIR * PLACES)) /* keys from this on are of no pair */
#define LANES    4

typedef int32_t lanes __attribute__((vector_size(LANES * sizeof(int32_t))));

/* Symbols have the places 1, 2, ... of their first bytes or characters; at both ends is a place
 * without token, so that each symbol has neighbors. */
struct short_piece {
    struct dt_bpe_piece *piece;
    uint64_t starts; /* a bit of each symbol and end */
    unsigned lane_count;
    unsigned merged, before, after; /* the symbol of the last merge and its neighbors; the pairs
                                       have no keys yet, which are in these groups: */
    size_t group_before, group_after;
    uint32_t ids[PLACES];
    union {
        int32_t keys[PLACES]; /* of the pair with the next symbol: its rank, and its place */
        lanes lanes[PLACES / LANES];
    };
};

static inline int32_t key_of(uint32_t rank, unsigned at)
{
    return (int32_t)(rank * PLACES + at);
}
static inline unsigned place_before(uint64_t starts, unsigned at)
{
    return 63 - (unsigned)__builtin_clzll(starts & (((uint64_t)1 << at) - 1));
}

static inline unsigned place_after(uint64_t starts, unsigned at)
{
    return (unsigned)__builtin_ctzll(starts & ~(uint64_t)1 << at);
}

/* Gives keys to the pairs of the last merge. */
static inline void find_keys(const struct dt_tokenizer *t, struct short_piece *s)
{
    uint32_t id = s->ids[s->merged];
    uint64_t before = dt_pairs_key(s->ids[s->before], id);
    uint64_t after = dt_pairs_key(id, s->ids[s->after]);
    s->keys[s->before] = key_of(dt_pairs_find(&t->pairs, s->group_before, before), s->before);
    s->keys[s->merged] = key_of(dt_pairs_find(&t->pairs, s->group_after, after), s->merged);
}

static inline lanes lesser(lanes a, lanes b)
{
    lanes a_is = a < b;
    return (a & a_is) | (b & ~a_is);
}

static inline int32_t least_key(const struct short_piece *s)
{
    lanes even = s->lanes[0], odd = s->lanes[1];
    for (unsigned i = 2; i < s->lane_count; i += 2) {
        even = lesser(even, s->lanes[i]);
        odd = lesser(odd, s->lanes[i + 1]);
    }
    even = lesser(even, odd);
    int32_t left = even[0] < even[1] ? even[0] : even[1];
    int32_t right = even[2] < even[3] ? even[2] : even[3];
    return left < right ? left : right;
}

/* The key of the first pair, if their ranks are equal. */
static int32_t first_key(const struct short_piece *s)
{
    unsigned i = 1;
    while (s->keys[i] >= NO_KEY)
        i++;
    return s->keys[i];
}

/* Starts to load the group of a pair, if both tokens are there. */
static inline size_t load_group(const struct dt_tokenizer *t, uint32_t left, uint32_t right)
{
    size_t i = dt_pairs_group(&t->pairs, dt_pairs_key(left, right));
    i &= -(size_t)((left | right) != DT_NO_TOKEN);
    __builtin_prefetch(&t->pairs.groups[i]);
    return i;
}

/* Makes the next merge; false: there is none. */
static inline bool merge_next(const struct dt_tokenizer *t, struct short_piece *s)
{
    find_keys(t, s);
    int32_t key = least_key(s);
    if (key >= NO_KEY)
        return false;
    if ((uint32_t)key / PLACES >= t->first_tied)
        key = first_key(s);
    unsigned at = (uint32_t)key % PLACES;
    unsigned absorbed = place_after(s->starts, at);
    uint32_t id = dt_vocabulary_result(t, (uint32_t)key / PLACES);
    s->ids[at] = id;
    s->keys[absorbed] = NO_KEY;
    s->starts &= ~((uint64_t)1 << absorbed);
    s->merged = at;
    s->before = place_before(s->starts, at);
    s->after = place_after(s->starts, at);
    s->group_before = load_group(t, s->ids[s->before], id);
    s->group_after = load_group(t, id, s->ids[s->after]);
    return true;
}

/* Fills all fields but the ids and keys of 1 .. SHORT_PIECE symbols. */
static void start_symbols(struct short_piece *s, struct dt_bpe_piece *piece, size_t count)
{
    s->piece = piece;
    s->starts = UINT64_MAX >> (PLACES - 2 - count);
    s->lane_count = (unsigned)count / (2 * LANES) * 2 + 2;
    s->merged = s->before = s->after = 0;
    s->group_before = s->group_after = 0;
    s->ids[0] = s->ids[count + 1] = DT_NO_TOKEN;
    s->keys[0] = NO_KEY;
    for (size_t i = count; i < s->lane_count * LANES; i++)
        s->keys[i] = NO_KEY;
}

static void start_bytes(const struct dt_tokenizer *t, struct short_piece *s,
                        struct dt_bpe_piece *piece)
{
    const unsigned char *bytes = piece->bytes;
    unsigned count = (unsigned)piece->size, i;
    start_symbols(s, piece, count);
    for (i = 1; i < count; i++) {
        s->ids[i] = t->byte_ids[bytes[i - 1]];
        s->keys[i] = key_of(t->byte_pairs[bytes[i - 1] << 8 | bytes[i]], i);
    }
    s->ids[i] = t->byte_ids[bytes[i - 1]];
}

static void start_ids(const struct dt_tokenizer *t, struct short_piece *s,
                      struct dt_bpe_piece *piece, size_t count)
{
    start_symbols(s, piece, count);
    memcpy(s->ids + 1, piece->ids, count * sizeof *s->ids);
    for (unsigned i = 1; i < count; i++)
        s->keys[i] = key_of(dt_pairs_rank(&t->pairs, s->ids[i], s->ids[i + 1]), i);
}

static void give_ids(const struct short_piece *s)
{
    struct dt_bpe_piece *piece = s->piece;
    piece->count = 0;
    for (uint64_t left = s->starts & ~(uint64_t)1; left & (left - 1); left &= left - 1)
        piece->ids[piece->count++] = s->ids[__builtin_ctzll(left)];
}

/* --- long pieces -------------------------------------------------------------------------------
 */

/* An entry of the heap, which has the next merge as its minimum. It is stale if that of its symbol
 * has changed. */
static inline uint64_t entry_of(const struct dt_tokenizer *t, uint32_t rank, uint32_t position)
{
    bool tied = rank >= t->first_tied && rank != DT_NO_PAIR;
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
        uint32_t rank = i + 1 < size ? dt_pairs_rank(&t->pairs, ids[i], ids[i + 1]) : DT_NO_PAIR;
        w->symbols[i] = (struct dt_bpe_symbol){ids[i], rank, i ? here - 1 : NONE,
                                               i + 1 < size ? here + 1 : NONE};
        if (rank != DT_NO_PAIR)
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
        s->next == NONE ? DT_NO_PAIR : dt_pairs_rank(&t->pairs, s->id, w->symbols[s->next].id);
    if (s->rank != DT_NO_PAIR)
        push(w->heap, count, entry_of(t, s->rank, i));
}

static void merge_at(const struct dt_tokenizer *t, struct dt_bpe_work *w, size_t *count, uint32_t i)
{
    struct dt_bpe_symbol *s = &w->symbols[i], *absorbed = &w->symbols[s->next];
    s->id = dt_vocabulary_result(t, s->rank);
    s->next = absorbed->next;
    absorbed->rank = DT_NO_PAIR;
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

/* --- pieces ------------------------------------------------------------------------------------
 */

static size_t first_symbols(const struct dt_tokenizer *t, struct dt_bpe_work *work,
                            const unsigned char *piece, size_t size, uint32_t *ids, size_t *ends)
{
    if (!dt_vocabulary_is_plain_bytes(t))
        return find_symbols(t, work, piece, size, ids, ends);
    for (size_t i = 0; i < size; i++)
        ids[i] = t->byte_ids[piece[i]];
    for (size_t i = 0; ends && i < size; i++)
        ends[i] = i + 1;
    return size;
}

/* Starts a short piece, or encodes a longer one: false. */
static bool start(const struct dt_tokenizer *t, struct dt_bpe_work *work, struct short_piece *s,
                  struct dt_bpe_piece *piece)
{
    if (piece->size <= SHORT_PIECE && dt_vocabulary_is_plain_bytes(t)) {
        start_bytes(t, s, piece);
        return true;
    }
    size_t count = first_symbols(t, work, piece->bytes, piece->size, piece->ids, NULL);
    if (count > 0 && count <= SHORT_PIECE) {
        start_ids(t, s, piece, count);
        return true;
    }
    piece->count = count > 0 ? encode_long(t, work, piece->ids, count, NULL) : 0;
    return false;
}

void dt_bpe_encode_pieces(const struct dt_tokenizer *t, struct dt_bpe_work *work,
                          struct dt_bpe_piece *pieces, size_t count)
{
    struct short_piece some[TOGETHER], *turns[TOGETHER];
    size_t next = 0, open = 0;
    for (size_t i = 0; i < TOGETHER; i++)
        turns[i] = &some[i];
    do {
        while (open < TOGETHER && next < count)
            open += start(t, work, turns[open], &pieces[next++]);
        for (size_t i = 0; i < open;) {
            if (merge_next(t, turns[i])) {
                i++;
                continue;
            }
            give_ids(turns[i]);
            struct short_piece *done = turns[i];
            turns[i] = turns[--open];
            turns[open] = done;
        }
    } while (open > 0 || next < count);
}

size_t dt_bpe_encode(const struct dt_tokenizer *t, struct dt_bpe_work *work,
                     const unsigned char *piece, size_t size, uint32_t *ids, size_t *ends)
{
    struct dt_bpe_piece one = {.bytes = piece, .size = size, .ids = ids};
    if (ends) {
        size_t count = first_symbols(t, work, piece, size, ids, ends);
        return count > 0 ? encode_long(t, work, ids, count, ends) : 0;
    }
    dt_bpe_encode_pieces(t, work, &one, 1);
    return one.count;
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
    for (size_t i = 0; i < dt_pairs_slots(&t->pairs); i++) {
        struct dt_ranked_pair pair = dt_pairs_at(&t->pairs, i);
        found |= pair.rank != DT_NO_PAIR && (unspelled[pair.left] || unspelled[pair.right]);
    }
    free(unspelled);
    return found;
}

/* Whether a character may have no token, so that those beside it can merge. */
static bool drops_characters(const struct dt_tokenizer *t)
{
    bool drops = false;
    for (int c = 0; c < 256; c++)
        drops = drops || !t->rules.byte_fallback || t->byte_ids[c] == DT_NO_TOKEN;
    return drops && t->unknown == DT_NO_TOKEN;
}

struct dt_bpe_cuts *dt_bpe_cuts_new(const struct dt_tokenizer *t)
{
    if (t->byte_level || t->rules.prefix || t->rules.suffix || t->ignore_merges ||
        t->char_ids[MARK] == DT_NO_TOKEN || drops_characters(t) || merges_unspelled(t))
        return NULL;
    struct dt_bpe_cuts *cuts = dt_alloc(1, sizeof *cuts);
    for (size_t i = 0; i < dt_pairs_slots(&t->pairs); i++) {
        size_t size;
        struct dt_ranked_pair pair = dt_pairs_at(&t->pairs, i);
        if (pair.rank == DT_NO_PAIR)
            continue;
        const char *bytes = dt_tokenizer_bytes(t, dt_vocabulary_result(t, pair.rank), &size);
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
