/* SPDX-License-Identifier: MIT */
/* Programs that write another number of lines than they were given.
 * tests/tools/dt-train-rewards.bats has what training makes of other mistakes. */
#include "test.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "prefer/reward.h"

/* A line more than it was given, after the answer to the first question was taken, would be the
 * first answer to the second. */
static void a_line_that_comes_late_is_not_an_answer_to_the_next_question(void **state)
{
    struct dt_reward r;
    struct dt_error err = {.text = ""};
    double rewards[2];
    (void)state;
    assert_int_equal(
        dt_reward_open(&r, "read x; echo 1; read x; echo 2; read x; echo 3; cat", 60, &err), 0);
    assert_int_equal(dt_reward_ask(&r, "a\n", 2, 1, rewards, &err), 0);
    assert_true(rewards[0] == 1);
    assert_int_equal(write(r.input, "b\n", 2), 2);
    assert_int_equal(poll(&(struct pollfd){.fd = r.child.output, .events = POLLIN}, 1, -1), 1);
    assert_int_equal(dt_reward_ask(&r, "c\n", 2, 1, rewards, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "wrote more lines than the 1 that it was given"));
    dt_reward_close(&r);
}

static void answers_in_one_piece_or_in_several_are_taken(void **state)
{
    struct dt_reward r;
    struct dt_error err;
    double rewards[2];
    (void)state;
    assert_int_equal(
        dt_reward_open(&r, "while read x; do printf 0.; printf '5\\n'; done", 60, &err), 0);
    for (int i = 0; i < 3; i++) {
        rewards[0] = rewards[1] = 0;
        assert_int_equal(dt_reward_ask(&r, "a\nb\n", 4, 2, rewards, &err), 0);
        assert_true(rewards[0] == 0.5 && rewards[1] == 0.5);
    }
    dt_reward_close(&r);
}

/* strtod takes blanks for 0; means of larger numbers are not finite in fp32. */
static void blank_lines_and_huge_numbers_are_no_rewards(void **state)
{
    static const char *const answers[] = {"", " ", "\\t", "\\r", "1e31", "-1e31"};
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct dt_reward r;
        struct dt_error err = {.text = ""};
        double reward;
        char command[64];
        snprintf(command, sizeof command, "printf -- '%s\\n'; cat >/dev/null", answers[i]);
        assert_int_equal(dt_reward_open(&r, command, 60, &err), 0);
        assert_int_equal(dt_reward_ask(&r, "a\n", 2, 1, &reward, &err), DT_EFORMAT);
        assert_non_null(strstr(err.text, "for completion 1 of 1"));
        dt_reward_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_that_comes_late_is_not_an_answer_to_the_next_question),
        cmocka_unit_test(answers_in_one_piece_or_in_several_are_taken),
        cmocka_unit_test(blank_lines_and_huge_numbers_are_no_rewards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
