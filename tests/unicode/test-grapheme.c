/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "unicode/grapheme.h"
#include "unicode/unicode.h"

/* Clusters are separated by '|', which is removed. */
static void assert_clusters(const char *marked)
{
    char text[256] = "";
    size_t ends[64], count = 0, size = 0;
    for (const char *p = marked; *p; p++)
        if (*p == '|')
            ends[count++] = size;
        else
            text[size++] = *p;
    ends[count++] = size;
    for (size_t i = 0, at = 0; i < count; i++) {
        at += dt_grapheme_size(text + at, size - at);
        assert_int_equal(at, ends[i]);
    }
}

/* Of GraphemeBreakTest.txt of Unicode 15.0, one for each rule. */
static void clusters_are_those_of_the_rules(void **state)
{
    (void)state;
    assert_clusters("a");
    assert_clusters("a|b|c");
    assert_clusters("\r\n|\n|\r|\r\n|a");
    assert_clusters("\r|\xcc\x88");                                        /* GB4 */
    assert_clusters("a|\xe2\x80\xa8|\xcc\x88");                            /* GB5 */
    assert_clusters("\xe1\x84\x80\xe1\x85\xa0\xe1\x86\xa8|\xe1\x84\x80");  /* L V T | L */
    assert_clusters("\xea\xb0\x80\xe1\x86\xa8|\xea\xb0\x81|\xe1\x85\xa0"); /* LV T | LVT | V */
    assert_clusters("\xea\xb0\x81\xe1\x86\xa8|\xe1\x84\x80\xea\xb0\x81");  /* LVT T | L LVT */
    assert_clusters("e\xcc\x81\xcc\xa3|x\xe2\x80\x8d|y");                  /* Extend, ZWJ */
    assert_clusters("\xe0\xa4\x95\xe0\xa4\x83|\xe0\xa4\x95");              /* SpacingMark */
    assert_clusters("\xd8\x80x|y");                                        /* Prepend */
    assert_clusters("a|\xf0\x9f\x87\xa6\xf0\x9f\x87\xa7|\xf0\x9f\x87\xa8\xf0\x9f\x87\xa9|"
                    "\xf0\x9f\x87\xaa"); /* regional indicators */
    assert_clusters("\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb|\xf0\x9f\x91\xa9");
    assert_clusters("\xf0\x9f\x91\xa9\xf0\x9f\x8f\xbd\xe2\x80\x8d\xf0\x9f\x92\xbb");
    assert_clusters("a\xe2\x80\x8d|\xf0\x9f\x92\xbb");
    assert_clusters("\xf0\x9f\x91\xa9\xe2\x80\x8d\xe2\x80\x8d|\xf0\x9f\x92\xbb");
}

static void ideographs_are_not_in_the_table(void **state)
{
    (void)state;
    for (unsigned i = 0; i < dt_unicode_break_count; i++) {
        const struct dt_unicode_break_range *range = &dt_unicode_breaks[i];
        assert_true(range->last < 0x3400 || range->first > 0x9fff);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clusters_are_those_of_the_rules),
        cmocka_unit_test(ideographs_are_not_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
