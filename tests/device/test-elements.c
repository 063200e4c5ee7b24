/* SPDX-License-Identifier: MIT */
/* Element types: 16-bit numbers convert exactly to fp32, and fp32 rounds to nearest even. */
#include "device/matrix.h"

static const enum dt_dtype halves[] = {DT_DTYPE_BF16, DT_DTYPE_F16};

static struct dt_tensor every_number(enum dt_dtype dtype)
{
    struct dt_tensor x = new_matrix(dtype, 1, 65536);
    for (int i = 0; i < 65536; i++)
        ((uint16_t *)x.data)[i] = (uint16_t)i;
    return x;
}

static void every_16_bit_number_survives_a_round_trip(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        struct dt_tensor x = every_number(halves[t]), wide = as_type(DT_DTYPE_F32, &x);
        struct dt_tensor back = as_type(halves[t], &wide);
        for (int64_t i = 0; i < 65536; i++) {
            float want = at(&x, 0, i), got = at(&wide, 0, i);
            assert_true(isnan(want) ? isnan(got) != 0 : want == got);
            assert_true(isnan(want) ? isnan(at(&back, 0, i)) != 0
                                    : ((uint16_t *)back.data)[i] == i);
        }
        free(x.data), free(wide.data), free(back.data);
    }
}

/* Between two neighbors: just below the midpoint, the midpoint, and just above it. */
static void floats_are_rounded_to_nearest_even(void **state)
{
    (void)state;
    static const uint16_t infinity[] = {0x7f80, 0x7c00};
    for (int t = 0; t < 2; t++) {
        int numbers = infinity[t]; /* the finite ones from 0 on */
        struct dt_tensor x = random_matrix(2, 3 * numbers);
        float *value = x.data, *negative = value + x.stride;
        for (int i = 0; i < numbers; i++) {
            float low = float_of(halves[t], (uint16_t)i);
            float step = low - float_of(halves[t], (uint16_t)(i ? i - 1 : 1));
            double high =
                i + 1 < numbers ? float_of(halves[t], (uint16_t)(i + 1)) : (double)low + step;
            float middle = (float)((low + high) / 2);
            value[3 * i] = nextafterf(middle, low);
            value[3 * i + 1] = middle;
            value[3 * i + 2] = nextafterf(middle, INFINITY);
        }
        for (int i = 0; i < 3 * numbers; i++)
            negative[i] = -value[i];
        struct dt_tensor rounded = as_type(halves[t], &x);
        const uint16_t *got = rounded.data;
        for (int i = 0; i < numbers; i++)
            for (int side = 0; side < 3; side++) {
                int want = i + (side == 2 || (side == 1 && i % 2 == 1));
                assert_int_equal(got[3 * i + side], want);
                assert_int_equal(got[3 * numbers + 3 * i + side], 0x8000 | want);
            }
        free(x.data), free(rounded.data);
    }
}

/* Vector instructions, and the scalar loop for the remaining elements. */
static void floats_out_of_range_become_infinite_or_nan(void **state)
{
    (void)state;
    const float odd[6] = {1e38f * 3.4f, -INFINITY, NAN, 1e-45f, -1e-45f, 70000};
    for (int t = 0; t < 2; t++)
        for (int n = 1; n < 40; n++) {
            struct dt_tensor x = random_matrix(6, n);
            for (int i = 0; i < 6 * n; i++)
                ((float *)x.data)[i] = odd[i / n];
            struct dt_tensor y = as_type(halves[t], &x);
            for (int64_t j = 0; j < n; j++) {
                assert_true(at(&y, 0, j) == INFINITY && at(&y, 1, j) == -INFINITY);
                assert_true(isnan(at(&y, 2, j)) != 0);
                assert_true(at(&y, 3, j) == 0 && at(&y, 4, j) == 0);
                assert_true(at(&y, 5, j) == (halves[t] == DT_DTYPE_F16 ? INFINITY : 70144));
            }
            free(x.data), free(y.data);
        }
}

static void copy_supports_strides_and_broadcast_rows(void **state)
{
    (void)state;
    for (enum dt_dtype from = DT_DTYPE_F32; from <= DT_DTYPE_F16; from++)
        for (enum dt_dtype to = DT_DTYPE_F32; to <= DT_DTYPE_F16; to++) {
            struct dt_tensor wide = random_matrix_of(from, 5, 9000),
                             x = dt_tensor_columns(&wide, 3, 5001);
            struct dt_tensor y = new_matrix(to, 5, 6000), place = dt_tensor_columns(&y, 7, 5001);
            dev->ops->copy(dev, &place, &x);
            for (int64_t i = 0; i < 5; i++)
                for (int64_t j = 0; j < 6000; j++) {
                    double want = j < 7 || j >= 5008 ? 0 : at(&x, i, j - 7);
                    assert_true(fabs(at(&y, i, j) - want) <= fabs(want) * rounding_of(to) + 1e-7);
                }
            x.stride = 0;
            dev->ops->copy(dev, &place, &x);
            for (int64_t i = 0; i < 5; i++)
                assert_true(at(&place, i, 9) == at(&place, 0, 9));
            dev->ops->zero(dev, &place);
            for (int64_t i = 0; i < 5; i++)
                for (int64_t j = 0; j < 6000; j++)
                    assert_true(at(&y, i, j) == 0);
            free(wide.data), free(y.data);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(every_16_bit_number_survives_a_round_trip),
        ON_EACH_ISA(floats_are_rounded_to_nearest_even),
        ON_EACH_ISA(floats_out_of_range_become_infinite_or_nan),
        ON_EACH_ISA(copy_supports_strides_and_broadcast_rows),
    };
    return RUN_ON_EACH_ISA(tests);
}
