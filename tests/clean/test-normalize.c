/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utf8proc.h>

#include "base/rng.h"
#include "clean/normalize.h"

static struct dt_code_points scratch;

static int release_scratch(void **state)
{
    (void)state;
    dt_code_points_release(&scratch);
    return 0;
}

/* expected NULL means: in the form already. Twice, to see that a result is. */
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

static void nfc_composes_over_the_border_of_a_stretch(void **state)
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

/* The whole by stretches must equal what utf8proc makes of it at once. */
static void random_text_is_as_utf8proc_makes_it(void **state)
{
    (void)state;
    static const uint32_t starts[] = {0x20,   0x60,   0xa0,   0x2f0,  0x300,  0x360,   0x5b0,
                                      0x1100, 0x1160, 0x11a8, 0xac00, 0x1e00, 0x1fe0,  0x2120,
                                      0x3040, 0x3090, 0xf900, 0xfb00, 0xff00, 0x1d150, 0x1f600};
    struct dt_rng rng;
    dt_rng_init(&rng, 5);
    for (int trial = 0; trial < 20000; trial++) {
        utf8proc_uint8_t text[200];
        size_t size = 0;
        for (uint32_t n = dt_rng_below(&rng, 12); n > 0; n--) {
            uint32_t start = starts[dt_rng_below(&rng, sizeof starts / sizeof *starts)];
            size += (size_t)utf8proc_encode_char((int32_t)(start + dt_rng_below(&rng, 32)),
                                                 text + size);
        }
        text[size] = '\0';
        bool compatible = trial & 1;
        utf8proc_uint8_t *whole = compatible ? utf8proc_NFKC(text) : utf8proc_NFC(text);
        bool is_normal = strcmp((char *)whole, (char *)text) == 0;
        assert_normal(compatible ? DT_NORMAL_FORM_NFKC : DT_NORMAL_FORM_NFC, (char *)text,
                      is_normal ? NULL : (char *)whole);
        free(whole);
    }
}

/* Sorting by exchange would take hours for this. */
static void a_million_marks_in_the_wrong_order_take_no_time(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_in_the_form_is_left_alone),
        cmocka_unit_test(nfc_composes_over_the_border_of_a_stretch),
        cmocka_unit_test(nfkc_replaces_compatibility_characters),
        cmocka_unit_test(random_text_is_as_utf8proc_makes_it),
        cmocka_unit_test(a_million_marks_in_the_wrong_order_take_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, release_scratch);
}
