/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "plot/curves.h"
#include "plot/gnuplot.h"

enum { COUNT = 1000 };

static struct dt_curve curve_of(double (*loss)(size_t))
{
    struct dt_curve curve = {dt_alloc(COUNT, sizeof *curve.items), COUNT, COUNT};
    for (size_t i = 0; i < COUNT; i++)
        curve.items[i] = (struct dt_metric){.step = (double)i, .loss = loss(i)};
    return curve;
}

static double falling(size_t i)
{
    return 10 - 0.005 * (double)i;
}

static double jumping(size_t i)
{
    return i % 2 ? 1 : 3;
}

static double spike(size_t i)
{
    return i == 777 ? 9 : i == 778 ? 0 : 2;
}

static void smoothing_does_not_lag(void **state)
{
    (void)state;
    struct dt_curve curve = curve_of(falling), smooth = dt_curve_smooth(&curve);
    assert_int_equal(smooth.count, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_float_equal(smooth.items[i].loss, curve.items[i].loss, 1e-9);
    free(curve.items);
    free(smooth.items);
}

static double beginning_huge(size_t i)
{
    return i == 0 ? 1e300 : 2;
}

static void smoothing_forgets_a_huge_value(void **state)
{
    (void)state;
    struct dt_curve curve = curve_of(beginning_huge), smooth = dt_curve_smooth(&curve);
    assert_float_equal(smooth.items[COUNT - 1].loss, 2, 0);
    free(curve.items);
    free(smooth.items);
}

static void smoothing_averages_noise(void **state)
{
    (void)state;
    struct dt_curve curve = curve_of(jumping), smooth = dt_curve_smooth(&curve);
    for (size_t i = 20; i < COUNT - 20; i++)
        assert_float_equal(smooth.items[i].loss, 2, 0.1);
    free(curve.items);
    free(smooth.items);
}

static void a_short_curve_is_not_smoothed(void **state)
{
    (void)state;
    struct dt_curve curve = curve_of(jumping);
    curve.count = 99;
    struct dt_curve smooth = dt_curve_smooth(&curve);
    assert_memory_equal(smooth.items, curve.items, 99 * sizeof *curve.items);
    free(smooth.items);
    curve.count = 0;
    smooth = dt_curve_smooth(&curve);
    assert_int_equal(smooth.count, 0);
    free(smooth.items);
    free(curve.items);
}

static void thinning_keeps_the_extremes_and_the_order(void **state)
{
    (void)state;
    struct dt_curve curve = curve_of(spike), thin = dt_curve_thin(&curve, 100);
    bool high = false, low = false;
    assert_in_range(thin.count, 20, 100);
    for (size_t i = 0; i < thin.count; i++) {
        high |= thin.items[i].loss > 8;
        low |= thin.items[i].loss < 1;
        assert_true(i == 0 || thin.items[i].step > thin.items[i - 1].step);
    }
    assert_true(high && low);
    free(curve.items);
    free(thin.items);
}

static void a_short_curve_is_not_thinned(void **state)
{
    (void)state;
    struct dt_curve curve = curve_of(jumping), thin = dt_curve_thin(&curve, COUNT);
    assert_int_equal(thin.count, COUNT);
    assert_memory_equal(thin.items, curve.items, COUNT * sizeof *curve.items);
    free(curve.items);
    free(thin.items);
}

static void strings_are_quoted_for_gnuplot(void **state)
{
    (void)state;
    struct dt_buffer script = DT_BUFFER_EMPTY;
    dt_gnuplot_set_string(&script, "title", "it's `ls` \"\n\\5");
    assert_string_equal(script.data, "title = \"it\\047s \\140ls\\140 \\042\\040\\134\\065\"\n");
    dt_buffer_release(&script);
}

static struct dt_metric at(double step, double loss)
{
    return (struct dt_metric){.step = step, .tokens = 10 * step, .time = loss, .loss = loss};
}

static void repetitions_have_a_mean_and_an_interval_where_all_have_a_step(void **state)
{
    (void)state;
    struct dt_metric a[] = {at(1, 2), at(2, 4), at(3, 1), at(5, 7)},
                     b[] = {at(1, 4), at(3, 3), at(4, 1), at(5, 7)}, c[] = {at(1, 6), at(3, 2)};
    const struct dt_run_metrics runs[] = {
        {.train = {a, 4, 4}}, {.train = {b, 4, 4}}, {.train = {c, 2, 2}}};
    const struct dt_run_metrics *const three[] = {&runs[0], &runs[1], &runs[2]};
    struct dt_run_metrics mean;
    struct dt_band band;
    struct dt_plot plot = {.member = "lr"};
    assert_int_equal(dt_plot_average(&plot, three, 3, "A", &mean, &band), 0);
    assert_string_equal(mean.name, "A");
    assert_int_equal(mean.train.count, 2);
    assert_float_equal(mean.train.items[0].loss, 4, 1e-12);
    assert_float_equal(mean.train.items[1].step, 3, 0);
    assert_float_equal(mean.train.items[1].tokens, 30, 1e-12);
    assert_float_equal(mean.train.items[1].loss, 2, 1e-12);
    assert_float_equal(band.train_high.items[1].loss, 4.48414F, 1e-4);
    assert_float_equal(band.train_low.items[1].loss, 0, 0); /* no value is below 0 */
    assert_int_equal(band.valid_low.count, 0);
    dt_run_metrics_release(&mean);
    dt_band_release(&band);
    assert_int_equal(dt_plot_average(&plot, three, 1, "A", &mean, &band), 0);
    assert_int_equal(mean.train.count, 4);
    assert_int_equal(band.train_low.count, 0);
    dt_run_metrics_release(&mean);
    dt_band_release(&band);
    c[1].loss = -1;
    plot.log_y = true;
    assert_int_equal(dt_plot_average(&plot, three, 3, "A", &mean, &band), 1);
    assert_int_equal(mean.train.count, 1);
    assert_int_equal(band.train_low.count, 1);
    dt_run_metrics_release(&mean);
    dt_band_release(&band);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smoothing_does_not_lag),
        cmocka_unit_test(smoothing_forgets_a_huge_value),
        cmocka_unit_test(smoothing_averages_noise),
        cmocka_unit_test(a_short_curve_is_not_smoothed),
        cmocka_unit_test(thinning_keeps_the_extremes_and_the_order),
        cmocka_unit_test(a_short_curve_is_not_thinned),
        cmocka_unit_test(strings_are_quoted_for_gnuplot),
        cmocka_unit_test(repetitions_have_a_mean_and_an_interval_where_all_have_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
