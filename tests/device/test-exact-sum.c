/* SPDX-License-Identifier: MIT */
#include "matrix.h"

#include "math/rng.h"

/* The sum by single additions, in any order the same. */
static double one_by_one(const float *x, int64_t n, bool squares)
{
    struct dt_exact_sum sum = {0};
    for (int64_t i = n - 1; i >= 0; i--)
        if (squares)
            dt_exact_sum_add_square(&sum, x[i]);
        else
            dt_exact_sum_add(&sum, x[i]);
    return dt_exact_sum_round(&sum);
}

/* The device's sum of two parts of x. */
static double on_device(const float *x, int64_t n, int64_t first, bool squares)
{
    struct dt_exact_sum here = {0}, *there = dev->ops->allocate(dev, sizeof *there);
    float *values = dev->ops->allocate(dev, (size_t)(n + 1) * sizeof *x);
    dev->ops->upload(dev, values, x, (size_t)n * sizeof *x);
    dev->ops->exact_sum(dev, there, values + first, n - first, squares);
    dev->ops->exact_sum(dev, there, values, first, squares);
    dev->ops->download(dev, &here, there, sizeof here);
    double sum = dt_exact_sum_round(&here);
    if (squares) {
        double waited = dev->ops->sum_squares(dev, values, n);
        assert_true(waited == sum || (isnan(waited) && isnan(sum)));
    }
    dev->ops->release(dev, there, sizeof *there);
    dev->ops->release(dev, values, (size_t)(n + 1) * sizeof *x);
    return sum;
}

static void check(const float *x, int64_t n)
{
    for (int squares = 0; squares < 2; squares++)
        for (int64_t first = 0; first <= n; first += n / 3 + 1) {
            double wanted = one_by_one(x, n, squares), got = on_device(x, n, first, squares);
            assert_true(got == wanted || (isnan(got) && isnan(wanted)));
        }
}

/* Numbers whose magnitudes are spread over 2^-range to 1, times 2^scale. */
static void draw(float *x, int64_t n, double range, int scale, uint64_t seed)
{
    dt_rng_init(&rng, seed);
    for (int64_t i = 0; i < n; i++) {
        double size = 1 + dt_rng_double(&rng);
        int exponent = scale - (int)(range * dt_rng_double(&rng));
        x[i] = (float)ldexp(dt_rng_u32(&rng) % 2 ? size : -size, exponent);
    }
}

static void sums_are_exact_at_any_magnitude(void **state)
{
    enum { N = 9001 };
    float x[N];
    (void)state;
    const double ranges[] = {1, 12, 25, 45, 70, 120, 250};
    const int step = getenv("DT_TEST_ENGINE") ? 2 : 1; /* emulated GPUs are slow */
    for (int range = 0; range < 7; range += step)
        for (int scale = -126; scale <= 126; scale += 63 * step) {
            draw(x, N, ranges[range], scale, (uint64_t)(range * 1000 + scale));
            check(x, N), check(x, 2048), check(x, 17), check(x, 1), check(x, 0);
        }
}

static void zeros_and_subnormal_numbers_are_summed(void **state)
{
    enum { N = 5000 };
    float x[N] = {0};
    (void)state;
    check(x, N);
    for (int i = 0; i < N; i += 3)
        x[i] = i % 2 ? -0.0f : (float)i * 0x1p-149f;
    check(x, N);
    x[4999] = 0x1.fffffep127f;
    check(x, N);
    for (int i = 0; i < N; i++)
        x[i] = 0x1.fffffep127f;
    check(x, N);
}

/* Alternating signs whose sum is far below each term. */
static void cancelled_terms_leave_the_rest(void **state)
{
    enum { N = 40000 };
    static float x[N];
    (void)state;
    for (int i = 0; i < N; i++)
        x[i] = i % 2 ? -1e30f : 1e30f;
    x[N - 1] = 1e-30f;
    x[N - 2] = 0;
    check(x, N);
    assert_true(on_device(x, N, 100, false) == (double)1e-30f);
}

static void infinite_terms_give_infinite_sums(void **state)
{
    enum { N = 3000 };
    float x[N];
    (void)state;
    draw(x, N, 20, 0, 5);
    x[2500] = INFINITY;
    check(x, N);
    assert_true(on_device(x, N, 7, false) == INFINITY && on_device(x, N, 7, true) == INFINITY);
    x[2500] = -INFINITY;
    check(x, N);
    assert_true(on_device(x, N, 7, false) == -INFINITY && on_device(x, N, 7, true) == INFINITY);
    x[3] = INFINITY;
    check(x, N);
    assert_true(isnan(on_device(x, N, 7, false)));
    x[2500] = NAN;
    check(x, N);
    assert_true(isnan(on_device(x, N, 7, false)) && isnan(on_device(x, N, 7, true)));
}

/* A term of 2^-120 of the largest square decides how the sum is rounded. */
static void the_smallest_term_counts(void **state)
{
    enum { N = 6000 };
    float x[N] = {0};
    (void)state;
    x[1] = 1;
    x[5000] = 0x1p-60f;
    x[100] = x[3000] = 0x1p-27f; /* squares of 2^-54: 1 + 2^-53 is a tie */
    assert_true(on_device(x, N, 10, true) > 1);
    x[5000] = 0;
    assert_true(on_device(x, N, 10, true) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(sums_are_exact_at_any_magnitude),
        ON_EACH_ISA(zeros_and_subnormal_numbers_are_summed),
        ON_EACH_ISA(cancelled_terms_leave_the_rest),
        ON_EACH_ISA(infinite_terms_give_infinite_sums),
        ON_EACH_ISA(the_smallest_term_counts),
    };
    return RUN_ON_EACH_ISA(tests);
}
