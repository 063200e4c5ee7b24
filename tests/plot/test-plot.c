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
    for (size_t i = 0; i < COUNT - 20; i++)
        assert_float_equal(smooth.items[i].loss, curve.items[i].loss, 1e-9);
    assert_float_equal(smooth.items[COUNT - 1].loss, curve.items[COUNT - 1].loss, 0.05);
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
    for (size_t i = 20; i < COUNT; i++)
        assert_float_equal(smooth.items[i].loss, 2, 0.1);
    free(curve.items);
    free(smooth.items);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smoothing_does_not_lag),
        cmocka_unit_test(smoothing_forgets_a_huge_value),
        cmocka_unit_test(smoothing_averages_noise),
        cmocka_unit_test(thinning_keeps_the_extremes_and_the_order),
        cmocka_unit_test(a_short_curve_is_not_thinned),
        cmocka_unit_test(strings_are_quoted_for_gnuplot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
