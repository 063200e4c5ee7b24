/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "hash/sum-hash.h"
#include "math/rng.h"

#define COUNT 1000

static uint32_t values[COUNT];

static struct dt_sum_hash hash_of(uint64_t first, const uint32_t *from, size_t count)
{
    struct dt_sum_hash hash = {{0}};
    dt_sum_hash_add(&hash, dt_sum_hash_seed("x"), first, from, count);
    return hash;
}

static int fill(void **state)
{
    struct dt_rng rng;
    (void)state;
    dt_rng_init(&rng, 1);
    for (int i = 0; i < COUNT; i++)
        values[i] = (uint32_t)dt_rng_below(&rng, 1u << 31);
    return 0;
}

static void the_hashes_of_parts_add_to_that_of_the_whole(void **state)
{
    (void)state;
    const struct dt_sum_hash whole = hash_of(0, values, COUNT);
    for (size_t cut = 0; cut <= COUNT; cut += 37) {
        struct dt_sum_hash hash = hash_of(cut, values + cut, COUNT - cut);
        const struct dt_sum_hash before = hash_of(0, values, cut);
        dt_sum_hash_merge(&hash, &before);
        assert_true(dt_sum_hash_equal(&hash, &whole));
    }
}

/* Each of the two sums shows the change. */
static void check_differ(const struct dt_sum_hash *a, const struct dt_sum_hash *b)
{
    assert_true(a->sums[0] != b->sums[0] && a->sums[1] != b->sums[1]);
    assert_false(dt_sum_hash_equal(a, b));
}

static void a_changed_bit_a_swap_and_a_shift_change_it(void **state)
{
    (void)state;
    const struct dt_sum_hash whole = hash_of(0, values, COUNT);
    for (int i = 0; i < COUNT - 1; i++) {
        uint32_t kept = values[i];
        values[i] ^= 1u << i % 32;
        const struct dt_sum_hash flipped = hash_of(0, values, COUNT);
        values[i] = values[i + 1];
        values[i + 1] = kept;
        const struct dt_sum_hash swapped = hash_of(0, values, COUNT);
        values[i + 1] = values[i];
        values[i] = kept;
        check_differ(&whole, &flipped);
        check_differ(&whole, &swapped);
    }
    const struct dt_sum_hash shifted = hash_of(1, values, COUNT);
    check_differ(&whole, &shifted);
    struct dt_sum_hash other = {{0}};
    dt_sum_hash_add(&other, dt_sum_hash_seed("y"), 0, values, COUNT);
    check_differ(&whole, &other);
}

/* Index and bits of an element do not stand for each other. */
static void zeros_count_and_indices_above_32_bits_differ(void **state)
{
    (void)state;
    const uint32_t zeros[2] = {0};
    const struct dt_sum_hash one = hash_of(5, zeros, 1), two = hash_of(5, zeros, 2);
    const struct dt_sum_hash far = hash_of((uint64_t)1 << 33 | 5, zeros, 1);
    check_differ(&one, &two);
    check_differ(&one, &far);
}

static void narrow_values_are_widened(void **state)
{
    (void)state;
    const uint16_t narrow[3] = {1, 0x8000, 0xffff};
    const uint32_t wide[3] = {1, 0x8000, 0xffff};
    struct dt_sum_hash hash = {{0}};
    const struct dt_sum_hash expected = hash_of(7, wide, 3);
    dt_sum_hash_add_narrow(&hash, dt_sum_hash_seed("x"), 7, narrow, 3);
    assert_true(dt_sum_hash_equal(&hash, &expected));
}

/* The definition: metrics of older versions stay comparable. */
static void the_value_does_not_change(void **state)
{
    (void)state;
    char text[DT_SUM_HASH_HEX];
    const uint32_t ones[3] = {1, 2, 0x3f800000};
    struct dt_sum_hash hash = {{0}};
    dt_sum_hash_add(&hash, 1, 10, ones, 3);
    assert_string_equal(dt_sum_hash_hex(&hash, text), "713199823274cea220dd6d8305aaa4b9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hashes_of_parts_add_to_that_of_the_whole),
        cmocka_unit_test(a_changed_bit_a_swap_and_a_shift_change_it),
        cmocka_unit_test(zeros_count_and_indices_above_32_bits_differ),
        cmocka_unit_test(narrow_values_are_widened),
        cmocka_unit_test(the_value_does_not_change),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
