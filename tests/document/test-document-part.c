/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <string.h>

#include "base/file.h"
#include "document/part.h"

static struct dt_error err;

static void ranges_are_consecutive_and_cover_all_bytes(void **state)
{
    (void)state;
    static const uint64_t totals[] = {0, 1, 7, 1000, UINT64_MAX / 2};
    for (size_t t = 0; t < sizeof totals / sizeof *totals; t++) {
        for (long n = 1; n < 12; n++) {
            uint64_t end = 0;
            for (long i = 0; i < n; i++) {
                struct dt_document_range r =
                    dt_document_part_range((struct dt_document_part){i, n}, totals[t]);
                assert_true(r.first == end && r.end >= r.first);
                assert_true(r.end - r.first <= totals[t] / (uint64_t)n + 1);
                end = r.end;
            }
            assert_true(end == totals[t]);
        }
    }
    struct dt_document_range all = dt_document_part_range((struct dt_document_part){0, 0}, 1000);
    assert_true(all.first == 0 && all.end == 1000);
}

static void a_range_moves_to_the_records_that_begin_in_it(void **state)
{
    (void)state;
    static const char text[] = "ab\n\nc\nlast"; /* records begin at 0, 3, 4, 6 */
    static const uint64_t next[] = {0, 3, 3, 3, 4, 6, 6, 10, 10, 10, 10};
    assert_int_equal(dt_file_write("f", text, sizeof text - 1, &err), 0);
    for (uint64_t first = 0; first <= 10; first++) {
        for (uint64_t end = first; end <= 10; end++) {
            struct dt_document_range r = {first, end};
            assert_int_equal(dt_document_part_cut("f", '\n', 10, &r, &err), 0);
            assert_true(r.first == next[first] && r.end == next[end]);
        }
    }
}

static struct dt_document_before count(uint64_t end, bool passes_blank)
{
    struct dt_document_before before;
    struct dt_input *in;
    assert_int_equal(dt_input_open_bytes(&in, "f", &err), 0);
    assert_int_equal(dt_input_limit(in, 0, end, &err), 0);
    assert_int_equal(dt_document_part_count(in, '\n', passes_blank, &before, &err), 0);
    dt_input_close(in);
    return before;
}

static void lines_before_a_part_are_counted(void **state)
{
    (void)state;
    static const char text[] = "\xef\xbb\xbf\n{}\n \t\r\n\nx\n";
    assert_int_equal(dt_file_write("f", text, sizeof text - 1, &err), 0);
    struct dt_document_before before = count(sizeof text - 1, true);
    assert_int_equal(before.lines, 5);
    assert_int_equal(before.records, 2);
    before = count(7, false);
    assert_int_equal(before.lines, 2);
    assert_int_equal(before.records, 2);
}

static void a_part_is_below_the_number_of_parts(void **state)
{
    (void)state;
    struct dt_document_part part;
    assert_int_equal(dt_document_part_parse("3/64", &part, &err), 0);
    assert_true(part.index == 3 && part.count == 64);
    static const char *const wrong[] = {"",      "3",    "3/",   "/4",   "4/4",      "-1/4",
                                        "3/4/5", "+1/4", "1/-4", " 1/4", "1/1000000"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(dt_document_part_parse(wrong[i], &part, &err), DT_EINVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_consecutive_and_cover_all_bytes),
        cmocka_unit_test(a_range_moves_to_the_records_that_begin_in_it),
        cmocka_unit_test(lines_before_a_part_are_counted),
        cmocka_unit_test(a_part_is_below_the_number_of_parts),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
