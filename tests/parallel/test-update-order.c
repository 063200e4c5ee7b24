/* SPDX-License-Identifier: MIT */
/* The order of asynchronous updates: with workers of any speed no gradient is older than the bound,
 * nothing waits forever, and a record is followed by any number of workers. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "math/rng.h"
#include "parallel/update-order.h"

#define MOST_WORKERS 6
#define STEPS        200

struct job {
    struct dt_update_order order;
    int workers;
    long busy_until[MOST_WORKERS]; /* 0: idle */
    uint64_t seed, draws;
    struct dt_ordered_update updates[STEPS];
    long oldest; /* staleness */
};

static long draw(struct job *j, long count)
{
    return (long)(dt_random_key(j->seed, 0, j->draws++) % (uint64_t)count);
}

/* A batch takes worker w from 1 to 3 times 2^w, or 100 times that. */
static long duration(struct job *j, int w)
{
    return (1 + draw(j, 3)) * (1L << w) * (draw(j, 20) == 0 ? 100 : 1);
}

static void apply_all(struct job *j)
{
    const struct dt_pending_update *next;
    while ((next = dt_update_order_next(&j->order)) != NULL) {
        const struct dt_ordered_update u = dt_update_order_apply(&j->order, next);
        const long stale = u.step - 1 - u.version;
        assert_int_equal(u.step, j->order.version);
        assert_in_range(stale, 0, j->order.bound);
        j->oldest = stale > j->oldest ? stale : j->oldest;
        j->updates[u.step - 1] = u;
    }
}

static void begin_all(struct job *j, long now)
{
    for (int w = 0; w < j->workers; w++) {
        const long batch = dt_update_order_next_batch(&j->order);
        if (j->busy_until[w] == 0 && batch > 0 && batch <= STEPS) {
            assert_int_equal(dt_update_order_begin(&j->order, w)->batch, batch);
            j->busy_until[w] = now + duration(j, w);
        }
    }
}

/* Until all batches are applied. */
static void run(struct job *j)
{
    for (long now = 1; j->order.version < STEPS; now++) {
        assert_in_range(now, 1, 1000000); /* or it waits forever */
        for (int w = 0; w < j->workers; w++)
            if (j->busy_until[w] > 0 && j->busy_until[w] <= now) {
                j->busy_until[w] = 0;
                dt_update_order_arrive(&j->order, w);
            }
        apply_all(j);
        begin_all(j, now);
    }
}

static void check_batches(const struct job *j)
{
    bool seen[STEPS + 1] = {false};
    for (int i = 0; i < STEPS; i++) {
        assert_in_range(j->updates[i].batch, 1, STEPS);
        assert_false(seen[j->updates[i].batch]);
        seen[j->updates[i].batch] = true;
    }
}

static struct job begin(int workers, long bound, uint64_t seed)
{
    struct job j = {.workers = workers, .seed = seed};
    dt_update_order_init(&j.order, 0, bound);
    return j;
}

static void no_gradient_is_older_than_the_bound(void **state)
{
    (void)state;
    for (int workers = 1; workers <= MOST_WORKERS; workers++)
        for (long bound = 0; bound <= 9; bound++) {
            struct job j = begin(workers, bound, (uint64_t)(workers * 100 + bound));
            run(&j);
            check_batches(&j);
            if (workers > 1) /* the slow ones make the others wait */
                assert_int_equal(j.oldest, bound);
            dt_update_order_release(&j.order);
        }
}

static void with_a_bound_of_0_batches_follow_one_another(void **state)
{
    (void)state;
    struct job j = begin(MOST_WORKERS, 0, 1);
    run(&j);
    for (long i = 0; i < STEPS; i++) {
        assert_int_equal(j.updates[i].batch, i + 1);
        assert_int_equal(j.updates[i].version, i);
    }
    dt_update_order_release(&j.order);
}

static void a_record_is_followed_by_any_number_of_workers(void **state)
{
    (void)state;
    struct job first = begin(5, 7, 3);
    run(&first);
    for (int workers = 1; workers <= MOST_WORKERS; workers++) {
        struct job j = begin(workers, 7, 100 + (uint64_t)workers);
        dt_update_order_follow(&j.order, first.updates, STEPS);
        run(&j);
        assert_memory_equal(j.updates, first.updates, sizeof j.updates);
        dt_update_order_release(&j.order);
    }
    dt_update_order_release(&first.order);
}

static void an_order_goes_on_after_a_step(void **state)
{
    (void)state;
    struct dt_update_order o;
    const struct dt_ordered_update recorded[] = {{1, 2, 0}, {2, 1, 0}, {3, 4, 2}, {4, 3, 2}};
    dt_update_order_init(&o, 2, 1);
    assert_int_equal(dt_update_order_next_batch(&o), 3);
    dt_update_order_follow(&o, recorded, 4);
    assert_int_equal(dt_update_order_begin(&o, 0)->batch, 4);
    assert_int_equal(dt_update_order_begin(&o, 1)->batch, 3);
    assert_int_equal(dt_update_order_next_batch(&o), 0);
    dt_update_order_arrive(&o, 1);
    assert_null(dt_update_order_next(&o));
    dt_update_order_arrive(&o, 0);
    assert_int_equal(dt_update_order_next(&o)->batch, 4);
    dt_update_order_release(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_gradient_is_older_than_the_bound),
        cmocka_unit_test(with_a_bound_of_0_batches_follow_one_another),
        cmocka_unit_test(a_record_is_followed_by_any_number_of_workers),
        cmocka_unit_test(an_order_goes_on_after_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
