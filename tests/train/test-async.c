/* SPDX-License-Identifier: MIT */
/* Asynchronous updates on ranks that are threads: host memory is as planned. */
#include "test.h"

#include "train/rank-run.h"
#include "train/training-internal.h"

struct async_job {
    struct dt_settings settings;
    size_t planned, used, workers;
};

/* A server's buffers, after all gradients were applied, and the parameters that it sends. */
static size_t used_by(const struct dt_training *t)
{
    const struct dt_sharding *s = &t->state.dp.sharding;
    const size_t gradient =
        sizeof(struct dt_async_gradient) + (size_t)s->buckets[s->count] * sizeof(float);
    return t->async.spare_count * gradient + (size_t)t->model->table.elements * sizeof(float);
}

static void train_rank(struct dt_comm *world, void *context)
{
    struct async_job *job = context;
    struct dt_device *dev;
    struct dt_training *t;
    struct dt_step_report report;
    struct dt_error error;
    int rc;
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &error), 0);
    struct dt_training_options o = options_of(&job->settings, dev);
    o.comm = world;
    assert_int_equal(dt_training_new(&t, &o, &error), 0);
    while ((rc = dt_training_step(t, &report, &error)) > 0)
        ;
    assert_int_equal(rc, 0);
    if (dt_comm_rank(world) == 0) {
        struct dt_training_facts facts;
        dt_training_facts(t, &facts);
        job->planned = facts.memory.copies;
        job->used = used_by(t);
        job->workers = t->async.spare_count;
    }
    dt_training_free(t);
    dt_device_close(dev);
}

static void buffers_of_gradients_are_planned_to_the_byte(void **state)
{
    (void)state;
    for (long staleness = 0; staleness < 6; staleness++) {
        struct async_job job = {.settings = small_settings()};
        job.settings.distributed.sync = DT_SYNC_ASYNC;
        job.settings.distributed.staleness = staleness;
        run_ranks(4, train_rank, &job);
        assert_int_equal(job.workers, staleness < 2 ? staleness + 1 : 3);
        assert_int_equal(job.used, job.planned);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_of_gradients_are_planned_to_the_byte)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
