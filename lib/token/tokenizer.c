/* SPDX-License-Identifier: MIT */
#include "token/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash/hash.h"
#include "pretokenize/character.h"
#include "pretokenize/nfc.h"
#include "token/bpe.h"
#include "token/replaced-bytes.h"
#include "token/unigram.h"
#include "token/vocabulary.h"
#include "token/whole-tokens.h"
#include "token/words.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

/* Names of end-of-text tokens, the most common first. */
static const char *const eot_names[] = {"<|endoftext|>", "<|end_of_text|>", "</s>",
                                        "<eos>",         "[SEP]",           NULL};
static const char *const bos_names[] = {"<|begin_of_text|>", "<s>", "<bos>", "[CLS]", NULL};

struct dt_tokenizer *dt_tokenizer_new(const struct dt_pattern *pattern)
{
    struct dt_tokenizer *t = dt_alloc(1, sizeof *t);
    t->pattern = pattern;
    t->byte_level = true;
    t->bos = t->eot = t->unknown = DT_NO_TOKEN;
    t->first_tied = DT_NO_RANK;
    t->first_result = DT_NO_TOKEN;
    return t;
}

void dt_tokenizer_free(struct dt_tokenizer *t)
{
    if (t == NULL)
        return;
    dt_steps_release(&t->normalizer);
    dt_steps_release(&t->splitter);
    dt_steps_release(&t->decoder);
    free(t->rules.prefix);
    free(t->rules.suffix);
    free(t->char_ids);
    dt_whole_tokens_free(t->whole);
    dt_bpe_cuts_free(t->cuts);
    dt_buffer_release(&t->bytes);
    free(t->tokens);
    free(t->traits);
    free(t->index);
    free(t->merges);
    free(t->ranks);
    free(t->results);
    dt_pairs_release(&t->pairs);
    free(t->byte_pairs);
    free(t->added);
    dt_unigram_free(t->unigram);
    dt_ids_release(&t->before);
    dt_ids_release(&t->after);
    free(t);
}

uint32_t dt_tokenizer_size(const struct dt_tokenizer *t)
{
    return t->size;
}

uint32_t dt_tokenizer_eot(const struct dt_tokenizer *t)
{
    return t->eot;
}

uint64_t dt_tokenizer_fingerprint(const struct dt_tokenizer *t)
{
    return t->fingerprint;
}

static bool has_trait(const struct dt_tokenizer *t, uint32_t id, enum dt_token_trait trait)
{
    return id < t->size && (t->traits[id] & trait);
}

bool dt_tokenizer_is_special(const struct dt_tokenizer *t, uint32_t id)
{
    return has_trait(t, id, DT_TOKEN_SPECIAL);
}

bool dt_tokenizer_continues_word(const struct dt_tokenizer *t, uint32_t id)
{
    return has_trait(t, id, DT_TOKEN_CONTINUES);
}

/* The tokens of characters and, with byte_fallback, of bytes. */
static void find_characters(struct dt_tokenizer *t)
{
    char text[8];
    t->char_ids = dt_alloc(65536, sizeof *t->char_ids);
    for (uint32_t code = 0; code < 65536; code++) {
        unsigned length = dt_utf8_encode(code, text);
        t->char_ids[code] = dt_vocabulary_find(t, text, length);
    }
    for (unsigned c = 0; c < 256; c++) {
        snprintf(text, sizeof text, "<0x%02X>", c);
        t->byte_ids[c] = t->rules.byte_fallback ? dt_tokenizer_find(t, text, 6) : DT_NO_TOKEN;
    }
}

static int find_bytes(struct dt_tokenizer *t, struct dt_error *err)
{
    if (!t->byte_level)
        return find_characters(t), 0;
    for (int c = 0; c < 256; c++) {
        t->byte_ids[c] = dt_tokenizer_find(t, &(char){(char)c}, 1);
        t->lacks_bytes |= t->byte_ids[c] == DT_NO_TOKEN;
        if (t->byte_ids[c] == DT_NO_TOKEN && !t->drops_bytes && !dt_replaced_bytes_is(c))
            return dt_fail(err, DT_EFORMAT, "the byte 0x%02x is not in the vocabulary", c);
    }
    return 0;
}

static int add_listed_merges(struct dt_tokenizer *t, struct dt_error *err)
{
    if (t->merge_count >= DT_NO_PAIR)
        return dt_fail(err, DT_EFORMAT, "%u merges; at most %u are possible", t->merge_count,
                       DT_NO_PAIR - 1);
    t->results = dt_alloc(t->merge_count, sizeof *t->results);
    for (uint32_t rank = 0; rank < t->merge_count; rank++) {
        const struct dt_merge *m = &t->merges[rank];
        uint32_t earlier = dt_pairs_rank(&t->pairs, m->left, m->right);
        if (earlier != DT_NO_PAIR)
            return dt_fail(err, DT_EFORMAT, "merges %u and %u (counted from 1) are the same",
                           earlier + 1, rank + 1);
        dt_pairs_add(&t->pairs, m->left, m->right, rank);
        t->results[rank] = m->result;
    }
    return 0;
}

static void find_first_result(struct dt_tokenizer *t, uint32_t ranks)
{
    uint32_t rank = 0;
    while (rank < ranks && t->results[rank] == DT_NO_TOKEN)
        rank++;
    uint32_t first = rank < ranks ? t->results[rank] - rank : DT_NO_TOKEN;
    for (; rank < ranks; rank++)
        if (t->results[rank] != DT_NO_TOKEN && t->results[rank] != first + rank)
            return;
    t->first_result = first;
}

/* DT_NO_RANK: the token takes no part in merges. */
static uint32_t rank_of(const struct dt_tokenizer *t, uint32_t id)
{
    if (dt_tokenizer_is_special(t, id))
        return DT_NO_RANK;
    return t->ranks ? t->ranks[id] : id;
}

/* The token takes no part in merges if its rank is DT_NO_RANK. */
static bool merges(const struct dt_tokenizer *t, uint32_t id)
{
    return id != DT_NO_TOKEN && rank_of(t, id) != DT_NO_RANK;
}

/* Adds a pair for each split of a token into two tokens. */
static void add_cuts(struct dt_tokenizer *t, uint32_t id)
{
    size_t size;
    const char *bytes = dt_tokenizer_bytes(t, id, &size);
    for (size_t cut = 1; cut < size; cut++) {
        uint32_t left = dt_tokenizer_find(t, bytes, cut);
        if (!merges(t, left))
            continue;
        uint32_t right = dt_tokenizer_find(t, bytes + cut, size - cut);
        if (merges(t, right))
            dt_pairs_add(&t->pairs, left, right, rank_of(t, id));
    }
}

static void make_byte_pairs(struct dt_tokenizer *t)
{
    if (!dt_vocabulary_is_plain_bytes(t))
        return;
    t->byte_pairs = dt_alloc(65536, sizeof *t->byte_pairs);
    for (unsigned i = 0; i < 65536; i++)
        t->byte_pairs[i] = dt_pairs_rank(&t->pairs, t->byte_ids[i >> 8], t->byte_ids[i & 255]);
}

/* Adds the pairs that may merge to a token. If the merges before it leave two parts of its bytes,
 * it is only these: wherever the token appears in a text, all merges inside it were made in the
 * same order. */
static void add_last_merge(struct dt_tokenizer *t, struct dt_bpe_work *work, uint32_t id,
                           uint32_t *parts)
{
    struct dt_token_extent token = t->tokens[id];
    const unsigned char *bytes = (const unsigned char *)t->bytes.data + token.start;
    if (token.length == 2) {
        add_cuts(t, id);
        t->byte_pairs[bytes[0] << 8 | bytes[1]] =
            dt_pairs_rank(&t->pairs, t->byte_ids[bytes[0]], t->byte_ids[bytes[1]]);
    } else if (token.length > 2 && rank_of(t, id) < t->first_tied &&
               dt_bpe_encode(t, work, bytes, token.length, parts, NULL) == 2 &&
               merges(t, parts[0]) && merges(t, parts[1])) {
        dt_pairs_add(&t->pairs, parts[0], parts[1], rank_of(t, id));
    } else {
        add_cuts(t, id);
    }
}

/* Adds the merges of all tokens in the order of their ranks. */
static void add_ranked_merges(struct dt_tokenizer *t)
{
    struct dt_bpe_work work = {.symbols = NULL};
    uint32_t *parts = dt_alloc(t->longest, sizeof *parts);
    bool plain = dt_vocabulary_is_plain_bytes(t);
    t->results = dt_alloc(t->size, sizeof *t->results);
    memset(t->results, 0xff, t->size * sizeof *t->results);
    for (uint32_t id = 0; id < t->size; id++)
        if (rank_of(t, id) != DT_NO_RANK)
            t->results[rank_of(t, id)] = id;
    for (uint32_t rank = 0; rank < t->size; rank++)
        if (t->results[rank] != DT_NO_TOKEN && plain)
            add_last_merge(t, &work, t->results[rank], parts);
        else if (t->results[rank] != DT_NO_TOKEN)
            add_cuts(t, t->results[rank]);
    dt_bpe_work_release(&work);
    free(parts);
}

/* A partial character counts as part of a word: most such tokens are. */
static bool begins_inside_word(const struct dt_tokenizer *t, uint32_t id)
{
    size_t size;
    const char *bytes = dt_tokenizer_bytes(t, id, &size);
    if (size == 0 || dt_vocabulary_is_word_piece(t))
        return size > 2 && bytes[0] == '#' && bytes[1] == '#';
    if (t->rules.byte_fallback && size == 6 && strncmp(bytes, "<0x", 3) == 0)
        return true;
    uint32_t code;
    dt_character((const unsigned char *)bytes, (const unsigned char *)bytes + size, &code);
    if (code == DT_CHAR_INVALID)
        return true;
    enum dt_category category = dt_unicode_category(code);
    return category >= DT_CATEGORY_LU && category <= DT_CATEGORY_NO; /* L, M, N */
}

static void find_traits(struct dt_tokenizer *t)
{
    t->traits = dt_alloc(t->size, sizeof *t->traits);
    for (uint32_t id = 0; id < t->size; id++)
        if (begins_inside_word(t, id))
            t->traits[id] = DT_TOKEN_CONTINUES;
    for (uint32_t i = 0; i < t->added_count; i++)
        t->traits[t->added[i].id] = (uint8_t)((t->added[i].special ? DT_TOKEN_SPECIAL : 0) |
                                              (t->added[i].apart ? DT_TOKEN_APART : 0));
}

static bool is_added(const struct dt_tokenizer *t, uint32_t id)
{
    for (uint32_t i = 0; i < t->added_count; i++)
        if (t->added[i].id == id)
            return true;
    return false;
}

/* The first of names that is an added token. */
static uint32_t find_added(const struct dt_tokenizer *t, const char *const *names)
{
    for (; *names; names++) {
        uint32_t id = dt_tokenizer_find(t, *names, strlen(*names));
        if (id != DT_NO_TOKEN && is_added(t, id))
            return id;
    }
    return DT_NO_TOKEN;
}

static void add_number(struct dt_buffer *b, uint32_t n)
{
    char bytes[4] = {(char)n, (char)(n >> 8), (char)(n >> 16), (char)(n >> 24)};
    dt_buffer_append(b, bytes, sizeof bytes);
}

/* The Unicode version of fingerprints that do not include a version. */
#define UNNAMED_UNICODE "15.0.0"

/* Whether the ids of a text may depend on whether an added token is in the model's vocabulary: text
 * that it does not match may reach the model as a whole symbol or word. */
static bool reaches_model(const struct dt_tokenizer *t, const struct dt_added_token *a)
{
    struct dt_token_extent token = t->tokens[a->id];
    bool is_character =
        token.length > 0 && token.length == dt_utf8_length(t->bytes.data[token.start]);
    bool words = t->model == DT_TOKEN_WORD_PIECE || t->model == DT_TOKEN_WORD_LEVEL;
    return t->has_steps && (a->special || a->single_word) &&
           (words || (t->model == DT_TOKEN_BPE_MERGES && !t->byte_level && is_character));
}

/* The optional parts of the fingerprint; empty for plain byte-level BPE. */
static void add_optional_parts(const struct dt_tokenizer *t, const char *unicode,
                               struct dt_buffer *all)
{
    if (strcmp(unicode, UNNAMED_UNICODE) != 0)
        dt_buffer_printf(all, "unicode %s", unicode);
    switch (t->model) {
    case DT_TOKEN_BPE_RANKS:
        dt_buffer_add_string(all, "ranks");
        for (uint32_t id = 0; t->ranks && id < t->size; id++)
            add_number(all, t->ranks[id]);
        if (t->first_tied != DT_NO_RANK)
            dt_buffer_printf(all, "tied %u", t->first_tied);
        break;
    case DT_TOKEN_BPE_MERGES:
    case DT_TOKEN_WORD_PIECE:
    case DT_TOKEN_WORD_LEVEL:
    case DT_TOKEN_UNIGRAM:
        dt_buffer_add_string(all, t->ignore_merges ? "whole" : "");
        break;
    }
    if (t->nfc)
        dt_buffer_add_string(all, "nfc");
    if (t->drops_bytes)
        dt_buffer_printf(all, "drops %u %d", t->unknown, t->rules.fuse_unknown);
    if (t->unigram)
        dt_unigram_describe(t->unigram, all);
    if (t->has_steps) {
        dt_steps_write(&t->normalizer, DT_STEPS_NORMALIZER, all);
        dt_steps_write(&t->splitter, DT_STEPS_PRE_TOKENIZER, all);
        dt_buffer_printf(all, "%d%d%d %u %s %s", t->byte_level, t->rules.byte_fallback,
                         t->rules.fuse_unknown, t->unknown, t->rules.prefix ? t->rules.prefix : "",
                         t->rules.suffix ? t->rules.suffix : "");
    }
    for (uint32_t i = 0; i < t->added_count; i++) {
        const struct dt_added_token *a = &t->added[i];
        if (a->single_word || a->strip_left || a->strip_right)
            dt_buffer_printf(all, "%u:%d%d%d", a->id, a->single_word, a->strip_left,
                             a->strip_right);
        if (a->apart && reaches_model(t, a))
            dt_buffer_printf(all, "apart %u", a->id);
    }
    if (dt_vocabulary_is_bert(t))
        dt_buffer_printf(all, "%d%d%d%d %u %u", t->bert.clean, t->bert.isolate_cjk,
                         t->bert.strip_accents, t->bert.lower, t->unknown, t->max_word_chars);
}

/* Covers everything that determines the ids of a text, independent of the file format. */
uint64_t dt_tokenizer_compute_fingerprint(const struct dt_tokenizer *t, const char *unicode)
{
    struct dt_buffer all = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&all, t->has_steps ? "steps" : t->pattern ? t->pattern->name : "bert");
    add_number(&all, t->size);
    for (uint32_t id = 0; id < t->size; id++)
        add_number(&all, t->tokens[id].length);
    for (uint32_t id = 0; id < t->size; id++) {
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, id, &size);
        dt_buffer_append(&all, bytes, size);
    }
    add_number(&all, t->merge_count);
    for (uint32_t i = 0; i < t->merge_count; i++) {
        add_number(&all, t->merges[i].left);
        add_number(&all, t->merges[i].right);
    }
    for (uint32_t i = 0; i < t->added_count; i++)
        if (!t->added[i].special)
            add_number(&all, t->added[i].id);
    add_optional_parts(t, unicode, &all);
    uint64_t hash = dt_hash(all.data, all.size);
    dt_buffer_release(&all);
    return hash;
}

static int make_tables(struct dt_tokenizer *t, struct dt_error *err)
{
    switch (t->model) {
    case DT_TOKEN_WORD_PIECE:
    case DT_TOKEN_WORD_LEVEL:
    case DT_TOKEN_UNIGRAM:
        return 0;
    case DT_TOKEN_BPE_RANKS:
    case DT_TOKEN_BPE_MERGES:
        break;
    }
    if (t->size >= DT_PAIR_IDS)
        return dt_fail(err, DT_EFORMAT, "%u tokens; merges take at most %u", t->size,
                       DT_PAIR_IDS - 1);
    DT_TRY(find_bytes(t, err));
    dt_pairs_init(&t->pairs);
    if (t->model == DT_TOKEN_BPE_MERGES)
        DT_TRY(add_listed_merges(t, err));
    make_byte_pairs(t);
    if (t->model == DT_TOKEN_BPE_RANKS)
        add_ranked_merges(t);
    find_first_result(t, t->model == DT_TOKEN_BPE_RANKS ? t->size : t->merge_count);
    t->whole = dt_whole_tokens_new(t);
    t->cuts = dt_bpe_cuts_new(t);
    return 0;
}

static void normalize(const struct dt_tokenizer *t, struct dt_traced_text *text)
{
    struct dt_traced_text spare = {.origins = NULL};
    if (t->nfc)
        dt_nfc(text->bytes.data, text->bytes.size, &spare.bytes, NULL);
    if (t->nfc) {
        dt_traced_text_clear(text);
        dt_traced_text_copy(text, &spare, 0, spare.bytes.size);
    }
    dt_steps_normalize(&t->normalizer, text, &spare);
    dt_traced_text_release(&spare);
}

/* Sets what added tokens match: `tokenizers` normalizes the text of those that are normalized. */
static int find_matches(struct dt_tokenizer *t, struct dt_error *err)
{
    struct dt_traced_text text = {.origins = NULL};
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < t->added_count; i++) {
        struct dt_added_token *a = &t->added[i];
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, a->id, &size);
        if (a->match.length > 0)
            continue;
        a->match = t->tokens[a->id];
        if (!a->normalized)
            continue;
        dt_traced_text_set(&text, bytes, size, 0);
        normalize(t, &text);
        if (text.bytes.size == 0)
            rc = dt_fail(err, DT_EFORMAT, "added token %u: its normalized text is empty", a->id);
        else if (text.bytes.size > DT_VOCABULARY_BYTES - t->bytes.size)
            rc = dt_fail(err, DT_EFORMAT, "the tokens are longer than %u bytes together",
                         DT_VOCABULARY_BYTES);
        if (rc < 0)
            break;
        a->match = (struct dt_token_extent){(uint32_t)t->bytes.size, (uint32_t)text.bytes.size};
        dt_buffer_append(&t->bytes, text.bytes.data, text.bytes.size);
    }
    dt_traced_text_release(&text);
    return rc;
}

int dt_tokenizer_finish(struct dt_tokenizer *t, struct dt_error *err)
{
    dt_character_table_init(); /* added tokens look for spaces beside them */
    DT_TRY(find_matches(t, err));
    find_traits(t);
    DT_TRY(make_tables(t, err));
    t->traces = t->normalizer.count > 0 && dt_steps_need_origins(&t->splitter);
    dt_words_prepare(t);
    t->bos = find_added(t, bos_names);
    t->eot = find_added(t, eot_names);
    t->fingerprint = dt_tokenizer_compute_fingerprint(t, dt_unicode_version);
    return 0;
}
