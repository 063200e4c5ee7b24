/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "repair/control.h"

typedef uint64_t in_place(char *text, size_t *size);

static void assert_changed(in_place *function, const char *text, size_t size, const char *expected,
                           uint64_t count)
{
    char work[64];
    memcpy(work, text, size);
    assert_int_equal(function(work, &size), count);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(work, expected, size);
}

#define CHANGED(function, text, expected, count)                                                   \
    assert_changed(function, text, sizeof text - 1, expected, count)

static void controls_go_and_text_stays(void **state)
{
    (void)state;
    CHANGED(dt_control_remove, "", "", 0);
    CHANGED(dt_control_remove, "plain\ttext\r\n", "plain\ttext\r\n", 0);
    CHANGED(dt_control_remove,
            "\0a\x01\x08\x0b\x0c\x0e\x1f"
            "b\x7f",
            "ab", 8);
    CHANGED(dt_control_remove, "\x1b[1mbold\x1b[0m", "[1mbold[0m", 2);
    CHANGED(dt_control_remove, "\0\0", "", 2);
}

static void every_ascii_control_but_three_goes(void **state)
{
    (void)state;
    for (int c = 0; c < 128; c++) {
        char text[3] = {'a', (char)c, 'b'};
        size_t size = 3;
        int goes = c == 127 || (c < 32 && c != '\t' && c != '\n' && c != '\r');
        assert_int_equal(dt_control_remove(text, &size), goes);
        assert_int_equal(size, goes ? 2 : 3);
    }
}

/* Text is looked at in blocks: each place of some. */
static void a_control_goes_from_any_place(void **state)
{
    (void)state;
    for (size_t place = 0; place < 40; place++) {
        char text[40];
        size_t size = sizeof text;
        memset(text, 'a', size);
        text[place] = '\x7f';
        assert_int_equal(dt_control_remove(text, &size), 1);
        assert_int_equal(size, 39);
        assert_null(memchr(text, '\x7f', size));
        memset(text, '\t', size);
        assert_int_equal(dt_control_remove(text, &size), 0);
    }
}

static void wide_controls_and_the_byte_order_mark_go(void **state)
{
    (void)state;
    CHANGED(dt_control_remove, "a\xc2\x80\xc2\x85\xc2\x9f\xc2\xa0", "a\xc2\xa0", 3);
    CHANGED(dt_control_remove, "\xef\xbb\xbftext\xef\xbb\xbf", "text", 2);
    CHANGED(dt_control_remove, "\xef\xbb\xbe\xef\xbc\x8c\xef\xbf\xbd",
            "\xef\xbb\xbe\xef\xbc\x8c\xef\xbf\xbd", 0);
}

static void line_ends_become_line_feeds(void **state)
{
    (void)state;
    CHANGED(dt_control_unify_line_ends, "", "", 0);
    CHANGED(dt_control_unify_line_ends, "a\nb\n", "a\nb\n", 0);
    CHANGED(dt_control_unify_line_ends, "a\r\nb\r\n", "a\nb\n", 2);
    CHANGED(dt_control_unify_line_ends, "a\rb\r", "a\nb\n", 2);
    CHANGED(dt_control_unify_line_ends, "\r\r\n\n\r", "\n\n\n\n", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(controls_go_and_text_stays),
        cmocka_unit_test(every_ascii_control_but_three_goes),
        cmocka_unit_test(a_control_goes_from_any_place),
        cmocka_unit_test(wide_controls_and_the_byte_order_mark_go),
        cmocka_unit_test(line_ends_become_line_feeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
