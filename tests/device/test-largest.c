/* SPDX-License-Identifier: MIT */
/* take_largest, compared with a sort. */
#include "device/matrix.h"

static float *numbers;

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* NaN first, then by magnitude, then by index. */
static int larger_first(const void *a, const void *b)
{
    int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    double x = isnan(numbers[i]) ? INFINITY : fabs((double)numbers[i]);
    double y = isnan(numbers[j]) ? INFINITY : fabs((double)numbers[j]);
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

static int by_index(const void *a, const void *b)
{
    int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    return (i > j) - (i < j);
}

/* Indices, values and the remaining numbers, bit for bit. */
static void check(float *x, int64_t n, int64_t k)
{
    int32_t *order = dt_alloc((size_t)n, sizeof *order),
            *indices = dt_alloc((size_t)k, sizeof *indices);
    float *values = dt_alloc((size_t)k, sizeof *values);
    numbers = dt_alloc((size_t)n, sizeof *numbers);
    memcpy(numbers, x, (size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    qsort(order, (size_t)n, sizeof *order, larger_first);
    qsort(order, (size_t)k, sizeof *order, by_index);
    dev->ops->take_largest(dev, x, n, k, indices, values);
    for (int64_t i = 0; i < k; i++) {
        assert_int_equal(indices[i], order[i]);
        assert_int_equal(bits_of(values[i]), bits_of(numbers[order[i]]));
        numbers[order[i]] = 0;
    }
    assert_memory_equal(x, numbers, (size_t)n * sizeof *x);
    free(order), free(indices), free(values), free(numbers), free(x);
}

/* n numbers of few different magnitudes. */
static float *draw(int64_t n, uint32_t different)
{
    float *x = dt_alloc((size_t)n, sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        float size = ldexpf((float)dt_rng_below(&rng, different), -(int)dt_rng_below(&rng, 3));
        x[i] = dt_rng_below(&rng, 2) ? size : -size;
    }
    return x;
}

static void the_largest_magnitudes_are_taken(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 2, 255, 4097, 9001};
    for (int i = 0; i < 5; i++)
        for (int64_t part = 1; part <= 100; part += 49) {
            check(draw(sizes[i], 5), sizes[i], (sizes[i] + part - 1) / part);
            check(draw(sizes[i], 1u << 24), sizes[i], (sizes[i] + part - 1) / part);
        }
}

static void of_equal_numbers_the_first_are_taken(void **state)
{
    (void)state;
    const int64_t n = 8999, wanted[] = {1, 4096, 4097, 8999};
    for (int i = 0; i < 4; i++)
        check(draw(n, 1), n, wanted[i]); /* zeros, of both signs */
}

static void nans_are_taken_first(void **state)
{
    (void)state;
    float *x = draw(9000, 1u << 24);
    x[5] = NAN, x[8999] = -INFINITY, x[4500] = NAN;
    int32_t indices[3];
    float values[3];
    dev->ops->take_largest(dev, x, 9000, 3, indices, values);
    assert_true(indices[0] == 5 && indices[1] == 4500 && indices[2] == 8999);
    assert_true(isnan(values[0]) && isnan(values[1]) && values[2] == -INFINITY);
    assert_true(x[5] == 0 && x[4500] == 0 && x[8999] == 0);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(the_largest_magnitudes_are_taken),
        ON_EACH_ISA(of_equal_numbers_the_first_are_taken),
        ON_EACH_ISA(nans_are_taken_first),
    };
    return RUN_ON_EACH_ISA(tests);
}
