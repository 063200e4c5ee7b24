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
 */

/* Such a piece is a gap between the ids of others. */
struct gap {
    const struct dt_piece_place *place;
    const unsigned char *bytes;
    size_t size;
    size_t at;           /* ids of the batch before it, without those of gaps */
    uint64_t hash;       /* in the cache of longer pieces */
    const uint32_t *ids; /* NULL: not known */
    size_t count;        /* of the ids */
    uint32_t id;         /* of a piece that is a token */
    bool is_made;
};

/* The token that a piece encodes to as a whole; DT_NO_TOKEN: none, or merges have to tell. */
static uint32_t find_whole(const struct dt_tokenizer *t, const struct gap *gap)
{
    if (t->whole && gap->place->line) {
        const struct dt_whole_line *line = dt_whole_tokens_line(t->whole, gap->place->key);
        uint32_t id = dt_whole_line_find(line, gap->place->key);
        if (id != DT_NO_TOKEN || !line->is_full)
            return id;
    }
    return dt_model_find_whole(t, gap->bytes, gap->size);
}

/* Finds the ids of a piece, if it is a token, or a short one that is remembered elsewhere. */
static void find_ids(const struct dt_piece_encoder *p, struct gap *gap)
{
    gap->hash = gap->place->key.low;
    gap->id = find_whole(p->tokenizer, gap);
    if (gap->id != DT_NO_TOKEN) {
        gap->ids = &gap->id;
        gap->count = 1;
    } else if (gap->place->line) {
        gap->hash = dt_piece_cache_hash(gap->bytes, gap->size);
        gap->ids = dt_piece_cache_find(&p->longer, gap->bytes, gap->size, gap->hash, &gap->count);
    }
}

/* Encodes the pieces that have no ids yet. */
static void make_ids(struct dt_piece_encoder *p, struct gap *gaps, size_t count)
{
    struct dt_bpe_piece made[DT_PIECE_BATCH];
    size_t room = 0, n = 0;
    for (size_t i = 0; i < count; i++)
        room += gaps[i].ids ? 0 : gaps[i].size;
    if (room > p->room) {
        p->room = 2 * room;
        p->made = dt_realloc(p->made, p->room, sizeof *p->made);
    }
    uint32_t *ids = p->made;
    for (size_t i = 0; i < count; i++) {
        gaps[i].is_made = gaps[i].ids == NULL;
        if (!gaps[i].is_made)
            continue;
        gaps[i].ids = ids;
        made[n++] = (struct dt_bpe_piece){gaps[i].bytes, gaps[i].size, ids, 0};
        ids += gaps[i].size;
    }
    dt_model_encode_pieces(p->tokenizer, p->work, made, n);
    for (size_t i = 0, k = 0; i < count; i++)
        if (gaps[i].is_made)
            gaps[i].count = made[k++].count;
}

/* Fills the gaps between the ids from index first on. */
static void fill_gaps(const struct gap *gaps, size_t count, size_t first, struct dt_ids *ids)
{
    size_t more = 0, last = ids->count - first;
    for (size_t i = 0; i < count; i++)
        more += gaps[i].count;
    dt_ids_reserve(ids, ids->count + more);
    ids->count += more;
    uint32_t *data = ids->data + first;
    for (size_t i = count; i-- > 0; last = gaps[i].at) {
        memmove(data + gaps[i].at + more, data + gaps[i].at, (last - gaps[i].at) * sizeof *data);
        more -= gaps[i].count;
        memcpy(data + gaps[i].at + more, gaps[i].ids, gaps[i].count * sizeof *data);
    }
}

/* Whether a line will remember a piece without losing another one, as most pieces of a first pass:
 * they need not be among the longer ones, too. */
static bool stays_in_line(const struct gap *gap)
{
    const struct dt_short_line *line = gap->place->line;
    return line && gap->count <= DT_SHORT_IDS && line->entries[1].key.high == 0;
}

/* The piece may be in the batch twice. */
static void remember(struct dt_piece_encoder *p, const struct gap *gap)
{
    struct dt_short_line *line = gap->place->line;
    size_t count;
    if (line && dt_short_line_find(line, gap->place->key, &count))
        return;
    if (gap->is_made && !stays_in_line(gap) &&
        !dt_piece_cache_find(&p->longer, gap->bytes, gap->size, gap->hash, &count))
        dt_piece_cache_add(&p->longer, gap->bytes, gap->size, gap->hash, gap->ids, gap->count);
    if (line)
        dt_short_cache_add(&p->cache, line, gap->place->key, gap->ids, gap->count);
}

/* Not inline, for the registers of the caller's loop. */
static __attribute__((noinline)) void encode_gaps(struct dt_piece_encoder *p, struct gap *gaps,
                                                  size_t count, size_t first, struct dt_ids *ids)
{
    for (size_t i = 0; i < count; i++)
        find_ids(p, &gaps[i]);
    make_ids(p, gaps, count);
    fill_gaps(gaps, count, first, ids);
    for (int made = 0; made < 2; made++) /* those found are in the cache that the others move */
        for (size_t i = 0; i < count; i++)
            if (gaps[i].is_made == made)
                remember(p, &gaps[i]);
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
static size_t encode_some(struct dt_piece_encoder *p, const struct batch *b, struct dt_ids *ids)
{
    struct dt_piece_place places[DT_PIECE_BATCH];
    struct gap gaps[DT_PIECE_BATCH];
    const struct dt_whole_tokens *whole = p->tokenizer->whole;
    const size_t *ends = b->ends;
    size_t count = find_places(p, b, places), gap_count = 0, first = ids->count;
    size_t bytes = count > 0 ? ends[count - 1] - b->from : 0;
    dt_ids_reserve(ids, first + count * DT_SHORT_IDS + bytes);
    uint32_t *start = ids->data + first, *out = start;
    for (size_t i = 0, from = b->from, known; i < count; from = ends[i++]) {
        const struct dt_piece_place *place = &places[i];
        const unsigned char *piece = b->text + from;
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
        } else if ((known = copy_longer(p, place, piece, ends[i] - from, out)) > 0) {
            out += known;
            continue;
        }
        gaps[gap_count++] = (struct gap){place, piece, ends[i] - from, (size_t)(out - start)};
    }
    ids->count = first + (size_t)(out - start);
    if (gap_count > 0)
        encode_gaps(p, gaps, gap_count, first, ids);
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
    dt_short_cache_grow(&p->cache);
    pass(&left, encode_some(p, &left, ids));
    while (left.count > 0) {
        dt_piece_encoder_encode_long(p, text + left.from, left.ends[0] - left.from, ids);
        pass(&left, 1);
        pass(&left, encode_some(p, &left, ids));
    }
}
