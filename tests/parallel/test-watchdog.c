/* SPDX-License-Identifier: MIT */
/* Finds the slowest rank. */
#include "test.h"

#include "../comm/threads.h"
#include "parallel/watchdog.h"

#define RANKS 4

struct straggler_case {
    double busy[RANKS];
    int64_t passes[RANKS];
    struct dt_straggler expected;
};

static void watch(struct dt_comm *world, void *context)
{
    const struct straggler_case *c = context;
    struct dt_straggler straggler;
    struct dt_error err;
    int rank = dt_comm_rank(world);
    if (dt_watchdog_find_straggler(world, c->busy[rank], c->passes[rank], &straggler, &err) < 0 ||
        straggler.rank != c->expected.rank || straggler.factor != c->expected.factor)
        abort();
}

/* Five micro-batches for four ranks: one has two. */
static void the_factor_is_of_the_time_for_one_micro_batch(void **state)
{
    struct straggler_case alike = {{1, 1, 1, 2}, {1, 1, 1, 2}, {0, 1}};
    struct straggler_case second_is_slow = {{1, 3, 1, 2}, {1, 1, 1, 2}, {1, 3}};
    (void)state;
    run_ranks(RANKS, watch, &alike);
    run_ranks(RANKS, watch, &second_is_slow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_factor_is_of_the_time_for_one_micro_batch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
