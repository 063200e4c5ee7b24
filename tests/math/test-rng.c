/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "math/rng.h"

/* Known-answer vectors published with Random123 (kat_vectors, philox4x32 10). */
static void philox_matches_its_known_answers(void **state)
{
    (void)state;
    struct dt_random zero = dt_random(0, 0, 0);
    assert_int_equal(zero.word[0], 0x6627e8d5);
    assert_int_equal(zero.word[3], 0x9b00dbd8);
    struct dt_random ones = dt_random(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    assert_int_equal(ones.word[0], 0x408f276d);
    assert_int_equal(ones.word[3], 0x6d5451fd);
}

static void permutation_is_a_bijection(void **state)
{
    (void)state;
    const uint64_t sizes[] = {1, 2, 3, 7, 64, 65, 1000, 4097};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        char *seen = calloc(sizes[k], 1);
        for (uint64_t i = 0; i < sizes[k]; i++) {
            uint64_t j = dt_rng_permute(42, sizes[k], i);
            assert_true(j < sizes[k]);
            assert_false(seen[j]);
            seen[j] = 1;
        }
        free(seen);
    }
}

static void permutation_depends_on_its_key(void **state)
{
    (void)state;
    int equal = 0;
    for (uint64_t i = 0; i < 1000; i++)
        equal += dt_rng_permute(1, 1000, i) == dt_rng_permute(2, 1000, i);
    assert_true(equal < 20);
}

static void normals_have_mean_zero_and_variance_one(void **state)
{
    (void)state;
    double sum = 0, squares = 0;
    const int n = 100000;
    for (int i = 0; i < n; i++) {
        double pair[2];
        dt_rng_normal_pair(dt_random(7, 0, (uint64_t)i), pair);
        sum += pair[0] + pair[1];
        squares += pair[0] * pair[0] + pair[1] * pair[1];
    }
    assert_true(fabs(sum / (2 * n)) < 0.01);
    assert_true(fabs(squares / (2 * n) - 1) < 0.02);
}

static void below_is_uniform(void **state)
{
    (void)state;
    struct dt_rng rng;
    dt_rng_init(&rng, 3);
    int count[7] = {0};
    for (int i = 0; i < 70000; i++)
        count[dt_rng_below(&rng, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(count[i], 9500, 10500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_matches_its_known_answers),
        cmocka_unit_test(permutation_is_a_bijection),
        cmocka_unit_test(permutation_depends_on_its_key),
        cmocka_unit_test(normals_have_mean_zero_and_variance_one),
        cmocka_unit_test(below_is_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
