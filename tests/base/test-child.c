/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"

/* What a program that sends itself the signal writes afterwards; the error of its end. */
static int survive(const char *name, char text[8], struct dt_error *err)
{
    char script[64];
    struct dt_child child = {0};
    snprintf(script, sizeof script, "kill -%s $$; echo alive", name);
    assert_int_equal(
        dt_child_start(&child, (const char *[]){"sh", "-c", script, NULL}, -1, true, err), 0);
    memset(text, 0, 8);
    assert_true(read(child.output, text, 7) >= 0);
    int rc = dt_child_finish(&child, err);
    dt_child_stop(&child);
    return rc;
}

/* As nohup(1) and shells do for commands in the background. */
static void signals_that_a_user_ignores_are_ignored_by_children(void **state)
{
    char text[8];
    struct dt_error err;
    (void)state;
    signal(SIGHUP, SIG_IGN);
    assert_int_equal(survive("HUP", text, &err), 0);
    assert_string_equal(text, "alive\n");
    signal(SIGHUP, SIG_DFL);
    assert_int_equal(survive("HUP", text, &err), DT_EIO);
    assert_string_equal(err.text, "'sh' was ended by signal 1");
}

static void signals_that_this_program_ignores_are_not(void **state)
{
    char text[8];
    struct dt_error err;
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(survive("PIPE", text, &err), DT_EIO);
    assert_string_equal(err.text, "'sh' was ended by signal 13");
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(survive("XFSZ", text, &err), DT_EIO);
    signal(SIGXFSZ, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_that_a_user_ignores_are_ignored_by_children),
        cmocka_unit_test(signals_that_this_program_ignores_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
