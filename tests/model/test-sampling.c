/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>

#include "math/rng.h"
#include "model/sampling.h"

enum { V = 6 };
static const float logits[V] = {0.5f, 2.0f, -1.0f, 2.0f, 0.0f, 1.0f};

static void draw_many(const struct dt_sampling *how, int count[V])
{
    struct dt_sampler *s = dt_sampler_new(how, V);
    struct dt_rng rng;
    dt_rng_init(&rng, 9);
    for (int i = 0; i < 60000; i++)
        count[dt_sampler_choose(s, logits, dt_rng_double(&rng))]++;
    dt_sampler_free(s);
}

/* Pearson's chi-square against the softmax at a temperature over the tokens kept. */
static double chi_square(const int count[V], const int keep[V], double temperature)
{
    double total = 0, sum = 0;
    for (int i = 0; i < V; i++)
        total += keep[i] ? exp((double)logits[i] / temperature) : 0;
    for (int i = 0; i < V; i++) {
        double expected = 60000 * exp((double)logits[i] / temperature) / total;
        if (keep[i])
            sum += pow(count[i] - expected, 2) / expected;
        else
            assert_int_equal(count[i], 0);
    }
    return sum;
}

static void temperature_zero_is_greedy(void **state)
{
    (void)state;
    int count[V] = {0};
    draw_many(&(struct dt_sampling){.temperature = 0, .top_p = 1}, count);
    assert_int_equal(count[1], 60000);
}

static void samples_follow_the_softmax(void **state)
{
    (void)state;
    int count[V] = {0}, all[V] = {1, 1, 1, 1, 1, 1};
    draw_many(&(struct dt_sampling){.temperature = 0.7, .top_p = 1}, count);
    assert_true(chi_square(count, all, 0.7) < 20.5); /* 5 degrees of freedom, p = 0.001 */
}

static void top_k_keeps_the_k_most_probable(void **state)
{
    (void)state;
    int count[V] = {0}, three[V] = {0, 1, 0, 1, 0, 1};
    draw_many(&(struct dt_sampling){.temperature = 1, .top_k = 3, .top_p = 1}, count);
    assert_true(chi_square(count, three, 1) < 13.8); /* 2 degrees */
}

static void top_p_keeps_the_smallest_set_that_reaches_p(void **state)
{
    (void)state;
    /* The two at 2.0 have 0.36 each, the one at 1.0 has 0.13: 0.6 needs two, 0.8 three. */
    int count[V] = {0}, two[V] = {0, 1, 0, 1, 0, 0}, three[V] = {0, 1, 0, 1, 0, 1};
    draw_many(&(struct dt_sampling){.temperature = 1, .top_p = 0.6}, count);
    assert_true(chi_square(count, two, 1) < 10.9); /* 1 degree */
    int more[V] = {0};
    draw_many(&(struct dt_sampling){.temperature = 1, .top_p = 0.8}, more);
    assert_true(chi_square(more, three, 1) < 13.8);
}

static void min_p_keeps_tokens_nearly_as_probable_as_the_best(void **state)
{
    (void)state;
    /* At temperature 2 the one at 1.0 is exp(-1/2) = 0.61 times as probable as those at 2.0. */
    int count[V] = {0}, two[V] = {0, 1, 0, 1, 0, 0}, three[V] = {0, 1, 0, 1, 0, 1}, more[V] = {0};
    draw_many(&(struct dt_sampling){.temperature = 2, .top_p = 1, .min_p = 0.62}, count);
    assert_true(chi_square(count, two, 2) < 10.9);
    draw_many(&(struct dt_sampling){.temperature = 2, .top_p = 1, .min_p = 0.6}, more);
    assert_true(chi_square(more, three, 2) < 13.8);
}

static void top_k_top_p_and_min_p_combine(void **state)
{
    (void)state;
    int count[V] = {0}, two[V] = {0, 1, 0, 1, 0, 0};
    draw_many(&(struct dt_sampling){.temperature = 1, .top_k = 3, .top_p = 0.8, .min_p = 0.1},
              count);
    assert_true(chi_square(count, two, 1) < 10.9); /* of three, two have 0.84 */
}

static void repeated_tokens_are_penalized_once(void **state)
{
    (void)state;
    float x[4] = {2, -2, 0, 1};
    const uint32_t ids[] = {0, 1, 0, 2, 1};
    bool seen[4] = {false};
    dt_sampling_penalize_repetition(x, seen, ids, 5, 4);
    assert_true(x[0] == 0.5f && x[1] == -8 && x[2] == 0 && x[3] == 1);
    dt_sampling_penalize_repetition(x, seen, (const uint32_t[]){0, 3}, 2, 4);
    assert_true(x[0] == 0.5f && x[3] == 0.25f);
    float one = 8.25f;
    seen[0] = false;
    dt_sampling_penalize_repetition(&one, seen, ids, 1, 1.3);
    assert_true(one == 8.25f / 1.3f); /* rounded once */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(temperature_zero_is_greedy),
        cmocka_unit_test(samples_follow_the_softmax),
        cmocka_unit_test(top_k_keeps_the_k_most_probable),
        cmocka_unit_test(top_p_keeps_the_smallest_set_that_reaches_p),
        cmocka_unit_test(min_p_keeps_tokens_nearly_as_probable_as_the_best),
        cmocka_unit_test(top_k_top_p_and_min_p_combine),
        cmocka_unit_test(repeated_tokens_are_penalized_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
