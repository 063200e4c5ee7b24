/* SPDX-License-Identifier: MIT */
/* Learning rates at the ends of each schedule and half-way. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "optim/learning-rate.h"

static struct dt_settings settings_of(enum dt_lr_schedule schedule)
{
    struct dt_settings s;
    memset(&s, 0, sizeof s);
    dt_config_defaults(dt_settings_schema, &s);
    s.training.schedule = schedule;
    s.training.learning_rate = 1;
    s.training.warmup_steps = 10;
    s.training.max_steps = 111;
    return s;
}

static void assert_rate(const struct dt_settings *s, long step, double expected)
{
    double rate = dt_learning_rate(s, step);
    if (!(fabs(rate - expected) < 1e-12))
        fail_msg("%s, step %ld: rate %.15g, expected %.15g",
                 dt_lr_schedule_names[s->training.schedule], step, rate, expected);
}

static void every_schedule_warms_up_to_the_peak(void **state)
{
    (void)state;
    for (int i = 0; dt_lr_schedule_names[i]; i++) {
        struct dt_settings s = settings_of((enum dt_lr_schedule)i);
        assert_rate(&s, 0, 0.1);
        assert_rate(&s, 4, 0.5);
        assert_rate(&s, 9, 1);
    }
}

static void cosine_is_the_default(void **state)
{
    (void)state;
    struct dt_settings s;
    memset(&s, 0, sizeof s);
    dt_config_defaults(dt_settings_schema, &s);
    assert_int_equal(s.training.schedule, DT_LR_SCHEDULE_COSINE);
}

static void a_schedule_can_begin_later(void **state)
{
    (void)state;
    for (int i = 0; dt_lr_schedule_names[i]; i++) {
        struct dt_settings now = settings_of((enum dt_lr_schedule)i), later = now;
        later.training.schedule_start = 1000;
        later.training.max_steps += 1000;
        for (long step = 0; step < now.training.max_steps; step++)
            assert_rate(&later, 1000 + step, dt_learning_rate(&now, step));
    }
}

static void constant_stays_at_the_peak(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(DT_LR_SCHEDULE_CONSTANT);
    assert_rate(&s, 10, 1);
    assert_rate(&s, 110, 1);
}

static void linear_decays_linearly(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(DT_LR_SCHEDULE_LINEAR);
    assert_rate(&s, 10, 1);
    assert_rate(&s, 35, 0.775); /* a quarter of the way */
    assert_rate(&s, 60, 0.55);
    assert_rate(&s, 110, 0.1);
}

static void cosine_decays_over_half_a_period(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(DT_LR_SCHEDULE_COSINE);
    assert_rate(&s, 10, 1);
    assert_rate(&s, 35, 0.1 + 0.45 * (1 + sqrt(0.5))); /* a quarter of the way */
    assert_rate(&s, 60, 0.55);
    assert_rate(&s, 110, 0.1);
    assert_rate(&s, 500, 0.1); /* beyond the end */
}

static void wsd_is_stable_until_its_last_steps(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(DT_LR_SCHEDULE_WSD);
    s.training.max_steps = 105;
    s.training.decay_fraction = 0.2; /* 21 steps: 84 to 104 */
    assert_rate(&s, 10, 1);
    assert_rate(&s, 84, 1);
    assert_rate(&s, 85, 0.955);
    assert_rate(&s, 94, 0.55);
    assert_rate(&s, 104, 0.1);
    s.training.decay_fraction = 0;
    assert_rate(&s, 104, 1);
    s.training.decay_fraction = 1; /* from the warm-up on */
    assert_rate(&s, 9, 1);
    assert_rate(&s, 57, 0.55);
    assert_rate(&s, 104, 0.1);
}

static void inverse_sqrt_decays_to_the_lowest_rate(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(DT_LR_SCHEDULE_INVERSE_SQRT);
    assert_rate(&s, 39, 0.5);
    assert_rate(&s, 89, 1.0 / 3);
    s.training.min_learning_rate_ratio = 0.4;
    assert_rate(&s, 89, 0.4);
    s.training.warmup_steps = 0;
    assert_rate(&s, 0, 1);
    assert_rate(&s, 3, 0.5);
}

static void a_decay_of_one_step_has_the_lowest_rate(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(DT_LR_SCHEDULE_COSINE);
    s.training.warmup_steps = 110;
    assert_rate(&s, 109, 1);
    assert_rate(&s, 110, 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schedule_can_begin_later),
        cmocka_unit_test(every_schedule_warms_up_to_the_peak),
        cmocka_unit_test(cosine_is_the_default),
        cmocka_unit_test(constant_stays_at_the_peak),
        cmocka_unit_test(linear_decays_linearly),
        cmocka_unit_test(cosine_decays_over_half_a_period),
        cmocka_unit_test(wsd_is_stable_until_its_last_steps),
        cmocka_unit_test(inverse_sqrt_decays_to_the_lowest_rate),
        cmocka_unit_test(a_decay_of_one_step_has_the_lowest_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
