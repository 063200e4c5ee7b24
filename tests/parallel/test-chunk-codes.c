/* SPDX-License-Identifier: MIT */
/* Codes of outer gradients: precision, sizes and partial chunks. */
#include "test.h"

#include <math.h>

#include "math/rng.h"
#include "parallel/chunk-codes.h"

#define SIZE DT_CHUNK_CODES_SIZE

static void numbers_are_near_what_they_were(void **state)
{
    (void)state;
    static const double relative[] = {0, 0, 0.34}, absolute[] = {0, 0.5 / 127, 1.0 / 128};
    for (int type = 0; dt_outer_precision_names[type]; type++)
        for (int64_t count = 1; count <= SIZE; count += 51) {
            float values[SIZE], sums[SIZE + 1] = {0}, most = 0;
            unsigned char chunk[SIZE * sizeof(float)];
            struct dt_rng rng;
            dt_rng_init(&rng, 5);
            for (int64_t i = 0; i < count; i++) {
                values[i] = (float)(0.02 * (dt_rng_double(&rng) - 0.5));
                most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
            }
            dt_chunk_codes_encode((enum dt_outer_precision)type, values, count, chunk);
            dt_chunk_codes_add((enum dt_outer_precision)type, chunk, count, 2, sums);
            assert_true(sums[count] == 0);
            for (int64_t i = 0; i < count; i++) {
                const double wrong = fabs((double)sums[i] / 2 - (double)values[i]);
                const double x = fabs((double)values[i]) * 1.00001;
                assert_true(wrong <= relative[type] * x + absolute[type] * (double)most * 1.00001);
                assert_true(fabsf(values[i]) < most || wrong <= 1e-9);
            }
        }
}

static void zeros_stay_zeros(void **state)
{
    (void)state;
    for (int type = 0; dt_outer_precision_names[type]; type++) {
        float values[SIZE] = {0}, sums[SIZE] = {0};
        unsigned char chunk[SIZE * sizeof(float)];
        dt_chunk_codes_encode((enum dt_outer_precision)type, values, SIZE, chunk);
        dt_chunk_codes_add((enum dt_outer_precision)type, chunk, SIZE, 1, sums);
        for (int i = 0; i < SIZE; i++)
            assert_true(sums[i] == 0);
    }
}

/* A rank whose parameters are not finite must not look as if they were. */
static void what_is_not_finite_stays_so(void **state)
{
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int type = 0; dt_outer_precision_names[type]; type++)
        for (int i = 0; i < 3; i++) {
            float values[SIZE] = {1, bad[i], 2}, sums[SIZE] = {0};
            unsigned char chunk[SIZE * sizeof(float)];
            dt_chunk_codes_encode((enum dt_outer_precision)type, values, SIZE, chunk);
            dt_chunk_codes_add((enum dt_outer_precision)type, chunk, SIZE, 1, sums);
            assert_false(isfinite(sums[1]) != 0);
        }
}

static void a_chunk_of_256_numbers_takes_1024_260_or_132_bytes(void **state)
{
    (void)state;
    assert_int_equal(dt_chunk_codes_bytes(DT_OUTER_PRECISION_FP32), 1024);
    assert_int_equal(dt_chunk_codes_bytes(DT_OUTER_PRECISION_INT8), 260);
    assert_int_equal(dt_chunk_codes_bytes(DT_OUTER_PRECISION_INT4), 132);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_near_what_they_were),
        cmocka_unit_test(zeros_stay_zeros),
        cmocka_unit_test(what_is_not_finite_stays_so),
        cmocka_unit_test(a_chunk_of_256_numbers_takes_1024_260_or_132_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
