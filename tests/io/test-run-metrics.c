/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "io/run-metrics.h"

/* Reads text as the metrics file of a directory "tale". */
static int read_text(const char *text, struct dt_run_metrics *m, struct dt_error *err)
{
    assert_int_equal(dt_file_make_directories("tale", err), 0);
    assert_int_equal(dt_file_write("tale/metrics.jsonl", text, strlen(text), err), 0);
    return dt_run_metrics_read(m, "tale/", err);
}

static void losses_are_read_and_the_rest_is_ignored(void **state)
{
    (void)state;
    struct dt_run_metrics m;
    struct dt_error err;
    assert_int_equal(read_text("{\"run\":{\"seed\":1}}\n"
                               "{\"step\":1,\"tokens\":10,\"time\":0.5,\"loss\":3.5,\"x\":[1]}\n"
                               "{\"step\":1,\"val_loss\":3.25}\n"
                               "{\"note\":\"hello\"}\n"
                               "{\"step\":2,\"loss\":null}\n"
                               "{\"step\":3,\"loss\":3}\n"
                               "{\"step\":4,\"lo",
                               &m, &err),
                     0);
    assert_string_equal(m.name, "tale");
    assert_int_equal(m.train.count, 2);
    assert_float_equal(m.train.items[0].loss, 3.5, 0);
    assert_float_equal(m.train.items[0].tokens, 10, 0);
    assert_float_equal(m.train.items[0].time, 0.5, 0);
    assert_float_equal(m.train.items[1].step, 3, 0);
    assert_true(isnan(m.train.items[1].tokens));
    assert_int_equal(m.valid.count, 1);
    assert_float_equal(m.valid.items[0].loss, 3.25, 0);
    assert_int_equal(m.not_finite, 1);
    assert_float_equal(m.last.step, 3, 0);
    dt_run_metrics_release(&m);
}

static void the_last_line_counts_without_a_finite_loss(void **state)
{
    (void)state;
    struct dt_run_metrics m;
    struct dt_error err;
    assert_int_equal(read_text("{\"step\":1,\"tokens\":10,\"time\":0.5,\"loss\":3.5}\n"
                               "{\"step\":2,\"tokens\":20,\"time\":0.75,\"loss\":null}\n"
                               "{\"step\":9,\"generation\":2}\n",
                               &m, &err),
                     0);
    assert_int_equal(m.train.count, 1);
    assert_float_equal(m.last.step, 2, 0);
    assert_float_equal(m.last.tokens, 20, 0);
    assert_float_equal(m.last.time, 0.75, 0);
    dt_run_metrics_release(&m);
}

static void a_resumed_run_replaces_the_steps_it_repeats(void **state)
{
    (void)state;
    struct dt_run_metrics m;
    struct dt_error err;
    assert_int_equal(
        read_text("{\"run\":\"a tale\"}\n{\"step\":1,\"loss\":4}\n{\"step\":2,\"loss\":3}\n"
                  "{\"step\":2,\"val_loss\":3.5}\n{\"step\":3,\"loss\":2}\n"
                  "{\"step\":3,\"val_loss\":2.25}\n{\"step\":2,\"loss\":2.5}\n",
                  &m, &err),
        0);
    assert_string_equal(m.name, "a tale");
    assert_int_equal(m.train.count, 2);
    assert_float_equal(m.train.items[1].step, 2, 0);
    assert_float_equal(m.train.items[1].loss, 2.5, 0);
    assert_int_equal(m.valid.count, 1);
    assert_float_equal(m.valid.items[0].step, 2, 0);
    dt_run_metrics_release(&m);
}

static void a_repeated_step_without_a_finite_number_has_no_point(void **state)
{
    (void)state;
    struct dt_run_metrics m;
    struct dt_error err;
    static const char text[] = "{\"step\":1,\"loss\":5,\"x\":1}\n{\"step\":2,\"loss\":4,\"x\":1}\n"
                               "{\"step\":2,\"val_loss\":4}\n{\"step\":3,\"loss\":3,\"x\":1}\n"
                               "{\"step\":2,\"loss\":null}\n{\"step\":2,\"val_loss\":null}\n"
                               "{\"step\":3,\"loss\":null}\n{\"step\":4,\"loss\":6}\n";
    assert_int_equal(read_text(text, &m, &err), 0);
    assert_int_equal(m.train.count, 2);
    assert_float_equal(m.train.items[0].step, 1, 0);
    assert_float_equal(m.train.items[1].step, 4, 0);
    assert_int_equal(m.valid.count, 0);
    assert_int_equal(m.not_finite, 3);
    dt_run_metrics_release(&m);
    assert_int_equal(dt_run_metrics_read_member(&m, "tale", "x", &err), 0);
    assert_int_equal(m.train.count, 2); /* no later line has the x of step 2 */
    dt_run_metrics_release(&m);
}

static void a_further_validation_is_replaced_as_that_of_the_loss_is(void **state)
{
    (void)state;
    struct dt_run_metrics m;
    struct dt_error err;
    static const char text[] = "{\"step\":1,\"loss\":4,\"lr\":1}\n"
                               "{\"step\":1,\"val_loss\":5,\"val_loss_web\":6}\n"
                               "{\"step\":3,\"val_loss\":3,\"val_loss_web\":2}\n"
                               "{\"step\":2,\"loss\":3,\"lr\":2}\n";
    write_bytes("metrics.jsonl", text, sizeof text - 1);
    assert_int_equal(dt_run_metrics_read_member(&m, "metrics.jsonl", "val_loss_web", &err), 0);
    assert_int_equal(m.train.count, 0);
    assert_int_equal(m.valid.count, 1);
    assert_float_equal(m.valid.items[0].step, 1, 0);
    assert_float_equal(m.valid.items[0].loss, 6, 0);
    dt_run_metrics_release(&m);
    assert_int_equal(dt_run_metrics_read_member(&m, "metrics.jsonl", "lr", &err), 0);
    assert_int_equal(m.train.count, 2);
    assert_int_equal(m.valid.count, 0);
    dt_run_metrics_release(&m);
    assert_int_equal(dt_run_metrics_read_member(&m, "metrics.jsonl", "val_x", &err), DT_EFORMAT);
    assert_string_equal(err.text, "metrics.jsonl: holds no val_x");
}

static void broken_metrics_are_refused_with_their_line(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"step\":1,\"loss\":4}\nnonsense\n", "metrics.jsonl:2: "},
        {"{\"loss\":4}\n", "metrics.jsonl:1: "},
        {"[1]\n", "metrics.jsonl:1: not a JSON object"},
        {"", "holds no loss"},
        {"{\"run\":\"x\"}\n", "holds no loss"},
        {"{\"step\":1,\"loss\":4}", "holds no loss"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_run_metrics m;
        struct dt_error err = {0};
        assert_int_equal(read_text(cases[i][0], &m, &err), DT_EFORMAT);
        if (!strstr(err.text, cases[i][1]))
            fail_msg("'%s' lacks '%s'", err.text, cases[i][1]);
    }
}

static void a_missing_run_is_an_error(void **state)
{
    (void)state;
    struct dt_run_metrics m;
    struct dt_error err;
    assert_int_equal(dt_run_metrics_read(&m, "/nonexistent/run", &err), DT_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_read_and_the_rest_is_ignored),
        cmocka_unit_test(the_last_line_counts_without_a_finite_loss),
        cmocka_unit_test(a_resumed_run_replaces_the_steps_it_repeats),
        cmocka_unit_test(a_repeated_step_without_a_finite_number_has_no_point),
        cmocka_unit_test(a_further_validation_is_replaced_as_that_of_the_loss_is),
        cmocka_unit_test(broken_metrics_are_refused_with_their_line),
        cmocka_unit_test(a_missing_run_is_an_error),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
