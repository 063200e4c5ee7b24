/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "model/finite.h"

static struct dt_error err;

static void one_non_finite_number_is_found_at_any_index(void **state)
{
    (void)state;
    const int64_t n = 2 * DT_FINITE_BLOCK + 37;
    const float values[] = {NAN, -NAN, INFINITY, -INFINITY};
    float *x = dt_alloc((size_t)n, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = i % 2 ? FLT_MAX : -FLT_TRUE_MIN;
    assert_int_equal(dt_finite_first_bad(x, n, DT_DTYPE_F32), n);
    for (int64_t i = 0; i < n; i += i < 40 || i > n - 60 ? 1 : 97) {
        float before = x[i];
        x[i] = values[i % 4];
        assert_int_equal(dt_finite_first_bad(x, n, DT_DTYPE_F32), i);
        assert_int_equal(dt_finite_first_bad(x, i, DT_DTYPE_F32), i); /* not read after the end */
        x[i] = before;
    }
    free(x);
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 3.3895e38 and 65504 are the largest; half a unit in the last place above them rounds to
 * infinity. */
static void overflow_of_a_narrow_type_is_found(void **state)
{
    (void)state;
    const float most_bf16 = from_bits(0x7f7f7fff), most_f16 = from_bits(0x477fefff);
    float x[] = {1, most_bf16, -most_bf16, nextafterf(most_bf16, INFINITY)};
    assert_int_equal(dt_finite_first_bad(x, 4, DT_DTYPE_F32), 4);
    assert_int_equal(dt_finite_first_bad(x, 4, DT_DTYPE_BF16), 3);
    float y[] = {65504, -most_f16, -65520};
    assert_int_equal(dt_finite_first_bad(y, 3, DT_DTYPE_BF16), 3);
    assert_int_equal(dt_finite_first_bad(y, 3, DT_DTYPE_F16), 2);
}

static void errors_name_file_tensor_index_and_value(void **state)
{
    (void)state;
    const float x[] = {1, -INFINITY}, y[] = {NAN}, z[] = {70000};
    assert_int_equal(dt_finite_check_weights(x, 2, DT_DTYPE_F32, "f", "t", 40, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f: tensor 't': element 41 is -Inf, and weights must be finite");
    assert_int_equal(dt_finite_check_weights(y, 1, DT_DTYPE_F32, "f", "t", 0, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f: tensor 't': element 0 is NaN, and weights must be finite");
    assert_int_equal(dt_finite_check_weights(z, 1, DT_DTYPE_F16, "f", "t", 0, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f: tensor 't': element 0 is 70000, which overflows fp16: "
                                  "compute in bf16 or fp32, or export with --type bf16 or f32");
    assert_int_equal(dt_finite_check_weights(z, 1, DT_DTYPE_BF16, "f", "t", 0, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_non_finite_number_is_found_at_any_index),
        cmocka_unit_test(overflow_of_a_narrow_type_is_found),
        cmocka_unit_test(errors_name_file_tensor_index_and_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
