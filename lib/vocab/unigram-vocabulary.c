/* SPDX-License-Identifier: MIT */
#include "vocab/unigram-vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "token/unigram.h"
#include "unicode/utf8.h"
#include "vocab/learn-unigram.h"
#include "json/json.h"

static const char splitter_json[] =
    "{\"type\": \"Sequence\", \"pretokenizers\": ["
    "{\"type\": \"Split\", \"pattern\": {\"String\": \"\\n\"}, \"behavior\": \"Isolated\", "
    "\"invert\": false}, "
    "{\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\", \"prepend_scheme\": \"never\", "
    "\"split\": true}]}";

static const char decoder_json[] =
    "{\"type\": \"Sequence\", \"decoders\": ["
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\xe2\x96\x81\"}, \"content\": \" \"}, "
    "{\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}]}";

static int read_steps(struct dt_steps *steps, enum dt_steps_kind kind, const char *json,
                      struct dt_error *err)
{
    struct json_object *component;
    DT_TRY(dt_json_parse(json, strlen(json), "unigram", &component, err));
    int rc = dt_steps_read(steps, kind, component, "unigram", err);
    json_object_put(component);
    return rc;
}

int dt_unigram_vocabulary_read_splitter(struct dt_steps *splitter, struct dt_error *err)
{
    return read_steps(splitter, DT_STEPS_PRE_TOKENIZER, splitter_json, err);
}

void dt_unigram_vocabulary_count(struct dt_word_table *counts, const struct dt_steps *splitter,
                                 const char *text, size_t size)
{
    struct dt_pieces p = {.first = true}, spare = {.items = NULL};
    dt_traced_text_set(&p.text, text, size, 0);
    dt_pieces_add(&p, 0, size);
    dt_steps_split(splitter, &p, &spare);
    for (size_t i = 0; i < p.count; i++) {
        const char *word = p.text.bytes.data + p.items[i].start;
        size_t length = p.items[i].end - p.items[i].start;
        if (length < DT_WORD_MAX_BYTES && dt_utf8_valid_prefix(word, length) == length)
            dt_word_counts_add_word(counts, word, length);
    }
    dt_pieces_release(&p);
    dt_pieces_release(&spare);
}

/* Each byte has a lower score than its name spelled in six characters: text encodes to it only
 * where a character has no piece. */
#define BYTE_FACTOR 8

static int add_bytes(struct dt_tokenizer *t, double score, struct dt_error *err)
{
    struct dt_unigram *u = t->unigram;
    char spelled[8];
    u->byte_ids = dt_alloc(256, sizeof *u->byte_ids);
    for (unsigned byte = 0; byte < 256; byte++) {
        u->byte_ids[byte] = t->size;
        u->scores[t->size] = score;
        snprintf(spelled, sizeof spelled, "<0x%02X>", byte);
        DT_TRY(dt_tokenizer_add(t, t->size, spelled, 6, err));
    }
    return 0;
}

/* The characters of byte names are pieces even if no word has them. */
static const char name_characters[] = "<0x123456789ABCDEF>";

static bool has_piece(const struct dt_learned *learned, char c)
{
    for (uint32_t i = 0; i < learned->count; i++)
        if (learned->pieces[i].size == 1 && *learned->pieces[i].bytes == c)
            return true;
    return false;
}

/* Drops the least probable pieces of several characters. */
static void drop_pieces(struct dt_learned *learned, uint32_t count)
{
    uint32_t kept = 0, before = 0;
    for (uint32_t i = 0; i < learned->count; i++)
        before += learned->pieces[i].size > dt_utf8_length(*learned->pieces[i].bytes);
    uint32_t most = before > count ? before - count : 0, seen = 0;
    for (uint32_t i = 0; i < learned->count; i++) {
        bool single = learned->pieces[i].size == dt_utf8_length(*learned->pieces[i].bytes);
        seen += !single;
        if (!single && seen > most)
            continue;
        learned->pieces[kept] = learned->pieces[i];
        learned->scores[kept++] = learned->scores[i];
    }
    learned->count = kept;
}

/* Adds the missing characters of byte names, with the lowest score, within room pieces. */
static void add_name_characters(struct dt_learned *learned, uint32_t room)
{
    struct dt_trie_piece missing[sizeof name_characters];
    uint32_t count = 0;
    double least = learned->scores[learned->count - 1];
    for (const char *c = name_characters; *c; c++)
        if (!has_piece(learned, *c))
            missing[count++] = (struct dt_trie_piece){c, 1, 0};
    if (learned->count + count > room)
        drop_pieces(learned, learned->count + count - room);
    uint32_t all = learned->count + count;
    learned->pieces = dt_realloc(learned->pieces, all, sizeof *learned->pieces);
    learned->scores = dt_realloc(learned->scores, all, sizeof *learned->scores);
    for (uint32_t i = 0; i < count; i++) {
        learned->pieces[learned->count] = missing[i];
        learned->scores[learned->count++] = least;
    }
}

static int add_pieces(struct dt_tokenizer *t, const struct dt_learned *learned,
                      struct dt_error *err)
{
    for (uint32_t i = 0; i < learned->count; i++) {
        const struct dt_trie_piece *p = &learned->pieces[i];
        if (dt_tokenizer_find(t, p->bytes, p->size) != DT_NO_TOKEN)
            continue; /* the text of a special token or a byte */
        t->unigram->scores[t->size] = learned->scores[i];
        DT_TRY(dt_tokenizer_add(t, t->size, p->bytes, p->size, err));
    }
    return 0;
}

static void build(struct dt_tokenizer *t, uint32_t first)
{
    struct dt_unigram *u = t->unigram;
    struct dt_trie_piece *pieces = dt_alloc(t->size, sizeof *pieces);
    size_t count = 0;
    u->size = t->size;
    for (uint32_t id = first; id < t->size; id++) {
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, id, &size);
        pieces[count++] = (struct dt_trie_piece){bytes, (uint32_t)size, id};
    }
    dt_unigram_build(u, pieces, count);
    free(pieces);
}

int dt_unigram_vocabulary_learn(struct dt_tokenizer *t, const struct dt_word_table *words,
                                uint32_t size, uint32_t alphabet, struct dt_error *err)
{
    struct dt_learned learned;
    uint32_t specials = t->size;
    t->model = DT_TOKEN_UNIGRAM;
    t->has_steps = true;
    t->unknown = 0;
    DT_TRY(dt_unigram_vocabulary_read_splitter(&t->splitter, err));
    DT_TRY(read_steps(&t->decoder, DT_STEPS_DECODER, decoder_json, err));
    uint32_t room = size - specials - 256;
    int rc = dt_learn_unigram(&learned, words, room, alphabet, name_characters, err);
    if (rc == DT_EINVALID)
        return dt_fail(err, DT_EINVALID,
                       "a vocabulary of %u is too small: characters, bytes and special tokens are "
                       "%u",
                       size, specials + 256 + learned.characters);
    if (rc < 0)
        return rc;
    add_name_characters(&learned, room);
    double lowest = BYTE_FACTOR * learned.scores[learned.count - 1];
    struct dt_unigram *u = t->unigram = dt_alloc(1, sizeof *u);
    u->scores = dt_alloc(size, sizeof *u->scores);
    u->unknown_score = lowest - DT_UNIGRAM_UNKNOWN_PENALTY;
    u->fuse_unknown = true;
    rc = add_bytes(t, lowest, err);
    if (rc == 0)
        rc = add_pieces(t, &learned, err);
    if (rc == 0)
        build(t, specials);
    dt_learned_release(&learned);
    return rc;
}
