/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "parts/ledger.h"

static struct dt_error err;

static struct json_object *parse(const char *text)
{
    struct json_object *value;
    assert_int_equal(dt_json_parse(text, strlen(text), "text", &value, &err), 0);
    return value;
}

static void check_sum(const char *a, const char *b, const char *expected)
{
    struct json_object *x = parse(a), *y = parse(b), *sum = dt_ledger_add_stats(x, y);
    assert_string_equal(sum ? dt_json_text(sum) : "absent", expected);
    json_object_put(sum);
    json_object_put(x);
    json_object_put(y);
}

static void statistics_of_parts_are_added(void **state)
{
    (void)state;
    check_sum("{\"a\":1,\"b\":{\"c\":2}}", "{\"a\":10,\"b\":{\"c\":20}}",
              "{\"a\":11,\"b\":{\"c\":22}}");
    check_sum("[{\"rule\":\"x\",\"n\":1}]", "[{\"rule\":\"x\",\"n\":2}]",
              "[{\"rule\":\"x\",\"n\":3}]");
    check_sum("{\"s\":\"x\",\"r\":0.5}", "{\"s\":\"x\",\"r\":0.5}", "{\"s\":\"x\",\"r\":0.5}");
}

static void what_cannot_be_added_is_left_out(void **state)
{
    (void)state;
    check_sum("{\"s\":\"x\",\"r\":0.5,\"n\":1}", "{\"s\":\"y\",\"r\":0.25,\"n\":1}", "{\"n\":2}");
    check_sum("{\"l\":[1],\"n\":1}", "{\"l\":[1,2],\"n\":1}", "{\"n\":2}");
    check_sum("{\"only\":1,\"n\":1}", "{\"n\":1}", "{\"n\":2}");
    check_sum("1", "\"1\"", "absent");
    check_sum("{\"hash\":9223372036854775807,\"n\":1}", "{\"hash\":5,\"n\":1}", "{\"n\":2}");
    check_sum("{\"hash\":18446744073709551615,\"n\":1}", "{\"hash\":5,\"n\":1}", "{\"n\":2}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_of_parts_are_added),
        cmocka_unit_test(what_cannot_be_added_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
