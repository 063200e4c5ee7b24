/* SPDX-License-Identifier: MIT */
/* Batch ramps: batch sizes, sums over steps, and resuming. */
#include "train/small-run.h"

#include "settings/batch-ramp.h"

static struct dt_settings ramp_of(long tokens, long first, long last)
{
    struct dt_settings s = small_settings();
    s.training.batch_size = 2;
    s.training.sequence_length = 10;
    s.training.gradient_accumulation_steps = last;
    s.training.batch_ramp_start = first;
    s.training.batch_ramp_tokens = tokens;
    return s;
}

static void batches_grow_in_equal_steps(void **state)
{
    (void)state;
    struct dt_settings s = ramp_of(1000, 1, 5);
    assert_int_equal(dt_batch_passes(&s, 0), 1);
    assert_int_equal(dt_batch_passes(&s, 24), 1);
    assert_int_equal(dt_batch_passes(&s, 25), 2); /* a quarter of the tokens */
    assert_int_equal(dt_batch_passes(&s, 74), 3);
    assert_int_equal(dt_batch_passes(&s, 75), 4);
    assert_int_equal(dt_batch_passes(&s, 99), 4);
    assert_int_equal(dt_batch_passes(&s, 100), 5);
    assert_int_equal(dt_batch_passes(&s, 1000000), 5);
    s.training.batch_ramp_tokens = 0;
    assert_int_equal(dt_batch_passes(&s, 0), 5);
}

static void sums_match_single_steps(void **state)
{
    (void)state;
    static const long shapes[][3] = {
        {1000, 1, 5}, {1, 1, 9}, {0, 1, 3}, {99999, 3, 700}, {7, 4, 4}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct dt_settings s = ramp_of(shapes[i][0], shapes[i][1], shapes[i][2]);
        uint64_t samples = 0;
        for (long step = 0; step < 400; step++) {
            assert_true(dt_batch_samples(&s, step) == (double)samples);
            assert_int_equal(dt_batch_steps(&s, (double)samples, 1000000), step);
            assert_int_equal(dt_batch_steps(&s, (double)samples + 0.5, 1000000), step + 1);
            samples += (uint64_t)(2 * dt_batch_passes(&s, samples));
        }
        assert_int_equal(dt_batch_steps(&s, 1e18, 77), 77);
    }
}

static void long_ramps_are_fast(void **state)
{
    (void)state;
    struct dt_settings s = ramp_of(1000000000000, 1, 1000);
    long steps = dt_batch_steps(&s, 2e11, 1000000000000);
    assert_true(dt_batch_samples(&s, steps) >= 200000000000);
    assert_true(dt_batch_samples(&s, steps - 1) < 200000000000);
}

static void token_limits_include_the_ramp(void **state)
{
    (void)state;
    struct dt_settings s = ramp_of(1000, 1, 5);
    s.training.max_steps = 100000;
    s.training.max_tokens = 1000;
    s.training.warmup_steps = 0;
    assert_int_equal(dt_settings_limit_steps(&s, 1000, "x", &err), 0);
    assert_true(dt_batch_samples(&s, s.training.max_steps) >= 100);
    assert_true(dt_batch_samples(&s, s.training.max_steps - 1) < 100);
    s.training.max_tokens = 0;
    s.training.max_steps = 100000;
    s.training.max_epochs = 0.5;
    assert_int_equal(dt_settings_limit_steps(&s, 1000, "x", &err), 0);
    assert_true(dt_batch_samples(&s, s.training.max_steps) >= 500);
    assert_true(dt_batch_samples(&s, s.training.max_steps - 1) < 500);
}

static void resuming_on_the_ramp_gives_the_same_batches(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    s.training.gradient_accumulation_steps = 5;
    s.training.batch_ramp_tokens = 3000;
    check_resuming(&s, "ramp-straight", "ramp-stopped");
    s.training.batch_ramp_start = 6;
    struct dt_device *dev;
    struct dt_training *t;
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    assert_true(open_run(&t, dev, &s, "ramp-wrong", "none") < 0);
    assert_non_null(strstr(err.text, "training.batch_ramp_start 6 is beyond"));
    dt_device_close(dev);
}

/* Beyond 64 bits. */
static void the_longest_run_is_counted(void **state)
{
    (void)state;
    struct dt_settings s = ramp_of(0, 1, 1 << 20);
    s.training.batch_size = 1 << 20;
    assert_true(dt_batch_samples(&s, 1000000000000) == 0x1p40 * 1e12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_grow_in_equal_steps),
        cmocka_unit_test(sums_match_single_steps),
        cmocka_unit_test(long_ramps_are_fast),
        cmocka_unit_test(the_longest_run_is_counted),
        cmocka_unit_test(token_limits_include_the_ramp),
        cmocka_unit_test(resuming_on_the_ramp_gives_the_same_batches),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
