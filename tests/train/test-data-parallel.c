/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <stdio.h>

#include "../comm/threads.h"
#include "base/rng.h"
#include "train/data-parallel.h"

#define ELEMENTS ((int64_t)200000) /* four blocks, the last one cut off */

struct job {
    int64_t batches;
    bool invariant;
    float *sum; /* what rank 0 got */
    double norm;
};

static void fill(float *gradients, int64_t batch)
{
    for (int64_t i = 0; i < ELEMENTS; i += 4) {
        struct dt_random bits = dt_random(3, (uint64_t)batch, (uint64_t)i);
        for (int64_t j = 0; j < 4; j++)
            gradients[i + j] += (dt_uniform_float(bits.word[j]) - 0.5f) * (float)(1 + i % 100);
    }
}

/* Every rank must come to the same sum and norm. */
static void sum_up(struct dt_comm *world, void *context)
{
    struct job *job = context;
    struct dt_device *dev;
    struct dt_error err;
    struct dt_parallel p;
    struct dt_arena arena = {0};
    double norm, values[40];
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    struct dt_settings settings = {
        .training.gradient_accumulation_steps = job->batches,
        .distributed.invariant = job->invariant,
    };
    assert_int_equal(dt_parallel_init(&p, world, dev, ELEMENTS, &settings, &err), 0);
    dt_parallel_layout(&p, &arena);
    assert_int_equal(dt_arena_allocate(&arena, dev, &err), 0);
    dt_parallel_layout(&p, &arena);
    for (int step = 0; step < 2; step++) { /* the second finds what the first has left */
        dt_parallel_begin(&p, job->batches);
        for (int64_t i = p.first; i < p.end; i++) {
            fill(dt_parallel_gradients(&p), i);
            dt_parallel_add(&p, i);
            values[i] = (double)(i * i);
        }
        assert_int_equal(dt_parallel_sum(&p, &norm, &err), 0);
        assert_int_equal(dt_parallel_share(&p, values, job->batches, 1, &err), 0);
    }
    for (int64_t i = 0; i < job->batches; i++)
        assert_true(values[i] == (double)(i * i));
    if (dt_comm_rank(world) == 0) {
        memcpy(job->sum, p.gradients, ELEMENTS * sizeof *job->sum);
        job->norm = norm;
    }
    assert_int_equal(dt_comm_barrier(world, &err), 0);
    assert_memory_equal(job->sum, p.gradients, ELEMENTS * sizeof *job->sum);
    assert_true(job->norm == norm);
    dt_parallel_release(&p);
    dt_arena_release(&arena, dev);
    dt_device_close(dev);
}

static void the_invariant_sum_does_not_know_how_many_ranks_there_are(void **state)
{
    const int64_t batches[] = {8, 11, 24};
    float *one = dt_alloc(ELEMENTS, sizeof *one), *some = dt_alloc(ELEMENTS, sizeof *some);
    (void)state;
    for (int b = 0; b < 3; b++) {
        struct job alone = {batches[b], true, one, 0};
        run_ranks(1, 20, sum_up, &alone);
        for (int size = 2; size <= 8; size++) {
            struct job job = {batches[b], true, some, 0};
            run_ranks(size, 20, sum_up, &job);
            assert_memory_equal(some, one, ELEMENTS * sizeof *one);
            assert_true(job.norm == alone.norm);
        }
    }
    free(one), free(some);
}

/* Otherwise the sums agree as real numbers, but not in their last bits: that is what the
 * test above would find. */
static void the_plain_sum_is_right_but_knows(void **state)
{
    float *one = dt_alloc(ELEMENTS, sizeof *one), *some = dt_alloc(ELEMENTS, sizeof *some);
    struct job alone = {8, false, one, 0}, job = {8, false, some, 0};
    double difference = 0, squares = 0;
    (void)state;
    run_ranks(1, 20, sum_up, &alone);
    run_ranks(4, 20, sum_up, &job);
    for (int64_t i = 0; i < ELEMENTS; i++) {
        difference += pow((double)one[i] - (double)some[i], 2);
        squares += pow((double)one[i], 2);
    }
    assert_true(difference > 0 && sqrt(difference / squares) < 1e-6);
    assert_true(fabs(alone.norm - sqrt(squares)) < 1e-4 * alone.norm);
    free(one), free(some);
}

static void too_few_batches_for_the_ranks_are_refused(struct dt_comm *world, void *context)
{
    struct dt_parallel p;
    struct dt_error err;
    (void)context;
    struct dt_settings settings = {.training.gradient_accumulation_steps = 2};
    assert_int_equal(dt_parallel_init(&p, world, NULL, 100, &settings, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "2 micro-batches cannot be shared by 3 ranks"));
}

static void every_rank_needs_a_batch(void **state)
{
    (void)state;
    run_ranks(3, 20, too_few_batches_for_the_ranks_are_refused, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_invariant_sum_does_not_know_how_many_ranks_there_are),
        cmocka_unit_test(the_plain_sum_is_right_but_knows),
        cmocka_unit_test(every_rank_needs_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
