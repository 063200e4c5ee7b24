/* SPDX-License-Identifier: MIT */
/* The hash of elements, for engines to compute where the elements are. */
#include "device/matrix.h"

static void check_hash(int64_t rows, int64_t columns, int64_t pitch, uint64_t first,
                       uint64_t stride)
{
    struct dt_tensor whole = random_matrix(rows, pitch), x = whole;
    struct dt_sum_hash hash = {{3, 4}}, want = {{3, 4}};
    uint64_t seed = dt_sum_hash_seed("x");
    x.columns = columns;
    for (int64_t r = 0; r < rows; r++)
        dt_sum_hash_add(&want, seed, first + (uint64_t)r * stride,
                        (const uint32_t *)whole.data + r * pitch, (size_t)columns);
    dev->ops->hash(dev, &hash, &x, seed, first, stride);
    if (!dt_sum_hash_equal(&hash, &want))
        fail_msg("%lld x %lld", (long long)rows, (long long)columns);
    free(whole.data);
}

static void every_engine_computes_the_same_hash(void **state)
{
    (void)state;
    check_hash(1, 1, 1, 0, 0);
    check_hash(1, 300007, 300007, 5, 0);
    check_hash(33, 65, 70, (uint64_t)7 << 32, 1000);
    check_hash(3, 20011, 20011, 1, 20011);
    check_hash(2000, 1, 3, 0, 9);
}

static void nothing_adds_nothing(void **state)
{
    (void)state;
    struct dt_sum_hash hash = {{3, 4}};
    float none = 0;
    struct dt_tensor x = dt_matrix(&none, 1, 0);
    dev->ops->hash(dev, &hash, &x, 1, 2, 3);
    assert_true(hash.sums[0] == 3 && hash.sums[1] == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(every_engine_computes_the_same_hash),
        cmocka_unit_test_setup_teardown(nothing_adds_nothing, open_device, close_device),
    };
    return RUN_ON_EACH_ISA(tests);
}
