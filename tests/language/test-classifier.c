/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "language/classifier.h"
#include "scratch.h"
#include "json/json.h"

#define GOLDEN  "tests/language/golden/"
#define SOFTMAX GOLDEN "softmax.ftz"
#define TREE    GOLDEN "tree.bin"

/* One answer of fastText: tests/oracles/fasttext_oracle.py golden. */
static void check_answer(struct json_object *answer, struct dt_classifier_scratch *memory)
{
    struct json_object *scores, *text;
    const char *model;
    struct dt_classifier *c;
    struct dt_error err;
    char path[128];
    assert_int_equal(dt_json_get_string(answer, "model", "answer", &model, &err), 0);
    assert_int_equal(dt_json_get(answer, "text", json_type_string, "answer", &text, &err), 0);
    assert_int_equal(dt_json_get(answer, "scores", json_type_object, "answer", &scores, &err), 0);
    snprintf(path, sizeof path, GOLDEN "%s", model);
    assert_int_equal(dt_classifier_read(&c, path, &err), 0);
    const char *words = dt_json_text(text);
    const float *found = dt_classifier_score(c, words, strlen(words), memory);
    assert_int_equal(found != NULL, json_object_object_length(scores) > 0);
    /* fastText leaves out branches of the tree below 0.00001 */
    for (size_t i = 0; found && i < dt_classifier_labels(c); i++)
        assert_true(found[i] < 1e-5F ||
                    json_object_object_get_ex(scores, dt_classifier_label(c, i), NULL));
    json_object_object_foreach(scores, label, score)
    {
        size_t place = dt_classifier_find(c, label);
        assert_true(place < dt_classifier_labels(c));
        assert_true(found[place] == (float)json_object_get_double(score));
        assert_true(found[place] <= found[dt_classifier_best(c, found)]);
    }
    dt_classifier_free(c);
}

static void scores_have_the_bits_of_fasttext(void **state)
{
    (void)state;
    struct dt_classifier_scratch memory = {0};
    struct dt_error err;
    char *text, *line, *rest;
    size_t size, count = 0;
    assert_int_equal(dt_file_read(GOLDEN "answers.jsonl", 1 << 20, &text, &size, &err), 0);
    for (rest = text; (line = strsep(&rest, "\n")) != NULL && *line; count++) {
        struct json_object *answer;
        assert_int_equal(dt_json_parse(line, strlen(line), "answer", &answer, &err), 0);
        check_answer(answer, &memory);
        json_object_put(answer);
    }
    assert_int_equal(count, 5 * 14);
    dt_classifier_scratch_release(&memory);
    free(text);
}

static void labels_are_found_with_and_without_their_prefix(void **state)
{
    (void)state;
    struct dt_classifier *c;
    struct dt_error err;
    assert_int_equal(dt_classifier_read(&c, GOLDEN "tree.bin", &err), 0);
    assert_int_equal(dt_classifier_labels(c), 3);
    size_t place = dt_classifier_find(c, "de");
    assert_string_equal(dt_classifier_label(c, place), "de");
    assert_int_equal(dt_classifier_find(c, "__label__de"), place);
    assert_int_equal(dt_classifier_find(c, "fr"), 3);
    dt_classifier_free(c);
}

/* Reads the first `size` bytes of a model, with byte `at` changed. */
static int read_spoiled(const char *name, size_t size, size_t at, char change, struct dt_error *err)
{
    char *data;
    size_t all;
    struct dt_classifier *c = NULL;
    struct dt_error ignored;
    assert_int_equal(dt_file_read(name, 1 << 20, &data, &all, &ignored), 0);
    if (size > all)
        size = all;
    if (at < size)
        data[at] = (char)(data[at] ^ change);
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/model", scratch);
    assert_int_equal(dt_file_write(path, data, size, &ignored), 0);
    free(data);
    int rc = dt_classifier_read(&c, path, err);
    if (rc == 0) {
        struct dt_classifier_scratch memory = {0};
        (void)dt_classifier_score(c, "der Hund <x>", 12, &memory);
        dt_classifier_scratch_release(&memory);
    }
    dt_classifier_free(c);
    return rc;
}

static void models_that_end_early_are_refused(void **state)
{
    (void)state;
    struct dt_error err;
    for (size_t size = 0; size < 2200; size += size < 400 ? 1 : 37) {
        assert_int_equal(read_spoiled(TREE, size < 1000 ? size : 1000, SIZE_MAX, 0, &err),
                         DT_EFORMAT);
        assert_int_equal(read_spoiled(SOFTMAX, size, SIZE_MAX, 0, &err), DT_EFORMAT);
        assert_non_null(strstr(err.text, "not a model of fastText, or damaged"));
    }
}

static void changed_bytes_are_refused_or_harmless(void **state)
{
    (void)state;
    struct dt_error err;
    for (size_t at = 0; at < 700; at++)
        for (int bit = 0; bit < 8; bit += 7)
            (void)read_spoiled(SOFTMAX, SIZE_MAX, at, (char)(1 << bit), &err);
    assert_int_equal(read_spoiled(SOFTMAX, SIZE_MAX, 0, 1, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "another magic number at byte 4 of"));
    assert_int_equal(read_spoiled(SOFTMAX, SIZE_MAX, 4, 2, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "an unknown version"));
    assert_int_equal(read_spoiled(SOFTMAX, SIZE_MAX, 36, 1, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "word vectors of fastText; a classifier expected"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_have_the_bits_of_fasttext),
        cmocka_unit_test(labels_are_found_with_and_without_their_prefix),
        cmocka_unit_test_setup_teardown(models_that_end_early_are_refused, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(changed_bytes_are_refused_or_harmless, make_scratch,
                                        remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
