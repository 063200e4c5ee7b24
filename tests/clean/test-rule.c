/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "clean/rule.h"
#include "math/rng.h"

/* Applies the rules that options select; *dropped_by is NULL if the document stays.
 * *amount is the value that dropped it, or the changes made to it. */
static void apply(const struct dt_clean_options *options, struct dt_document *document,
                  const char **dropped_by, uint64_t *amount)
{
    struct dt_rule rules[DT_RULES_MAX];
    struct dt_rule_scratch scratch = {0};
    struct dt_clean_options all = *options;
    struct dt_error err;
    int count;
    all.max_masked = UINT64_MAX;
    assert_int_equal(dt_rule_select(&all, rules, &count, &err), 0);
    *dropped_by = NULL;
    *amount = 0;
    dt_rule_start(&scratch);
    for (int i = 0; i < count && *dropped_by == NULL; i++) {
        struct dt_finding one;
        if (!dt_rule_apply(&rules[i], document, &scratch, &one))
            *dropped_by = rules[i].name;
        *amount = *dropped_by ? (uint64_t)one.value : *amount + one.changes;
    }
    dt_rule_scratch_release(&scratch);
}

static void assert_kept(const struct dt_clean_options *options, const char *text,
                        const char *expected, uint64_t changes)
{
    struct dt_document document = DT_DOCUMENT_EMPTY;
    const char *dropped_by;
    uint64_t amount;
    dt_buffer_add_string(&document.text, text);
    apply(options, &document, &dropped_by, &amount);
    assert_null(dropped_by);
    assert_string_equal(document.text.data, expected);
    assert_int_equal(document.text.size, strlen(expected));
    assert_int_equal(amount, changes);
    dt_document_release(&document);
}

static void assert_dropped(const struct dt_clean_options *options, const char *text,
                           const char *rule, uint64_t value)
{
    struct dt_document document = DT_DOCUMENT_EMPTY;
    const char *dropped_by;
    uint64_t amount;
    dt_buffer_add_string(&document.text, text);
    apply(options, &document, &dropped_by, &amount);
    assert_non_null(dropped_by);
    assert_string_equal(dropped_by, rule);
    assert_int_equal(amount, value);
    dt_document_release(&document);
}

static void without_options_only_what_is_broken_is_mended(void **state)
{
    (void)state;
    const struct dt_clean_options options = {0};
    assert_kept(&options, " \ttwo  words \n\n\ne\xcc\x81 \xef\xac\x81\n",
                " \ttwo  words \n\n\ne\xcc\x81 \xef\xac\x81\n", 0);
    assert_kept(&options,
                "\xef\xbb\xbf"
                "a\xff\x01\r\nb",
                "a\xef\xbf\xbd\nb", 4);
}

static void controls_that_repair_uncovers_go_too(void **state)
{
    (void)state;
    const struct dt_clean_options options = {0};
    assert_kept(&options, "\r\x01\n", "\n", 2);
}

static void invalid_text_is_dropped_on_request(void **state)
{
    (void)state;
    const struct dt_clean_options options = {.reject_invalid = true};
    assert_dropped(&options, "a\xff\xfe", "utf8", 2);
    assert_kept(&options, "\xc3\xa9", "\xc3\xa9", 0);
}

static void lengths_are_code_points_after_cleaning(void **state)
{
    (void)state;
    const struct dt_clean_options options = {
        .space = DT_SPACE_TRIM, .form = DT_NORMAL_FORM_NFC, .min_chars = 2, .max_chars = 3};
    assert_dropped(&options, "", "min-chars", 0);
    assert_dropped(&options, "  e\xcc\x81  ", "min-chars", 1);
    assert_kept(&options, "\xc3\xa9\xc3\xa9", "\xc3\xa9\xc3\xa9", 0);
    assert_kept(&options, "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80",
                "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80", 0);
    assert_dropped(&options, "abcd", "max-chars", 4);
}

static void a_clean_text_stays_as_it_is(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "a",        "e",        "\xcc\x81", "\xcc\xa3", " ",    "\t",           "\n",          "\r",
        "\xc2\xa0", "\xc2\xb4", "\xff",     "\xe2\x80", "\x01", "\xef\xbb\xbf", "\xef\xac\x81"};
    struct dt_rng rng;
    dt_rng_init(&rng, 11);
    for (int trial = 0; trial < 20000; trial++) {
        const struct dt_clean_options options = {.space = (enum dt_space)(trial % 3),
                                                 .form = (enum dt_normal_form)(trial / 3 % 3)};
        struct dt_document document = DT_DOCUMENT_EMPTY;
        const char *dropped_by;
        uint64_t amount;
        for (uint32_t n = 1 + dt_rng_below(&rng, 12); n > 0; n--)
            dt_buffer_add_string(&document.text, pieces[dt_rng_below(&rng, 15)]);
        apply(&options, &document, &dropped_by, &amount);
        char *once = dt_strdup(document.text.data);
        apply(&options, &document, &dropped_by, &amount);
        assert_int_equal(amount, 0);
        assert_string_equal(document.text.data, once);
        free(once);
        dt_document_release(&document);
    }
}

static void empty_documents_survive_every_rule(void **state)
{
    (void)state;
    const struct dt_clean_options options = {.space = DT_SPACE_SQUEEZE,
                                             .form = DT_NORMAL_FORM_NFKC};
    struct dt_document document = DT_DOCUMENT_EMPTY; /* its text is unallocated */
    const char *dropped_by;
    uint64_t amount;
    apply(&options, &document, &dropped_by, &amount);
    assert_null(dropped_by);
    assert_int_equal(amount, 0);
    dt_document_release(&document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_options_only_what_is_broken_is_mended),
        cmocka_unit_test(controls_that_repair_uncovers_go_too),
        cmocka_unit_test(invalid_text_is_dropped_on_request),
        cmocka_unit_test(lengths_are_code_points_after_cleaning),
        cmocka_unit_test(a_clean_text_stays_as_it_is),
        cmocka_unit_test(empty_documents_survive_every_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
