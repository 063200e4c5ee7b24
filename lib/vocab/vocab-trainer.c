/* SPDX-License-Identifier: MIT */
#include "vocab/vocab-trainer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "pretokenize/byte-level.h"
#include "pretokenize/character.h"
#include "steps/bert-words.h"
#include "token/word-piece.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"
#include "vocab/learn.h"
#include "vocab/unigram-vocabulary.h"
#include "vocab/word-count-file.h"
#include "vocab/word-count.h"

#define JOB_BYTES      ((size_t)1 << 20)
#define MAX_WORD_CHARS 100 /* characters, in WordPiece */

/* The special tokens of BERT, which each WordPiece vocabulary starts with. */
static const char *const bert_specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
#define BERT_SPECIALS (sizeof bert_specials / sizeof *bert_specials)

struct job {
    struct dt_buffer text;
    size_t *ends; /* end offsets in text of documents, or of parts of one */
    size_t count, capacity;
};

struct dt_vocab_trainer {
    struct dt_vocab_trainer_options options;
    const struct dt_pattern *pattern;
    struct dt_bert_rules rules;
    struct dt_steps splitter; /* of Unigram */
    struct dt_pool *pool;
    struct job *filling, *idle;
    pthread_mutex_t lock;
    struct dt_word_table *counts; /* tables that no thread is using */
    size_t count, capacity;
};

static void count_pieces(struct dt_word_table *counts, const struct dt_pattern *pattern,
                         const struct job *job)
{
    size_t from = 0;
    for (size_t i = 0; i < job->count; from = job->ends[i++])
        dt_word_counts_add_text(counts, pattern, job->text.data + from, job->ends[i] - from);
}

/* WordPiece encodes longer words as [UNK]: they are not counted. */
static void count_words(struct dt_word_table *counts, const struct dt_bert_rules *rules,
                        const struct job *job)
{
    struct dt_bert_words w;
    size_t from = 0;
    dt_bert_words_init(&w, rules, false);
    for (size_t i = 0; i < job->count; from = job->ends[i++]) {
        dt_bert_words_start(&w, job->text.data + from, job->ends[i] - from);
        while (dt_bert_words_next(&w))
            if (w.characters <= MAX_WORD_CHARS)
                dt_word_counts_add_word(counts, w.word, w.size);
    }
    dt_bert_words_release(&w);
}

static void count_job(void *work, void *context)
{
    struct dt_vocab_trainer *t = context;
    struct job *job = work;
    struct dt_word_table counts = {.words = NULL};
    pthread_mutex_lock(&t->lock);
    if (t->count > 0)
        counts = t->counts[--t->count];
    pthread_mutex_unlock(&t->lock);
    switch (t->options.model) {
    case DT_VOCAB_TRAINER_BPE:
        count_pieces(&counts, t->pattern, job);
        break;
    case DT_VOCAB_TRAINER_WORD_PIECE:
        count_words(&counts, &t->rules, job);
        break;
    case DT_VOCAB_TRAINER_UNIGRAM:
        for (size_t i = 0, from = 0; i < job->count; from = job->ends[i++])
            dt_unigram_vocabulary_count(&counts, &t->splitter, job->text.data + from,
                                        job->ends[i] - from);
        break;
    }
    pthread_mutex_lock(&t->lock);
    DT_GROW(t->counts, t->count, t->capacity);
    t->counts[t->count++] = counts;
    pthread_mutex_unlock(&t->lock);
}

static int check_special(const struct dt_vocab_trainer_options *o, int i, struct dt_error *err)
{
    const char *special = o->specials[i];
    const unsigned char *p = (const unsigned char *)special, *end = p + strlen(special);
    if (p == end)
        return dt_fail(err, DT_EINVALID, "a special token is empty");
    for (uint32_t code; p < end;) {
        p += dt_character(p, end, &code);
        if (code == DT_CHAR_INVALID)
            return dt_fail(err, DT_EINVALID, "the special token '%s' is not UTF-8", special);
    }
    for (int k = 0; k < i; k++)
        if (strcmp(special, o->specials[k]) == 0)
            return dt_fail(err, DT_EINVALID, "the special token '%s' is given twice", special);
    return 0;
}

static int check_options(const struct dt_vocab_trainer_options *o, struct dt_error *err)
{
    static const uint32_t fixed[] = {[DT_VOCAB_TRAINER_BPE] = 256,
                                     [DT_VOCAB_TRAINER_WORD_PIECE] = BERT_SPECIALS,
                                     [DT_VOCAB_TRAINER_UNIGRAM] = DT_UNIGRAM_VOCABULARY_FIXED};
    uint32_t least = fixed[o->model] + (uint32_t)o->special_count;
    if (o->model == DT_VOCAB_TRAINER_BPE && dt_pattern_find(o->pattern) == NULL)
        return dt_fail(err, DT_EINVALID, "unknown pattern '%s'", o->pattern);
    if (o->size < least)
        return dt_fail(err, DT_EINVALID, "a vocabulary of %u is too small: %sspecial tokens are %u",
                       o->size, o->model == DT_VOCAB_TRAINER_WORD_PIECE ? "" : "bytes and ", least);
    for (int i = 0; i < o->special_count; i++)
        DT_TRY(check_special(o, i, err));
    return 0;
}

int dt_vocab_trainer_new(struct dt_vocab_trainer **result,
                         const struct dt_vocab_trainer_options *options, struct dt_error *err)
{
    *result = NULL;
    DT_TRY(check_options(options, err));
    struct dt_vocab_trainer *t = dt_alloc(1, sizeof *t);
    t->options = *options;
    if (options->model == DT_VOCAB_TRAINER_BPE)
        t->pattern = dt_pattern_find(options->pattern);
    if (options->model == DT_VOCAB_TRAINER_UNIGRAM &&
        dt_unigram_vocabulary_read_splitter(&t->splitter, err) < 0) {
        free(t);
        return DT_EINVALID;
    }
    t->rules = (struct dt_bert_rules){.clean = true,
                                      .isolate_cjk = true,
                                      .strip_accents = !options->cased,
                                      .lower = !options->cased};
    pthread_mutex_init(&t->lock, NULL);
    t->pool = dt_pool_new(options->threads, count_job, t);
    *result = t;
    return 0;
}

static void free_job(struct job *job)
{
    if (job == NULL)
        return;
    dt_buffer_release(&job->text);
    free(job->ends);
    free(job);
}

static void wait_for_all(struct dt_vocab_trainer *t)
{
    for (struct job *job; (job = dt_pool_next(t->pool)) != NULL;)
        free_job(job);
}

void dt_vocab_trainer_free(struct dt_vocab_trainer *t)
{
    if (t == NULL)
        return;
    wait_for_all(t);
    dt_pool_free(t->pool);
    free_job(t->filling);
    free_job(t->idle);
    while (t->count > 0)
        dt_word_counts_release(&t->counts[--t->count]);
    free(t->counts);
    dt_steps_release(&t->splitter);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static void submit(struct dt_vocab_trainer *t)
{
    if (dt_pool_full(t->pool)) {
        t->idle = dt_pool_next(t->pool);
        dt_buffer_clear(&t->idle->text);
        t->idle->count = 0;
    }
    dt_pool_submit(t->pool, t->filling);
    t->filling = NULL;
}

static void add_part(struct dt_vocab_trainer *t, const char *text, size_t size)
{
    if (t->filling == NULL) {
        t->filling = t->idle ? t->idle : dt_alloc(1, sizeof *t->filling);
        t->idle = NULL;
    }
    struct job *job = t->filling;
    dt_buffer_append(&job->text, text, size);
    DT_GROW(job->ends, job->count, job->capacity);
    job->ends[job->count++] = job->text.size;
    if (job->text.size >= JOB_BYTES)
        submit(t);
}

void dt_vocab_trainer_add(struct dt_vocab_trainer *t, const char *text, size_t size)
{
    while (size > 0) {
        size_t part = size > JOB_BYTES ? dt_pattern_safe_cut(text, size, JOB_BYTES) : size;
        add_part(t, text, part);
        text += part;
        size -= part;
    }
}

/* Merges all counts into one table; NULL if nothing was counted. */
static struct dt_word_table *merge_counts(struct dt_vocab_trainer *t)
{
    if (t->filling)
        submit(t);
    wait_for_all(t);
    while (t->count > 1) {
        struct dt_word_table *last = &t->counts[--t->count];
        dt_word_counts_merge(&t->counts[0], last);
        dt_word_counts_release(last);
    }
    return t->count ? &t->counts[0] : NULL;
}

/* What decides the pieces of a text. */
static const char *kind_of(const struct dt_vocab_trainer *t, char text[64])
{
    if (t->options.model == DT_VOCAB_TRAINER_BPE)
        snprintf(text, 64, "bpe %s", t->options.pattern);
    else if (t->options.model == DT_VOCAB_TRAINER_WORD_PIECE)
        snprintf(text, 64, "wordpiece %s", t->options.cased ? "cased" : "uncased");
    else
        snprintf(text, 64, "unigram");
    return text;
}

int dt_vocab_trainer_save_counts(struct dt_vocab_trainer *t, const char *path, struct dt_error *err)
{
    char kind[64];
    struct dt_word_table none = {.words = NULL}, *words = merge_counts(t);
    return dt_word_counts_write(words ? words : &none, kind_of(t, kind), path, err);
}

/* Bytes of WordPiece and Unigram are whole characters. */
static bool are_text(const struct dt_word_table *words, uint32_t first)
{
    for (uint32_t i = first; i < words->count; i++) {
        const struct dt_counted_word *w = &words->words[i];
        if (dt_utf8_valid_prefix(words->bytes.data + w->start, w->length) != w->length)
            return false;
    }
    return true;
}

int dt_vocab_trainer_add_counts(struct dt_vocab_trainer *t, const char *path, struct dt_error *err)
{
    char kind[64];
    if (t->count == 0) {
        DT_GROW(t->counts, t->count, t->capacity);
        t->counts[t->count++] = (struct dt_word_table){.words = NULL};
    }
    uint32_t before = t->counts[0].count;
    DT_TRY(dt_word_counts_read(&t->counts[0], kind_of(t, kind), path, err));
    return t->options.model == DT_VOCAB_TRAINER_BPE || are_text(&t->counts[0], before)
               ? 0
               : dt_fail(err, DT_EFORMAT, "%s: is damaged: a word is not UTF-8", path);
}

static int add_bytes(struct dt_tokenizer *t, struct dt_error *err)
{
    unsigned char order[256];
    dt_byte_level_order(order);
    for (unsigned i = 0; i < 256; i++)
        DT_TRY(dt_tokenizer_add(t, i, (const char *)&order[i], 1, err));
    return 0;
}

/* The text of a special token must not be that of an ordinary token: the vocabulary maps
 * each text to one id. */
static int add_special(struct dt_tokenizer *t, const char *special, struct dt_error *err)
{
    struct dt_buffer bytes = DT_BUFFER_EMPTY;
    uint32_t id = t->size;
    bool taken = dt_tokenizer_find(t, special, strlen(special)) != DT_NO_TOKEN;
    if (dt_byte_level_decode(special, strlen(special), &bytes))
        taken = taken || dt_tokenizer_find(t, bytes.data, bytes.size) != DT_NO_TOKEN;
    dt_buffer_release(&bytes);
    if (taken)
        return dt_fail(err, DT_EINVALID, "the special token '%s' is also an ordinary one", special);
    DT_TRY(dt_tokenizer_add(t, id, special, strlen(special), err));
    dt_tokenizer_mark_added(t, (struct dt_added_token){.id = id, .special = true});
    return 0;
}

/* --- WordPiece -------------------------------------------------------------------------------- */

struct letter {
    uint32_t code;
    uint64_t first, inner; /* occurrences at the start of words, and inside */
};

static int more_frequent_first(const void *a, const void *b)
{
    const struct letter *x = a, *y = b;
    uint64_t m = x->first + x->inner, n = y->first + y->inner;
    return m != n ? (m < n) - (m > n) : (x->code > y->code) - (x->code < y->code);
}

static int lower_code_first(const void *a, const void *b)
{
    const struct letter *x = a, *y = b;
    return (x->code > y->code) - (x->code < y->code);
}

static void count_letters(const struct dt_word_table *words, struct letter *letters)
{
    for (uint32_t i = 0; i < words->count; i++) {
        const struct dt_counted_word *w = &words->words[i];
        const unsigned char *p = (const unsigned char *)words->bytes.data + w->start;
        const unsigned char *start = p, *end = p + w->length;
        for (uint32_t code; p < end;) {
            bool first = p == start;
            p += dt_character(p, end, &code);
            if (code != DT_CHAR_INVALID)
                *(first ? &letters[code].first : &letters[code].inner) += w->count;
        }
    }
}

static int add_letter(struct dt_tokenizer *t, uint32_t code, size_t prefix, struct dt_error *err)
{
    char spelled[2 + 4] = DT_WORD_PIECE_PREFIX;
    const char *token = spelled + 2 - prefix;
    size_t size = prefix + dt_utf8_encode(code, spelled + 2);
    if (dt_tokenizer_find(t, token, size) != DT_NO_TOKEN)
        return dt_fail(err, DT_EINVALID, "the special token '%.*s' is also an ordinary one",
                       (int)size, token);
    return dt_tokenizer_add(t, t->size, token, size, err);
}

/* Adds the most frequent characters, up to limit, as tokens. */
static int add_alphabet(struct dt_tokenizer *t, const struct dt_word_table *words, uint32_t limit,
                        struct dt_error *err)
{
    struct letter *letters = dt_alloc(0x110000, sizeof *letters);
    uint32_t count = 0;
    int rc = 0;
    for (uint32_t code = 0; code < 0x110000; code++)
        letters[code].code = code;
    count_letters(words, letters);
    qsort(letters, 0x110000, sizeof *letters, more_frequent_first);
    while (count < limit && letters[count].first + letters[count].inner > 0)
        count++;
    qsort(letters, count, sizeof *letters, lower_code_first);
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        rc = letters[i].first ? add_letter(t, letters[i].code, 0, err) : 0;
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        rc = letters[i].inner ? add_letter(t, letters[i].code, 2, err) : 0;
    free(letters);
    return rc;
}

static int build_word_piece(struct dt_vocab_trainer *trainer, struct dt_tokenizer *t,
                            struct dt_error *err)
{
    const struct dt_vocab_trainer_options *o = &trainer->options;
    struct dt_word_table *words = merge_counts(trainer);
    t->model = DT_TOKEN_WORD_PIECE;
    t->bert = trainer->rules;
    t->max_word_chars = MAX_WORD_CHARS;
    for (size_t i = 0; i < BERT_SPECIALS; i++)
        DT_TRY(add_special(t, bert_specials[i], err));
    for (int i = 0; i < o->special_count; i++)
        DT_TRY(add_special(t, o->specials[i], err));
    t->unknown = 1;
    dt_ids_add(&t->before, 2);
    dt_ids_add(&t->after, 3);
    if (words == NULL || words->count == 0)
        return dt_fail(err, DT_EFORMAT, "the input contains no text");
    DT_TRY(add_alphabet(t, words, o->alphabet, err));
    if (t->size > o->size)
        return dt_fail(err, DT_EINVALID,
                       "a vocabulary of %u is too small: characters and special tokens are %u",
                       o->size, t->size);
    DT_TRY(dt_learn_merges(t, words, o->size, o->min_frequency, err));
    return dt_tokenizer_finish(t, err);
}

static int build(struct dt_vocab_trainer *trainer, struct dt_tokenizer *t, struct dt_error *err)
{
    const struct dt_vocab_trainer_options *o = &trainer->options;
    struct dt_word_table *words = merge_counts(trainer);
    DT_TRY(add_bytes(t, err));
    if (words == NULL)
        return dt_fail(err, DT_EFORMAT, "the input contains no text");
    DT_TRY(dt_learn_merges(t, words, o->size - (uint32_t)o->special_count, o->min_frequency, err));
    for (int i = 0; i < o->special_count; i++)
        DT_TRY(add_special(t, o->specials[i], err));
    return dt_tokenizer_finish(t, err);
}

/* <unk>, which text with byte fallback never is, special tokens, bytes and pieces. */
static int build_unigram(struct dt_vocab_trainer *trainer, struct dt_tokenizer *t,
                         struct dt_error *err)
{
    const struct dt_vocab_trainer_options *o = &trainer->options;
    struct dt_word_table none = {.words = NULL}, *words = merge_counts(trainer);
    t->byte_level = false;
    DT_TRY(add_special(t, "<unk>", err));
    for (int i = 0; i < o->special_count; i++)
        DT_TRY(add_special(t, o->specials[i], err));
    DT_TRY(dt_unigram_vocabulary_learn(t, words ? words : &none, o->size, o->alphabet, err));
    return dt_tokenizer_finish(t, err);
}

int dt_vocab_trainer_finish(struct dt_vocab_trainer *trainer, struct dt_tokenizer **t,
                            struct dt_error *err)
{
    static int (*const builders[])(struct dt_vocab_trainer *, struct dt_tokenizer *,
                                   struct dt_error *) = {
        [DT_VOCAB_TRAINER_BPE] = build,
        [DT_VOCAB_TRAINER_WORD_PIECE] = build_word_piece,
        [DT_VOCAB_TRAINER_UNIGRAM] = build_unigram};
    *t = dt_tokenizer_new(trainer->pattern);
    int rc = builders[trainer->options.model](trainer, *t, err);
    if (rc < 0) {
        dt_tokenizer_free(*t);
        *t = NULL;
    }
    return rc;
}
