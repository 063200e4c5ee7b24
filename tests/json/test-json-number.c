/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json/json-number.h"
#include "json/json.h"

static void what_is_not_finite_is_written_as_null(void **state)
{
    (void)state;
    const double values[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 4; i++) {
        struct dt_buffer b = DT_BUFFER_EMPTY;
        dt_buffer_add_char(&b, '{');
        dt_json_add_real(&b, "a", values[i], 9);
        dt_json_add_fixed(&b, "b", values[i], 3);
        dt_buffer_add_string(&b, ",\"c\":");
        dt_json_add_number(&b, values[i]);
        assert_string_equal(b.data, "{\"a\":null,\"b\":null,\"c\":null");
        assert_null(dt_json_number(values[i]));
        dt_buffer_release(&b);
    }
}

static void finite_numbers_are_written_as_they_are(void **state)
{
    (void)state;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_buffer_add_char(&b, '{');
    dt_json_add_real(&b, "a", 0.1, 9);
    dt_json_add_fixed(&b, "b", -0.0005, 3);
    dt_json_add_real(&b, "c", DBL_MAX, 17);
    assert_string_equal(b.data, "{\"a\":0.1,\"b\":-0.001,\"c\":1.7976931348623157e+308");
    struct json_object *x = dt_json_number(-2.5);
    assert_string_equal(dt_json_text(x), "-2.5");
    json_object_put(x);
    dt_buffer_release(&b);
}

static void assert_read_as(const char *text, const char *expected)
{
    struct dt_error err;
    struct json_object *v;
    assert_int_equal(dt_json_parse(text, strlen(text), "f", &v, &err), 0);
    assert_string_equal(dt_json_text(v), expected);
    json_object_put(v);
}

static void numbers_of_any_size_keep_their_value(void **state)
{
    (void)state;
    assert_read_as("[1000000000000000019884624838656]", "[1000000000000000019884624838656]");
    assert_read_as("[-9223372036854775808,-9223372036854775809,18446744073709551615,"
                   "18446744073709551616]",
                   "[-9223372036854775808,-9223372036854775809,18446744073709551615,"
                   "18446744073709551616]");
    struct dt_error err;
    struct json_object *v;
    double x = 0;
    const char text[] = "{\"a\":99999999999999999999}";
    assert_int_equal(dt_json_parse(text, strlen(text), "f", &v, &err), 0);
    assert_int_equal(dt_json_get_real(v, "a", "f", &x, &err), 0);
    assert_true(x == 1e20);
    json_object_put(v);
}

static void words_that_python_writes_are_read_as_null(void **state)
{
    (void)state;
    assert_read_as("{\"a\":NaN,\"b\":[Infinity,-Infinity],\"c\":\"NaN \\\"Infinity\"}",
                   "{\"a\":null,\"b\":[null,null],\"c\":\"NaN \\\"Infinity\"}");
}

static void what_only_looks_like_a_number_is_refused_with_its_place(void **state)
{
    (void)state;
    const char *const bad[] = {"1.",  "1.e5", "-NaN",  "-nan", "-inf", "0x10", "01",
                               "-01", "1e",   "1.5.2", "1-1",  "-",    "1e+",  "-.5"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[32], reason[64];
        struct dt_error err;
        struct json_object *v;
        snprintf(text, sizeof text, "[0, %s]", bad[i]);
        snprintf(reason, sizeof reason, "f: byte 4: is not a number of JSON");
        if (dt_json_parse(text, strlen(text), "f", &v, &err) != DT_EFORMAT)
            fail_msg("accepted: %s", text);
        assert_null(v);
        assert_string_equal(err.text, reason);
    }
}

static void a_number_that_no_double_holds_is_refused_by_name(void **state)
{
    (void)state;
    struct dt_error err;
    struct json_object *v;
    double x;
    const char text[] = "{\"a\":1e400,\"b\":NaN}";
    assert_int_equal(dt_json_parse(text, strlen(text), "f", &v, &err), 0);
    assert_int_equal(dt_json_get_real(v, "a", "f", &x, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f: member \"a\" is too large a number");
    assert_int_equal(dt_json_get_real(v, "b", "f", &x, &err), DT_EFORMAT);
    json_object_put(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_finite_is_written_as_null),
        cmocka_unit_test(finite_numbers_are_written_as_they_are),
        cmocka_unit_test(numbers_of_any_size_keep_their_value),
        cmocka_unit_test(words_that_python_writes_are_read_as_null),
        cmocka_unit_test(what_only_looks_like_a_number_is_refused_with_its_place),
        cmocka_unit_test(a_number_that_no_double_holds_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
