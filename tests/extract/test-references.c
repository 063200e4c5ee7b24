/* SPDX-License-Identifier: MIT */
/* Character references as HTML's standard has them; other numbers give none. */
#include "test.h"

#include <string.h>

#include "extract/references.h"

#define REPLACEMENT 0xfffd
#define NEITHER     "&abcdefghijklmnopqrstuvwxyzabcdefghijkl;"

static const struct {
    const char *text;
    bool in_attribute;
    size_t size; /* of the reference; 0: it is text */
    uint32_t first, second;
} cases[] = {
    {"&#65;x", false, 5, 'A', 0},
    {"&#x41;", false, 6, 'A', 0},
    {"&#X6a", false, 5, 'j', 0},
    {"&#12a", false, 4, '\f', 0},
    {"&#x1F600;", false, 9, 0x1f600, 0},
    {"&#", false, 0, 0, 0},
    {"&#;", false, 0, 0, 0},
    {"&#x", false, 0, 0, 0},
    {"&#xg", false, 0, 0, 0},
    {"&#a", false, 0, 0, 0},
    {"&#128;", false, 6, 0x20ac, 0},
    {"&#x9f", false, 5, 0x178, 0},
    {"&#xa0;", false, 6, 0xa0, 0},
    {"&#0;", false, 4, REPLACEMENT, 0},
    {"&#xD7FF;", false, 8, 0xd7ff, 0},
    {"&#xD800;", false, 8, REPLACEMENT, 0},
    {"&#xDFFF;", false, 8, REPLACEMENT, 0},
    {"&#xE000;", false, 8, 0xe000, 0},
    {"&#x10FFFD;", false, 10, 0x10fffd, 0},
    {"&#x110000;", false, 10, REPLACEMENT, 0},
    {"&#99999999999999999999;", false, 23, REPLACEMENT, 0},
    {"&#9;", false, 4, '\t', 0},
    {"&#10;", false, 5, '\n', 0},
    {"&#13;", false, 5, '\r', 0},
    {"&#11;", false, 5, 0, 0},
    {"&#127;", false, 6, 0, 0},
    {"&#x81;", false, 6, 0, 0},
    {"&#xFDCF;", false, 8, 0xfdcf, 0},
    {"&#xFDD0;", false, 8, 0, 0},
    {"&#xFDF0;", false, 8, 0xfdf0, 0},
    {"&#xFFFE;", false, 8, 0, 0},
    {"&#x1FFFF;", false, 9, 0, 0},
    {"&", false, 0, 0, 0},
    {"& ", false, 0, 0, 0},
    {"&;", false, 0, 0, 0},
    {"&\xc3\xa9;", false, 0, 0, 0},
    {"&amp;", false, 5, '&', 0},
    {"&amp", false, 4, '&', 0},
    {"&ampx", false, 4, '&', 0},
    {"&AMP;", false, 5, '&', 0},
    {"&notit;", false, 4, 0xac, 0},
    {"&notin;", false, 7, 0x2209, 0},
    {"&notin", false, 4, 0xac, 0},
    {"&NotEqualTilde;", false, 15, 0x2242, 0x338},
    {"&CounterClockwiseContourIntegral;", false, 33, 0x2233, 0},
    {"&nosuch;", false, 0, 0, 0},
    {"&zzzzzz;", false, 0, 0, 0},
    {"&a", false, 0, 0, 0},
    {NEITHER, false, 0, 0, 0},
    {"&amp;", true, 5, '&', 0},
    {"&amp", true, 4, '&', 0},
    {"&amp ", true, 4, '&', 0},
    {"&amp=", true, 0, 0, 0},
    {"&amp1", true, 0, 0, 0},
    {"&copy=2", true, 0, 0, 0},
    {"&notin;", true, 7, 0x2209, 0},
    {"&notit;", true, 0, 0, 0},
};

static void each_reference_is_its_characters(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t codes[2];
        size_t size =
            dt_references_read(cases[i].text, strlen(cases[i].text), cases[i].in_attribute, codes);
        if (size != cases[i].size || codes[0] != cases[i].first || codes[1] != cases[i].second)
            fail_msg("'%s': %zu bytes, %x %x", cases[i].text, size, codes[0], codes[1]);
    }
}

/* No byte after the text is looked at: it ends in the middle of a reference. */
static void a_text_may_end_anywhere(void **state)
{
    (void)state;
    uint32_t codes[2];
    assert_int_equal(dt_references_read("&#65;", 4, false, codes), 4);
    assert_int_equal(dt_references_read("&#65;", 3, false, codes), 3);
    assert_int_equal(codes[0], 0); /* a control */
    assert_int_equal(dt_references_read("&#65;", 2, false, codes), 0);
    assert_int_equal(dt_references_read("&amp;", 4, true, codes), 4);
    assert_int_equal(dt_references_read("&amp;", 3, false, codes), 0);
    assert_int_equal(dt_references_read("&amp;", 1, false, codes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reference_is_its_characters),
        cmocka_unit_test(a_text_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
