/* SPDX-License-Identifier: MIT */
/* Reads SentencePiece's tokenizer.model. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "encoding/base64.h"
#include "token/unigram.h"
#include "tokenizer-files/sentencepiece.h"
#include "tokenizer-files/tokenizer-file.h"
#include "unicode/utf8.h"

/* The first byte of a SentencePiece model: field 1, the pieces. Base64, which tiktoken's
 * tokenizer.model begins with, has no line feed. */
#define PIECES_KEY 0x0a

/* Whether text may segment into the piece. */
static bool is_segment(const struct dt_sentencepiece_piece *p)
{
    return p->kind == DT_SENTENCEPIECE_NORMAL || p->kind == DT_SENTENCEPIECE_USER_DEFINED;
}

/* --- the normalizer --------------------------------------------------------------------------- */

static struct json_object *user_defined_symbols(const struct dt_sentencepiece *m)
{
    struct json_object *list = dt_json_new_array();
    for (uint32_t id = 0; id < m->count; id++)
        if (m->pieces[id].kind == DT_SENTENCEPIECE_USER_DEFINED)
            dt_json_array_add(
                list, dt_json_new_string_len(m->pieces[id].text.data, m->pieces[id].text.size));
    return list;
}

static int add_normalizer(struct dt_tokenizer *t, const struct dt_sentencepiece *m,
                          struct dt_error *err)
{
    struct json_object *step = dt_json_new_object(), *map = NULL;
    struct dt_buffer base64 = DT_BUFFER_EMPTY;
    if (m->character_map.size > 0) {
        dt_base64_encode(m->character_map.data, m->character_map.size, &base64);
        map = dt_json_new_string_len(base64.data, base64.size);
    }
    dt_buffer_release(&base64);
    dt_json_object_add(step, "type", dt_json_new_string("SentencePiece"));
    dt_json_object_add(step, "precompiled_charsmap", map);
    dt_json_object_add(step, "add_dummy_prefix", dt_json_new_boolean(m->add_dummy_prefix));
    dt_json_object_add(step, "remove_extra_whitespaces",
                       dt_json_new_boolean(m->remove_extra_whitespaces));
    dt_json_object_add(step, "escape_whitespaces", dt_json_new_boolean(m->escape_whitespaces));
    dt_json_object_add(step, "treat_whitespace_as_suffix", dt_json_new_boolean(m->space_is_suffix));
    dt_json_object_add(step, "user_defined_symbols", user_defined_symbols(m));
    int rc = dt_steps_read(&t->normalizer, DT_STEPS_NORMALIZER, step, "normalizer_spec", err);
    json_object_put(step);
    return rc;
}

/* --- the decoder ------------------------------------------------------------------------------ */

static int add_decoder(struct dt_tokenizer *t, const struct dt_sentencepiece *m,
                       struct dt_error *err)
{
    struct json_object *step = dt_json_new_object(), *controls = dt_json_new_object();
    const struct dt_sentencepiece_text *unknown = &m->pieces[m->unknown].text;
    for (uint32_t id = 0; id < m->count; id++) {
        if (m->pieces[id].kind != DT_SENTENCEPIECE_CONTROL)
            continue;
        char *text = dt_strndup(m->pieces[id].text.data, m->pieces[id].text.size);
        dt_json_object_add(controls, text, dt_json_new_boolean(true));
        free(text);
    }
    dt_json_object_add(step, "type", dt_json_new_string("SentencePiece"));
    dt_json_object_add(step, "add_dummy_prefix", dt_json_new_boolean(m->add_dummy_prefix));
    dt_json_object_add(step, "remove_extra_whitespaces",
                       dt_json_new_boolean(m->remove_extra_whitespaces));
    dt_json_object_add(step, "byte_fallback", dt_json_new_boolean(m->byte_fallback));
    dt_json_object_add(step, "unknown", dt_json_new_string_len(unknown->data, unknown->size));
    dt_json_object_add(step, "unknown_surface",
                       dt_json_new_string_len(m->unknown_surface.data, m->unknown_surface.size));
    dt_json_object_add(step, "control_symbols", controls);
    int rc = dt_steps_read(&t->decoder, DT_STEPS_DECODER, step, "trainer_spec", err);
    json_object_put(step);
    return rc;
}

/* --- BPE -------------------------------------------------------------------------------------- */

struct ranked {
    float score;
    uint32_t id;
};

static int higher_score_first(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score)
                                : (x->id > y->id) - (x->id < y->id);
}

static size_t characters_of(const struct dt_sentencepiece_piece *p)
{
    return (size_t)dt_utf8_count(p->text.data, p->text.size);
}

/* Ranks the pieces that merges make by their scores. SentencePiece merges the leftmost of equal
 * scores; models such as Mistral's have one for all runs of spaces, the lowest. */
static int rank_pieces(struct dt_tokenizer *t, const struct dt_sentencepiece *m,
                       struct dt_error *err)
{
    struct ranked *sorted = dt_alloc(m->count, sizeof *sorted);
    uint32_t count = 0, rank = 0;
    int rc = 0;
    t->ranks = dt_alloc(m->count, sizeof *t->ranks);
    for (uint32_t id = 0; id < m->count; id++) {
        t->ranks[id] = DT_NO_RANK;
        if (m->pieces[id].kind == DT_SENTENCEPIECE_NORMAL)
            sorted[count++] = (struct ranked){m->pieces[id].score, id};
    }
    qsort(sorted, count, sizeof *sorted, higher_score_first);
    uint32_t last = DT_NO_TOKEN; /* the last piece of several characters */
    for (; rc == 0 && rank < count; rank++) {
        const struct dt_sentencepiece_piece *p = &m->pieces[sorted[rank].id];
        t->ranks[sorted[rank].id] = rank;
        if (characters_of(p) < 2)
            continue;
        bool tied = last != DT_NO_TOKEN && m->pieces[last].score == p->score;
        if (tied && t->first_tied == DT_NO_RANK)
            t->first_tied = t->ranks[last];
        else if (!tied && t->first_tied != DT_NO_RANK)
            rc = dt_fail(err, DT_EFORMAT,
                         "piece %u has the score of others, which is supported in BPE for the "
                         "lowest score only",
                         last);
        last = sorted[rank].id;
    }
    free(sorted);
    return rc;
}

/* SentencePiece also merges characters without a piece, and undoes merges to unused pieces: refuses
 * models where that occurs. */
static int check_bpe_piece(const struct dt_tokenizer *t, const struct dt_sentencepiece *m,
                           uint32_t id, struct dt_error *err)
{
    const struct dt_sentencepiece_piece *p = &m->pieces[id];
    if (p->kind != DT_SENTENCEPIECE_NORMAL && p->kind != DT_SENTENCEPIECE_UNUSED)
        return 0;
    for (size_t at = 0, length; at < p->text.size; at += length) {
        length = dt_utf8_length(p->text.data[at]);
        if (p->kind == DT_SENTENCEPIECE_NORMAL &&
            dt_tokenizer_find(t, p->text.data + at, length) == DT_NO_TOKEN)
            return dt_fail(err, DT_EFORMAT,
                           "piece %u has a character without a piece, which is not supported in "
                           "BPE",
                           id);
        if (p->kind == DT_SENTENCEPIECE_UNUSED && at > 0 &&
            dt_tokenizer_find(t, p->text.data, at) != DT_NO_TOKEN &&
            dt_tokenizer_find(t, p->text.data + at, p->text.size - at) != DT_NO_TOKEN)
            return dt_fail(err, DT_EFORMAT,
                           "piece %u, which merges make, is unused, which is not supported", id);
    }
    return 0;
}

/* User-defined symbols are found before merges, in the normalized text. */
static void add_symbols(struct dt_tokenizer *t, const struct dt_sentencepiece *m)
{
    for (uint32_t id = 0; id < m->count; id++)
        if (m->pieces[id].kind == DT_SENTENCEPIECE_USER_DEFINED)
            dt_tokenizer_mark_added(
                t, (struct dt_added_token){.id = id, .normalized = true, .match = t->tokens[id]});
}

static int add_bpe(struct dt_tokenizer *t, const struct dt_sentencepiece *m, struct dt_error *err)
{
    t->model = DT_TOKEN_BPE_RANKS;
    t->rules.byte_fallback = m->byte_fallback;
    t->rules.fuse_unknown = true;
    DT_TRY(rank_pieces(t, m, err));
    for (uint32_t id = 0; id < m->count; id++)
        DT_TRY(check_bpe_piece(t, m, id, err));
    add_symbols(t, m);
    return 0;
}

/* --- Unigram ---------------------------------------------------------------------------------- */

/* A user-defined symbol has a score above all others, so that it is always chosen. */
static double score_of(const struct dt_sentencepiece_piece *p)
{
    if (p->kind != DT_SENTENCEPIECE_USER_DEFINED)
        return (double)p->score;
    return (double)(float)(0.1 * (double)(p->text.size - 1));
}

static void set_scores(struct dt_unigram *u, const struct dt_sentencepiece *m)
{
    float least = FLT_MAX;
    u->size = m->count;
    u->scores = dt_alloc(m->count, sizeof *u->scores);
    for (uint32_t id = 0; id < m->count; id++) {
        const struct dt_sentencepiece_piece *p = &m->pieces[id];
        u->scores[id] = score_of(p);
        if (p->kind == DT_SENTENCEPIECE_NORMAL && p->score < least)
            least = p->score;
    }
    u->unknown_score = (double)(least - DT_UNIGRAM_UNKNOWN_PENALTY);
}

static void add_unigram(struct dt_tokenizer *t, const struct dt_sentencepiece *m)
{
    struct dt_unigram *u = t->unigram = dt_alloc(1, sizeof *u);
    struct dt_trie_piece *pieces = dt_alloc(m->count, sizeof *pieces);
    size_t count = 0;
    for (uint32_t id = 0; id < m->count; id++)
        if (is_segment(&m->pieces[id]))
            pieces[count++] = (struct dt_trie_piece){m->pieces[id].text.data,
                                                     (uint32_t)m->pieces[id].text.size, id};
    t->model = DT_TOKEN_UNIGRAM;
    set_scores(u, m);
    u->unknown = m->unknown;
    u->fuse_unknown = u->rounds_to_float = true;
    if (m->byte_fallback) {
        u->byte_ids = dt_alloc(256, sizeof *u->byte_ids);
        memcpy(u->byte_ids, m->bytes, sizeof m->bytes);
    }
    dt_unigram_build(u, pieces, count);
    free(pieces);
}

/* --- the file --------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    const struct dt_sentencepiece_piece *const *x = a, *const *y = b;
    size_t m = (*x)->text.size, n = (*y)->text.size;
    int order = memcmp((*x)->text.data, (*y)->text.data, m < n ? m : n);
    return order ? order : (m > n) - (m < n);
}

/* Whether SentencePiece finds the piece by its text in text, or only by name. */
static bool is_in_text(const struct dt_sentencepiece_piece *p)
{
    return is_segment(p) || p->kind == DT_SENTENCEPIECE_UNUSED;
}

static int by_group(const void *a, const void *b)
{
    const struct dt_sentencepiece_piece *const *x = a, *const *y = b;
    const int order = is_in_text(*x) - is_in_text(*y);
    return order ? order : by_text(a, b);
}

/* Refuses what SentencePiece refuses, two pieces of the same text that are both in text, or both
 * not; and in BPE, where pieces are looked up by their text, any two. */
static int check_distinct(const struct dt_sentencepiece *m, struct dt_error *err)
{
    const struct dt_sentencepiece_piece **sorted = dt_alloc(m->count, sizeof *sorted);
    const bool alone = m->type == DT_SENTENCEPIECE_UNIGRAM;
    int rc = 0;
    for (uint32_t id = 0; id < m->count; id++)
        sorted[id] = &m->pieces[id];
    qsort(sorted, m->count, sizeof *sorted, alone ? by_group : by_text);
    for (uint32_t i = 1; rc == 0 && i < m->count; i++)
        if ((alone ? by_group : by_text)(&sorted[i - 1], &sorted[i]) == 0)
            rc = dt_fail(err, DT_EFORMAT, "pieces %u and %u have the same text",
                         (unsigned)(sorted[i - 1] - m->pieces), (unsigned)(sorted[i] - m->pieces));
    free(sorted);
    return rc;
}

static int add_pieces(struct dt_tokenizer *t, const struct dt_sentencepiece *m,
                      struct dt_error *err)
{
    for (uint32_t id = 0; id < m->count; id++) {
        const struct dt_sentencepiece_piece *p = &m->pieces[id];
        DT_TRY(dt_tokenizer_add(t, id, p->text.data, p->text.size, err));
        if (p->kind == DT_SENTENCEPIECE_CONTROL || p->kind == DT_SENTENCEPIECE_UNKNOWN)
            dt_tokenizer_mark_added(t, (struct dt_added_token){.id = id, .special = true});
    }
    return 0;
}

static int fill(struct dt_tokenizer *t, const struct dt_sentencepiece *m, struct dt_error *err)
{
    t->has_steps = true;
    t->byte_level = false;
    t->unknown = m->unknown;
    DT_TRY(check_distinct(m, err));
    DT_TRY(add_pieces(t, m, err));
    DT_TRY(add_normalizer(t, m, err));
    DT_TRY(add_decoder(t, m, err));
    switch (m->type) {
    case DT_SENTENCEPIECE_UNIGRAM:
        add_unigram(t, m);
        break;
    case DT_SENTENCEPIECE_BPE:
        DT_TRY(add_bpe(t, m, err));
        break;
    default:
        return dt_fail(
            err, DT_EFORMAT,
            "model type %llu (%s) is not supported: train one with --model_type unigram or bpe",
            (unsigned long long)m->type,
            m->type == DT_SENTENCEPIECE_WORD   ? "word"
            : m->type == DT_SENTENCEPIECE_CHAR ? "char"
                                               : "unknown");
    }
    return dt_tokenizer_finish(t, err);
}

static int load(struct dt_tokenizer *t, const char *data, size_t size, const char *path,
                struct dt_error *err)
{
    struct dt_sentencepiece m;
    int rc = dt_sentencepiece_read(&m, data, size, err);
    if (rc == 0) {
        rc = fill(t, &m, err);
        dt_sentencepiece_release(&m);
    }
    return rc < 0 ? dt_fail_context(err, "%s", path) : 0;
}

/* The models of fairseq number pieces in another way than their file. */
static int refuse_fairseq(const char *path, struct dt_error *err)
{
    static const char name[] = "sentencepiece.bpe.model";
    size_t size = strlen(path), length = sizeof name - 1;
    if (size < length || strcmp(path + size - length, name) != 0)
        return 0;
    return dt_fail(
        err, DT_EFORMAT,
        "%s: XLM-RoBERTa, mBART and others with this file use other ids than it has: "
        "load their tokenizer.json, or copy it to a file of another name for its own ids",
        path);
}

int dt_tokenizer_load_model(struct dt_tokenizer **t, const char *path,
                            const struct dt_pattern *pattern, struct dt_error *err)
{
    char *data;
    size_t size;
    DT_TRY(refuse_fairseq(path, err));
    DT_TRY(dt_file_read(path, DT_TOKENIZER_LIMIT, &data, &size, err));
    int rc;
    if (size == 0 || data[0] != PIECES_KEY) {
        rc = dt_tokenizer_load_tiktoken(t, path, pattern, err);
    } else if (pattern) {
        rc = dt_fail(err, DT_EINVALID,
                     "%s: a SentencePiece model takes no pattern: remove --pattern", path);
    } else {
        *t = dt_tokenizer_new(NULL);
        rc = load(*t, data, size, path, err);
    }
    free(data);
    return rc;
}
