/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "unicode/utf8.h"

#define FFFD "\xef\xbf\xbd"

/* Checks repair of a whole string, that the result is valid, and the valid prefix. */
static void assert_repaired(const char *text, size_t size, const char *expected, uint64_t count)
{
    struct dt_buffer out = DT_BUFFER_EMPTY;
    assert_int_equal(dt_utf8_repair(text, size, &out), count);
    assert_int_equal(out.size, strlen(expected));
    assert_memory_equal(out.data, expected, out.size);
    assert_int_equal(dt_utf8_valid_prefix(out.data, out.size), out.size);
    assert_int_equal(dt_utf8_valid_prefix(text, size) == size, count == 0);
    dt_buffer_release(&out);
}

#define REPAIRED(text, expected, count) assert_repaired(text, sizeof text - 1, expected, count)

/* The examples of the Unicode Standard, chapter 3, tables 3-8 to 3-11. */
static void maximal_subparts_are_those_of_the_standard(void **state)
{
    (void)state;
    REPAIRED("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A",
             8);
    REPAIRED("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A",
             8);
    REPAIRED("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", FFFD FFFD FFFD FFFD FFFD "A" FFFD FFFD "B", 7);
    REPAIRED("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", FFFD FFFD FFFD FFFD "A", 4);
}

static void the_bounds_of_each_length_are_valid(void **state)
{
    (void)state;
    REPAIRED("\x01\x7f\xc2\x80\xdf\xbf", "\x01\x7f\xc2\x80\xdf\xbf", 0);
    REPAIRED("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
             "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 0);
    REPAIRED("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 0);
}

static void what_is_beyond_the_bounds_is_not(void **state)
{
    (void)state;
    REPAIRED("\xc1\xbf", FFFD FFFD, 2);
    REPAIRED("\xe0\x9f\xbf", FFFD FFFD FFFD, 3);
    REPAIRED("\xf0\x8f\xbf\xbf", FFFD FFFD FFFD FFFD, 4);
    REPAIRED("\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD, 4);
    REPAIRED("\xf5\x80", FFFD FFFD, 2);
    REPAIRED("\xfe\xff", FFFD FFFD, 2);
}

static void a_sequence_cut_off_by_the_end_is_one_subpart(void **state)
{
    (void)state;
    REPAIRED("ab\xf0\x9f\x98", "ab" FFFD, 1);
    REPAIRED("ab\xe2\x82", "ab" FFFD, 1);
    REPAIRED("ab\xc3", "ab" FFFD, 1);
}

/* Characters before other text are read by eight bytes or by blocks, those at the end one by one.
 */
static void a_sequence_is_judged_alike_at_the_end_and_before_other_text(void **state)
{
    static const unsigned char bytes[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                          0xc0, 0xc1, 0xc2, 0xc3, 0xdf, 0xe0, 0xe1, 0xec, 0xed,
                                          0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
    const int count = sizeof bytes;
    (void)state;
    for (int i = 0; i < count * count * count * count; i++) {
        char text[13] = "....xxxxxxxx";
        for (int k = 0, rest = i; k < 4; k++, rest /= count)
            text[k] = (char)bytes[rest % count];
        size_t alone = dt_utf8_valid_prefix(text, 4), before = dt_utf8_valid_prefix(text, 12);
        assert_int_equal(before, alone == 4 ? 12 : alone);
        char blocks[] = "\u00e4\u20ac....\U0001f600\u00e4.....................................";
        size_t at = 15 + (size_t)i % 24, size = sizeof blocks - 1;
        memcpy(blocks + at, text, 4);
        assert_int_equal(dt_utf8_valid_prefix(blocks, size), alone == 4 ? size : at + alone);
    }
}

/* The eight-byte steps must see a high bit at every place. */
static void one_bad_byte_is_found_at_every_place(void **state)
{
    (void)state;
    char text[100];
    for (size_t size = 1; size <= sizeof text; size++) {
        memset(text, 'x', size);
        assert_int_equal(dt_utf8_ascii_prefix(text, size), size);
        for (size_t i = 0; i < size; i++) {
            text[i] = '\x80';
            assert_int_equal(dt_utf8_ascii_prefix(text, size), i);
            assert_int_equal(dt_utf8_valid_prefix(text, size), i);
            text[i] = 'x';
        }
    }
}

static void code_points_are_counted_and_decoded(void **state)
{
    (void)state;
    const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80zzzzzzzzzzz";
    const uint32_t points[] = {'a', 0xe9, 0x20ac, 0x1f600, 'z'};
    assert_int_equal(dt_utf8_count(text, sizeof text - 1), 15);
    assert_int_equal(dt_utf8_count(NULL, 0), 0);
    const char *p = text;
    for (int i = 0; i < 5; i++, p += dt_utf8_length(*p))
        assert_int_equal(dt_utf8_decode(p), points[i]);
}

static void counts_are_right_at_any_length(void **state)
{
    (void)state;
    char text[300];
    uint64_t bytes = 0, points = 0;
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = "a\xc3\xa9\xe2\x82\xac#"[i % 7];
        assert_int_equal(dt_utf8_count_byte(text, i, '#'), bytes);
        assert_int_equal(dt_utf8_count(text, i), points);
        bytes += text[i] == '#';
        points += (text[i] & 0xc0) != 0x80;
    }
}

static void each_code_point_is_encoded_and_decoded(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 0x110000; code++) {
        char bytes[4];
        uint32_t decoded = UINT32_MAX;
        unsigned length = dt_utf8_encode(code, bytes);
        bool surrogate = code >= 0xd800 && code < 0xe000;
        assert_int_equal(dt_utf8_next(bytes, length, &decoded), surrogate ? 0 : length);
        assert_true(surrogate || decoded == code);
        assert_true(surrogate || dt_utf8_decode(bytes) == code);
        if (length > 1)
            assert_int_equal(dt_utf8_next(bytes, length - 1, &decoded), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maximal_subparts_are_those_of_the_standard),
        cmocka_unit_test(the_bounds_of_each_length_are_valid),
        cmocka_unit_test(what_is_beyond_the_bounds_is_not),
        cmocka_unit_test(a_sequence_cut_off_by_the_end_is_one_subpart),
        cmocka_unit_test(a_sequence_is_judged_alike_at_the_end_and_before_other_text),
        cmocka_unit_test(one_bad_byte_is_found_at_every_place),
        cmocka_unit_test(code_points_are_counted_and_decoded),
        cmocka_unit_test(counts_are_right_at_any_length),
        cmocka_unit_test(each_code_point_is_encoded_and_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
