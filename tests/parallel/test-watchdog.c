/* SPDX-License-Identifier: MIT */
/* Which rank holds the others up. */
#include "test.h"

#include "../comm/threads.h"
#include "parallel/watchdog.h"

#define RANKS 4

struct pace_case {
    double busy[RANKS];
    int64_t passes[RANKS];
    struct dt_pace expected;
};

static void watch(struct dt_comm *world, void *context)
{
    const struct pace_case *c = context;
    struct dt_pace pace;
    struct dt_error err;
    int rank = dt_comm_rank(world);
    if (dt_watchdog_pace(world, c->busy[rank], c->passes[rank], &pace, &err) < 0 ||
        pace.slowest != c->expected.slowest || pace.factor != c->expected.factor)
        abort();
}

/* Five micro-batches for four ranks: one has two. */
static void pace_is_that_of_a_pass(void **state)
{
    struct pace_case alike = {{1, 1, 1, 2}, {1, 1, 1, 2}, {0, 1}};
    struct pace_case second_is_slow = {{1, 3, 1, 2}, {1, 1, 1, 2}, {1, 3}};
    (void)state;
    run_ranks(RANKS, watch, &alike);
    run_ranks(RANKS, watch, &second_is_slow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pace_is_that_of_a_pass)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
