/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "math/rng.h"
#include "token/unigram.h"
#include "token/vocabulary.h"
#include "vocab/learn-unigram.h"

#define MARK "\xe2\x96\x81"

/* Characters of random texts: one with two bytes, one without a piece. */
static const char *const letters[] = {"a", "b", "\xc3\xa9", MARK, "?"};
#define KNOWN 4

/* A model of all characters but the last and of random pieces, whose scores often tie. */
struct random_model {
    struct dt_unigram unigram;
    char text[64][32];
    struct dt_trie_piece pieces[64];
    uint32_t count;
};

static void add_piece(struct random_model *m, const char *text, struct dt_rng *rng)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (strcmp(m->text[i], text) == 0)
            return;
    strcpy(m->text[m->count], text);
    m->pieces[m->count] =
        (struct dt_trie_piece){m->text[m->count], (uint32_t)strlen(text), m->count};
    m->unigram.scores[m->count] = -(double)(float)(1 + 0.3 * (double)dt_rng_below(rng, 20));
    m->count++;
}

static void make(struct random_model *m, uint64_t seed, bool rounds_to_float)
{
    struct dt_rng rng;
    dt_rng_init(&rng, seed);
    *m = (struct random_model){.count = 0};
    m->unigram = (struct dt_unigram){.scores = dt_alloc(64, sizeof(double)),
                                     .size = 64,
                                     .unknown_score = -20,
                                     .unknown = 63,
                                     .rounds_to_float = rounds_to_float};
    for (size_t i = 0; i < KNOWN; i++)
        add_piece(m, letters[i], &rng);
    for (int i = 0; i < 40; i++) {
        char text[32] = "";
        for (uint64_t n = 2 + dt_rng_below(&rng, 3); n > 0; n--)
            strcat(text, letters[dt_rng_below(&rng, KNOWN)]);
        if (seed % 2 == 0 || strstr(text + 1, MARK) == NULL)
            add_piece(m, text, &rng);
    }
    struct dt_trie_piece copy[64];
    memcpy(copy, m->pieces, sizeof copy);
    dt_unigram_build(&m->unigram, copy, m->count);
}

static void release(struct random_model *m)
{
    dt_piece_trie_release(&m->unigram.trie);
    free(m->unigram.scores);
    free(m->unigram.float_scores);
}

/* The segmentation by the definition, over all pieces at each offset. */
static size_t encode_by_definition(const struct random_model *m, const char *text, size_t size,
                                   uint32_t *ids)
{
    double *best = dt_alloc(size + 1, sizeof *best);
    uint32_t *id = dt_alloc(size + 1, sizeof *id), *start = dt_alloc(size + 1, sizeof *start);
    for (size_t end = 1; end <= size; end++)
        best[end] = -INFINITY;
    for (size_t at = 0; at < size; at++) {
        for (size_t length = 1; at + length <= size; length++) {
            for (uint32_t i = 0; i <= m->count; i++) {
                bool unknown = i == m->count;
                if (unknown ? length != 1 || text[at] != '?'
                            : m->pieces[i].size != length ||
                                  memcmp(text + at, m->pieces[i].bytes, length) != 0)
                    continue;
                double sum = best[at] + (unknown ? -20 : m->unigram.scores[i]);
                sum = m->unigram.rounds_to_float ? (double)(float)sum : sum;
                if (!(sum > best[at + length]))
                    continue;
                best[at + length] = sum;
                id[at + length] = unknown ? 63 : i;
                start[at + length] = (uint32_t)at;
            }
        }
    }
    size_t count = 0;
    for (size_t end = size; end > 0; end = start[end])
        ids[count++] = id[end];
    for (size_t i = 0; i < count / 2; i++) {
        uint32_t swapped = ids[i];
        ids[i] = ids[count - 1 - i];
        ids[count - 1 - i] = swapped;
    }
    free(best);
    free(id);
    free(start);
    return count;
}

static void random_text(struct dt_rng *rng, char text[256])
{
    *text = 0;
    for (uint64_t n = dt_rng_below(rng, 60) + 1; n > 0; n--)
        strcat(text, letters[dt_rng_below(rng, sizeof letters / sizeof *letters)]);
}

/* Ties, words of the cache, words after many others, runs of unknown characters. */
static void segmentations_are_those_of_the_definition(void **state)
{
    (void)state;
    struct dt_rng rng;
    dt_rng_init(&rng, 1);
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random_model m;
        make(&m, seed, seed % 3 == 0);
        struct dt_unigram_work *w = dt_unigram_work_new();
        for (int n = 0; n < 60; n++) {
            char text[256];
            uint32_t ids[256], wanted[256];
            size_t ends[256];
            random_text(&rng, text);
            size_t size = strlen(text), count = encode_by_definition(&m, text, size, wanted);
            dt_unigram_start(w);
            assert_int_equal(dt_unigram_encode(&m.unigram, w, text, size, ids, ends), count);
            assert_memory_equal(ids, wanted, count * sizeof *ids);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(ends[i] - (i ? ends[i - 1] : 0),
                                 ids[i] == 63 ? 1 : m.pieces[ids[i]].size);
            assert_int_equal(ends[count - 1], size);
        }
        dt_unigram_work_free(w);
        release(&m);
    }
}

/* Segmentations that nearly tie: rounding of large sums chooses between them. */
static void ids_hold_after_every_sum_below_their_limit(void **state)
{
    (void)state;
    struct random_model m;
    struct dt_rng rng;
    unsigned others = 0, kept = 0;
    dt_rng_init(&rng, 2);
    make(&m, 3, true);
    for (uint32_t i = 0; i < m.count; i++) { /* a piece's score is nearly that of its characters */
        double noise = 1e-3 * (double)dt_rng_below(&rng, 100);
        m.unigram.scores[i] = (double)(float)(-2.0 * (double)m.pieces[i].size - noise);
        m.unigram.float_scores[i] = (float)m.unigram.scores[i];
    }
    m.unigram.largest = 40;
    struct dt_unigram_work *late = dt_unigram_work_new(), *early = dt_unigram_work_new();
    for (int n = 0; n < 3000; n++) {
        char word[64] = MARK;
        uint32_t after[64], alone[64];
        for (uint64_t k = 1 + dt_rng_below(&rng, 8); k > 0; k--)
            strcat(word, letters[dt_rng_below(&rng, 2)]);
        size_t size = strlen(word);
        if (n % 1500 == 0)
            dt_unigram_start(late);
        size_t count = dt_unigram_encode(&m.unigram, late, word, size, after, NULL);
        dt_unigram_start(early);
        bool same = dt_unigram_encode(&m.unigram, early, word, size, alone, NULL) == count &&
                    memcmp(after, alone, count * sizeof *after) == 0;
        others += !same;
        kept += dt_unigram_limit(late) > 0;
        assert_true(same || dt_unigram_limit(late) < 0);
    }
    assert_true(others > 10 && kept > 1000);
    dt_unigram_work_free(late);
    dt_unigram_work_free(early);
    release(&m);
}

static void unknown_characters_are_one_id_or_bytes(void **state)
{
    (void)state;
    struct random_model m;
    uint32_t ids[16], bytes[256];
    size_t ends[16];
    make(&m, 1, false);
    struct dt_unigram_work *w = dt_unigram_work_new();
    dt_unigram_start(w);
    assert_int_equal(dt_unigram_encode(&m.unigram, w, "?\xc3\xa0?\xff", 5, ids, ends), 4);
    m.unigram.fuse_unknown = true;
    dt_unigram_start(w);
    assert_int_equal(dt_unigram_encode(&m.unigram, w, "?\xc3\xa0?\xff", 5, ids, ends), 1);
    assert_int_equal(ids[0], 63);
    assert_int_equal(ends[0], 5);
    for (uint32_t i = 0; i < 256; i++)
        bytes[i] = 1000 + i;
    m.unigram.byte_ids = bytes;
    dt_unigram_start(w);
    assert_int_equal(dt_unigram_encode(&m.unigram, w, "?\xc3\xa0?\xff", 5, ids, ends), 5);
    assert_int_equal(ids[1], 1000 + 0xc3);
    assert_int_equal(ids[4], 1000 + 0xff);
    assert_int_equal(ends[2], 3);
    dt_unigram_work_free(w);
    release(&m);
}

/* A long text whose segmentations share no boundary, and one with many. */
static void long_texts_are_encoded_in_linear_time(void **state)
{
    (void)state;
    struct random_model m;
    size_t size = 3000000;
    char *text = dt_alloc(size, 1);
    uint32_t *ids = dt_alloc(size, sizeof *ids);
    make(&m, 1, true);
    struct dt_unigram_work *w = dt_unigram_work_new();
    memset(text, 'a', size);
    dt_unigram_start(w);
    assert_true(dt_unigram_encode(&m.unigram, w, text, size, ids, NULL) <= size);
    memset(text, '?', size);
    dt_unigram_start(w);
    assert_int_equal(dt_unigram_encode(&m.unigram, w, text, size, ids, NULL), size);
    dt_unigram_work_free(w);
    release(&m);
    free(text);
    free(ids);
}

static void training_finds_the_parts_of_words(void **state)
{
    (void)state;
    static const char *const parts[] = {"foo", "bar", "quux", "ing", "able"};
    struct dt_word_table words = {.words = NULL};
    struct dt_learned learned;
    struct dt_error err;
    struct dt_rng rng;
    dt_rng_init(&rng, 3);
    for (int i = 0; i < 3000; i++) {
        char word[64] = MARK;
        for (uint64_t n = 1 + dt_rng_below(&rng, 4); n > 0; n--)
            strcat(word, parts[dt_rng_below(&rng, 5)]);
        dt_word_counts_add_word(&words, word, strlen(word));
    }
    assert_int_equal(dt_learn_unigram(&learned, &words, 30, 1000, "", &err), 0);
    assert_true(learned.count <= 30);
    for (size_t k = 0; k < 5; k++) {
        bool found = false;
        for (uint32_t i = 0; i < 12; i++)
            found |= learned.pieces[i].size == strlen(parts[k]) &&
                     memcmp(learned.pieces[i].bytes, parts[k], strlen(parts[k])) == 0;
        assert_true(found);
    }
    for (uint32_t i = 1; i < learned.count; i++)
        assert_true(learned.scores[i] <= learned.scores[i - 1]);
    dt_learned_release(&learned);
    assert_int_equal(dt_learn_unigram(&learned, &words, 5, 1000, "", &err), DT_EINVALID);
    dt_learned_release(&learned);
    dt_word_counts_release(&words);
    assert_int_equal(dt_learn_unigram(&learned, &words, 5, 1000, "", &err), DT_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segmentations_are_those_of_the_definition),
        cmocka_unit_test(ids_hold_after_every_sum_below_their_limit),
        cmocka_unit_test(unknown_characters_are_one_id_or_bytes),
        cmocka_unit_test(long_texts_are_encoded_in_linear_time),
        cmocka_unit_test(training_finds_the_parts_of_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
