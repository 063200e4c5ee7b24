/* SPDX-License-Identifier: MIT */
/* The choice of a number of threads by the time of steps, which the tests make up. */
#include "test.h"

#include <string.h>

#include "device/thread-choice.h"

/* Seconds of a step on 1, 2, 4, ... threads, in turn. */
struct machine {
    double now; /* since the run began */
    double seconds[8];
};

static int index_of(int threads)
{
    int i = 0;
    while (1 << i < threads)
        i++;
    return i;
}

/* Runs steps for some time; returns the share of it that the steps took on the number of threads
 * that was the last. */
static double run(struct dt_thread_choice *c, struct machine *m, double length)
{
    double used[8] = {0};
    for (double end = m->now + length; m->now < end;) {
        double seconds = m->seconds[index_of(c->threads)];
        used[index_of(c->threads)] += seconds;
        m->now += seconds;
        dt_thread_choice_add(c, seconds, 1000);
    }
    return used[index_of(c->threads)] / length;
}

static const struct {
    int most, chosen;
    double seconds[8];
} machines[] = {
    {2, 2, {.003, .002}},             /* idle */
    {2, 1, {.003, .09}},              /* threads that wait for each other */
    {2, 2, {.0028, .0029}},           /* within chance: as before */
    {8, 8, {8, 4.1, 2.2, 1.2}},       /* a large model */
    {8, 2, {.003, .002, .004, .009}}, /* neither all nor one */
    {6, 6, {.6, .3, .15, .1}},        /* 6 is not a power of two: 3 and 1 are tried */
    {6, 3, {.009, .005, .002, .006}},
    {1, 1, {.01}},
};

static void the_fastest_number_of_threads_is_chosen(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        struct dt_thread_choice c;
        struct machine m = {0};
        memcpy(m.seconds, machines[i].seconds, sizeof m.seconds);
        dt_thread_choice_init(&c, machines[i].most);
        assert_int_equal(c.threads, machines[i].most);
        run(&c, &m, 300);
        assert_int_equal(c.best, machines[i].chosen);
    }
}

static void a_trial_takes_a_twentieth_of_the_time_at_most(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        struct dt_thread_choice c;
        struct machine m = {0};
        memcpy(m.seconds, machines[i].seconds, sizeof m.seconds);
        dt_thread_choice_init(&c, machines[i].most);
        run(&c, &m, 30); /* the first trial */
        double trials = 0, all = 0;
        while (all < 1000) {
            double seconds = m.seconds[index_of(c.threads)];
            trials += c.phase != DT_THREAD_PHASE_REST ? seconds : 0;
            all += seconds;
            dt_thread_choice_add(&c, seconds, 1000);
        }
        assert_true(trials > 0);
        assert_true(trials <= 0.06 * all);
    }
}

static void it_follows_a_machine_that_becomes_busy_and_idle(void **state)
{
    (void)state;
    struct dt_thread_choice c;
    struct machine m = {.seconds = {.003, .002}};
    dt_thread_choice_init(&c, 2);
    run(&c, &m, 20);
    assert_int_equal(c.best, 2);
    m.seconds[1] = .05;
    run(&c, &m, 10);
    assert_int_equal(c.best, 1);
    assert_true(run(&c, &m, 100) > 0.9);
    m.seconds[1] = .002;
    run(&c, &m, 20);
    assert_int_equal(c.best, 2);
}

/* From one thread, twice the number is tried as long as it is faster. */
static void more_threads_are_tried_again(void **state)
{
    (void)state;
    struct dt_thread_choice c;
    struct machine m = {.seconds = {.002, .02, .04, .08}};
    dt_thread_choice_init(&c, 8);
    run(&c, &m, 30);
    assert_int_equal(c.best, 1);
    memcpy(m.seconds, (double[8]){.008, .004, .002, .003}, sizeof m.seconds);
    run(&c, &m, 60);
    assert_int_equal(c.best, 4);
}

/* Single slow steps, as when another program has the processor, decide nothing. */
static void slow_steps_among_many_decide_nothing(void **state)
{
    (void)state;
    struct dt_thread_choice c;
    dt_thread_choice_init(&c, 2);
    for (int i = 0; i < 20000; i++) {
        dt_thread_choice_add(&c, (c.threads == 2 ? .002 : .004) + (i % 37 == 0 ? .02 : 0), 1000);
        assert_int_equal(c.best, 2);
    }
}

/* Steps of a growing batch: their time is relative to their tokens. */
static void larger_steps_are_not_slower_ones(void **state)
{
    (void)state;
    struct dt_thread_choice c;
    dt_thread_choice_init(&c, 2);
    for (int i = 0; i < 2000; i++) {
        double tokens = 1000 + 100 * i;
        dt_thread_choice_add(&c, tokens * (c.threads == 2 ? 2e-6 : 3e-6), tokens);
        assert_int_equal(c.best, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_number_of_threads_is_chosen),
        cmocka_unit_test(a_trial_takes_a_twentieth_of_the_time_at_most),
        cmocka_unit_test(it_follows_a_machine_that_becomes_busy_and_idle),
        cmocka_unit_test(more_threads_are_tried_again),
        cmocka_unit_test(slow_steps_among_many_decide_nothing),
        cmocka_unit_test(larger_steps_are_not_slower_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
