/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "math/rng.h"
#include "unicode/casefold.h"
#include "unicode/normalize.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

static struct dt_ids scratch;

static int release_scratch(void **state)
{
    (void)state;
    dt_ids_release(&scratch);
    return 0;
}

/* expected NULL: text is already in the form. The result is normalized again: no change. */
static void assert_normal(enum dt_normal_form form, const char *text, const char *expected)
{
    struct dt_buffer out = DT_BUFFER_EMPTY, again = DT_BUFFER_EMPTY;
    assert_int_equal(dt_normalize(form, text, strlen(text), &scratch, &out), expected != NULL);
    if (expected) {
        assert_string_equal(out.data, expected);
        assert_false(dt_normalize(form, out.data, out.size, &scratch, &again));
    }
    assert_int_equal(again.size, 0);
    dt_buffer_release(&out);
    dt_buffer_release(&again);
}

static void text_in_the_form_is_left_alone(void **state)
{
    (void)state;
    const enum dt_normal_form forms[] = {DT_NORMAL_FORM_NONE, DT_NORMAL_FORM_NFC,
                                         DT_NORMAL_FORM_NFKC};
    for (int i = 0; i < 3; i++) {
        assert_normal(forms[i], "", NULL);
        assert_normal(forms[i], "plain", NULL);
        assert_normal(forms[i], "caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd \xe2\x80\x99", NULL);
    }
    assert_normal(DT_NORMAL_FORM_NONE, "e\xcc\x81", NULL);
}

static void nfc_composes_with_the_character_before_a_mark(void **state)
{
    (void)state;
    assert_normal(DT_NORMAL_FORM_NFC, "e\xcc\x81", "\xc3\xa9");
    assert_normal(DT_NORMAL_FORM_NFC, "cafe\xcc\x81s e\xcc\x81t", "caf\xc3\xa9s \xc3\xa9t");
    assert_normal(DT_NORMAL_FORM_NFC, "\xc3\xa2\xcc\xa3!", "\xe1\xba\xad!"); /* with reordering */
    assert_normal(DT_NORMAL_FORM_NFC, "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81");
    assert_normal(DT_NORMAL_FORM_NFC, "\xe2\x84\xab", "\xc3\x85"); /* the Angstrom sign */
    assert_normal(DT_NORMAL_FORM_NFC, "\xef\xac\x81", NULL);       /* a ligature is canonical */
}

static void nfkc_replaces_compatibility_characters(void **state)
{
    (void)state;
    assert_normal(DT_NORMAL_FORM_NFKC, "\xef\xac\x81x", "fix");
    assert_normal(DT_NORMAL_FORM_NFKC, "m\xc2\xb2", "m2");
    assert_normal(DT_NORMAL_FORM_NFKC,
                  "a\xc2\xa0"
                  "b",
                  "a b");
    assert_normal(DT_NORMAL_FORM_NFKC, "\xef\xbc\xa1\xcc\x8a", "\xc3\x85");
}

/* The definition: decompose all, sort marks by exchange, compose. */
static void normalize_plainly(bool compatible, const uint32_t *points, size_t count, char *text)
{
    uint32_t all[12 * DT_UNICODE_EXPAND_MAX + 1];
    size_t n = 0, size = 0;
    struct dt_ids composed = DT_IDS_EMPTY;
    for (size_t i = 0; i < count; i++)
        n += compatible ? dt_unicode_expand(points[i], all + n)
                        : dt_unicode_decompose(points[i], all + n);
    for (size_t swaps = 1; swaps > 0;) {
        swaps = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            unsigned a = dt_unicode_record(all[i])->combining;
            unsigned b = dt_unicode_record(all[i + 1])->combining;
            if (b == 0 || a <= b)
                continue;
            uint32_t code = all[i];
            all[i] = all[i + 1], all[i + 1] = code;
            swaps++;
        }
    }
    dt_unicode_nfc(all, n, &composed);
    for (size_t i = 0; i < composed.count; i++)
        size += dt_utf8_encode(composed.data[i], text + size);
    text[size] = '\0';
    dt_ids_release(&composed);
}

static void random_text_is_normalized_as_a_whole(void **state)
{
    (void)state;
    static const uint32_t starts[] = {0x20,   0x60,   0xa0,   0x2f0,  0x300,  0x360,   0x5b0,
                                      0x1100, 0x1160, 0x11a8, 0xac00, 0x1e00, 0x1fe0,  0x2120,
                                      0x3040, 0x3090, 0xf900, 0xfb00, 0xff00, 0x1d150, 0x1f600};
    struct dt_rng rng;
    dt_rng_init(&rng, 5);
    for (int trial = 0; trial < 20000; trial++) {
        uint32_t points[12], count = dt_rng_below(&rng, 12);
        char text[64], expected[4 * 12 * DT_UNICODE_EXPAND_MAX + 1];
        size_t size = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t start = starts[dt_rng_below(&rng, sizeof starts / sizeof *starts)];
            points[i] = start + dt_rng_below(&rng, 32);
            size += dt_utf8_encode(points[i], text + size);
        }
        text[size] = '\0';
        normalize_plainly(trial & 1, points, count, expected);
        assert_normal(trial & 1 ? DT_NORMAL_FORM_NFKC : DT_NORMAL_FORM_NFC, text,
                      strcmp(expected, text) == 0 ? NULL : expected);
    }
}

/* Reads a column of NormalizationTest.txt: code points up to ';'. */
static const char *read_column(const char *line, char *text)
{
    size_t size = 0;
    for (char *end; *line != ';'; line = end)
        size += dt_utf8_encode((uint32_t)strtoul(line, &end, 16), text + size);
    text[size] = '\0';
    return line + 1;
}

static void assert_form(enum dt_normal_form form, const char *text, const char *expected)
{
    assert_normal(form, text, strcmp(text, expected) == 0 ? NULL : expected);
}

/* Columns: source; NFC; NFD; NFKC; NFKD. */
static void the_conformance_test_of_unicode_passes(void **state)
{
    (void)state;
    char line[1024], column[5][256];
    size_t lines = 0;
    FILE *file = popen("bzip2 -dc ${UNICODE_DATA:-/usr/share/unicode}/NormalizationTest.txt.bz2 "
                       "2>/dev/null",
                       "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (lines == 0 && strstr(line, dt_unicode_version) == NULL)
            break;
        lines++;
        const char *p = line;
        if (strchr("#@\n", *line))
            continue;
        for (int i = 0; i < 5; i++)
            p = read_column(p, column[i]);
        for (int i = 0; i < 5; i++) {
            assert_form(DT_NORMAL_FORM_NFC, column[i], column[i < 3 ? 1 : 3]);
            assert_form(DT_NORMAL_FORM_NFKC, column[i], column[3]);
        }
    }
    pclose(file);
    if (lines == 0)
        print_message("skipped: no NormalizationTest.txt.bz2 of Unicode %s; install unicode-data\n",
                      dt_unicode_version);
    if (lines == 0)
        skip();
}

static void case_folding_is_full(void **state)
{
    (void)state;
    static const struct {
        const char *text, *folded;
        unsigned changed;
    } cases[] = {{"Stra\xc3\x9f"
                  "E",
                  "strasse", 3},
                 {"\xce\xa3\xcf\x82", "\xcf\x83\xcf\x83", 2}, /* both sigmas */
                 {"\xc4\xb0", "i\xcc\x87", 1},
                 {"\xef\xac\x83", "ffi", 1},
                 {"plain \xc3\xa9", "plain \xc3\xa9", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_buffer out = DT_BUFFER_EMPTY;
        assert_int_equal(dt_casefold(cases[i].text, strlen(cases[i].text), &out), cases[i].changed);
        assert_string_equal(out.data, cases[i].folded);
        dt_buffer_release(&out);
    }
}

/* Insertion sort would take hours. */
static void a_million_unordered_marks_take_linear_time(void **state)
{
    (void)state;
    const size_t pairs = 500000;
    struct dt_buffer text = DT_BUFFER_EMPTY, out = DT_BUFFER_EMPTY;
    dt_buffer_add_char(&text, 'x');
    for (size_t i = 0; i < pairs; i++)
        dt_buffer_add_string(&text, "\xcc\x80\xcc\xa3"); /* above (230), then below (220) */
    clock_t start = clock();                             /* other work does not count */
    assert_true(dt_normalize(DT_NORMAL_FORM_NFC, text.data, text.size, &scratch, &out));
    assert_true(clock() - start < 60 * CLOCKS_PER_SEC);
    assert_int_equal(out.size, text.size);
    assert_memory_equal(out.data + 1, "\xcc\xa3\xcc\xa3", 4);
    assert_memory_equal(out.data + 1 + 2 * pairs, "\xcc\x80\xcc\x80", 4);
    dt_buffer_release(&text);
    dt_buffer_release(&out);
}

static void code_points_of_a_million_unordered_marks_take_linear_time(void **state)
{
    (void)state;
    const size_t count = 1000000;
    uint32_t *points = dt_alloc(count, sizeof *points);
    for (size_t i = 0; i < count; i++)
        points[i] = i % 2 ? 0x323 : 0x300;
    clock_t start = clock();
    dt_unicode_nfc(points, count, &scratch);
    assert_true(clock() - start < 60 * CLOCKS_PER_SEC);
    assert_int_equal(scratch.count, count);
    assert_int_equal(scratch.data[count / 2 - 1], 0x323);
    assert_int_equal(scratch.data[count / 2], 0x300);
    free(points);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_in_the_form_is_left_alone),
        cmocka_unit_test(nfc_composes_with_the_character_before_a_mark),
        cmocka_unit_test(nfkc_replaces_compatibility_characters),
        cmocka_unit_test(random_text_is_normalized_as_a_whole),
        cmocka_unit_test(the_conformance_test_of_unicode_passes),
        cmocka_unit_test(case_folding_is_full),
        cmocka_unit_test(a_million_unordered_marks_take_linear_time),
        cmocka_unit_test(code_points_of_a_million_unordered_marks_take_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, release_scratch);
}
