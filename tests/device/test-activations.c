/* SPDX-License-Identifier: MIT */
/* Every activation of device/activations.h: value and derivative. */
#include "device/activation-reference.h"
#include "device/matrix.h"

/* From -8 to 8, because GELUs are x or 0 beyond; not around 0, where derivatives may jump. */
static struct dt_tensor points(void)
{
    struct dt_tensor x = random_matrix(5, 131);
    for (int64_t i = 0; i < 5 * 131; i++) {
        float *value = (float *)x.data + i;
        *value = copysignf(0.1f + 7.9f * fabsf(*value), *value);
    }
    return x;
}

static void values_match_double_precision(void **state)
{
    (void)state;
    struct dt_tensor x = points(), y = random_matrix(5, 131);
    double *want = dt_alloc(5 * 131, sizeof *want);
    for (size_t a = 0; a < ACTIVATIONS; a++) {
        print_message("%s\n", activations[a].name);
        for (int64_t i = 0; i < 5 * 131; i++)
            want[i] = activation_reference(activations[a].activation, ((float *)x.data)[i]);
        dev->ops->activation_forward(dev, &y, &x, activations[a].activation);
        assert_near(&y, want, 1e-6);
    }
    free(x.data), free(y.data), free(want);
}

static void derivatives_match_finite_differences(void **state)
{
    (void)state;
    struct dt_tensor x = points(), dx = random_matrix(5, 131);
    double *want = dt_alloc(5 * 131, sizeof *want);
    const double h = 0x1p-10;
    for (size_t a = 0; a < ACTIVATIONS; a++) {
        enum dt_activation activation = activations[a].activation;
        print_message("%s\n", activations[a].name);
        for (int64_t i = 0; i < 5 * 131; i++) {
            double at_x = ((float *)x.data)[i], dy = (double)(1 + i % 3);
            ((float *)dx.data)[i] = (float)dy;
            want[i] = dy *
                      (activation_reference(activation, at_x + h) -
                       activation_reference(activation, at_x - h)) /
                      (2 * h);
        }
        dev->ops->activation_backward(dev, &dx, &x, activation);
        assert_near(&dx, want, 2e-5);
    }
    free(x.data), free(dx.data), free(want);
}

/* Values of the published formulas, by Python. */
static void gelu_has_its_known_values(void **state)
{
    (void)state;
    static const float x[] = {-2, -0.5f, 1, 3};
    static const double tanh_form[] = {-0.04540230591222494, -0.15428599017485606,
                                       0.8411919906082768, 2.996362607918227};
    static const double exact[] = {-0.04550026389635842, -0.15426876936299344, 0.8413447460685429,
                                   2.99595030590511};
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(activation_reference(DT_ACTIVATION_GELU_TANH, x[i]) - tanh_form[i]) <
                    1e-7);
        assert_true(fabs(activation_reference(DT_ACTIVATION_GELU_ERF, x[i]) - exact[i]) < 1e-7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gelu_has_its_known_values),
        ON_EACH_ISA(values_match_double_precision),
        ON_EACH_ISA(derivatives_match_finite_differences),
    };
    return RUN_ON_EACH_ISA(tests);
}
