/* SPDX-License-Identifier: MIT */
#include "token/piece-encoder.h"

#include <stdlib.h>
#include <string.h>

#include "token/whole-tokens.h"

void dt_piece_encoder_init(struct dt_piece_encoder *p, const struct dt_tokenizer *t,
                           struct dt_model_work *work)
{
    *p = (struct dt_piece_encoder){.tokenizer = t, .work = work};
    dt_short_cache_init(&p->cache);
}

void dt_piece_encoder_release(struct dt_piece_encoder *p)
{
    dt_short_cache_release(&p->cache);
    dt_piece_cache_release(&p->longer);
    free(p->made);
}

size_t dt_piece_encoder_part(const struct dt_tokenizer *t, const unsigned char *piece, size_t size)
{
    if (size <= dt_model_longest_piece(t))
        return size;
    size_t part = DT_BPE_MAX_PIECE;
    while (part > DT_BPE_MAX_PIECE - 3 && (piece[part] & 0xc0) == 0x80)
        part--;
    return part;
}

void dt_piece_encoder_encode_long(struct dt_piece_encoder *p, const unsigned char *piece,
                                  size_t size, struct dt_ids *ids)
{
    for (size_t part; size > 0; piece += part, size -= part) {
        part = dt_piece_encoder_part(p->tokenizer, piece, size);
        dt_ids_reserve(ids, ids->count + part);
        ids->count +=
            dt_model_encode(p->tokenizer, p->work, piece, part, ids->data + ids->count, NULL);
    }
}

/* Pieces of a text: the bytes from .. ends[0]-1, ends[0] .. ends[1]-1, ... */
struct batch {
    const unsigned char *text;
    size_t readable, from;
    const size_t *ends;
    size_t count;
};

/* Finds the places of pieces up to one too long to be remembered, and loads them into the
 * processor's cache; returns their number. */
static size_t find_places(const struct dt_piece_encoder *p, const struct batch *b,
                          struct dt_piece_place *places)
{
    const struct dt_short_cache cache = p->cache; /* in registers */
    const unsigned char *text = b->text;
    const size_t *ends = b->ends;
    size_t from = b->from, count = b->count, readable = b->readable, many = 0, i = 0;
    uint16_t several[DT_PIECE_BATCH]; /* those without lines */
    for (; i < count; from = ends[i++]) {
        struct dt_piece_place *place = &places[i];
        size_t n = ends[i] - from;
        if (n <= DT_SHORT_KEY) {
            place->key = dt_short_key_of(text + from, n, readable - from);
            place->line = dt_short_line_of(&cache, place->key);
            __builtin_prefetch(place->line);
            continue;
        }
        if (n > DT_PIECE_CACHE_LONGEST)
            break;
        place->line = NULL;
        place->key.low = dt_piece_cache_hash(text + from, n);
        dt_piece_cache_prefetch_slot(&p->longer, place->key.low);
        several[many++] = (uint16_t)i;
    }
    for (size_t k = 0; k < many; k++)
        dt_piece_cache_prefetch_ids(&p->longer, places[several[k]].key.low);
    return i;
}

/* --- pieces that are not in their lines --------------------------------------------------------
 * In the ids is room for one id of each, since most are a token. The others are gaps, which are
 * encoded together.
 */

struct miss {
    uint32_t piece; /* of the batch */
    uint32_t at;    /* index of the room in the batch's ids */
};

struct misses {
    struct miss items[DT_PIECE_BATCH];
    size_t count;
};

struct gap {
    struct dt_piece_place place;
    const unsigned char *bytes;
    size_t size;
    size_t at;              /* index of the room in the ids */
    const struct gap *same; /* an earlier one of the same piece; NULL: none */
    uint64_t hash;          /* in the cache of longer pieces */
    const uint32_t *ids;    /* NULL: not known */
    size_t count;           /* of the ids */
    bool is_made;           /* by merges */
};

#define MOST_GAPS (2 * DT_PIECE_BATCH)

struct gaps {
    struct gap items[MOST_GAPS];
    size_t count;
};

/* The token that a piece encodes to as a whole; DT_NO_TOKEN: none, or merges have to tell. */
static uint32_t find_whole(const struct dt_tokenizer *t, const struct gap *gap)
{
    if (t->whole && gap->place.line) {
        const struct dt_whole_line *line = dt_whole_tokens_line(t->whole, gap->place.key);
        uint32_t id = dt_whole_line_find(line, gap->place.key);
        if (id != DT_NO_TOKEN || !line->is_full)
            return id;
    }
    return dt_model_find_whole(t, gap->bytes, gap->size);
}

/* Writes the ids of pieces that are tokens to those of the batch, which start at index first; the
 * others become gaps. Not inline, for the registers of the caller's loop. */
static __attribute__((noinline)) void take_tokens(struct dt_piece_encoder *p, const struct batch *b,
                                                  const struct dt_piece_place *places,
                                                  const struct misses *misses, struct dt_ids *ids,
                                                  size_t first, struct gaps *gaps)
{
    size_t known;
    for (const struct miss *m = misses->items; m < misses->items + misses->count; m++) {
        const struct dt_piece_place *place = &places[m->piece];
        size_t from = m->piece > 0 ? b->ends[m->piece - 1] : b->from;
        struct gap *gap = &gaps->items[gaps->count];
        gap->place = *place;
        gap->bytes = b->text + from;
        gap->size = b->ends[m->piece] - from;
        gap->at = first + m->at;
        uint32_t id = find_whole(p->tokenizer, gap);
        if (id == DT_NO_TOKEN) {
            gaps->count++;
            continue;
        }
        ids->data[gap->at] = id;
        if (place->line && !dt_short_line_find(place->line, place->key, &known))
            dt_short_cache_add(&p->cache, place->line, place->key, &id, 1);
    }
}

#define SEEN_BITS 10
#define FEW       4 /* gaps that are merged sooner than compared */

/* Finds an earlier gap of the same short piece. seen has one more than the index of the last gap of
 * each hash. */
static const struct gap *find_same(const struct gaps *gaps, size_t i, uint16_t seen[1 << SEEN_BITS])
{
    struct dt_short_key key = gaps->items[i].place.key;
    uint16_t *slot = &seen[dt_short_key_hash(key) >> (64 - SEEN_BITS)];
    const struct gap *last = *slot > 0 ? &gaps->items[*slot - 1] : NULL;
    *slot = (uint16_t)(i + 1);
    if (last == NULL || last->place.key.low != key.low || last->place.key.high != key.high)
        return NULL;
    return last->same ? last->same : last;
}

/* Finds the ids of pieces that are remembered elsewhere, or are there before. */
static void find_ids(const struct dt_piece_encoder *p, struct gaps *gaps)
{
    uint16_t seen[1 << SEEN_BITS];
    bool repeats = gaps->count > FEW;
    if (repeats)
        memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < gaps->count; i++) {
        struct gap *gap = &gaps->items[i];
        gap->hash = gap->place.key.low;
        gap->ids = NULL;
        gap->same = repeats && gap->place.line ? find_same(gaps, i, seen) : NULL;
        if (gap->place.line && gap->same == NULL) {
            gap->hash = dt_piece_cache_hash(gap->bytes, gap->size);
            gap->ids =
                dt_piece_cache_find(&p->longer, gap->bytes, gap->size, gap->hash, &gap->count);
        }
        gap->is_made = gap->ids == NULL && gap->same == NULL;
    }
}

/* Memory for the ids of the pieces that have none yet. */
static uint32_t *make_room(struct dt_piece_encoder *p, const struct gaps *gaps)
{
    size_t room = 0;
    for (size_t i = 0; i < gaps->count; i++)
        room += gaps->items[i].is_made ? gaps->items[i].size : 0;
    if (room > p->room) {
        p->room = 2 * room;
        p->made = dt_realloc(p->made, p->room, sizeof *p->made);
    }
    return p->made;
}

/* Encodes the pieces that have no ids yet. */
static void make_ids(struct dt_piece_encoder *p, struct gaps *gaps)
{
    struct dt_bpe_piece made[MOST_GAPS];
    uint32_t *ids = make_room(p, gaps);
    size_t n = 0;
    for (const struct gap *gap = gaps->items; gap < gaps->items + gaps->count; gap++)
        if (gap->is_made) {
            made[n++] = (struct dt_bpe_piece){gap->bytes, gap->size, ids, 0};
            ids += gap->size;
        }
    dt_model_encode_pieces(p->tokenizer, p->work, made, n);
    n = 0;
    for (struct gap *gap = gaps->items; gap < gaps->items + gaps->count; gap++) {
        if (gap->is_made) {
            gap->ids = made[n].ids;
            gap->count = made[n++].count;
        } else if (gap->same) {
            gap->ids = gap->same->ids;
            gap->count = gap->same->count;
        }
    }
}

/* Writes the ids of gaps, for which those after the first gap move. */
static void fill_gaps(const struct gaps *gaps, struct dt_ids *ids)
{
    size_t more = 0;
    for (size_t i = 0; i < gaps->count; i++)
        more += gaps->items[i].count;
    dt_ids_reserve(ids, ids->count + more);
    uint32_t *to = ids->data + gaps->items[0].at, *from = to + more;
    memmove(from, to, (ids->count - gaps->items[0].at) * sizeof *to);
    for (size_t i = 0; i < gaps->count; i++) {
        const struct gap *gap = &gaps->items[i];
        size_t next = i + 1 < gaps->count ? gap[1].at : ids->count, between = next - gap->at - 1;
        memcpy(to, gap->ids, gap->count * sizeof *to);
        memmove(to + gap->count, from + 1, between * sizeof *to);
        to += gap->count + between;
        from += 1 + between;
    }
    ids->count = (size_t)(to - ids->data);
}

/* Whether a line will remember a piece without losing another one, as most pieces of a first pass:
 * they need not be among the longer ones, too. */
static bool stays_in_line(const struct gap *gap)
{
    const struct dt_short_line *line = gap->place.line;
    return line && gap->count <= DT_SHORT_IDS && line->entries[1].key.high == 0;
}

/* The piece may be there twice. */
static void remember(struct dt_piece_encoder *p, const struct gap *gap)
{
    struct dt_short_line *line = gap->place.line;
    size_t count;
    if (line && dt_short_line_find(line, gap->place.key, &count))
        return;
    if (gap->is_made && !stays_in_line(gap) &&
        !dt_piece_cache_find(&p->longer, gap->bytes, gap->size, gap->hash, &count))
        dt_piece_cache_add(&p->longer, gap->bytes, gap->size, gap->hash, gap->ids, gap->count);
    if (line)
        dt_short_cache_add(&p->cache, line, gap->place.key, gap->ids, gap->count);
}

static void encode_gaps(struct dt_piece_encoder *p, struct gaps *gaps, struct dt_ids *ids)
{
    if (gaps->count == 0)
        return;
    find_ids(p, gaps);
    make_ids(p, gaps);
    fill_gaps(gaps, ids);
    for (int made = 0; made < 2; made++) /* those found are in the cache that the others move */
        for (const struct gap *gap = gaps->items; gap < gaps->items + gaps->count; gap++)
            if (gap->is_made == made && gap->same == NULL)
                remember(p, gap);
    gaps->count = 0;
}

/* --- all pieces --------------------------------------------------------------------------------
 */

/* Copies the ids of a piece without line, if they are known, and up to three words more; returns
 * their number. After the ids the cache has the 16 bytes or more of the piece. */
static __attribute__((noinline)) size_t copy_longer(const struct dt_piece_encoder *p,
                                                    const struct dt_piece_place *place,
                                                    const unsigned char *piece, size_t size,
                                                    uint32_t *to)
{
    size_t count = 0;
    const uint32_t *found = dt_piece_cache_find(&p->longer, piece, size, place->key.low, &count);
    for (size_t i = 0; i < count; i += 4)
        memcpy(to + i, found + i, 4 * sizeof *to);
    return count;
}

/* Encodes pieces up to one too long to be remembered; returns their number. */
static size_t encode_some(struct dt_piece_encoder *p, const struct batch *b, struct gaps *gaps,
                          struct dt_ids *ids)
{
    struct dt_piece_place places[DT_PIECE_BATCH];
    struct misses misses;
    const struct dt_whole_tokens *whole = p->tokenizer->whole;
    const size_t *ends = b->ends;
    size_t count = find_places(p, b, places), missed = 0, first = ids->count;
    size_t bytes = count > 0 ? ends[count - 1] - b->from : 0;
    dt_ids_reserve(ids, first + count * DT_SHORT_IDS + bytes);
    uint32_t *start = ids->data + first, *out = start;
    for (size_t i = 0, from = b->from, known; i < count; from = ends[i++]) {
        const struct dt_piece_place *place = &places[i];
        if (place->line) {
            const struct dt_short_entry *entry =
                dt_short_line_find(place->line, place->key, &known);
            if (entry) {
                memcpy(out, entry->ids, sizeof entry->ids);
                out += known;
                continue;
            }
            if (whole)
                __builtin_prefetch(dt_whole_tokens_line(whole, place->key));
        } else if ((known = copy_longer(p, place, b->text + from, ends[i] - from, out)) > 0) {
            out += known;
            continue;
        }
        misses.items[missed++] = (struct miss){(uint32_t)i, (uint32_t)(out++ - start)};
    }
    misses.count = missed;
    ids->count = first + (size_t)(out - start);
    if (missed > 0)
        take_tokens(p, b, places, &misses, ids, first, gaps);
    return count;
}

static void pass(struct batch *b, size_t count)
{
    b->from = count > 0 ? b->ends[count - 1] : b->from;
    b->ends += count;
    b->count -= count;
}

void dt_piece_encoder_encode(struct dt_piece_encoder *p, const unsigned char *text, size_t readable,
                             const size_t *ends, size_t count, struct dt_ids *ids)
{
    struct batch left = {text, readable, 0, ends, count};
    struct gaps gaps;
    gaps.count = 0;
    dt_short_cache_grow(&p->cache);
    while (left.count > 0) {
        struct batch some = left;
        some.count = left.count < DT_PIECE_BATCH ? left.count : DT_PIECE_BATCH;
        size_t known = encode_some(p, &some, &gaps, ids);
        pass(&left, known);
        if (known < some.count) {
            dt_piece_encoder_encode_long(p, text + left.from, left.ends[0] - left.from, ids);
            pass(&left, 1);
        }
        if (gaps.count > MOST_GAPS - DT_PIECE_BATCH)
            encode_gaps(p, &gaps, ids);
    }
    encode_gaps(p, &gaps, ids);
}
