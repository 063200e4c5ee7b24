/* SPDX-License-Identifier: MIT */
/* What measurements refuse, and where they print. */
#include "test.h"

#include <stdarg.h>
#include <stdio.h>

#include "bench/bench.h"
#include "scratch.h"

static char printed[256];

static int keep(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(printed, sizeof printed, fmt, args);
    va_end(args);
    return n;
}

static void settings_that_a_measurement_cannot_obey_are_named(void **state)
{
    struct dt_settings settings;
    struct dt_error err;
    (void)state;
    dt_config_defaults(dt_settings_schema, &settings);
    assert_int_equal(dt_bench_check_settings("step", &settings, false, &err), 0);
    settings.data.layout = DT_TEXT_LAYOUT_PADDED;
    assert_int_equal(dt_bench_check_settings("load", &settings, true, &err), 0);
    assert_true(dt_bench_check_settings("step", &settings, false, &err) < 0);
    assert_string_equal(err.text, "step does not use data.layout: remove that setting");
    settings.distributed.tp = 2;
    assert_true(dt_bench_check_settings("load", &settings, true, &err) < 0);
    assert_string_equal(err.text, "load does not use distributed.tp: remove that setting");
}

static void a_measurement_prints_lines_or_builds_an_object(void **state)
{
    struct dt_error err;
    struct dt_bench b = {.tokenizer = "bytes.json", .seconds = 0.01, .print = keep};
    (void)state;
    static const char
        text[] = "once upon a time\n",
        file[] = "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"o\":0,\"n\":1},\"merges\":[]}}";
    write_bytes("text.txt", text, sizeof text - 1);
    write_bytes("bytes.json", file, sizeof file - 1);
    assert_int_equal(dt_bench_tokenize(&b, "text.txt", &err), 0);
    assert_memory_equal(printed, "tokenize          ", 18);
    assert_int_equal(b.object.size, 0);
    b.json = true, *printed = 0;
    assert_int_equal(dt_bench_tokenize(&b, "text.txt", &err), 0);
    assert_string_equal(printed, "");
    assert_memory_equal(b.object.data, "{\"threads\":1,\"bytes\":17,", 24);
    assert_memory_equal(b.object.data + b.object.size - 2, "}\n", 2);
    dt_buffer_release(&b.object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_that_a_measurement_cannot_obey_are_named),
        cmocka_unit_test_setup_teardown(a_measurement_prints_lines_or_builds_an_object,
                                        enter_scratch, leave_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
