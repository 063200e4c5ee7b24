/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "language/classifier-internal.h"
#include "language/classifier-trainer.h"
#include "language/label-counts.h"
#include "scratch.h"

static const char *const texts[][2] = {
    {"fruit", "apples and pears are sweet"},    {"tool", "a hammer and a saw are useful"},
    {"fruit", "sweet plums, apples and figs"},  {"tool", "the saw cuts and the hammer hits"},
    {"fruit", "figs and pears ripen in time"},  {"tool", "nails need a hammer in the hand"},
    {"fruit", "a plum is a sweet small thing"}, {"tool", "saws, nails and files for wood"},
    {"tool", "files smooth what the saw cut"},
};
#define TEXTS (sizeof texts / sizeof *texts)

static const struct dt_classifier_trainer_options small = {.dim = 8,
                                                           .epochs = 60,
                                                           .word_ngrams = 2,
                                                           .shortest = 2,
                                                           .longest = 4,
                                                           .buckets = 2000,
                                                           .min_count = 1,
                                                           .rate = 0.5,
                                                           .seed = 3};

static struct dt_classifier_trainer *trained(const struct dt_classifier_trainer_options *how)
{
    struct dt_error err;
    struct dt_classifier_trainer *t = dt_classifier_trainer_new(how);
    for (size_t i = 0; i < TEXTS; i++)
        assert_int_equal(
            dt_classifier_trainer_add(t, texts[i][0], texts[i][1], strlen(texts[i][1]), &err), 0);
    assert_int_equal(dt_classifier_trainer_begin(t, &err), 0);
    while (dt_classifier_trainer_step(t, &err) > 0)
        ;
    assert_int_equal(dt_classifier_trainer_state(t).epoch, how->epochs);
    return t;
}

static void write_model(const struct dt_classifier_trainer_options *how, const char *path)
{
    struct dt_error err;
    struct dt_output out;
    struct dt_classifier_trainer *t = trained(how);
    assert_int_equal(dt_output_open(&out, path, &err), 0);
    assert_int_equal(dt_classifier_trainer_write(t, &out, &err), 0);
    assert_int_equal(dt_output_commit(&out, &err), 0);
    dt_classifier_trainer_free(t);
}

static void a_model_is_read_again_and_knows_its_texts(void **state)
{
    (void)state;
    struct dt_classifier *c;
    struct dt_error err;
    write_model(&small, "m.bin");
    assert_int_equal(dt_classifier_read(&c, "m.bin", &err), 0);
    assert_int_equal(dt_classifier_labels(c), 2);
    assert_string_equal(dt_classifier_label(c, 0), "tool"); /* the more frequent one */
    struct dt_label_counts *counts = dt_label_counts_new(c);
    for (size_t i = 0; i < TEXTS; i++)
        assert_int_equal(
            dt_label_counts_add(counts, texts[i][0], texts[i][1], strlen(texts[i][1]), &err), 0);
    assert_int_equal(dt_label_counts_add(counts, "other", "x", 1, &err), DT_EINVALID);
    struct json_object *json = dt_label_counts_json(counts);
    assert_true(json_object_get_double(json_object_object_get(json, "accuracy")) == 1);
    json_object_put(json);
    dt_label_counts_free(counts);
    dt_classifier_free(c);
}

static char *bytes_of(const struct dt_classifier_trainer_options *how, size_t *size)
{
    char *bytes;
    struct dt_error err;
    write_model(how, "again.bin");
    assert_int_equal(dt_file_read("again.bin", 1 << 24, &bytes, size, &err), 0);
    return bytes;
}

static void equal_texts_give_equal_bytes_and_another_seed_others(void **state)
{
    (void)state;
    size_t sizes[3];
    struct dt_classifier_trainer_options other = small;
    other.seed++;
    char *a = bytes_of(&small, &sizes[0]), *b = bytes_of(&small, &sizes[1]),
         *c = bytes_of(&other, &sizes[2]);
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(a, b, sizes[0]);
    assert_int_equal(sizes[0], sizes[2]);
    assert_true(memcmp(a, c, sizes[0]) != 0);
    free(a);
    free(b);
    free(c);
}

static double loss_of(double rate, int32_t epochs)
{
    struct dt_classifier_trainer_options how = small;
    how.rate = rate;
    how.epochs = epochs;
    struct dt_classifier_trainer *t = trained(&how);
    double loss = dt_classifier_trainer_state(t).loss;
    dt_classifier_trainer_free(t);
    return loss;
}

static void the_loss_begins_at_that_of_chance_and_falls(void **state)
{
    (void)state;
    assert_true(fabs(loss_of(1e-6, 1) - log(2)) < 1e-5);
    assert_true(loss_of(0.5, 300) < 0.05);
    assert_true(loss_of(0.5, 30) > loss_of(0.5, 60));
}

static void words_below_the_count_are_left_out_and_all_is_an_error(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_classifier_trainer_options how = small;
    how.longest = how.shortest = 0;
    how.min_count = 3;
    struct dt_classifier_trainer *t = trained(&how);
    assert_int_equal(dt_classifier_trainer_state(t).words, 7); /* </s> and a the saw hammer sweet */
    dt_classifier_trainer_free(t);
    how.min_count = 1000;
    t = dt_classifier_trainer_new(&how);
    assert_int_equal(dt_classifier_trainer_add(t, "a", "x", 1, &err), 0);
    assert_int_equal(dt_classifier_trainer_add(t, "b", "y", 1, &err), 0);
    assert_int_equal(dt_classifier_trainer_begin(t, &err), DT_EINVALID);
    dt_classifier_trainer_free(t);
}

static void labels_are_words_and_two_are_needed(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_classifier_trainer *t = dt_classifier_trainer_new(&small);
    assert_int_equal(dt_classifier_trainer_add(t, "", "x", 1, &err), DT_EINVALID);
    assert_int_equal(dt_classifier_trainer_add(t, "two words", "x", 1, &err), DT_EINVALID);
    assert_int_equal(dt_classifier_trainer_add(t, "one", "x", 1, &err), 0);
    assert_int_equal(dt_classifier_trainer_begin(t, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "two labels"));
    dt_classifier_trainer_free(t);
}

static void labels_may_have_the_prefix_of_fasttext(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_classifier_trainer *t = dt_classifier_trainer_new(&small);
    assert_int_equal(dt_classifier_trainer_add(t, "__label__", "x", 1, &err), DT_EINVALID);
    assert_int_equal(dt_classifier_trainer_add(t, "__label__a", "x", 1, &err), 0);
    assert_int_equal(dt_classifier_trainer_add(t, "b", "y", 1, &err), 0);
    assert_int_equal(dt_classifier_trainer_add(t, "__label__b", "z", 1, &err), 0);
    assert_int_equal(dt_classifier_trainer_begin(t, &err), 0);
    assert_int_equal(dt_classifier_trainer_state(t).labels, 2);
    dt_classifier_trainer_free(t);
}

static void a_rate_at_which_numbers_overflow_is_an_error(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_classifier_trainer_options how = small;
    how.rate = 1e30;
    struct dt_classifier_trainer *t = dt_classifier_trainer_new(&how);
    for (size_t i = 0; i < TEXTS; i++)
        assert_int_equal(
            dt_classifier_trainer_add(t, texts[i][0], texts[i][1], strlen(texts[i][1]), &err), 0);
    assert_int_equal(dt_classifier_trainer_begin(t, &err), 0);
    int rc;
    while ((rc = dt_classifier_trainer_step(t, &err)) > 0)
        ;
    assert_int_equal(rc, DT_EINVALID);
    assert_non_null(strstr(err.text, "not finite"));
    dt_classifier_trainer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_model_is_read_again_and_knows_its_texts, enter_scratch,
                                        leave_scratch),
        cmocka_unit_test_setup_teardown(equal_texts_give_equal_bytes_and_another_seed_others,
                                        enter_scratch, leave_scratch),
        cmocka_unit_test(the_loss_begins_at_that_of_chance_and_falls),
        cmocka_unit_test(words_below_the_count_are_left_out_and_all_is_an_error),
        cmocka_unit_test(labels_are_words_and_two_are_needed),
        cmocka_unit_test(labels_may_have_the_prefix_of_fasttext),
        cmocka_unit_test(a_rate_at_which_numbers_overflow_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
