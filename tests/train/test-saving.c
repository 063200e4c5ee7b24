/* SPDX-License-Identifier: MIT */
/* A rank that is lost while a checkpoint is made ends the run: more is lost than a checkpoint. */
#include "test.h"

#include "train/rank-run.h"

/* Rank 1 makes no checkpoint, and so comes to another operation than rank 0. */
static void save_alone(struct dt_comm *world, void *context)
{
    struct job job = {.settings = small_settings(), .name = "run"};
    struct dt_device *dev;
    struct dt_step_report report;
    struct dt_error error;
    bool leads = dt_comm_rank(world) == 0;
    (void)context;
    job.settings.training.save_interval = leads ? 1 : 0;
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &error), 0);
    struct dt_training *t = open_rank(&job, world, dev);
    int rc = dt_training_step(t, &report, &error);
    if (leads) {
        assert_int_equal(rc, DT_EIO);
        assert_false(error.agreed);
        assert_non_null(strstr(error.text, "rank 1 sent 1 bytes"));
    } else {
        assert_int_equal(rc, 1);
        assert_true(dt_comm_barrier(world, &error) < 0);
    }
    dt_training_free(t);
    dt_device_close(dev);
}

static void a_lost_rank_ends_the_run(void **state)
{
    (void)state;
    run_ranks(2, save_alone, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_lost_rank_ends_the_run)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
