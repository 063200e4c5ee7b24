/* SPDX-License-Identifier: MIT */
/* Losses of pairs: their slopes, and values far from zero. tests/tools/dt-train-preferences.bats
 * compares the losses with TRL's. */
#include "test.h"

#include <math.h>

#include "prefer/pair-loss.h"

static const struct dt_pair pair = {{-12.5, -14.25}, {-13, -13.5}, {5, 8}};

static double loss_at(const struct dt_pair_loss *how, int answer, double moved)
{
    struct dt_pair p = pair;
    p.log_probability[answer] += moved;
    return dt_pair_loss_of(how, &p).loss;
}

static void slopes_are_derivatives(void **state)
{
    (void)state;
    const double step = 1e-4;
    const struct dt_pair_loss all[] = {{DT_DPO_LOSS_SIGMOID, 0.3, 0},
                                       {DT_DPO_LOSS_SIGMOID, 0.3, 0.2},
                                       {DT_DPO_LOSS_IPO, 0.3, 0},
                                       {DT_DPO_LOSS_HINGE, 0.3, 0},
                                       {DT_DPO_LOSS_HINGE, 3, 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int j = 0; j < 2; j++) {
            double slope = (loss_at(&all[i], j, step) - loss_at(&all[i], j, -step)) / (2 * step);
            assert_true(fabs(slope - dt_pair_loss_of(&all[i], &pair).slope[j]) < 1e-7);
        }
}

static void distant_pairs_have_finite_losses(void **state)
{
    (void)state;
    const struct dt_pair_loss how = {DT_DPO_LOSS_SIGMOID, 1, 0};
    struct dt_pair far = {{-1e5, 0}, {0, 0}, {1, 1}};
    struct dt_pair_result r = dt_pair_loss_of(&how, &far);
    assert_true(r.loss == 1e5 && r.slope[0] == -1 && r.slope[1] == 1);
    far.log_probability[0] = 1e5;
    r = dt_pair_loss_of(&how, &far);
    assert_true(r.loss == 0 && r.slope[0] == 0);
    assert_true(r.reward[0] == 1e5 && r.reward[1] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slopes_are_derivatives),
        cmocka_unit_test(distant_pairs_have_finite_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
