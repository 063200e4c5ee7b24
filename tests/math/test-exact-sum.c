/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "math/exact-sum.h"
#include "math/rng.h"

#define TERMS 6

/* Made by Python's fractions, which are exact, and float(), which rounds to nearest even. */
static const struct {
    float terms[TERMS];
    double sum, squares;
} golden[] = {
    {{-0x1.4164d80000000p-8f, -0x1.cb91ce0000000p-16f, -0x1.d76d420000000p+3f,
      -0x1.ec1d7c0000000p-7f, 0x1.d7210c0000000p-27f, 0x1.f17fd20000000p-3f},
     -0x1.d04ab01cdd3bdp+3,
     0x1.b22ff302197f5p+7},
    {{-0x1.0d46400000000p+66f, 0x1.1cfb100000000p-60f, 0x1.de52700000000p+20f,
      0x1.8b33e80000000p-3f, 0x1.3fd4220000000p+46f, 0x1.377b9a0000000p+87f},
     0x1.377b9195ce9ffp+87,
     0x1.7afd8bd958eadp+174},
    {{-0x1.2e9c820000000p-19f, 0x1.c406940000000p+0f, -0x1.c30d8a0000000p-22f,
      -0x1.2386420000000p-25f, 0x1.71e0c00000000p-8f, -0x1.0074500000000p-23f},
     0x1.c578454d8dd70p+0,
     0x1.8f14a89a7d16bp+1},
    {{-0x1.359eee0000000p-99f, -0x1.f5cae20000000p-45f, 0x1.df561c0000000p-58f,
      -0x1.504b740000000p-26f, -0x1.8a0a8c0000000p-50f, 0x1.a02fda0000000p+73f},
     0x1.a02fda0000000p+73,
     0x1.524dc6b8e2d20p+147},
    {{-0x1.f0e3cc0000000p-22f, -0x1.3266aa0000000p-5f, 0x1.e4cc400000000p+3f,
      0x1.0585a00000000p-18f, -0x1.2a7c180000000p-14f, 0x1.43892c0000000p-23f},
     0x1.e3994b9c91650p+3,
     0x1.cb0b31d7ff6c8p+7},
    {{-0x1.4d25de0000000p-16f, 0x1.960d5a0000000p+54f, -0x1.ad8d180000000p+52f,
      0x1.10e6d80000000p-14f, 0x1.d18a660000000p-10f, 0x1.b248900000000p+23f},
     0x1.2aaa140364912p+54,
     0x1.588d3e96bd640p+109},
    {{0x1.7b31200000000p-22f, 0x1.2d16340000000p-5f, -0x1.f9a01e0000000p-19f,
      -0x1.f3001c0000000p-27f, 0x1.d84a1c0000000p-16f, -0x1.8c8f940000000p-27f},
     0x1.2d4a065d59400p-5,
     0x1.621d461137624p-10},
    {{0x1.5dbe440000000p+7f, 0x1.d75b1e0000000p+48f, -0x1.0bf64e0000000p+15f,
      -0x1.9faba80000000p-54f, -0x1.1e78200000000p-50f, -0x1.edfde40000000p-38f},
     0x1.d75b1dff7ab3cp+48,
     0x1.b1f034692bc20p+97},
    {{0x1.7653160000000p+3f, -0x1.5ad3ba0000000p-11f, -0x1.403a960000000p-11f,
      -0x1.1ba95a0000000p-13f, -0x1.c7eec60000000p-4f, 0x1.dc14ec0000000p-16f},
     0x1.72b7ec1403800p+3,
     0x1.11b1c7c0bfb26p+7},
    {{-0x1.6ed78e0000000p-91f, 0x1.355f2a0000000p-77f, 0x1.9c5f300000000p+31f,
      0x1.5707960000000p-63f, 0x1.8b8e8e0000000p+79f, 0x1.af9b740000000p-21f},
     0x1.8b8e8e000001ap+79,
     0x1.31989ccaeb620p+159},
    {{0x1.cc7c6c0000000p-82f, -0x1.b89c4e0000000p-89f, -0x1.2959fe0000000p-4f,
      -0x1.fc98500000000p-107f, 0x1.67e8460000000p+109f, 0x1.980dc60000000p+62f},
     0x1.67e8460000033p+109,
     0x1.f9fd4712f3240p+218},
    {{0x1.a6a5bc0000000p-11f, -0x1.faa30e0000000p-113f, 0x1.cd39e00000000p-119f,
      0x1.3501e00000000p+87f, 0x1.f325fe0000000p+17f, 0x1.c9bafe0000000p+102f},
     0x1.c9bd6803c0000p+102,
     0x1.993693bbf3fd1p+205},
    {{0x1.6f3f020000000p-84f, 0x1.d8407a0000000p-112f, -0x1.7401f40000000p-91f,
      -0x1.2b56940000000p+91f, 0x1.f5cb2a0000000p-11f, 0x1.5154ee0000000p+59f},
     -0x1.2b5693feaeab1p+91,
     0x1.5e035affc5900p+182},
    {{0x1.7857360000000p-53f, -0x1.60831e0000000p-99f, -0x1.2dece80000000p+118f,
      -0x1.7857360000000p-53f, 0x1.60831e0000000p-99f, -0x1.de0d0e0000000p+13f},
     -0x1.2dece80000000p+118,
     0x1.6416f4cc92400p+236},
    {{0x1.fffffe0000000p+127f, 0x1.fffffe0000000p+127f, 0x1.0000000000000p-149f,
      -0x1.0000000000000p-149f, 0x1.0000000000000p-149f, 0x1.0000000000000p-149f},
     0x1.fffffe0000000p+128,
     0x1.fffffc0000020p+256},
    {{0x1.0000000000000p-149f, 0x1.0000000000000p-149f, 0x1.0000000000000p-149f, 0x0.0p+0f,
      -0x1.0000000000000p-149f, 0x1.0000000000000p-149f},
     0x1.8000000000000p-148,
     0x1.4000000000000p-296},
    {{0x1.0000000000000p+0f, 0x1.0000000000000p-53f, 0x1.0000000000000p-120f, 0x0.0p+0f, 0x0.0p+0f,
      0x0.0p+0f},
     0x1.0000000000001p+0,
     0x1.0000000000000p+0},
    {{0x1.0000000000000p+0f, 0x1.0000000000000p-53f, -0x1.0000000000000p-120f, 0x0.0p+0f, 0x0.0p+0f,
      0x0.0p+0f},
     0x1.0000000000000p+0,
     0x1.0000000000000p+0},
    {{0x1.0000000000000p+0f, 0x1.0000000000000p-53f, 0x0.0p+0f, 0x0.0p+0f, 0x0.0p+0f, 0x0.0p+0f},
     0x1.0000000000000p+0,
     0x1.0000000000000p+0},
    {{0x1.0000000000000p+0f, 0x1.0000000000000p-52f, 0x1.0000000000000p-53f, 0x0.0p+0f, 0x0.0p+0f,
      0x0.0p+0f},
     0x1.0000000000002p+0,
     0x1.0000000000000p+0},
};

static struct dt_exact_sum sum_of(const float *x, int n, bool squares)
{
    struct dt_exact_sum sum = {0};
    for (int i = 0; i < n; i++)
        if (squares)
            dt_exact_sum_add_square(&sum, x[i]);
        else
            dt_exact_sum_add(&sum, x[i]);
    dt_exact_sum_normalize(&sum);
    return sum;
}

static void sums_are_rounded_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        struct dt_exact_sum sum = sum_of(golden[i].terms, TERMS, false);
        struct dt_exact_sum squares = sum_of(golden[i].terms, TERMS, true);
        assert_true(dt_exact_sum_round(&sum) == golden[i].sum);
        assert_true(dt_exact_sum_round(&squares) == golden[i].squares);
    }
}

static void draw(float *x, int n)
{
    struct dt_rng rng;
    dt_rng_init(&rng, 3);
    for (int i = 0; i < n; i++)
        x[i] = (float)ldexp(dt_rng_double(&rng) - 0.5, (int)dt_rng_below(&rng, 200) - 100);
}

/* All words, not only what is rounded: merged sums have equal ones. */
static void any_order_and_division_gives_the_same_sum(void **state)
{
    enum { N = 1000 };
    float x[N], shuffled[N];
    (void)state;
    draw(x, N);
    for (int squares = 0; squares < 2; squares++) {
        struct dt_exact_sum whole = sum_of(x, N, squares);
        for (uint64_t order = 0; order < 20; order++) {
            struct dt_exact_sum parts = {0};
            for (uint64_t i = 0; i < N; i++)
                shuffled[i] = x[dt_rng_permute(order, N, i)];
            int size = 1 + (int)order * 37;
            for (int from = 0; from < N; from += size) {
                struct dt_exact_sum part =
                    sum_of(shuffled + from, N - from < size ? N - from : size, squares);
                dt_exact_sum_merge(&parts, &part);
            }
            assert_memory_equal(&parts, &whole, sizeof parts);
        }
    }
}

static void a_term_that_is_left_out_shows(void **state)
{
    enum { N = 1000 };
    float x[N];
    (void)state;
    draw(x, N);
    struct dt_exact_sum whole = sum_of(x, N, true);
    for (int i = 0; i < N; i++) {
        float left_out = x[i];
        x[i] = 0;
        struct dt_exact_sum rest = sum_of(x, N, true);
        assert_memory_not_equal(&rest, &whole, sizeof rest);
        x[i] = left_out;
    }
}

/* Of two neighbouring doubles the lower one is even; each limb decides between them. */
static void a_limb_that_is_left_out_shows(void **state)
{
    (void)state;
    for (int i = 0; i < DT_EXACT_SUM_LIMBS - 2; i++) {
        struct dt_exact_sum tie = {.limbs = {[DT_EXACT_SUM_LIMBS - 1] = 1}};
        double even = dt_exact_sum_round(&tie);
        tie.limbs[DT_EXACT_SUM_LIMBS - 3] += 1 << 11; /* 2^-53 of it */
        assert_true(dt_exact_sum_round(&tie) == even);
        tie.limbs[i] += 1;
        assert_true(dt_exact_sum_round(&tie) > even);
        tie.limbs[i] -= 2;
        assert_true(dt_exact_sum_round(&tie) == even);
    }
}

static void scaled_integers_are_added_anywhere(void **state)
{
    (void)state;
    for (int exponent = DT_EXACT_SUM_LOWEST; exponent <= 224; exponent++) {
        struct dt_exact_sum sum = {0};
        dt_exact_sum_add_scaled(&sum, INT64_MAX, exponent);
        dt_exact_sum_add_scaled(&sum, -(INT64_MAX - 5), exponent);
        assert_true(dt_exact_sum_round(&sum) == ldexp(5, exponent));
        dt_exact_sum_add_scaled(&sum, -12, exponent);
        assert_true(dt_exact_sum_round(&sum) == -ldexp(7, exponent));
        dt_exact_sum_add_scaled(&sum, 7, exponent);
        assert_true(dt_exact_sum_round(&sum) == 0 && !signbit(dt_exact_sum_round(&sum)));
    }
}

static void infinities_are_kept(void **state)
{
    const float plus[] = {1, INFINITY, 3}, minus[] = {-INFINITY, 1}, none[] = {NAN};
    struct dt_exact_sum a = sum_of(plus, 3, false), b = sum_of(minus, 2, false);
    struct dt_exact_sum c = sum_of(none, 1, true), square = sum_of(minus, 2, true);
    (void)state;
    assert_true(dt_exact_sum_round(&a) == INFINITY && dt_exact_sum_round(&b) == -INFINITY);
    assert_true(isnan(dt_exact_sum_round(&c)) && dt_exact_sum_round(&square) == INFINITY);
    dt_exact_sum_merge(&a, &b);
    assert_true(isnan(dt_exact_sum_round(&a)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_rounded_once),
        cmocka_unit_test(any_order_and_division_gives_the_same_sum),
        cmocka_unit_test(a_term_that_is_left_out_shows),
        cmocka_unit_test(a_limb_that_is_left_out_shows),
        cmocka_unit_test(scaled_integers_are_added_anywhere),
        cmocka_unit_test(infinities_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
