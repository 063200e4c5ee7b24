/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "clean/drop-list.h"
#include "dedup/minhash.h"
#include "dedup/near-duplicates.h"
#include "dedup/shingle.h"
#include "dedup/signer.h"
#include "hash/hash.h"
#include "math/rng.h"

static struct dt_error err;

/* --- shingles --------------------------------------------------------------------------------- */

static void assert_same_shingles(const char *a, const char *b, int n, bool same)
{
    struct dt_shingles x = {0}, y = {0};
    dt_shingles_find(&x, n, a, strlen(a));
    dt_shingles_find(&y, n, b, strlen(b));
    bool equal = x.count == y.count && memcmp(x.items, y.items, x.count * sizeof *x.items) == 0;
    assert_int_equal(equal, same);
    dt_shingles_release(&x);
    dt_shingles_release(&y);
}

static void case_marks_numbers_and_punctuation_do_not_count(void **state)
{
    (void)state;
    assert_same_shingles("The Caf\xc3\xa9, in 1984!", "the cafe in 7", 2, true);
    assert_same_shingles("e\xcc\x81t\xc3\xa9", "ete", 1, true);
    assert_same_shingles("1,000", "0 0", 2, true);
    assert_same_shingles("a-b \xe2\x80\x9c"
                         "c\xe2\x80\x9d",
                         "a b c", 3, true);
    assert_same_shingles("\xd9\xa1\xd9\xa2 x", "5 x", 2, true);
    assert_same_shingles("a b c", "a c b", 2, false);
    assert_same_shingles("a b", "ab", 1, false);
}

static void a_shingle_is_a_window_of_words(void **state)
{
    (void)state;
    struct dt_shingles s = {0}, t = {0};
    dt_shingles_find(&s, 3, "a b c d a b c", 13);
    assert_int_equal(s.words, 7);
    assert_int_equal(s.count, 5);
    assert_true(s.items[0] == s.items[4]);
    assert_true(s.items[0] != s.items[1]);
    dt_shingles_find(&t, 3, "x y z b c d", 11);
    assert_true(t.items[3] == s.items[1]);
    dt_shingles_find(&s, 3, "a b", 3);
    assert_int_equal(s.count, 0);
    assert_true(s.whole != 0);
    uint64_t whole = s.whole;
    dt_shingles_find(&s, 3, "A, b!", 5);
    assert_true(s.whole == whole);
    dt_shingles_find(&s, 3, "b a", 3);
    assert_true(s.whole != whole);
    dt_shingles_release(&s);
    dt_shingles_release(&t);
}

/* A letter of Han is two thirds of a word, of Kana half, of Thai a third. */
static void characters_of_scripts_without_blanks_are_parts_of_words(void **state)
{
    static const struct {
        const char *text;
        size_t words, count;
    } texts[] = {
        {"\u6211\u5011\u559c\u6b61\u5403\u98ef\u548c\u7761\u89ba\u7684", 10, 3},
        {"\u6211\u5011\u559c\u6b61\u5403\u98ef\u548c\u7761\u89ba\u7684\u4eba", 11, 4},
        {"\u3042\u3044\u3046\u3048\u304a\u30ab\u30ad\u30af\u30b1\u3002", 9, 0},
        {"\u0e01\u0e02\u0e04\u0e07\u0e08\u0e0a\u0e0b\u0e0d\u0e14\u0e15\u0e16\u0e17\u0e18\u0e19"
         "\u0e1a",
         15, 1},
        {"\u0e19\u0e49\u0e33", 2, 0}, /* without the tone mark */
        {"one two three four \u6211\u5011\u559c", 7, 2},
        {"\ud55c\uad6d\uc5b4 \ub2e8\uc5b4 \uc138 \uac1c", 4, 0}, /* Hangul has blanks */
    };
    (void)state;
    struct dt_shingles s = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        dt_shingles_find(&s, 5, texts[i].text, strlen(texts[i].text));
        if (s.words != texts[i].words || s.count != texts[i].count)
            fail_msg("text %zu: %zu words, %zu shingles", i, s.words, s.count);
    }
    dt_shingles_release(&s);
    assert_same_shingles("Linux\u5185\u6838", "linux \u5185\u6838", 2, true);
    assert_same_shingles("\u5185\u3001\u6838", "\u5185\u6838", 1, true);
    assert_same_shingles("\u5185\u6838", "\u6838\u5185", 1, false);
}

/* --- signatures ------------------------------------------------------------------------------- */

/* Two random sets of count shingles each, `shared` of them in both. */
static void random_sets(struct dt_rng *rng, size_t count, size_t shared, uint64_t *a, uint64_t *b)
{
    for (size_t i = 0; i < count; i++) {
        a[i] = dt_rng_u64(rng);
        b[i] = i < shared ? a[i] : dt_rng_u64(rng);
    }
}

static void pairs_are_found_with_the_probability_of_the_formula(void **state)
{
    (void)state;
    enum { COUNT = 90, PAIRS = 3000, BANDS = 14 };
    static const size_t shared[] = {60, 68, 75, 80, 85}; /* similarity 0.5, 0.61, 0.71, 0.8, 0.89 */
    struct dt_minhash *m = dt_minhash_new(BANDS, 8, 1);
    struct dt_minhash_scratch working = {0};
    struct dt_rng rng;
    dt_rng_init(&rng, 3);
    for (size_t k = 0; k < sizeof shared / sizeof *shared; k++) {
        double similarity = (double)shared[k] / (double)(2 * COUNT - shared[k]);
        double expected = dt_minhash_probability(BANDS, 8, similarity);
        int found = 0;
        for (int pair = 0; pair < PAIRS; pair++) {
            uint64_t a[COUNT], b[COUNT], x[BANDS], y[BANDS];
            random_sets(&rng, COUNT, shared[k], a, b);
            dt_minhash_keys(m, a, COUNT, &working, x);
            dt_minhash_keys(m, b, COUNT, &working, y);
            bool same = false;
            for (int band = 0; band < BANDS; band++)
                same = same || x[band] == y[band];
            found += same;
        }
        double deviation = sqrt(expected * (1 - expected) / PAIRS);
        assert_true(fabs((double)found / PAIRS - expected) < 4 * deviation + 0.003);
    }
    dt_minhash_scratch_release(&working);
    dt_minhash_free(m);
}

static void keys_do_not_depend_on_order_or_repetition(void **state)
{
    (void)state;
    struct dt_minhash *m = dt_minhash_new(5, 3, 9);
    struct dt_minhash_scratch working = {0};
    uint64_t a[40], b[40], x[5], y[5];
    struct dt_rng rng;
    dt_rng_init(&rng, 4);
    for (int i = 0; i < 20; i++) {
        a[i] = a[39 - i] = dt_rng_u64(&rng);
        b[i] = a[i];
    }
    dt_minhash_keys(m, a, 40, &working, x);
    dt_minhash_keys(m, b, 20, &working, y);
    assert_memory_equal(x, y, sizeof x);
    dt_minhash_scratch_release(&working);
    dt_minhash_free(m);
}

/* 32 bits of a shingle are not enough for short texts, of which there are many. */
static void keys_of_a_single_shingle_have_all_its_bits(void **state)
{
    (void)state;
    struct dt_minhash *m = dt_minhash_new(2, 3, 1);
    struct dt_minhash_scratch working = {0};
    uint64_t a[3] = {7, 7, 7}, b = 8, x[2], y[2];
    dt_minhash_keys(m, a, 1, &working, x);
    dt_minhash_keys(m, &b, 1, &working, y);
    assert_true(x[0] != y[0] && x[1] != y[1] && x[0] != x[1]);
    dt_minhash_keys(m, a, 3, &working, y);
    assert_memory_equal(x, y, sizeof x);
    dt_minhash_scratch_release(&working);
    dt_minhash_free(m);
}

/* --- files ------------------------------------------------------------------------------------ */

#define BANDS 3

/* Writes documents with keys below limit, so that many are shared; keys is filled. */
static void write_file(const char *path, struct dt_rng *rng, size_t count, uint32_t limit,
                       uint64_t (*keys)[BANDS])
{
    const struct dt_signature_settings settings = {BANDS, 2, 5, 1};
    struct dt_signature_writer *w;
    struct dt_output out;
    assert_int_equal(dt_output_open(&out, path, &err), 0);
    assert_int_equal(dt_signature_writer_open(&w, &settings, &out, &err), 0);
    for (size_t i = 0; i < count; i++) {
        for (int band = 0; band < BANDS; band++)
            keys[i][band] = dt_rng_below(rng, limit) * UINT64_C(0x9e3779b97f4a7c15);
        assert_int_equal(dt_signature_writer_add(w, i, keys[i], &err), 0);
    }
    assert_int_equal(dt_signature_writer_end(w, &err), 0);
    dt_signature_writer_free(w);
    assert_int_equal(dt_output_commit(&out, &err), 0);
}

/* The first document that each is joined with, by looking at every pair. */
static void join_plainly(uint64_t (*keys)[BANDS], size_t count, size_t *first)
{
    for (size_t i = 0; i < count; i++)
        first[i] = i;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            bool same = false;
            for (int band = 0; band < BANDS; band++)
                same = same || keys[i][band] == keys[k][band];
            if (!same || first[i] == first[k])
                continue;
            size_t low = first[i] < first[k] ? first[i] : first[k];
            size_t high = first[i] < first[k] ? first[k] : first[i];
            for (size_t j = 0; j <= i; j++)
                first[j] = first[j] == high ? low : first[j];
        }
    }
}

static void assert_lists(struct dt_near_duplicates *d, const size_t *first, const size_t *counts)
{
    size_t document = 0;
    for (int file = 0; file < 2; file++) {
        struct dt_output out;
        struct dt_drop_list *list;
        struct dt_buffer like = DT_BUFFER_EMPTY;
        assert_int_equal(dt_output_open(&out, "list", &err), 0);
        assert_int_equal(dt_near_duplicates_list(d, file, &out, &err), 0);
        assert_int_equal(dt_output_commit(&out, &err), 0);
        char *text;
        size_t size;
        assert_int_equal(dt_file_read("list", 1 << 20, &text, &size, &err), 0);
        char *line = text, end[64];
        size_t listed = 0;
        for (size_t i = 0; i < counts[file]; i++, document++) {
            char expected[96];
            if (first[document] == document)
                continue;
            size_t like_file = first[document] >= counts[0];
            snprintf(expected, sizeof expected, "%zu %016zx %s:%zu\n", i + 1, i,
                     like_file ? "b" : "a", first[document] - like_file * counts[0] + 1);
            assert_int_equal(strncmp(line, expected, strlen(expected)), 0);
            line += strlen(expected);
            listed++;
        }
        snprintf(end, sizeof end, "end %zu of %zu\n", listed, counts[file]);
        assert_string_equal(line, end);
        free(text);
        assert_int_equal(dt_drop_list_open(&list, "list", &err), 0);
        dt_drop_list_close(list);
        dt_buffer_release(&like);
    }
}

/* Merges the bands in as many tasks, the last first. */
static void merge_tasks(struct dt_signature_set *set, uint64_t tasks, struct dt_near_duplicates *d)
{
    uint32_t bands = dt_signature_set_size(set).settings.bands;
    for (uint64_t task = tasks; task-- > 0;)
        for (uint32_t band = 0; band < bands; band++)
            assert_int_equal(dt_signature_set_merge(set, band,
                                                    (struct dt_signature_task){task, tasks},
                                                    dt_near_duplicates_link, d, &err),
                             0);
}

static void clusters_are_those_of_looking_at_every_pair(void **state)
{
    (void)state;
    char *paths[] = {"a.sig", "b.sig"};
    struct dt_rng rng;
    dt_rng_init(&rng, 7);
    for (uint64_t trial = 0; trial < 8; trial++) {
        static uint64_t keys[500][BANDS];
        static size_t first[500];
        const size_t counts[] = {dt_rng_below(&rng, 250), 1 + dt_rng_below(&rng, 240)};
        uint32_t limit = 100u << trial;
        struct dt_signature_set *set;
        write_file("a.sig", &rng, counts[0], limit, keys);
        write_file("b.sig", &rng, counts[1], limit, keys + counts[0]);
        assert_int_equal(dt_signature_set_open(&set, paths, 2, true, &err), 0);
        struct dt_near_duplicates *d = dt_near_duplicates_new(set);
        merge_tasks(set, 1 + trial * trial, d);
        join_plainly(keys, counts[0] + counts[1], first);
        assert_lists(d, first, counts);
        dt_near_duplicates_free(d);
        dt_signature_set_close(set);
    }
}

/* A file of several runs: each document of the second is like one of the first. */
static void clusters_reach_over_runs(void **state)
{
    (void)state;
    char *paths[] = {"runs.sig"};
    const struct dt_signature_settings settings = {1, 1, 5, 1};
    struct dt_signature_writer *w;
    struct dt_signature_set *set;
    struct dt_output out;
    assert_int_equal(dt_output_open(&out, "runs.sig", &err), 0);
    assert_int_equal(dt_signature_writer_open(&w, &settings, &out, &err), 0);
    for (uint64_t i = 0; i < DT_SIGNATURE_RUN + 1000; i++) {
        uint64_t key = i % DT_SIGNATURE_RUN * UINT64_C(0x9e3779b97f4a7c15);
        assert_int_equal(dt_signature_writer_add(w, i, &key, &err), 0);
    }
    assert_int_equal(dt_signature_writer_end(w, &err), 0);
    dt_signature_writer_free(w);
    assert_int_equal(dt_output_commit(&out, &err), 0);
    assert_int_equal(dt_signature_set_open(&set, paths, 1, true, &err), 0);
    assert_int_equal(dt_signature_set_size(set).runs, 2);
    for (uint64_t tasks = 1; tasks < 1000; tasks *= 5) {
        struct dt_near_duplicates *d = dt_near_duplicates_new(set);
        merge_tasks(set, tasks, d);
        assert_int_equal(dt_near_duplicates_count(d), 1000);
        dt_near_duplicates_free(d);
    }
    dt_signature_set_close(set);
}

static void a_damaged_file_is_refused(void **state)
{
    (void)state;
    static uint64_t keys[50][BANDS];
    struct dt_signature_file file;
    struct dt_rng rng;
    char *data;
    size_t size;
    dt_rng_init(&rng, 8);
    write_file("whole.sig", &rng, 50, 20, keys);
    assert_int_equal(dt_signature_file_open(&file, "whole.sig", true, &err), 0);
    assert_int_equal(file.documents, 50);
    dt_signature_file_close(&file);
    assert_int_equal(dt_file_read("whole.sig", 1 << 20, &data, &size, &err), 0);
    for (size_t cut = 0; cut < size; cut += 1 + cut / 20) {
        assert_int_equal(dt_file_write("cut.sig", data, cut, &err), 0);
        assert_int_equal(dt_signature_file_open(&file, "cut.sig", true, &err), DT_EFORMAT);
    }
    for (size_t at = 0; at < size; at += 3) {
        data[at] ^= 0x10;
        assert_int_equal(dt_file_write("flipped.sig", data, size, &err), 0);
        assert_int_equal(dt_signature_file_open(&file, "flipped.sig", true, &err), DT_EFORMAT);
        data[at] ^= 0x10;
    }
    free(data);
}

static void a_list_of_other_documents_is_refused(void **state)
{
    (void)state;
    struct dt_drop_list *list;
    struct dt_buffer like = DT_BUFFER_EMPTY;
    bool listed;
    char hex[DT_HASH_HEX], line[64];
    snprintf(line, sizeof line, "2 %s a:1\nend 1 of 3\n", dt_hash_hex(dt_hash("text", 4), hex));
    assert_int_equal(dt_file_write("list", line, strlen(line), &err), 0);
    assert_int_equal(dt_drop_list_open(&list, "list", &err), 0);
    assert_int_equal(dt_drop_list_ask(list, 1, "x", 1, &listed, &like, &err), 0);
    assert_false(listed);
    assert_int_equal(dt_drop_list_end(list, 1, &err), DT_EINVALID);
    assert_int_equal(dt_drop_list_ask(list, 2, "test", 4, &listed, &like, &err), DT_EINVALID);
    assert_int_equal(dt_drop_list_ask(list, 2, "text", 4, &listed, &like, &err), 0);
    assert_true(listed);
    assert_string_equal(like.data, "a:1");
    assert_int_equal(dt_drop_list_end(list, 2, &err), DT_EINVALID);
    assert_int_equal(dt_drop_list_end(list, 3, &err), 0);
    dt_drop_list_close(list);
    static const char *const bad[] = {"x\n",     "1\n",          "2 1 a\n1 1 a\n", "0 1 a\n",
                                      "",        "end 0 of 1",   "end 1 of 1\n",   "end 0 of 1\nx",
                                      "end 0\n", "end 0 of 1 \n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(dt_file_write("list", bad[i], strlen(bad[i]), &err), 0);
        int rc = dt_drop_list_open(&list, "list", &err);
        if (rc == 0)
            rc = dt_drop_list_ask(list, 2, NULL, 0, &listed, &like, &err);
        assert_true(rc < 0);
        dt_drop_list_close(list);
    }
    dt_buffer_release(&like);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_marks_numbers_and_punctuation_do_not_count),
        cmocka_unit_test(a_shingle_is_a_window_of_words),
        cmocka_unit_test(characters_of_scripts_without_blanks_are_parts_of_words),
        cmocka_unit_test(pairs_are_found_with_the_probability_of_the_formula),
        cmocka_unit_test(keys_do_not_depend_on_order_or_repetition),
        cmocka_unit_test(keys_of_a_single_shingle_have_all_its_bits),
        cmocka_unit_test(clusters_are_those_of_looking_at_every_pair),
        cmocka_unit_test(clusters_reach_over_runs),
        cmocka_unit_test(a_damaged_file_is_refused),
        cmocka_unit_test(a_list_of_other_documents_is_refused),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
