/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "math/rng.h"
#include "pretokenize/byte-level.h"
#include "token/vocabulary.h"
#include "vocab/vocab-trainer.h"

static const char *specials[] = {"<|endoftext|>"};

static struct dt_tokenizer *train(const struct dt_vocab_trainer_options *options, const char *text,
                                  size_t size, size_t document)
{
    struct dt_vocab_trainer *trainer;
    struct dt_tokenizer *t;
    struct dt_error err = {.text = ""};
    assert_int_equal(dt_vocab_trainer_new(&trainer, options, &err), 0);
    for (size_t from = 0; from < size; from += document)
        dt_vocab_trainer_add(trainer, text + from, size - from < document ? size - from : document);
    int rc = dt_vocab_trainer_finish(trainer, &t, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    dt_vocab_trainer_free(trainer);
    return t;
}

/* --- training as its definition says: recount all pairs for each merge ------------------------ */

enum { MAX_WORDS = 4000, MAX_LENGTH = 64, MAX_IDS = 700 };

struct corpus {
    uint32_t words[MAX_WORDS][MAX_LENGTH];
    size_t lengths[MAX_WORDS], count;
    uint32_t occurrences[MAX_IDS][MAX_IDS];
};

static void cut_corpus(struct corpus *c, const struct dt_tokenizer *t, const char *text,
                       size_t size)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    size_t stop, ends[DT_SPLIT_MIN_CAPACITY];
    for (c->count = 0; p < end; p += stop) {
        t->pattern->split(p, end, ends, DT_SPLIT_MIN_CAPACITY);
        stop = ends[0];
        assert_true(c->count < MAX_WORDS && stop < MAX_LENGTH);
        for (size_t i = 0; i < stop; i++)
            c->words[c->count][i] = dt_tokenizer_find(t, (const char *)p + i, 1);
        c->lengths[c->count++] = stop;
    }
}

/* The first of the most frequent pairs. */
static uint32_t best_pair(struct corpus *c, uint32_t ids, struct dt_merge *best)
{
    uint32_t most = 0;
    memset(c->occurrences, 0, sizeof c->occurrences);
    for (size_t w = 0; w < c->count; w++)
        for (size_t i = 0; i + 1 < c->lengths[w]; i++)
            c->occurrences[c->words[w][i]][c->words[w][i + 1]]++;
    for (uint32_t left = 0; left < ids; left++) {
        for (uint32_t right = 0; right < ids; right++) {
            if (c->occurrences[left][right] > most) {
                most = c->occurrences[left][right];
                *best = (struct dt_merge){left, right, 0};
            }
        }
    }
    return most;
}

static void apply_merge(struct corpus *c, struct dt_merge m)
{
    for (size_t w = 0; w < c->count; w++) {
        size_t to = 0;
        for (size_t i = 0; i < c->lengths[w]; i++) {
            uint32_t *s = c->words[w];
            bool merges = i + 1 < c->lengths[w] && s[i] == m.left && s[i + 1] == m.right;
            s[to++] = merges ? m.result : s[i];
            i += merges;
        }
        c->lengths[w] = to;
    }
}

/* Checks each merge of t in turn; returns how often the next one would occur. */
static uint32_t check_merges(struct corpus *c, const struct dt_tokenizer *t)
{
    struct dt_merge best;
    for (uint32_t i = 0; i < t->merge_count; i++) {
        assert_true(best_pair(c, t->size, &best) > 0);
        assert_int_equal(best.left, t->merges[i].left);
        assert_int_equal(best.right, t->merges[i].right);
        apply_merge(c, t->merges[i]);
    }
    return best_pair(c, t->size, &best);
}

/* Few letters and long runs, so that pairs overlap and tie. */
static void add_random_words(struct dt_buffer *text, struct dt_rng *rng)
{
    uint32_t letters = 1 + dt_rng_below(rng, 4);
    for (uint32_t n = 20 + dt_rng_below(rng, 200); n > 0; n--) {
        for (uint32_t i = dt_rng_below(rng, 20); i > 0; i--)
            dt_buffer_add_char(text, (char)('a' + dt_rng_below(rng, letters)));
        dt_buffer_add_char(text, ' ');
    }
}

static void merges_are_those_of_the_definition(void **state)
{
    (void)state;
    struct corpus *c = malloc(sizeof *c);
    struct dt_rng rng;
    dt_rng_init(&rng, 31);
    for (int round = 0; round < 30; round++) {
        struct dt_buffer text = DT_BUFFER_EMPTY;
        add_random_words(&text, &rng);
        struct dt_vocab_trainer_options options = {
            "gpt2", 257 + dt_rng_below(&rng, 60), 1, specials, 1, 1};
        struct dt_tokenizer *t = train(&options, text.data, text.size, text.size);
        cut_corpus(c, t, text.data, text.size);
        uint32_t left = check_merges(c, t);
        assert_true(t->size == options.size || left == 0);
        assert_int_equal(t->merge_count, t->size - 257);
        dt_tokenizer_free(t);
        dt_buffer_release(&text);
    }
    free(c);
}

static void rare_pairs_are_not_merged(void **state)
{
    (void)state;
    const char *text = "abab abab abab xy xy q";
    struct corpus *c = malloc(sizeof *c);
    for (uint64_t least = 1; least <= 4; least++) {
        struct dt_vocab_trainer_options options = {"gpt2", 400, least, specials, 1, 1};
        struct dt_tokenizer *t = train(&options, text, strlen(text), 100);
        cut_corpus(c, t, text, strlen(text));
        assert_true(check_merges(c, t) < least);
        assert_true(t->size < 400);
        dt_tokenizer_free(t);
    }
    free(c);
}

static char *read_golden(const char *path, size_t *size)
{
    struct dt_error err;
    char *text;
    assert_int_equal(dt_file_read(path, 1 << 20, &text, size, &err), 0);
    return text;
}

static void documents_and_threads_do_not_change_the_vocabulary(void **state)
{
    (void)state;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct dt_rng rng;
    dt_rng_init(&rng, 37);
    while (text.size < 5 << 20) { /* more than one thread's share */
        for (uint32_t i = 1 + dt_rng_below(&rng, 9); i > 0; i--)
            dt_buffer_add_char(&text, (char)('a' + dt_rng_below(&rng, 5)));
        dt_buffer_add_char(&text, ' ');
    }
    uint64_t first = 0;
    for (int threads = 1; threads <= 4; threads++) {
        struct dt_vocab_trainer_options options = {"gpt2", 600, 2, specials, 1, threads};
        struct dt_tokenizer *t = train(&options, text.data, text.size, text.size);
        first = first ? first : dt_tokenizer_fingerprint(t);
        assert_int_equal(dt_tokenizer_fingerprint(t), first);
        dt_tokenizer_free(t);
    }
    dt_buffer_release(&text);
}

static void ids_are_bytes_then_merges_then_special_tokens(void **state)
{
    (void)state;
    const char *many[] = {"<|endoftext|>", "<pad>", "<\xc3\xa9 1>"};
    size_t size;
    char *text = read_golden("tests/token/golden/corpus.txt", &size);
    struct dt_vocab_trainer_options options = {"gpt2", 300, 2, many, 3, 2};
    struct dt_tokenizer *t = train(&options, text, size, size);
    unsigned char order[256];
    dt_byte_level_order(order);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(dt_tokenizer_find(t, (char *)&order[i], 1), i);
    assert_int_equal(dt_tokenizer_size(t), 300);
    assert_int_equal(dt_tokenizer_eot(t), 297);
    assert_int_equal(dt_tokenizer_find(t, "<pad>", 5), 298);
    assert_int_equal(dt_tokenizer_find(t, many[2], strlen(many[2])), 299);
    assert_int_equal(t->merge_count, 300 - 256 - 3);
    dt_tokenizer_free(t);
    free(text);
}

static void the_least_size_is_a_vocabulary_of_bytes(void **state)
{
    (void)state;
    struct dt_vocab_trainer_options options = {"gpt2", 257, 2, specials, 1, 1};
    struct dt_tokenizer *t = train(&options, "aa aa aa", 8, 8);
    assert_int_equal(t->merge_count, 0);
    assert_int_equal(dt_tokenizer_size(t), 257);
    assert_int_equal(dt_tokenizer_eot(t), 256);
    dt_tokenizer_free(t);
}

static void endless_words_are_learnt_from_in_parts(void **state)
{
    (void)state;
    size_t size = 3 << 20;
    char *text = malloc(size);
    memset(text, 'a', size);
    struct dt_vocab_trainer_options options = {"gpt2", 267, 2, specials, 1, 2};
    struct dt_tokenizer *t = train(&options, text, size, size);
    assert_int_equal(dt_tokenizer_find(t, text, 1024), 265); /* aa, aaaa, ... */
    dt_tokenizer_free(t);
    free(text);
}

static void impossible_options_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {{"<a>", "<a>"}, {"<a>", ""}, {"<a>", "<\xff>"}};
    static const char *const messages[] = {"the special token '<a>' is given twice",
                                           "a special token is empty", "is not UTF-8"};
    struct dt_vocab_trainer *trainer;
    struct dt_error err;
    for (int i = 0; i < 3; i++) {
        struct dt_vocab_trainer_options options = {"gpt2", 300, 1, (const char **)wrong[i], 2, 1};
        assert_int_equal(dt_vocab_trainer_new(&trainer, &options, &err), DT_EINVALID);
        assert_non_null(strstr(err.text, messages[i]));
    }
    struct dt_vocab_trainer_options small = {"gpt2", 256, 1, specials, 1, 1};
    assert_int_equal(dt_vocab_trainer_new(&trainer, &small, &err), DT_EINVALID);
    assert_string_equal(err.text,
                        "a vocabulary of 256 is too small: bytes and special tokens are 257");
    struct dt_vocab_trainer_options unknown = {"gpt3", 300, 1, specials, 1, 1};
    assert_int_equal(dt_vocab_trainer_new(&trainer, &unknown, &err), DT_EINVALID);
    assert_string_equal(err.text, "unknown pattern 'gpt3'");
}

static int finish(const char *special, const char *text, struct dt_error *err)
{
    struct dt_vocab_trainer_options options = {"gpt2", 300, 1, &special, 1, 1};
    struct dt_vocab_trainer *trainer;
    struct dt_tokenizer *t;
    assert_int_equal(dt_vocab_trainer_new(&trainer, &options, err), 0);
    dt_vocab_trainer_add(trainer, text, strlen(text));
    int rc = dt_vocab_trainer_finish(trainer, &t, err);
    if (rc < 0)
        assert_null(t);
    dt_tokenizer_free(t);
    dt_vocab_trainer_free(trainer);
    return rc;
}

static void a_special_token_that_is_an_ordinary_one_is_refused(void **state)
{
    (void)state;
    static const char *const taken[] = {"abc", "a", "\xc3\xa9",
                                        "\xc4\xa0"
                                        "abc"};
    struct dt_error err;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        assert_int_equal(finish(taken[i], "abc abc abc", &err), DT_EINVALID);
        assert_non_null(strstr(err.text, "is also an ordinary one"));
    }
    assert_int_equal(finish("abcd", "abc abc abc", &err), 0);
}

static void no_text_is_an_error(void **state)
{
    (void)state;
    struct dt_error err;
    assert_int_equal(finish("<s>", "", &err), DT_EFORMAT);
    assert_string_equal(err.text, "the input contains no text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_are_those_of_the_definition),
        cmocka_unit_test(rare_pairs_are_not_merged),
        cmocka_unit_test(documents_and_threads_do_not_change_the_vocabulary),
        cmocka_unit_test(ids_are_bytes_then_merges_then_special_tokens),
        cmocka_unit_test(the_least_size_is_a_vocabulary_of_bytes),
        cmocka_unit_test(endless_words_are_learnt_from_in_parts),
        cmocka_unit_test(impossible_options_are_refused),
        cmocka_unit_test(a_special_token_that_is_an_ordinary_one_is_refused),
        cmocka_unit_test(no_text_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
