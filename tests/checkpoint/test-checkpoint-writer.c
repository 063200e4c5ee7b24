/* SPDX-License-Identifier: MIT */
/* A rank that is lost while a checkpoint is made ends the run: more is lost than a checkpoint. */
#include "test.h"

#include "train/rank-run.h"
#include "train/training-internal.h"

/* A step of rank 0 ends with a checkpoint, and so in another operation than what rank 1 does. */
static void save_alone(struct dt_comm *world, void *context)
{
    struct job job = {.settings = small_settings(), .name = "run"};
    struct dt_device *dev;
    struct dt_step_report report = {0};
    struct dt_error error;
    (void)context;
    job.settings.training.save_interval.count = 1;
    job.settings.training.log_interval.count = 100;
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &error), 0);
    struct dt_training *t = open_rank(&job, world, dev);
    if (dt_comm_rank(world) == 0) {
        assert_int_equal(dt_training_step(t, &report, &error), DT_EIO);
        assert_false(error.agreed);
        assert_non_null(strstr(error.text, "rank 1 sent 1 bytes"));
    } else {
        assert_int_equal(dt_training_update(t, &report, &error), 0);
        assert_true(dt_comm_barrier(world, &error) < 0);
    }
    dt_training_free(t);
    dt_device_close(dev);
}

static void a_rank_lost_during_a_checkpoint_ends_the_run(void **state)
{
    (void)state;
    run_ranks(2, save_alone, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_lost_during_a_checkpoint_ends_the_run)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
