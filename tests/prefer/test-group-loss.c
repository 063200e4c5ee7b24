/* SPDX-License-Identifier: MIT */
/* The loss of tokens that were sampled by another model, where the ratio is clipped, and
 * advantages. tests/tools/dt-train-rewards.bats compares runs with TRL's. */
#include "test.h"

#include <math.h>

#include "prefer/group-loss.h"

static const struct dt_group_loss plain = {DT_GRPO_LOSS_DAPO, 0, 0.2, 0.3, 10};

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-9))
        fail_msg("%.12g, expected %.12g", value, expected);
}

static struct dt_group_token_loss at(const struct dt_group_loss *how, double ratio,
                                     double advantage)
{
    const struct dt_group_token token = {-2 + log(ratio), -2, -2.5, advantage};
    return dt_group_loss_of(how, &token);
}

static void ratios_are_clipped_where_that_lowers_the_objective(void **state)
{
    static const struct {
        double ratio, advantage, loss, slope;
        bool clipped;
    } cases[] = {
        {1, 2, -2, -2, false},      {1.2, 2, -2.4, -2.4, false}, {1.5, 2, -2.6, 0, true},
        {0.5, 2, -1, -1, false},    {0.5, -2, 1.6, 0, true},     {1.5, -2, 3, 3, false},
        {0.9, -2, 1.8, 1.8, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_group_token_loss l = at(&plain, cases[i].ratio, cases[i].advantage);
        assert_near(l.loss, cases[i].loss);
        assert_near(l.slope, cases[i].slope);
        assert_int_equal(l.clipped, cases[i].clipped);
    }
}

static void the_divergence_has_its_slope(void **state)
{
    const struct dt_group_loss how = {DT_GRPO_LOSS_DAPO, 0.5, 0.2, 0.2, 10};
    const double step = 1e-5;
    (void)state;
    struct dt_group_token_loss l = at(&how, 1.1, -1);
    assert_near(l.divergence, exp(-0.5 - log(1.1)) + 0.5 + log(1.1) - 1);
    double slope =
        (at(&how, 1.1 * exp(step), -1).loss - at(&how, 1.1 * exp(-step), -1).loss) / (2 * step);
    assert_true(fabs(slope - l.slope) < 1e-8);
    assert_near(at(&how, exp(-0.5), 0).divergence, 0);
}

static void advantages_are_deviations_from_the_mean(void **state)
{
    const double rewards[4] = {0, 1, 1, 4};
    const double equal[2][3] = {{0.1, 0.1, 0.1}, {1e12 + 0.1, 1e12 + 0.1, 1e12 + 0.1}};
    double advantages[4];
    (void)state;
    double deviation = dt_group_loss_advantages(rewards, 4, false, advantages);
    assert_near(deviation, sqrt(3));
    assert_near(advantages[0], -1.5);
    assert_near(advantages[3], 2.5);
    dt_group_loss_advantages(rewards, 4, true, advantages);
    assert_near(advantages[3], 2.5 / (sqrt(3) + 1e-4));
    for (int i = 0; i < 2; i++) {
        assert_true(dt_group_loss_advantages(equal[i], 3, true, advantages) == 0);
        for (int k = 0; k < 3; k++)
            assert_true(advantages[k] == 0);
    }
}

static void completions_have_shares(void **state)
{
    struct dt_group_loss how = plain;
    (void)state;
    assert_true(dt_group_loss_share(&how, 4) == 1 && dt_group_loss_count(&how, 4) == 4);
    how.kind = DT_GRPO_LOSS_GRPO;
    assert_true(dt_group_loss_share(&how, 4) == 0.25 && dt_group_loss_count(&how, 4) == 1);
    how.kind = DT_GRPO_LOSS_DR_GRPO;
    assert_true(dt_group_loss_share(&how, 4) == 0.1 && dt_group_loss_count(&how, 4) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratios_are_clipped_where_that_lowers_the_objective),
        cmocka_unit_test(the_divergence_has_its_slope),
        cmocka_unit_test(advantages_are_deviations_from_the_mean),
        cmocka_unit_test(completions_have_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
