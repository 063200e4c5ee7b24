/* SPDX-License-Identifier: MIT */
/* Pipeline parallelism: a skipped message changes the result. */
#include "test.h"

#include "parallel/pipeline-schedule.h"
#include "train/rank-run.h"

static struct dt_settings settings_of(long stages, long chunks, long batches)
{
    struct dt_settings s = small_settings();
    s.model.num_layers = 5;
    s.training.batch_size = 1;
    s.training.gradient_accumulation_steps = batches;
    s.training.max_steps = 4;
    s.training.warmup_steps = 2;
    s.training.eval_interval.count = 0;
    s.distributed.pp = stages;
    s.distributed.virtual_stages = chunks;
    s.distributed.schedule =
        chunks > 1 ? DT_PIPELINE_SCHEDULE_INTERLEAVED : DT_PIPELINE_SCHEDULE_1F1B;
    s.distributed.invariant = true;
    return s;
}

/* Compares files: parameters and optimizer state. */
static bool is_same(const struct job *a, const struct job *b)
{
    assert_true(a->model != 0 && b->model != 0);
    return a->model == b->model && a->optimizer == b->optimizer;
}

static struct job run_with(const char *switch_name, const char *value, int ranks,
                           const struct dt_settings *s)
{
    setenv(switch_name, value, 1);
    struct job job = run_new(ranks, s);
    unsetenv(switch_name);
    return job;
}

static void skipped_messages_between_stages_change_the_result(void **state)
{
    (void)state;
    struct dt_settings one = settings_of(1, 1, 4), two = settings_of(2, 1, 4);
    struct job whole = run_new(1, &one), stages = run_new(2, &two), both = run_new(4, &two);
    assert_true(is_same(&whole, &stages) && is_same(&whole, &both));
    struct job untied = run_with("DT_DEBUG_SKIP_TIED", "1", 2, &two);
    assert_false(is_same(&whole, &untied));
    for (long zero = 0; zero <= 3; zero++) { /* bucket 3 is the second layer's */
        two.distributed.zero_stage = zero;
        struct job apart = run_with("DT_DEBUG_SKIP_REDUCTION", "3", 4, &two);
        assert_false(is_same(&whole, &apart));
    }
}

static void all_stages_skip_an_update_with_nan_gradients(void **state)
{
    (void)state;
    struct dt_settings one = settings_of(1, 1, 4), three = settings_of(3, 1, 4);
    struct job sound = run_new(1, &one);
    struct job whole = run_with("DT_DEBUG_POISON", "2", 1, &one);
    struct job stages = run_with("DT_DEBUG_POISON", "2", 3, &three);
    assert_true(is_same(&whole, &stages));
    assert_false(is_same(&whole, &sound));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skipped_messages_between_stages_change_the_result),
        cmocka_unit_test(all_stages_skip_an_update_with_nan_gradients),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
