/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdatomic.h>
#include <time.h>

#include "base/pool.h"

enum { JOBS = 3000 };

struct job {
    int number, result;
};

static void square(void *argument, void *context)
{
    struct job *job = argument;
    if (job->number % 7 == 0) { /* so that later jobs overtake this one */
        struct timespec t = {0, 50000};
        nanosleep(&t, NULL);
    }
    job->result = job->number * job->number;
    atomic_fetch_add((atomic_int *)context, 1);
}

static void run_with(int threads)
{
    static struct job jobs[JOBS];
    atomic_int worked = 0;
    struct dt_pool *pool = dt_pool_new(threads, square, &worked);
    int next = 0;
    struct job *job;
    for (int i = 0; i < JOBS; i++) {
        if (dt_pool_full(pool)) {
            job = dt_pool_next(pool);
            assert_int_equal(job->number, next++);
            assert_int_equal(job->result, job->number * job->number);
        }
        jobs[i] = (struct job){.number = i};
        dt_pool_submit(pool, &jobs[i]);
    }
    while ((job = dt_pool_next(pool)) != NULL) {
        assert_int_equal(job->number, next++);
        assert_int_equal(job->result, job->number * job->number);
    }
    assert_int_equal(next, JOBS);
    assert_int_equal(worked, JOBS);
    dt_pool_free(pool);
}

static void jobs_come_out_as_they_went_in(void **state)
{
    (void)state;
    for (int threads = 0; threads <= 5; threads++)
        run_with(threads);
}

static void jobs_in_flight_are_finished_before_the_pool_is_gone(void **state)
{
    (void)state;
    struct job jobs[8] = {{0, 0}};
    atomic_int worked = 0;
    struct dt_pool *pool = dt_pool_new(2, square, &worked);
    for (int i = 0; i < 8; i++)
        dt_pool_submit(pool, &jobs[i]);
    assert_true(dt_pool_full(pool));
    dt_pool_free(pool);
    assert_int_equal(worked, 8);
}

/* Two stages: the results of one are the jobs of the other. */
static void run_stages(int count)
{
    static struct job jobs[JOBS];
    atomic_int first_worked = 0, second_worked = 0;
    struct dt_threads *threads = dt_threads_new(count);
    struct dt_pool *first = dt_pool_on(threads, square, &first_worked),
                   *second = dt_pool_on(threads, square, &second_worked);
    int submitted = 0, passed = 0, next = 0;
    assert_int_equal(dt_threads_count(threads), count > 1 ? count : 1);
    while (next < JOBS) {
        for (; submitted < JOBS && !dt_pool_full(first); submitted++) {
            jobs[submitted] = (struct job){.number = submitted % 1000};
            dt_pool_submit(first, &jobs[submitted]);
        }
        if (passed < JOBS && !dt_pool_full(second)) {
            struct job *job = dt_pool_next(first);
            assert_ptr_equal(job, &jobs[passed++]);
            job->number = job->result % 1000;
            dt_pool_submit(second, job);
            continue;
        }
        struct job *job = dt_pool_next(second);
        assert_ptr_equal(job, &jobs[next]);
        int once = next % 1000 * (next % 1000) % 1000;
        assert_int_equal(job->result, once * once);
        next++;
    }
    assert_int_equal(first_worked, JOBS);
    assert_int_equal(second_worked, JOBS);
    dt_pool_free(first);
    assert_null(dt_pool_next(second));
    dt_pool_free(second);
    dt_threads_free(threads);
    dt_threads_free(NULL);
}

static void pools_share_threads(void **state)
{
    (void)state;
    for (int count = 0; count <= 4; count += 2)
        run_stages(count);
}

static void an_idle_pool_can_be_freed(void **state)
{
    (void)state;
    atomic_int worked = 0;
    dt_pool_free(NULL);
    struct dt_pool *pool = dt_pool_new(4, square, &worked);
    assert_null(dt_pool_next(pool));
    dt_pool_free(pool);
    assert_true(dt_pool_processors() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_come_out_as_they_went_in),
        cmocka_unit_test(jobs_in_flight_are_finished_before_the_pool_is_gone),
        cmocka_unit_test(pools_share_threads),
        cmocka_unit_test(an_idle_pool_can_be_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
