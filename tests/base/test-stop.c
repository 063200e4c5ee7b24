/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stop.h"

static void wait_until_set(const volatile sig_atomic_t *stop)
{
    while (!*stop)
        usleep(1000);
}

/* What a child of ours does; its status is what the parent sees. */
static int status_of(void (*work)(const volatile sig_atomic_t *))
{
    pid_t child = fork();
    int status;
    if (child == 0) {
        work(dt_stop_watch());
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void first_signal(const volatile sig_atomic_t *stop)
{
    sigset_t mask;
    if (*stop != 0)
        _exit(1);
    kill(getpid(), SIGUSR1);
    wait_until_set(stop);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    /* This thread is never interrupted. */
    _exit(*stop == SIGUSR1 && sigismember(&mask, SIGUSR1) == 1 ? 7 : 2);
}

static void the_first_signal_is_only_noted(void **state)
{
    (void)state;
    int status = status_of(first_signal);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

static void second_signal(const volatile sig_atomic_t *stop)
{
    kill(getpid(), SIGTERM);
    wait_until_set(stop);
    kill(getpid(), SIGTERM);
    for (;;)
        pause();
}

static void the_second_ends_the_program(void **state)
{
    (void)state;
    int status = status_of(second_signal);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void unattended_signal(const volatile sig_atomic_t *stop)
{
    (void)stop;
    dt_stop_attend(false);
    kill(getpid(), SIGTERM);
    for (;;)
        pause();
}

static void earlier_signal(const volatile sig_atomic_t *stop)
{
    kill(getpid(), SIGUSR1);
    wait_until_set(stop);
    dt_stop_attend(false);
}

static void attended_again(const volatile sig_atomic_t *stop)
{
    dt_stop_attend(false);
    dt_stop_attend(true);
    first_signal(stop);
}

static void the_first_ends_a_program_that_nobody_attends(void **state)
{
    (void)state;
    int status = status_of(unattended_signal);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    status = status_of(earlier_signal);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    status = status_of(attended_again);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void obey(const volatile sig_atomic_t *stop)
{
    kill(getpid(), SIGINT);
    wait_until_set(stop);
    dt_stop_now(*stop);
}

static void the_parent_learns_which_signal_it_was(void **state)
{
    (void)state;
    int status = status_of(obey);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGINT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_signal_is_only_noted),
        cmocka_unit_test(the_second_ends_the_program),
        cmocka_unit_test(the_first_ends_a_program_that_nobody_attends),
        cmocka_unit_test(the_parent_learns_which_signal_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
