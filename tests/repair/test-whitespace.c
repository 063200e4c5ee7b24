/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "repair/whitespace.h"

static void assert_tidied(enum dt_space policy, const char *text, const char *expected)
{
    char work[128];
    size_t size = strlen(text);
    memcpy(work, text, size);
    size = dt_whitespace_tidy(work, size, policy);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(work, expected, size);
    assert_int_equal(dt_whitespace_tidy(work, size, policy), size); /* nothing is left to do */
}

static void keep_changes_nothing(void **state)
{
    (void)state;
    assert_tidied(DT_SPACE_KEEP, " \n\n a \t b  \n\n\n", " \n\n a \t b  \n\n\n");
}

static void trim_takes_ends_of_lines_and_of_the_document(void **state)
{
    (void)state;
    assert_tidied(DT_SPACE_TRIM, "", "");
    assert_tidied(DT_SPACE_TRIM, " \t\n \n", "");
    assert_tidied(DT_SPACE_TRIM, "a\n", "a");
    assert_tidied(DT_SPACE_TRIM, " \n\n  a  b \t\n   c\n\n\n\nd \n \n", "a  b\n   c\n\n\n\nd");
}

static void squeeze_leaves_single_spaces_and_single_empty_lines(void **state)
{
    (void)state;
    assert_tidied(DT_SPACE_SQUEEZE, " \n", "");
    assert_tidied(DT_SPACE_SQUEEZE, "  a \t b\n\tc\n \n\n\nd\ne  ", "a b\nc\n\nd\ne");
}

/* Every character of category Zs is a blank; their neighbours are none. */
static void blanks_are_those_of_unicode(void **state)
{
    (void)state;
    const char *const blanks[] = {" ",
                                  "\t",
                                  "\xc2\xa0",
                                  "\xe1\x9a\x80",
                                  "\xe2\x80\x80",
                                  "\xe2\x80\x8a",
                                  "\xe2\x80\xaf",
                                  "\xe2\x81\x9f",
                                  "\xe3\x80\x80"};
    const char *const others[] = {"\xc2\xa1",     "\xe1\x9a\x81", "\xe2\x80\x8b", "\xe2\x80\xae",
                                  "\xe2\x81\xa0", "\xe3\x80\x81", "\xe1\xa0\x8e", "\xef\xbb\xbf"};
    char text[32], expected[32];
    for (size_t i = 0; i < sizeof blanks / sizeof *blanks; i++) {
        snprintf(text, sizeof text, "%sa%s %sb%s", blanks[i], blanks[i], blanks[i], blanks[i]);
        assert_tidied(DT_SPACE_SQUEEZE, text, "a b");
        snprintf(expected, sizeof expected, "a%s %sb", blanks[i], blanks[i]);
        assert_tidied(DT_SPACE_TRIM, text, expected);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(text, sizeof text, "%sa%s b%s", others[i], others[i], others[i]);
        assert_tidied(DT_SPACE_SQUEEZE, text, text);
        assert_tidied(DT_SPACE_TRIM, text, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_changes_nothing),
        cmocka_unit_test(trim_takes_ends_of_lines_and_of_the_document),
        cmocka_unit_test(squeeze_leaves_single_spaces_and_single_empty_lines),
        cmocka_unit_test(blanks_are_those_of_unicode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
