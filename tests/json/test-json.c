/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json/json-number.h"
#include "json/json-scan.h"
#include "json/json.h"

static int parse(const char *text, struct json_object **v, struct dt_error *err)
{
    return dt_json_parse(text, strlen(text), "f", v, err);
}

static void values_are_parsed(void **state)
{
    (void)state;
    const char *good[] = {"1", " -1.5e3\n", "\"x\"", "null", "[]", " {\"a\": [1, {\"b\": null}]} "};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct dt_error err;
        struct json_object *v;
        assert_int_equal(parse(good[i], &v, &err), 0);
        json_object_put(v);
    }
}

static void what_is_no_json_is_refused(void **state)
{
    (void)state;
    const char *bad[] = {"",
                         " ",
                         "{",
                         "[1",
                         "[1,]",
                         "{\"a\" 1}",
                         "nul",
                         "'a'",
                         "{a: 1}",
                         "\"a",
                         "1 2",
                         "{} x",
                         "01",
                         "+1",
                         "-01",
                         "1.",
                         "1.e5",
                         ".5",
                         "-",
                         "1e",
                         "-NaN",
                         "\"\t\"",
                         "\"\n\"",
                         "\"\\u12g4\"",
                         "TRUE",
                         "{\"a\\u0000\": 1}",
                         "inf",
                         "[1,,2]",
                         "{\"a\"",
                         "\"\\x\"",
                         "{\"a\": 1,}",
                         "tru",
                         "[1] // comment"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct dt_error err;
        struct json_object *v = (struct json_object *)&err;
        if (parse(bad[i], &v, &err) != DT_EFORMAT)
            fail_msg("accepted: %s", bad[i]);
        assert_null(v);
        assert_int_equal(strncmp(err.text, "f: ", 3), 0);
    }
}

static void a_nul_byte_is_refused(void **state)
{
    (void)state;
    struct dt_error err;
    struct json_object *v;
    assert_int_equal(dt_json_parse("1\0", 2, "f", &v, &err), DT_EFORMAT);
    assert_int_equal(dt_json_parse("{}\0{}", 5, "f", &v, &err), DT_EFORMAT);
    assert_int_equal(dt_json_parse("\"a\0b\"", 5, "f", &v, &err), DT_EFORMAT);
}

/* Every text that a good one begins with, in memory that ends where it does. */
static void a_text_that_is_cut_is_refused_and_nothing_after_it_is_read(void **state)
{
    (void)state;
    static const char whole[] = "{\"a\\u00e9\": [1.5e3, true, \"\\ud83d\\ude00\\n\", {}]}";
    for (size_t size = 0; size < sizeof whole; size++) {
        struct dt_error err;
        struct json_object *v;
        char *text = malloc(size ? size : 1);
        memcpy(text, whole, size);
        int rc = dt_json_parse(text, size, "f", &v, &err);
        assert_int_equal(rc, size + 1 < sizeof whole ? DT_EFORMAT : 0);
        json_object_put(v);
        free(text);
    }
}

static void assert_written(const char *text, enum dt_json_style style, const char *expected)
{
    struct dt_error err;
    struct json_object *v;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    if (parse(text, &v, &err) < 0)
        fail_msg("%s", err.text);
    dt_json_add_value(&b, v, style);
    assert_string_equal(b.data, expected);
    if (style == DT_JSON_COMPACT && v && !json_object_is_type(v, json_type_string))
        assert_string_equal(dt_json_text(v), expected);
    json_object_put(v);
    dt_buffer_release(&b);
}

static void values_are_written_as_they_were_read(void **state)
{
    (void)state;
    static const char *const same[] = {"null",
                                       "true",
                                       "false",
                                       "0",
                                       "-5",
                                       "1.50",
                                       "-0.0",
                                       "1E5",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "9223372036854775808",
                                       "18446744073709551615",
                                       "18446744073709551616",
                                       "-9223372036854775809",
                                       "1000000000000000019884624838656",
                                       "0.1",
                                       "[]",
                                       "{}",
                                       "[[],{},[{}]]",
                                       "\"a/b\\n\\u0001\"",
                                       "{\"b\":1,\"a\":[null,{\"c\":\"d\"}]}"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        assert_written(same[i], DT_JSON_COMPACT, same[i]);
    assert_written("[NaN, Infinity, -Infinity]", DT_JSON_COMPACT, "[null,null,null]");
    assert_written("{\"a\":1,\"b\":2,\"a\":3}", DT_JSON_COMPACT, "{\"a\":3,\"b\":2}");
}

static void values_are_indented_for_reading(void **state)
{
    (void)state;
    const char *text = "{\"a\":[1,{}],\"b\":{\"c\":null}}";
    assert_written(text, DT_JSON_INDENTED,
                   "{\n  \"a\":[\n    1,\n    {\n    }\n  ],\n  \"b\":{\n    \"c\":null\n  }\n}");
    assert_written(
        text, DT_JSON_SPACED,
        "{\n  \"a\": [\n    1,\n    {\n    }\n  ],\n  \"b\": {\n    \"c\": null\n  }\n}");
}

static void numbers_that_were_computed_are_written_with_17_digits(void **state)
{
    (void)state;
    static const struct {
        double x;
        const char *text;
    } cases[] = {{1, "1.0"},
                 {0.1, "0.10000000000000001"},
                 {1e300, "1.0000000000000001e+300"},
                 {1e17, "1e+17"},
                 {-0.0, "-0.0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json_object *v = dt_json_number(cases[i].x);
        assert_string_equal(dt_json_text(v), cases[i].text);
        assert_string_equal(dt_json_text(v), cases[i].text);
        json_object_put(v);
    }
}

static void errors_name_the_place(void **state)
{
    (void)state;
    struct dt_error err;
    struct json_object *v;
    assert_int_equal(parse("{\"a\": !}", &v, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "f: byte 6: "));
    assert_int_equal(parse("{\n\"a\": 1,\n\"b\" 2}", &v, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "f: line 3: "));
    assert_int_equal(parse("{} {}", &v, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f: byte 3: text follows the JSON value");
    assert_int_equal(parse("{\"a\": ", &v, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f: byte 6: JSON text ends too early");
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    static char text[200001];
    memset(text, '[', 200000);
    struct dt_error err;
    struct json_object *v;
    assert_int_equal(parse(text, &v, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "f: byte 32: nesting too deep"));
    memset(text + 32, ']', 32);
    text[64] = '\0';
    assert_int_equal(parse(text, &v, &err), 0);
    json_object_put(v);
}

static void members_are_checked(void **state)
{
    (void)state;
    struct dt_error err;
    struct json_object *v, *member;
    int64_t i = 0;
    double x = 0;
    const char *s;
    assert_int_equal(parse("{\"i\": -5, \"x\": 0.5, \"s\": \"t\", \"n\": null,"
                           " \"big\": 99999999999999999999}",
                           &v, &err),
                     0);
    assert_int_equal(dt_json_get_int(v, "i", "f", &i, &err), 0);
    assert_int_equal(i, -5);
    assert_int_equal(dt_json_get_real(v, "i", "f", &x, &err), 0);
    assert_true(x == -5);
    assert_int_equal(dt_json_get_real(v, "x", "f", &x, &err), 0);
    assert_true(x == 0.5);
    assert_int_equal(dt_json_get_string(v, "s", "f", &s, &err), 0);
    assert_string_equal(s, "t");
    assert_int_equal(dt_json_get_int(v, "x", "f", &i, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f: member \"x\" is not a whole number");
    assert_int_equal(dt_json_get_int(v, "big", "f", &i, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f: member \"big\" is too large a number");
    assert_int_equal(dt_json_get_real(v, "big", "f", &x, &err), 0);
    assert_true(x == 1e20);
    assert_int_equal(dt_json_get_int(v, "s", "f", &i, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f: member \"s\" is not a whole number");
    assert_int_equal(dt_json_get_real(v, "s", "f", &x, &err), DT_EFORMAT);
    assert_int_equal(dt_json_get_string(v, "n", "f", &s, &err), DT_EFORMAT);
    assert_int_equal(dt_json_get(v, "no", json_type_array, "f", &member, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f: member \"no\" is missing");
    assert_int_equal(dt_json_get(NULL, "a", json_type_array, "f", &member, &err), DT_EFORMAT);
    json_object_put(v);
}

/* Each byte value and a few characters survive writing and parsing. */
static void strings_survive_a_round_trip(void **state)
{
    (void)state;
    char text[256];
    size_t size = 0;
    for (int c = 0; c < 128; c++)
        text[size++] = (char)c;
    memcpy(text + size, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9);
    size += 9;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_json_add_string(&b, text, size);
    assert_null(memchr(b.data, '\n', b.size));
    struct dt_error err;
    struct json_object *v;
    assert_int_equal(dt_json_parse(b.data, b.size, "f", &v, &err), 0);
    assert_int_equal(json_object_get_string_len(v), size);
    assert_memory_equal(dt_json_text(v), text, size);
    json_object_put(v);
    dt_buffer_release(&b);
}

static void escapes_are_the_short_ones(void **state)
{
    (void)state;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_json_add_string(&b, "a\"\\\n\r\t\x01/", 8);
    assert_string_equal(b.data, "\"a\\\"\\\\\\n\\r\\t\\u0001/\"");
    dt_buffer_release(&b);
}

/* Text is looked at in blocks: each byte at each place of some. */
static void plain_bytes_are_told_from_others_at_any_place(void **state)
{
    (void)state;
    for (size_t place = 0; place < 40; place++)
        for (int c = 0; c < 256; c++) {
            char text[40];
            bool plain = c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;
            memset(text, 'a', sizeof text);
            text[place] = (char)c;
            assert_int_equal(dt_json_plain(text, sizeof text), plain ? sizeof text : place);
            assert_int_equal(dt_json_plain(text, place), place);
        }
}

static void files_are_written_and_read(void **state)
{
    (void)state;
    const char *path = "v.json";
    struct dt_error err;
    struct json_object *v;
    assert_int_equal(parse("{\"a\":[1,0.1,\"x/y\"]}", &v, &err), 0);
    assert_int_equal(dt_json_write(path, v, &err), 0);
    json_object_put(v);
    assert_int_equal(dt_json_read(path, &v, &err), 0);
    assert_string_equal(dt_json_text(v), "{\"a\":[1,0.1,\"x/y\"]}");
    json_object_put(v);
    assert_int_equal(remove(path), 0);
    assert_int_equal(dt_json_read(path, &v, &err), DT_EIO);
    assert_null(v);
}

/* NaN in a file is not read as null; the error names the member. */
static void nan_and_infinity_in_a_file_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"a\": NaN}", "v.json: byte 6: member \"a\": NaN is not a value of JSON"},
        {"{\"a\":\n[{\"b\": 1}, -Infinity]}",
         "v.json: line 2: member \"a\": -Infinity is not a value of JSON"},
        {"{\"a\": {\"b\": {}}, \"c\": Infinity}",
         "v.json: byte 22: member \"c\": Infinity is not a value of JSON"},
        {"[null, NaN]", "v.json: byte 7: NaN is not a value of JSON"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_error err;
        struct json_object *v;
        assert_int_equal(dt_file_write("v.json", cases[i][0], strlen(cases[i][0]), &err), 0);
        assert_int_equal(dt_json_read("v.json", &v, &err), DT_EFORMAT);
        assert_null(v);
        assert_string_equal(err.text, cases[i][1]);
    }
}

/* As vocabularies have them. */
static void zero_bytes_of_names_are_kept_where_they_are_taken(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
    } cases[] = {{"{\"a\\u0000b\":1}", "a" DT_JSON_ZERO "b"},
                 {"{\"\\u0000\":1}", DT_JSON_ZERO},
                 {"{\"\\u0000" DT_JSON_ZERO "\":1}", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_error err;
        struct json_object *v;
        assert_int_equal(dt_file_write("v.json", cases[i].text, strlen(cases[i].text), &err), 0);
        assert_int_equal(dt_json_read_with_zeros("v.json", &v, &err),
                         cases[i].name ? 0 : DT_EFORMAT);
        if (cases[i].name)
            assert_non_null(json_object_object_get(v, cases[i].name));
        else
            assert_non_null(strstr(err.text, "a member's name contains a zero byte"));
        json_object_put(v);
    }
}

static void whole_numbers_beyond_64_bits_are_too_large(void **state)
{
    static const char *const numbers[] = {"9223372036854775807", "9223372036854775808",
                                          "-9223372036854775808", "-9223372036854775809",
                                          "18446744073709551616"};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct dt_error err;
        struct json_object *v;
        int64_t value;
        char *text = dt_asprintf("{\"n\":%s}", numbers[i]);
        assert_int_equal(parse(text, &v, &err), 0);
        assert_int_equal(dt_json_get_int(v, "n", "f", &value, &err), DT_EFORMAT);
        assert_string_equal(err.text, "f: member \"n\" is too large a number");
        json_object_put(v);
        free(text);
    }
}

/* Pairs whose character ends in 0xd800 .. 0xdfff are those that json-c loses. */
static void escaped_pairs_are_their_characters(void **state)
{
    (void)state;
    static const struct {
        const char *escaped, *plain;
    } cases[] = {{"\\ud83d\\udE00", "\xf0\x9f\x98\x80"},
                 {"\\ud876\\ude93", "\xf0\xad\xaa\x93"},
                 {"a\\uD836\\uDD5Cb", "a\xf0\x9d\xa5\x9c\x62"},
                 {"\\ud800x", "\xef\xbf\xbdx"},
                 {"\\\\ud876\\\\ude93", "\\ud876\\ude93"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_error err;
        struct json_object *value;
        char *text = dt_asprintf("\"%s\"", cases[i].escaped);
        assert_int_equal(dt_json_parse(text, strlen(text), "t", &value, &err), 0);
        assert_string_equal(dt_json_text(value), cases[i].plain);
        json_object_put(value);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_parsed),
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(a_nul_byte_is_refused),
        cmocka_unit_test(errors_name_the_place),
        cmocka_unit_test(a_text_that_is_cut_is_refused_and_nothing_after_it_is_read),
        cmocka_unit_test(values_are_written_as_they_were_read),
        cmocka_unit_test(values_are_indented_for_reading),
        cmocka_unit_test(numbers_that_were_computed_are_written_with_17_digits),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(members_are_checked),
        cmocka_unit_test(strings_survive_a_round_trip),
        cmocka_unit_test(escapes_are_the_short_ones),
        cmocka_unit_test(escaped_pairs_are_their_characters),
        cmocka_unit_test(whole_numbers_beyond_64_bits_are_too_large),
        cmocka_unit_test_setup_teardown(zero_bytes_of_names_are_kept_where_they_are_taken,
                                        enter_scratch, leave_scratch),
        cmocka_unit_test(plain_bytes_are_told_from_others_at_any_place),
        cmocka_unit_test_setup_teardown(files_are_written_and_read, enter_scratch, leave_scratch),
        cmocka_unit_test_setup_teardown(nan_and_infinity_in_a_file_are_refused_by_name,
                                        enter_scratch, leave_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
