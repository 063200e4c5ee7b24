/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "dedup/exact-duplicates.h"

static void each_hash_is_new_once(void **state)
{
    (void)state;
    const uint64_t count = 100000;
    struct dt_duplicates set = {0};
    for (int pass = 0; pass < 2; pass++)
        for (uint64_t i = 0; i < count; i++)
            assert_int_equal(dt_duplicates_add(&set, dt_hash128(&i, sizeof i)), pass == 0);
    assert_int_equal(set.count, count);
    assert_in_range(dt_duplicates_bytes(&set), 16 * count * 4 / 3, 16 * count * 8 / 3);
    dt_duplicates_release(&set);
}

static void both_halves_and_zero_count(void **state)
{
    (void)state;
    struct dt_duplicates set = {0};
    assert_true(dt_duplicates_add(&set, (struct dt_hash128){0, 0}));
    assert_false(dt_duplicates_add(&set, (struct dt_hash128){0, 0}));
    assert_true(dt_duplicates_add(&set, (struct dt_hash128){0, 5}));
    assert_true(dt_duplicates_add(&set, (struct dt_hash128){7, 5}));
    assert_true(dt_duplicates_add(&set, (struct dt_hash128){7, 6}));
    assert_false(dt_duplicates_add(&set, (struct dt_hash128){7, 5}));
    dt_duplicates_release(&set);
}

/* XXH3-128 of the empty input with seed 0, as xxHash documents it (xxhsum -H2). */
static void the_hash_is_xxh3_128(void **state)
{
    (void)state;
    struct dt_hash128 hash = dt_hash128("", 0);
    assert_true(hash.high == UINT64_C(0x99aa06d3014798d8));
    assert_true(hash.low == UINT64_C(0x6001c324468d497f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_hash_is_new_once),
        cmocka_unit_test(both_halves_and_zero_count),
        cmocka_unit_test(the_hash_is_xxh3_128),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
