/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "base/buffer.h"
#include "base/printable.h"
#include "math/rng.h"

static void assert_shown_size(const char *text, size_t size, const char *expected)
{
    struct dt_buffer shown = DT_BUFFER_EMPTY;
    dt_buffer_add_printable(&shown, text, size);
    assert_string_equal(shown.data, expected);
    dt_buffer_release(&shown);
}

static void assert_shown(const char *text, const char *expected)
{
    assert_shown_size(text, strlen(text), expected);
}

static void text_passes_as_it_is(void **state)
{
    (void)state;
    assert_shown("plain \\ text\n\tand more\n", "plain \\ text\n\tand more\n");
    static const char scripts[] = "h\xc3\xa9 \xd7\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80 \xc2\xa0";
    assert_shown(scripts, scripts);
}

static void commands_to_a_terminal_are_spelled(void **state)
{
    (void)state;
    assert_shown("a\x1b[31m\r\x07\x7f", "a\\x1b[31m\\x0d\\x07\\x7f");
    assert_shown("\xc2\x9b 2J\xc2\x85", "\\u009b 2J\\u0085");
    assert_shown("\x9b 2J", "\\x9b 2J");
    assert_shown_size("a\0b", 3, "a\\x00b");
}

static void marks_of_direction_are_spelled(void **state)
{
    (void)state;
    assert_shown("\xe2\x80\xaeuse\xe2\x81\xa6 \xd8\x9c\xe2\x80\x8f\xe2\x80\xa8",
                 "\\u202euse\\u2066 \\u061c\\u200f\\u2028");
}

static void what_is_not_utf8_is_spelled_byte_by_byte(void **state)
{
    (void)state;
    assert_shown("\xff\xe2\x82z", "\\xff\\xe2\\x82z");
    assert_shown("\xc0\x9b\xed\xa0\x80\xf4\x90\x80\x80",
                 "\\xc0\\x9b\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");
    assert_shown("\xe0\x9b\x80", "\\xe0\\x9b\\x80");
}

static void a_character_whose_rest_may_come_is_known(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t unfinished;
    } cases[] = {{"", 0},     {"a", 0},        {"a\xc3", 1},        {"a\xc3\xa9", 0},
                 {"\xe2", 1}, {"\xe2\x82", 2}, {"\xf0\x9f\x98", 3}, {"\xf0\x9f\x98\x80", 0},
                 {"\x80", 0}, {"\xe0\x80", 0}, {"\xff", 0},         {"\xc3\x28\x80\x80", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(dt_printable_unfinished(cases[i].text, strlen(cases[i].text)),
                         cases[i].unfinished);
}

static void a_line_is_spelled_within_its_room(void **state)
{
    (void)state;
    char line[16] = "a\nb";
    dt_printable_line(line, sizeof line);
    assert_string_equal(line, "a\\x0ab");
    strcpy(line, "\x1b\x1b\x1b\x1b\x1b");
    dt_printable_line(line, sizeof line);
    assert_string_equal(line, "\\x1b\\x1b\\x1b");
    strcpy(line, "\ntwelve bytes..");
    dt_printable_line(line, sizeof line);
    assert_string_equal(line, "\\x0atwelve byte");
}

/* Whatever bytes come: what is shown holds no control, fits, and stays what it is the next time. */
static void any_bytes_become_harmless(void **state)
{
    (void)state;
    struct dt_buffer once = DT_BUFFER_EMPTY, twice = DT_BUFFER_EMPTY;
    struct dt_rng random;
    dt_rng_init(&random, dt_random_key(1, 2, 3));
    for (int n = 0; n < 300; n++) {
        char bytes[200], line[200];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)dt_rng_below(&random, 256);
        dt_buffer_clear(&once);
        dt_buffer_clear(&twice);
        dt_buffer_add_printable(&once, bytes, sizeof bytes);
        dt_buffer_add_printable(&twice, once.data, once.size);
        assert_string_equal(once.data, twice.data);
        memcpy(line, bytes, sizeof line);
        line[sizeof line - 1] = '\0';
        dt_printable_line(line, sizeof line);
        assert_true(strlen(line) < sizeof line);
        for (const char *p = line; *p; p++)
            assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
    }
    dt_buffer_release(&once);
    dt_buffer_release(&twice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_passes_as_it_is),
        cmocka_unit_test(commands_to_a_terminal_are_spelled),
        cmocka_unit_test(marks_of_direction_are_spelled),
        cmocka_unit_test(what_is_not_utf8_is_spelled_byte_by_byte),
        cmocka_unit_test(a_character_whose_rest_may_come_is_known),
        cmocka_unit_test(a_line_is_spelled_within_its_room),
        cmocka_unit_test(any_bytes_become_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
