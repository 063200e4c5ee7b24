/* SPDX-License-Identifier: MIT */
#include "token/unigram.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "token/cache-memory.h"
#include "token/words.h"
#include "unicode/utf8.h"

#define CACHE_BITS 15
#define KEY_IDS    6
#define UNSET      UINT32_MAX
#define SUM_LIMIT  100000 /* of SentencePiece */

static const char mark[] = "\xe2\x96\x81"; /* U+2581 */
#define MARK_BYTES 3

/* The best segmentation that ends at an offset: its sum and last piece. */
struct node {
    double best;
    double second; /* of the next best; only for words of the cache */
    uint32_t start, id;
};

/* The ids of a word, independent of the sum before it up to a limit. */
struct entry {
    struct dt_words_key key;
    uint32_t ids[KEY_IDS];
    uint8_t lengths[KEY_IDS];
    float limit;
    uint32_t count;
};

struct piece {
    uint32_t id;
    uint32_t size;
};

struct dt_unigram_work {
    struct entry *cache;
    struct node *nodes;
    size_t node_capacity;
    struct piece *pieces; /* of a segment, the last first */
    size_t piece_count, piece_capacity;
    double sum;           /* of the text so far */
    float limit;          /* of the words of dt_unigram_encode() */
    bool follows_unknown; /* the last piece was unknown */
    uint32_t *ids;
    size_t *ends; /* NULL: not wanted */
    size_t count, end;
};

struct dt_unigram_work *dt_unigram_work_new(void)
{
    struct dt_unigram_work *w = dt_alloc(1, sizeof *w);
    w->cache = dt_cache_memory_new(sizeof *w->cache << CACHE_BITS);
    return w;
}

void dt_unigram_work_free(struct dt_unigram_work *w)
{
    if (w == NULL)
        return;
    dt_cache_memory_free(w->cache, sizeof *w->cache << CACHE_BITS);
    free(w->nodes);
    free(w->pieces);
    free(w);
}

void dt_unigram_free(struct dt_unigram *u)
{
    if (u == NULL)
        return;
    dt_piece_trie_release(&u->trie);
    free(u->float_scores);
    free(u->scores);
    free(u->byte_ids);
    free(u);
}

/* Whether a piece holds a mark that follows another character. */
static bool spans_mark(const struct dt_trie_piece *p)
{
    for (uint32_t i = 1; i + MARK_BYTES <= p->size; i++)
        if (memcmp(p->bytes + i, mark, MARK_BYTES) == 0 &&
            (i < MARK_BYTES || memcmp(p->bytes + i - MARK_BYTES, mark, MARK_BYTES) != 0))
            return true;
    return false;
}

void dt_unigram_build(struct dt_unigram *u, struct dt_trie_piece *pieces, size_t count)
{
    u->cuts_at_marks = true;
    u->largest = fabs(u->unknown_score);
    u->epsilon = u->rounds_to_float ? FLT_EPSILON : DBL_EPSILON;
    u->sum_limit = u->rounds_to_float ? SUM_LIMIT : INFINITY;
    for (size_t i = 0; i < count; i++) {
        u->cuts_at_marks = u->cuts_at_marks && !spans_mark(&pieces[i]);
        u->largest = fmax(u->largest, fabs(u->scores[pieces[i].id]));
    }
    dt_piece_trie_build(&u->trie, pieces, count);
    u->float_scores = u->rounds_to_float ? dt_alloc(u->size + 1, sizeof *u->float_scores) : NULL;
    for (uint32_t id = 0; u->float_scores && id < u->size; id++)
        u->float_scores[id] = (float)(id == u->unknown ? u->unknown_score : u->scores[id]);
}

void dt_unigram_describe(const struct dt_unigram *u, struct dt_buffer *text)
{
    dt_buffer_printf(text, "unigram %u %d %d %d %a", u->unknown, u->byte_ids != NULL,
                     u->fuse_unknown, u->rounds_to_float, u->unknown_score);
    for (uint32_t id = 0; id < u->size; id++)
        dt_buffer_printf(text, " %a", u->scores[id]);
}

/* --- ids -------------------------------------------------------------------------------------- */

static inline void add_id(struct dt_unigram_work *w, uint32_t id, uint32_t size)
{
    w->end += size;
    w->ids[w->count] = id;
    if (w->ends)
        w->ends[w->count] = w->end;
    w->count++;
}

static void add_piece(const struct dt_unigram *u, struct dt_unigram_work *w, const char *bytes,
                      struct piece piece)
{
    bool unknown = piece.id == u->unknown, goes_on = unknown && w->follows_unknown && w->count > 0;
    w->follows_unknown = unknown;
    w->count -= goes_on && u->fuse_unknown && !u->byte_ids;
    if (!unknown || !u->byte_ids)
        add_id(w, piece.id, piece.size);
    else
        for (uint32_t i = 0; i < piece.size; i++)
            add_id(w, u->byte_ids[(unsigned char)bytes[i]], 1);
}

/* Collects the pieces of the best segmentation of nodes[0 .. end], the last first. */
static void trace_back(struct dt_unigram_work *w, size_t end)
{
    w->piece_count = 0;
    while (end > 0) {
        uint32_t start = w->nodes[end].start;
        DT_GROW(w->pieces, w->piece_count, w->piece_capacity);
        w->pieces[w->piece_count++] = (struct piece){w->nodes[end].id, (uint32_t)(end - start)};
        end = start;
    }
}

static void add_traced(const struct dt_unigram *u, struct dt_unigram_work *w, const char *text)
{
    while (w->piece_count > 0) {
        struct piece piece = w->pieces[--w->piece_count];
        add_piece(u, w, text, piece);
        text += piece.size;
    }
}

/* --- search ----------------------------------------------------------------------------------- */

/* The bytes of the first character; one that is not UTF-8 is a character. */
static inline size_t character_size(const char *text, size_t size)
{
    uint32_t code;
    size_t length = *text & 0x80 ? dt_utf8_next(text, size, &code) : 1;
    return length ? length : 1;
}

/* Makes nodes up to `to` usable; those up to *from are already. */
static void extend(struct dt_unigram_work *w, size_t *from, size_t to)
{
    if (to >= w->node_capacity) {
        w->node_capacity = 2 * to + 256;
        w->nodes = dt_realloc(w->nodes, w->node_capacity, sizeof *w->nodes);
    }
    for (; *from < to; ++*from)
        w->nodes[*from + 1] = (struct node){-INFINITY, -INFINITY, UNSET, 0};
}

static inline double rounded(const struct dt_unigram *u, double sum)
{
    return u->rounds_to_float ? (double)(float)sum : sum;
}

static inline void offer(struct node *to, double sum, size_t start, uint32_t id)
{
    if (to->start != UNSET && !(sum > to->best))
        return;
    to->best = sum;
    to->start = (uint32_t)start;
    to->id = id;
}

/* SentencePiece keeps sums small by subtracting that at offset `at` from all that go on. */
static void subtract_sum(struct dt_unigram_work *w, size_t at, size_t reach)
{
    double sum = w->nodes[at].best;
    w->nodes[at].best = 0;
    for (size_t i = at + 1; i <= reach; i++)
        if (w->nodes[i].start != UNSET)
            w->nodes[i].best = (double)(float)(w->nodes[i].best - sum);
}

/* Offers the pieces that begin at offset `at` of text, which has size bytes. */
static void offer_from(const struct dt_unigram *u, struct dt_unigram_work *w, const char *text,
                       size_t size, size_t at, size_t *reach)
{
    size_t length = character_size(text + at, size - at);
    bool known = false;
    uint32_t node = DT_PIECE_TRIE_ROOT, id;
    if (fabs(w->nodes[at].best) > u->sum_limit)
        subtract_sum(w, at, *reach);
    double sum = w->nodes[at].best;
    for (size_t i = at;
         i < size && dt_piece_trie_follow(&u->trie, &node, (unsigned char)text[i], &id); i++) {
        if (id == DT_NO_PIECE)
            continue;
        if (i + 1 > *reach)
            extend(w, reach, i + 1);
        offer(&w->nodes[i + 1], rounded(u, sum + u->scores[id]), at, id);
        known = known || i + 1 == at + length;
    }
    if (known)
        return;
    if (at + length > *reach)
        extend(w, reach, at + length);
    offer(&w->nodes[at + length], rounded(u, sum + u->unknown_score), at, u->unknown);
}

/* Offsets of nodes fit 32 bits. */
#define PART_MAX ((size_t)1 << 31)

/* Segments a prefix of text up to a boundary that all segmentations share, beginning with
 * w->sum, which it advances. Returns its bytes. */
static size_t encode_part(const struct dt_unigram *u, struct dt_unigram_work *w, const char *text,
                          size_t size)
{
    size_t reach = 0, at = 0;
    extend(w, &reach, 1);
    reach = 0;
    w->nodes[0].best = w->sum;
    do {
        offer_from(u, w, text, size, at, &reach);
        at += character_size(text + at, size - at);
    } while (at < reach && at < PART_MAX);
    trace_back(w, at);
    w->sum = w->nodes[at].best;
    add_traced(u, w, text);
    return at;
}

static void encode_exactly(const struct dt_unigram *u, struct dt_unigram_work *w, const char *text,
                           size_t size)
{
    while (size > 0) {
        size_t part = encode_part(u, w, text, size);
        text += part;
        size -= part;
    }
}

/* --- the cache of words ----------------------------------------------------------------------- */

static void offer_second(struct node *to, double best, double second, uint32_t start, uint32_t id)
{
    if (to->start == UNSET || best > to->best) {
        to->second = to->best > second ? to->best : second;
        to->best = best;
        to->start = start;
        to->id = id;
    } else if (best > to->second) {
        to->second = best;
    }
}

/* Finds the best segmentation of a word in double precision, and its margin over the next best.
 * Returns the number of characters. */
static size_t search_word(const struct dt_unigram *u, struct dt_unigram_work *w, const char *word,
                          size_t size, double *margin)
{
    size_t from = 0, characters = 0;
    extend(w, &from, size);
    w->nodes[0] = (struct node){0, -INFINITY, UNSET, 0};
    for (size_t at = 0, length; at < size; at += length) {
        uint32_t node = DT_PIECE_TRIE_ROOT, id;
        struct node base = w->nodes[at];
        bool known = false;
        length = character_size(word + at, size - at);
        characters++;
        for (size_t i = at;
             i < size && dt_piece_trie_follow(&u->trie, &node, (unsigned char)word[i], &id); i++) {
            if (id == DT_NO_PIECE)
                continue;
            offer_second(&w->nodes[i + 1], base.best + u->scores[id], base.second + u->scores[id],
                         (uint32_t)at, id);
            known = known || i + 1 == at + length;
        }
        if (!known)
            offer_second(&w->nodes[at + length], base.best + u->unknown_score,
                         base.second + u->unknown_score, (uint32_t)at, u->unknown);
    }
    *margin = w->nodes[size].best - w->nodes[size].second;
    return characters;
}

/* Whether the segmentation has an unknown piece that is not one id whatever is before it. */
static bool fuses(const struct dt_unigram *u, const struct dt_unigram_work *w)
{
    bool found = w->pieces[w->piece_count - 1].id == u->unknown;
    for (size_t i = 0; i < w->piece_count; i++)
        found |= w->pieces[i].id == u->unknown &&
                 (u->byte_ids || (i > 0 && w->pieces[i - 1].id == u->unknown));
    return found;
}

static inline double score_of(const struct dt_unigram *u, uint32_t id)
{
    return id == u->unknown ? u->unknown_score : u->scores[id];
}

/* The sum before a word of this many characters up to which rounding does not change its
 * segmentation into count pieces. Each of the additions of this and any other segmentation, at most
 * one a character, moves their sums by at most |sum| * epsilon / 2; those of search_word() moved
 * the margin as if the sum before were 0. No sum may be subtracted, either. */
static double limit_of(const struct dt_unigram *u, double margin, size_t characters, size_t count)
{
    double additions = (double)(characters + count), rise = (double)characters * u->largest;
    double most = 2 * margin * (1 - FLT_EPSILON) / (additions * u->epsilon);
    return fmin(most - rise, u->sum_limit) - rise;
}

static void remember(const struct dt_unigram *u, struct dt_unigram_work *w, struct entry *e,
                     struct dt_words_key key, const char *word, size_t size)
{
    double margin;
    size_t characters = search_word(u, w, word, size, &margin);
    trace_back(w, size);
    if (w->piece_count > KEY_IDS || fuses(u, w))
        return;
    e->key = key;
    e->limit =
        (float)(limit_of(u, margin, characters, w->piece_count) * (1 - FLT_EPSILON) - FLT_EPSILON);
    for (e->count = 0; w->piece_count > 0; e->count++) {
        struct piece piece = w->pieces[--w->piece_count];
        e->ids[e->count] = piece.id;
        e->lengths[e->count] = (uint8_t)piece.size;
    }
}

static void add_remembered(const struct dt_unigram *u, struct dt_unigram_work *w,
                           const struct entry *e)
{
    for (uint32_t i = 0; i < e->count; i++) {
        w->sum = rounded(u, w->sum + score_of(u, e->ids[i]));
        add_id(w, e->ids[i], e->lengths[i]);
    }
    w->follows_unknown = e->ids[e->count - 1] == u->unknown;
}

/* Lowers w->limit to that of a word after a text that went from the sum `start` to w->sum. Sums of
 * other texts would differ from that by less than 1, by rounding. */
static inline void limit_by(struct dt_unigram_work *w, float limit, double start)
{
    double before = fabs(w->sum - start);
    if (before > 0)
        limit -= (float)(before + 1);
    w->limit = limit < w->limit ? limit : w->limit;
}

static inline void encode_word(const struct dt_unigram *u, struct dt_unigram_work *w,
                               const char *word, size_t size, size_t readable, double start)
{
    struct entry *e = NULL;
    if (size <= DT_WORDS_KEY_BYTES) {
        struct dt_words_key key = dt_words_key((const unsigned char *)word, size, readable, 0);
        e = &w->cache[dt_words_hash(key, CACHE_BITS)];
        if (!dt_words_same(e->key, key))
            remember(u, w, e, key, word, size);
        e = dt_words_same(e->key, key) ? e : NULL;
    }
    bool holds = e && fabs(w->sum) < e->limit;
    limit_by(w, holds ? e->limit : -1, start);
    if (holds)
        add_remembered(u, w, e);
    else
        encode_exactly(u, w, word, size);
}

/* The bytes of text before the next byte that a mark begins with, from offset `at` on. */
static inline size_t find_first(const char *text, size_t size, size_t at)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    for (uint64_t eight; size - at >= 8; at += 8) {
        memcpy(&eight, text + at, 8);
        eight ^= ones * (unsigned char)mark[0];
        eight = (eight - ones) & ~eight & high;
        if (eight)
            return at + (size_t)__builtin_ctzll(eight) / 8;
    }
    while (at < size && text[at] != mark[0])
        at++;
    return at;
}

static inline bool is_mark(const char *text, size_t size)
{
    return size >= MARK_BYTES && memcmp(text, mark, MARK_BYTES) == 0;
}

/* The bytes of text before the first mark that follows another character. */
static inline size_t word_size(const char *text, size_t size)
{
    size_t at = 0;
    while (is_mark(text + at, size - at))
        at += MARK_BYTES;
    for (; at < size; at++) {
        at = find_first(text, size, at);
        if (is_mark(text + at, size - at))
            return at;
    }
    return size;
}

bool dt_unigram_cuts_words(const struct dt_unigram *u)
{
    uint32_t node = DT_PIECE_TRIE_ROOT, id = DT_NO_PIECE;
    for (int i = 0; i < MARK_BYTES; i++)
        if (!dt_piece_trie_follow(&u->trie, &node, (unsigned char)mark[i], &id))
            return false;
    return u->cuts_at_marks && id != DT_NO_PIECE;
}

void dt_unigram_start(struct dt_unigram_work *w)
{
    w->sum = 0;
    w->follows_unknown = false;
}

size_t dt_unigram_encode(const struct dt_unigram *u, struct dt_unigram_work *w, const char *text,
                         size_t size, uint32_t *ids, size_t *ends)
{
    double start = w->sum;
    w->limit = INFINITY;
    w->ids = ids;
    w->ends = ends;
    w->count = w->end = 0;
    while (size > 0) {
        size_t part = u->cuts_at_marks ? word_size(text, size) : size;
        encode_word(u, w, text, part, size, start);
        text += part;
        size -= part;
    }
    return w->count;
}

float dt_unigram_limit(const struct dt_unigram_work *w)
{
    return w->limit;
}

struct dt_unigram_sum dt_unigram_take_sum(const struct dt_unigram *u,
                                          const struct dt_unigram_work *w)
{
    return (struct dt_unigram_sum){u, (float)w->sum, w->sum};
}

void dt_unigram_give_sum(struct dt_unigram_work *w, struct dt_unigram_sum sum)
{
    w->sum = sum.unigram->float_scores ? (double)sum.rounded : sum.exact;
}
