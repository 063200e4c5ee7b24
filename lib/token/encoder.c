/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "pretokenize/nfc.h"
#include "steps/bert-words.h"
#include "token/added.h"
#include "token/model.h"
#include "token/piece-encoder.h"
#include "token/replaced-bytes.h"
#include "token/tokenizer.h"
#include "token/vocabulary.h"
#include "token/word-piece.h"
#include "token/words.h"

#define BATCH      DT_PIECE_BATCH
#define PIECES     2048 /* at a time, so that enough of them are new to be merged together */
#define SHORT_WORD 48   /* bytes of a normalized word that is encoded without the cache */

struct dt_encoder {
    const struct dt_tokenizer *tokenizer;
    struct dt_piece_encoder by_pieces; /* its cache is for words of the text, too */
    struct dt_words_cache words_cache;
    struct dt_model_work work;
    struct dt_added_finder raw, normalized; /* added tokens, in the text and the normalized text */
    struct dt_buffer normal;                /* the normalized text */
    struct dt_nfc_changes changes;
    struct dt_traced_text text, spare_text; /* with steps, the normalized text */
    struct dt_pieces pieces, spare_pieces;
    size_t *piece_ends; /* scratch for spans */
    size_t end_capacity;
    struct dt_bert_words words;
    uint32_t word_ids[DT_BERT_MAX_WORD];
    size_t word_ends[DT_BERT_MAX_WORD];
    struct dt_spans *spans; /* NULL: not kept */
};

void dt_encoder_allow_special(struct dt_encoder *e, int allow)
{
    dt_added_release(&e->raw);
    dt_added_release(&e->normalized);
    dt_added_init(&e->raw, e->tokenizer, false, allow != 0);
    dt_added_init(&e->normalized, e->tokenizer, true, allow != 0);
    dt_words_release_cache(&e->words_cache); /* words may have other ids now */
    if (e->tokenizer->has_words)
        dt_words_init_cache(&e->words_cache);
}

void dt_encoder_keep_spans(struct dt_encoder *e, struct dt_spans *spans)
{
    e->spans = spans;
    if (!dt_vocabulary_is_bert(e->tokenizer))
        return;
    dt_bert_words_release(&e->words);
    dt_bert_words_init(&e->words, &e->tokenizer->bert, spans != NULL);
}

void dt_spans_release(struct dt_spans *spans)
{
    free(spans->data);
    *spans = (struct dt_spans){NULL, 0, 0};
}

struct dt_encoder *dt_encoder_new(const struct dt_tokenizer *t)
{
    struct dt_encoder *e = dt_alloc(1, sizeof *e);
    e->tokenizer = t;
    dt_model_work_init(&e->work, t);
    dt_piece_encoder_init(&e->by_pieces, t, &e->work);
    dt_encoder_allow_special(e, 0);
    dt_encoder_keep_spans(e, NULL);
    return e;
}

void dt_encoder_free(struct dt_encoder *e)
{
    if (e == NULL)
        return;
    dt_piece_encoder_release(&e->by_pieces);
    dt_words_release_cache(&e->words_cache);
    dt_added_release(&e->raw);
    dt_added_release(&e->normalized);
    dt_buffer_release(&e->normal);
    dt_nfc_changes_release(&e->changes);
    dt_bert_words_release(&e->words);
    dt_traced_text_release(&e->text);
    dt_traced_text_release(&e->spare_text);
    dt_pieces_release(&e->pieces);
    dt_pieces_release(&e->spare_pieces);
    free(e->piece_ends);
    dt_model_work_release(&e->work);
    free(e);
}

static void encode_plain(struct dt_encoder *e, const unsigned char *text, size_t size,
                         struct dt_ids *ids)
{
    size_t ends[PIECES];
    while (size > 0) {
        size_t count = e->tokenizer->pattern->split(text, text + size, ends, PIECES);
        dt_piece_encoder_encode(&e->by_pieces, text, size, ends, count, ids);
        text += ends[count - 1];
        size -= ends[count - 1];
    }
}

/* --- spans ------------------------------------------------------------------------------------ */

static void add_span(struct dt_spans *spans, uint64_t start, uint64_t end)
{
    DT_GROW(spans->data, spans->count, spans->capacity);
    spans->data[spans->count++] = (struct dt_span){start, end};
}

/* Adds the spans of the ids from index first on, whose bytes start at `start_at` in the
 * normalized text, itself normalized from the text at offset. */
static void add_spans(struct dt_encoder *e, const struct dt_ids *ids, size_t first, size_t start_at,
                      size_t offset, size_t *next)
{
    for (size_t i = first; i < ids->count; i++) {
        uint64_t start = dt_nfc_origin(&e->changes, start_at, false, next);
        start_at += e->tokenizer->tokens[ids->data[i]].length;
        uint64_t end = dt_nfc_origin(&e->changes, start_at, true, next);
        add_span(e->spans, offset + start, offset + end);
    }
}

/* --- text without added tokens ---------------------------------------------------------------- */

static void encode_word(struct dt_encoder *e, struct dt_ids *ids)
{
    struct dt_bert_words *w = &e->words;
    struct dt_short_line *line = NULL;
    struct dt_short_key key = {0, 0};
    dt_short_cache_grow(&e->by_pieces.cache);
    if (w->size <= DT_SHORT_KEY) {
        key = dt_short_key_of((const unsigned char *)w->word, w->size, sizeof key);
        line = dt_short_line_of(&e->by_pieces.cache, key);
        dt_ids_reserve(ids, ids->count + DT_SHORT_IDS);
        size_t known;
        const struct dt_short_entry *entry = dt_short_line_find(line, key, &known);
        if (entry) {
            memcpy(ids->data + ids->count, entry->ids, sizeof entry->ids);
            ids->count += known;
            return;
        }
    }
    size_t count = dt_word_piece_encode(e->tokenizer, w->word, w->size, w->characters, e->word_ids,
                                        e->word_ends);
    dt_ids_append(ids, e->word_ids, count);
    if (line)
        dt_short_cache_add(&e->by_pieces.cache, line, key, e->word_ids, count);
}

static void encode_word_with_spans(struct dt_encoder *e, size_t offset, struct dt_ids *ids)
{
    struct dt_bert_words *w = &e->words;
    size_t count = dt_word_piece_encode(e->tokenizer, w->word, w->size, w->characters, e->word_ids,
                                        e->word_ends);
    for (size_t i = 0, from = 0; i < count; from = e->word_ends[i++])
        add_span(e->spans, offset + w->origins[from].start,
                 offset + w->origins[e->word_ends[i] - 1].end);
    dt_ids_append(ids, e->word_ids, count);
}

static void encode_words(struct dt_encoder *e, const char *text, size_t size, size_t offset,
                         struct dt_ids *ids)
{
    dt_bert_words_start(&e->words, text, size);
    while (dt_bert_words_next(&e->words))
        if (e->spans)
            encode_word_with_spans(e, offset, ids);
        else
            encode_word(e, ids);
}

/* text may be normalized; e->changes then maps its offsets to the original text, which is at
 * offset. */
static void encode_normal(struct dt_encoder *e, const char *text, size_t size, size_t offset,
                          struct dt_ids *ids)
{
    struct dt_added_match m = {size, size, DT_NO_TOKEN};
    size_t from = 0, next = 0;
    for (bool found = true; found; from = m.end) {
        found = dt_added_next(&e->normalized, text, size, from, &m);
        size_t stop = found ? m.start : size, first = ids->count;
        encode_plain(e, (const unsigned char *)text + from, stop - from, ids);
        if (e->spans)
            add_spans(e, ids, first, from, offset, &next);
        if (!found)
            return;
        dt_ids_add(ids, m.id);
        if (e->spans)
            add_span(e->spans, offset + dt_nfc_origin(&e->changes, m.start, false, &next),
                     offset + dt_nfc_origin(&e->changes, m.end, true, &next));
    }
}

/* --- text of a tokenizer with steps ------------------------------------------------------------
 */

/* Encodes a piece with its spans. */
static void trace_part(struct dt_encoder *e, const struct dt_traced_text *text, size_t from,
                       size_t size, struct dt_ids *ids)
{
    dt_ids_reserve(ids, ids->count + size);
    if (size > e->end_capacity) {
        e->end_capacity = 2 * size;
        e->piece_ends = dt_realloc(e->piece_ends, e->end_capacity, sizeof *e->piece_ends);
    }
    size_t count =
        dt_model_encode(e->tokenizer, &e->work, (const unsigned char *)text->bytes.data + from,
                        size, ids->data + ids->count, e->piece_ends);
    for (size_t i = 0, start = from; i < count; start = from + e->piece_ends[i++]) {
        struct dt_span span = dt_traced_text_origin(text, start, from + e->piece_ends[i]);
        add_span(e->spans, span.start, span.end);
    }
    ids->count += count;
}

static void trace_piece(struct dt_encoder *e, const struct dt_traced_text *text,
                        struct dt_span piece, struct dt_ids *ids)
{
    const unsigned char *bytes = (const unsigned char *)text->bytes.data;
    size_t end;
    for (size_t from = piece.start; from < piece.end;) {
        dt_model_split(e->tokenizer, bytes + from, bytes + piece.end, &end, 1);
        for (size_t part, to = from + end; from < to; from += part) {
            part = dt_piece_encoder_part(e->tokenizer, bytes + from, to - from);
            trace_part(e, text, from, part, ids);
        }
    }
}

/* Encodes adjacent pieces from p->items[i] on; returns the index after the last. */
static size_t encode_adjacent(struct dt_encoder *e, const struct dt_pieces *p, size_t i,
                              struct dt_ids *ids)
{
    const unsigned char *bytes = (const unsigned char *)p->text.bytes.data;
    size_t ends[BATCH], count = 0, from = p->items[i].start, to = p->items[i].end;
    if (e->tokenizer->cuts) {
        for (; from < to; from += ends[count - 1]) {
            count = dt_model_split(e->tokenizer, bytes + from, bytes + to, ends, BATCH);
            dt_piece_encoder_encode(&e->by_pieces, bytes + from, p->text.bytes.size - from, ends,
                                    count, ids);
        }
        return i + 1;
    }
    do {
        to = p->items[i].end;
        ends[count++] = to - from;
        i++;
    } while (count < BATCH && i < p->count && p->items[i].start == to);
    dt_piece_encoder_encode(&e->by_pieces, bytes + from, p->text.bytes.size - from, ends, count,
                            ids);
    return i;
}

/* Whether pieces are not looked up: words that are one piece were looked up themselves, and in
 * Unigram the ids of a piece depend on the text before. */
static bool is_uncached(const struct dt_encoder *e, size_t size)
{
    const struct dt_tokenizer *t = e->tokenizer;
    return t->has_words && !t->words.separates && (t->unigram || size <= SHORT_WORD);
}

static size_t encode_uncached(struct dt_encoder *e, const struct dt_pieces *p, size_t i,
                              struct dt_ids *ids)
{
    const unsigned char *bytes = (const unsigned char *)p->text.bytes.data;
    dt_piece_encoder_encode_long(&e->by_pieces, bytes + p->items[i].start,
                                 p->items[i].end - p->items[i].start, ids);
    return i + 1;
}

/* Encodes bytes from .. to-1 of e->text. first: they are at the start of the document. */
static void encode_chunk(struct dt_encoder *e, size_t from, size_t to, bool first,
                         struct dt_ids *ids)
{
    struct dt_pieces *p = &e->pieces;
    p->first = first;
    p->count = 0;
    dt_traced_text_clear(&p->text);
    p->text.keep_origins = e->text.keep_origins;
    dt_traced_text_copy(&p->text, &e->text, from, to);
    dt_pieces_add(p, 0, to - from);
    dt_steps_split(&e->tokenizer->splitter, p, &e->spare_pieces);
    bool is_one = is_uncached(e, to - from);
    for (size_t i = 0; i < p->count;)
        if (e->spans)
            trace_piece(e, &p->text, p->items[i++], ids);
        else if (is_one)
            i = encode_uncached(e, p, i, ids);
        else
            i = encode_adjacent(e, p, i, ids);
}

/* Encodes text at offset. continues, continued: it is a word, with others before it, after it. */
static void encode_steps(struct dt_encoder *e, const char *text, size_t size, size_t offset,
                         bool continues, bool continued, struct dt_ids *ids)
{
    struct dt_added_match m = {0, 0, DT_NO_TOKEN};
    size_t from = 0;
    e->text.keep_origins = e->spans != NULL || e->tokenizer->traces;
    e->text.continues = continues;
    e->text.continued = continued;
    e->work.continues = continues && !e->tokenizer->words.separates;
    dt_traced_text_set(&e->text, text, size, offset);
    dt_steps_normalize(&e->tokenizer->normalizer, &e->text, &e->spare_text);
    const struct dt_buffer *bytes = &e->text.bytes;
    if (bytes->size == 0)
        return;
    for (; dt_added_next(&e->normalized, bytes->data, bytes->size, from, &m); from = m.end) {
        encode_chunk(e, from, m.start, offset + from == 0, ids);
        dt_ids_add(ids, m.id);
        struct dt_span span = dt_traced_text_origin(&e->text, m.start, m.end);
        if (e->spans)
            add_span(e->spans, span.start, span.end);
    }
    encode_chunk(e, from, bytes->size, offset + from == 0, ids);
}

/* Words of a text at offset in the document. */
struct words {
    const unsigned char *text;
    size_t size, offset;
};

/* A word and its set. */
struct word {
    struct dt_words_key key;
    struct dt_words_set *set; /* NULL: the cache may not have it, as it is too long, or its ids
                                 depend on whether it starts the document */
};

/* Encodes bytes from .. to-1, a word that is not in the cache, and inserts it if it fits.
 * found is NULL for one that stays as it is there. */
static void encode_new_word(struct dt_encoder *e, const struct words *w, size_t from, size_t to,
                            const struct word *found, struct dt_ids *ids)
{
    size_t before = ids->count;
    encode_steps(e, (const char *)w->text + from, to - from, w->offset + from, from > 0,
                 to < w->size, ids);
    size_t count = ids->count - before;
    float limit = e->work.unigram ? dt_unigram_limit(e->work.unigram) : 0;
    if (found == NULL || found->set == NULL || count > DT_WORDS_IDS ||
        (!e->tokenizer->words.separates && limit < 0))
        return;
    struct dt_words_entry *entry = dt_words_replace(found->set, found->key);
    memcpy(entry->ids, ids->data + before, count * sizeof *ids->data);
    for (size_t i = count; e->work.unigram && i < DT_UNIGRAM_LEAST; i++)
        entry->ids[i] = e->tokenizer->unigram->size;
    entry->count = (uint32_t)count;
    entry->limit = limit;
}

static struct word find_word(struct dt_encoder *e, const struct words *w, size_t from, size_t to)
{
    if (to - from > DT_WORDS_KEY_BYTES || (from == 0 && w->offset > 0))
        return (struct word){.set = NULL};
    struct dt_words_key key =
        dt_words_key(w->text + from, to - from, w->size - from,
                     (from == 0 ? DT_WORDS_FIRST : 0) | (to == w->size ? DT_WORDS_LAST : 0));
    if (e->tokenizer->words.joins_lines)
        dt_words_join_lines(&key);
    return (struct word){key, dt_words_set_of(&e->words_cache, key)};
}

static void take(const struct dt_words_entry *entry, struct dt_ids *ids)
{
    memcpy(ids->data + ids->count, entry->ids, sizeof entry->ids);
    ids->count += entry->count;
}

/* Encodes the words from offset `start` on that end at start + ends[0 .. count-1]. */
static void encode_batch(struct dt_encoder *e, const struct words *w, size_t start,
                         const size_t *ends, size_t count, struct dt_ids *ids)
{
    struct word found[BATCH];
    for (size_t i = 0, from = start; i < count; from = start + ends[i++]) {
        found[i] = find_word(e, w, from, start + ends[i]);
        __builtin_prefetch(found[i].set);
    }
    dt_ids_reserve(ids, ids->count + count * DT_WORDS_IDS);
    for (size_t i = 0, from = start; i < count; from = start + ends[i++]) {
        const struct dt_words_entry *entry = dt_words_look_up(found[i].set, found[i].key);
        if (entry) {
            take(entry, ids);
            continue;
        }
        encode_new_word(e, w, from, start + ends[i], &found[i], ids);
        dt_ids_reserve(ids, ids->count + (count - i) * DT_WORDS_IDS);
    }
}

/* --- words of Unigram --------------------------------------------------------------------------
 * The segmentation of a word depends on the sum of the text before it, up to a limit. Short words
 * are looked up in the encoder's cache, whose entries have the limit in the place of their last id.
 */

#define LIMITED_IDS (DT_SHORT_IDS - 1)

/* Finds the lines of short words inside the text and loads them into the processor's cache. */
static void find_lines(struct dt_encoder *e, const struct words *w, size_t start,
                       const size_t *ends, size_t count, struct dt_piece_place *places)
{
    const struct dt_short_cache *cache = &e->by_pieces.cache;
    size_t most = w->size < sizeof places->key ? 0 : w->size - sizeof places->key;
    for (size_t i = 0, from = start, to; i < count; i++, from = to) {
        to = start + ends[i];
        places[i].line = NULL;
        if (to - from > DT_SHORT_KEY || from - 1 >= most)
            continue;
        places[i].key = dt_short_key_of(w->text + from, to - from, sizeof places->key);
        places[i].line = dt_short_line_of(cache, places[i].key);
        __builtin_prefetch(places[i].line);
    }
}

/* Appends the ids of words up to the first that is not in its line, or may have others after the
 * text so far; returns its index. Without calls, so that the sum stays in a register. */
static size_t take_short(const struct dt_piece_place *places, size_t i, size_t count,
                         struct dt_unigram_sum *sum, struct dt_ids *ids)
{
    struct dt_unigram_sum s = *sum;
    uint32_t *out = ids->data + ids->count;
    for (size_t known; i < count && places[i].line; i++, out += known) {
        const struct dt_short_entry *entry =
            dt_short_line_find(places[i].line, places[i].key, &known);
        float limit;
        if (entry == NULL)
            break;
        memcpy(&limit, &entry->ids[LIMITED_IDS], sizeof limit);
        if (!dt_unigram_pass(&s, entry->ids, known, limit))
            break;
        memcpy(out, entry->ids, sizeof entry->ids);
    }
    *sum = s;
    ids->count = (size_t)(out - ids->data);
    return i;
}

static void remember_limited(struct dt_encoder *e, const struct dt_piece_place *place,
                             const struct dt_words_entry *entry)
{
    struct dt_short_entry made = {.key = place->key};
    if (place->line == NULL || entry->count > LIMITED_IDS)
        return;
    memcpy(made.ids, entry->ids, LIMITED_IDS * sizeof *made.ids);
    memcpy(&made.ids[LIMITED_IDS], &entry->limit, sizeof entry->limit);
    dt_short_cache_insert(&e->by_pieces.cache, place->line, made, entry->count);
}

/* Encodes the word at from .. to-1 that is not in its line. */
static void encode_limited(struct dt_encoder *e, const struct words *w, size_t from, size_t to,
                           const struct dt_piece_place *place, struct dt_unigram_sum *sum,
                           struct dt_ids *ids)
{
    struct word word = find_word(e, w, from, to);
    const struct dt_words_entry *entry = dt_words_look_up(word.set, word.key);
    if (entry && dt_unigram_pass(sum, entry->ids, entry->count, entry->limit)) {
        take(entry, ids);
        remember_limited(e, place, entry);
        return;
    }
    dt_unigram_give_sum(e->work.unigram, *sum);
    encode_new_word(e, w, from, to, entry ? NULL : &word, ids);
    *sum = dt_unigram_take_sum(e->tokenizer->unigram, e->work.unigram);
}

static void encode_limited_batch(struct dt_encoder *e, const struct words *w, size_t start,
                                 const size_t *ends, size_t count, struct dt_ids *ids)
{
    struct dt_piece_place places[BATCH];
    dt_short_cache_grow(&e->by_pieces.cache);
    find_lines(e, w, start, ends, count, places);
    if (start == 0)
        dt_unigram_start(e->work.unigram);
    struct dt_unigram_sum sum = dt_unigram_take_sum(e->tokenizer->unigram, e->work.unigram);
    dt_ids_reserve(ids, ids->count + count * DT_WORDS_IDS);
    for (size_t i = 0; (i = take_short(places, i, count, &sum, ids)) < count; i++) {
        size_t from = start + (i > 0 ? ends[i - 1] : 0), to = start + ends[i];
        encode_limited(e, w, from, to, &places[i], &sum, ids);
        dt_ids_reserve(ids, ids->count + (count - i) * DT_WORDS_IDS);
    }
    dt_unigram_give_sum(e->work.unigram, sum);
}

static void encode_by_words(struct dt_encoder *e, const char *text, size_t size, size_t offset,
                            struct dt_ids *ids)
{
    struct words w = {(const unsigned char *)text, size, offset};
    size_t ends[BATCH];
    for (size_t from = 0, count; from < size; from += ends[count - 1]) {
        count = dt_words_find(e->tokenizer, w.text + from, size - from, ends, BATCH);
        if (e->work.unigram && !e->tokenizer->words.separates)
            encode_limited_batch(e, &w, from, ends, count, ids);
        else
            encode_batch(e, &w, from, ends, count, ids);
    }
}

/* Text is normalized in parts to bound memory, unless an added token could be split. */
#define NORMAL_BYTES ((size_t)1 << 20)

static void encode_segment(struct dt_encoder *e, const char *text, size_t size, size_t offset,
                           struct dt_ids *ids)
{
    if (dt_vocabulary_is_bert(e->tokenizer)) {
        encode_words(e, text, size, offset, ids);
        return;
    }
    if (e->tokenizer->has_steps) {
        if (e->tokenizer->has_words && !e->spans)
            encode_by_words(e, text, size, offset, ids);
        else if (size > 0)
            encode_steps(e, text, size, offset, false, false, ids);
        return;
    }
    e->changes.count = 0;
    if (!e->tokenizer->nfc || dt_nfc_is_plain(text, size)) {
        encode_normal(e, text, size, offset, ids);
        return;
    }
    while (size > 0) {
        size_t part = size;
        if (size > NORMAL_BYTES && !dt_added_any(&e->normalized))
            part = dt_pattern_safe_cut(text, size, NORMAL_BYTES);
        dt_nfc(text, part, &e->normal, &e->changes);
        encode_normal(e, e->normal.data, e->normal.size, offset, ids);
        text += part;
        size -= part;
        offset += part;
    }
}

static void encode_text(struct dt_encoder *e, const char *text, size_t size, struct dt_ids *ids)
{
    struct dt_added_match m;
    size_t from = 0;
    while (dt_added_next(&e->raw, text, size, from, &m)) {
        encode_segment(e, text + from, m.start - from, from, ids);
        dt_ids_add(ids, m.id);
        if (e->spans)
            add_span(e->spans, m.start, m.end);
        from = m.end;
    }
    encode_segment(e, text + from, size - from, from, ids);
}

static void encode_replaced(struct dt_encoder *e, const char *text, size_t size, struct dt_ids *ids)
{
    struct dt_replaced_bytes r = {.count = 0};
    size_t first = e->spans ? e->spans->count : 0;
    dt_replaced_bytes_make(&r, text, size);
    encode_text(e, r.text.data, r.text.size, ids);
    for (size_t i = first; e->spans && i < e->spans->count; i++) {
        struct dt_span *span = &e->spans->data[i];
        span->start = dt_replaced_bytes_origin(&r, span->start, false);
        span->end = dt_replaced_bytes_origin(&r, span->end, true);
    }
    dt_replaced_bytes_release(&r);
}

#define BYTES_PER_ID 4 /* of most texts about; where more, their ids are copied to more memory */

void dt_encoder_encode(struct dt_encoder *e, const char *text, size_t size, struct dt_ids *ids)
{
    dt_ids_reserve(ids, ids->count + size / BYTES_PER_ID);
    if (e->tokenizer->lacks_bytes && dt_replaced_bytes_find(text, size) < size)
        encode_replaced(e, text, size, ids);
    else
        encode_text(e, text, size, ids);
}
