/* SPDX-License-Identifier: MIT */
/* Runs in 16 bits: their curves, their bits, and overflows of fp16. */
#include "train/small-run.h"

#include <math.h>

static struct dt_settings settings_in(enum dt_dtype precision)
{
    struct dt_settings s = small_settings();
    s.training.precision = (int)precision;
    return s;
}

static void sixteen_bits_follow_the_curve_of_fp32(void **state)
{
    (void)state;
    double losses[3][20];
    for (int i = 0; i < 3; i++) {
        struct dt_settings s = settings_in((enum dt_dtype)i);
        char *name = dt_asprintf("curve-%d", i);
        train("cpu", 2, name, "none", 99, losses[i], &s);
        free(name);
    }
    for (int step = 0; step < 20; step++)
        for (int i = 1; i < 3; i++)
            if (!(fabs(losses[i][step] / losses[0][step] - 1) < 0.01))
                fail_msg("precision %d, step %d: %g against %g", i, step + 1, losses[i][step],
                         losses[0][step]);
    assert_true(losses[1][19] != losses[0][19] && losses[2][19] != losses[0][19]);
}

/* Resuming, and what is computed again, changes no bit, whatever the precision and optimizer. */
static void resuming_and_activation_checkpointing_change_no_bit(void **state)
{
    (void)state;
    for (int precision = 0; precision < 3; precision++)
        for (int optimizer = 0; dt_optimizer_kind_names[optimizer]; optimizer++) {
            struct dt_settings s = settings_in((enum dt_dtype)precision);
            char *straight = dt_asprintf("straight-%d-%d", precision, optimizer);
            char *stopped = dt_asprintf("stopped-%d-%d", precision, optimizer);
            s.training.optimizer = optimizer;
            s.model.dropout = 0.1;
            s.training.save_interval.count = 3;
            uint64_t hash = train("cpu", 2, straight, "none", 99, NULL, &s);
            s.training.recompute = 1;
            train("cpu", 2, stopped, "auto", 8, NULL, &s);
            s.training.recompute = 2;
            if (hash != train("cpu", 2, stopped, "auto", 99, NULL, &s))
                fail_msg("precision %d, optimizer %d", precision, optimizer);
            free(straight);
            free(stopped);
        }
}

static void the_loss_scale_halves_and_doubles(void **state)
{
    (void)state;
    struct dt_loss_scale s = dt_loss_scale_first();
    assert_true(s.factor == 65536);
    for (int i = 0; i < 1999; i++)
        dt_loss_scale_grow(&s);
    assert_true(s.factor == 65536);
    dt_loss_scale_grow(&s);
    assert_true(s.factor == 131072);
    dt_loss_scale_grow(&s);
    assert_true(dt_loss_scale_shrink(&s));
    assert_true(s.factor == 65536 && s.updates == 0);
    for (int i = 0; i < 16; i++)
        assert_true(dt_loss_scale_shrink(&s));
    assert_false(dt_loss_scale_shrink(&s));
    assert_true(s.factor == 1);
}

/* Norms that overflow where the scale is above a limit. */
static const struct dt_ops *sound_ops;
static double limit;

static void squares_or_infinity(struct dt_device *dev, struct dt_exact_sum *sum, const float *x,
                                int64_t n, bool squares)
{
    sound_ops->exact_sum(dev, sum, x, n, squares);
    if (squares && dt_exact_sum_round(sum) > limit * limit)
        sum->infinities[0]++;
}

static void an_overflow_is_recovered_from(void **state)
{
    (void)state;
    struct dt_settings s = settings_in(DT_DTYPE_F16);
    struct dt_device *dev;
    struct dt_training *t;
    struct dt_step_report report;
    long overflows = 0;
    s.training.max_skipped = 0;
    s.training.save_interval.count = 4;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    struct dt_ops ops = *dev->ops;
    ops.exact_sum = squares_or_infinity;
    sound_ops = dev->ops;
    dev->ops = &ops;
    limit = 5000; /* the norm is about 0.6 to 1.2: four halvings */
    assert_int_equal(open_run(&t, dev, &s, "overflow", "none"), 0);
    while (dt_training_step(t, &report, &err) > 0) {
        overflows += report.skip == DT_SKIP_OVERFLOW;
        if (report.step == 6) {
            assert_true(report.loss_scale >= 512 && report.loss_scale <= 4096);
            assert_true(overflows >= 4 && report.skip == DT_SKIP_NONE);
        }
        assert_true(report.skip == DT_SKIP_NONE || report.skip == DT_SKIP_OVERFLOW);
    }
    uint64_t straight = hash_of(t);
    dt_training_free(t);
    for (int i = 0; i < 2; i++) { /* the scale is in the checkpoint */
        assert_int_equal(open_run(&t, dev, &s, "overflow-stopped", "auto"), 0);
        for (int step = 0; (step < 10 || i) && dt_training_step(t, &report, &err) > 0; step++)
            assert_true(i == 0 || report.skip == DT_SKIP_NONE);
        if (i == 1)
            assert_true(straight == hash_of(t));
        dt_training_free(t);
    }
    limit = 1e-9; /* nothing helps: at scale 1 it is an error */
    assert_int_equal(open_run(&t, dev, &s, "hopeless", "none"), 0);
    int rc, steps = 0;
    while ((rc = dt_training_step(t, &report, &err)) > 0)
        steps++;
    assert_int_equal(rc, DT_EINVALID);
    assert_int_equal(steps, 16);
    dt_training_free(t);
    dev->ops = sound_ops;
    dt_device_close(dev);
}

/* The loss scale of the last step, of a run that stops and goes on after some steps. */
static double last_scale(struct dt_device *dev, const struct dt_settings *s, const char *run,
                         long stop)
{
    struct dt_training *t;
    struct dt_step_report report = {0};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_run(&t, dev, s, run, "auto"), 0);
        while ((i > 0 || report.step < stop) && dt_training_step(t, &report, &err) > 0)
            continue;
        assert_int_equal(dt_training_save(t, &err), 0);
        dt_training_free(t);
    }
    return report.loss_scale;
}

static void the_least_loss_scale_is_resumed(void **state)
{
    (void)state;
    struct dt_settings s = settings_in(DT_DTYPE_F16);
    struct dt_device *dev;
    s.training.max_steps = 20;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    struct dt_ops ops = *dev->ops;
    ops.exact_sum = squares_or_infinity;
    sound_ops = dev->ops;
    dev->ops = &ops;
    limit = 1.2;
    assert_true(last_scale(dev, &s, "least", 20) == 1);
    assert_true(last_scale(dev, &s, "least-stopped", 18) == 1);
    assert_true(last_scale(dev, &s, "least-stopped-early", 16) == 1);
    dev->ops = sound_ops;
    dt_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_loss_scale_is_resumed),
        cmocka_unit_test(sixteen_bits_follow_the_curve_of_fp32),
        cmocka_unit_test(resuming_and_activation_checkpointing_change_no_bit),
        cmocka_unit_test(the_loss_scale_halves_and_doubles),
        cmocka_unit_test(an_overflow_is_recovered_from),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
