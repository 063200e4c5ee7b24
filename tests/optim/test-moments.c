/* SPDX-License-Identifier: MIT */
/* Moments of 16 and 8 bits: codes, stochastic rounding, and updates in parts. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "math/rng.h"
#include "optim/moments.h"

#define COUNT 3000
#define FIRST 40   /* element of the bucket */
#define BLOCK 1040 /* elements of a sharding block: not a multiple of a chunk */

static uint8_t codes[2][2 * COUNT];
static float scales[2][32];

static struct dt_moments moments_of(enum dt_moment_type type, int slot)
{
    assert_true(dt_moments_scales(type, FIRST, COUNT, BLOCK) <= 32);
    return (struct dt_moments){type, slot, FIRST, COUNT, BLOCK, codes[slot], scales[slot]};
}

/* Magnitudes over nine decades; without a sign for the second moment. */
static void draw(float *values, int slot)
{
    struct dt_rng rng;
    dt_rng_init(&rng, 11 + (uint64_t)slot);
    for (int i = 0; i < COUNT; i++) {
        double x = pow(10, -9 * dt_rng_double(&rng));
        values[i] = (float)(slot == 0 && dt_rng_below(&rng, 2) ? -x : x);
    }
    values[7] = 0;
}

static void decoded_moments_are_encoded_to_the_same_codes(void **state)
{
    (void)state;
    for (int type = DT_MOMENT_TYPE_BF16; type <= DT_MOMENT_TYPE_INT8; type++)
        for (int slot = 0; slot < 2; slot++) {
            const struct dt_moments m = moments_of((enum dt_moment_type)type, slot);
            static float values[COUNT], once[COUNT], twice[COUNT];
            draw(values, slot);
            dt_moments_set(&m, FIRST, COUNT, values);
            dt_moments_get(&m, FIRST, COUNT, once);
            dt_moments_set(&m, FIRST, COUNT, once);
            dt_moments_get(&m, FIRST, COUNT, twice);
            assert_memory_equal(once, twice, sizeof once);
            assert_true(once[7] == 0);
            for (int i = 0; i < COUNT; i++) {
                /* half of the distance of codes: of the highest decades 0.4 %, 0.7 % and 1.5 % */
                float most = type == DT_MOMENT_TYPE_BF16 ? fabsf(values[i]) / 256 : 0.015f;
                assert_true(fabsf(once[i] - values[i]) <= most);
                assert_true(slot == 0 || values[i] == 0 || once[i] > 0);
            }
        }
}

/* Of bitsandbytes' create_dynamic_map(), but for the magnitude 1 with either sign. */
static void magnitudes_are_those_of_dynamic_quantization(void **state)
{
    (void)state;
    const struct dt_moments m[2] = {moments_of(DT_MOMENT_TYPE_INT8, 0),
                                    moments_of(DT_MOMENT_TYPE_INT8, 1)};
    float x[4];
    for (int slot = 0; slot < 2; slot++) {
        static float values[COUNT];
        memset(values, 0, sizeof values);
        values[0] = slot == 0 ? -1 : 1;
        values[1] = 0.97f;
        values[2] = 3.3e-7f;
        values[3] = 0.00012f;
        dt_moments_set(&m[slot], FIRST, COUNT, values);
        dt_moments_get(&m[slot], FIRST, 4, x);
        assert_true(x[0] == values[0]);
        assert_true(fabsf(x[1] - (slot == 0 ? 0.96484375f : 0.96835938f)) < 1e-6f);
        assert_true(fabsf(x[2] / (slot == 0 ? 5.5e-7f : 3.25e-7f) - 1) < 1e-5f);
        assert_true(fabsf(x[3] / (slot == 0 ? 8.875e-5f : 1.28125e-4f) - 1) < 1e-5f);
    }
}

/* Without an access outside of the tables of codes. Other chunks stay. */
static void a_chunk_that_is_not_finite_is_nan(void **state)
{
    static const float wrong[] = {INFINITY, -INFINITY, NAN, -NAN};
    static float values[COUNT], got[COUNT];
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int slot = 0; slot < 2; slot++) {
            const struct dt_moments m = moments_of(DT_MOMENT_TYPE_INT8, slot);
            const int64_t end = dt_moments_chunk_end(FIRST, BLOCK, FIRST + COUNT) - FIRST;
            draw(values, slot);
            values[3] = wrong[i];
            dt_moments_set(&m, FIRST, COUNT, values);
            dt_moments_get(&m, FIRST, COUNT, got);
            for (int64_t k = 0; k < COUNT; k++)
                assert_true(isnan(got[k]) == (k < end));
        }
}

/* The mean of many updates that leave the moments as they are is the moment. */
static void rounding_is_unbiased(void **state)
{
    (void)state;
    const struct dt_update how = {.rule = DT_UPDATE_RULE_ADAMW,
                                  .beta1 = 0,
                                  .beta2 = 0,
                                  .gradient_scale = 1,
                                  .epsilon = 1,
                                  .correction1 = 1,
                                  .correction2 = 1};
    for (int type = DT_MOMENT_TYPE_BF16; type <= DT_MOMENT_TYPE_INT8; type++) {
        const struct dt_moments m[2] = {moments_of((enum dt_moment_type)type, 0),
                                        moments_of((enum dt_moment_type)type, 1)};
        static float gradients[COUNT], parameters[COUNT], once[COUNT];
        static double sums[2][COUNT];
        memset(sums, 0, sizeof sums);
        draw(gradients, 0);
        for (uint64_t key = 0; key < 2000; key++) {
            dt_moments_update(m, FIRST, COUNT, parameters, gradients, &how,
                              dt_random_key(1, key, 0), 0);
            for (int slot = 0; slot < 2; slot++) {
                dt_moments_get(&m[slot], FIRST, COUNT, once);
                for (int i = 0; i < COUNT; i++)
                    sums[slot][i] += (double)once[i] / 2000;
            }
        }
        /* Five deviations of a mean, whose numbers differ by a distance of codes. */
        const double most = type == DT_MOMENT_TYPE_BF16 ? 0.001 : 0.02;
        for (int i = 0; i < COUNT; i++) {
            const double g = (double)gradients[i];
            assert_true(fabs(g) < 0.01 || fabs(sums[0][i] - g) <= most * fabs(g));
            assert_true(g * g < 0.001 || fabs(sums[1][i] - g * g) <= most * g * g);
        }
    }
}

/* Sharding blocks may be updated by different ranks and threads. */
static void an_update_in_parts_has_the_same_bits(void **state)
{
    (void)state;
    const struct dt_update how = {.rule = DT_UPDATE_RULE_ADAMW,
                                  .learning_rate = 0.1f,
                                  .beta1 = 0.9f,
                                  .beta2 = 0.99f,
                                  .gradient_scale = 1,
                                  .epsilon = 1e-8f,
                                  .correction1 = 0.1f,
                                  .correction2 = 0.01f};
    static float gradients[COUNT], whole[COUNT], parts[COUNT], first[2][COUNT], second[2][COUNT];
    draw(gradients, 0);
    for (int type = DT_MOMENT_TYPE_BF16; type <= DT_MOMENT_TYPE_INT8; type++)
        for (int half = 0; half < 2; half++) {
            float *parameters = half ? parts : whole;
            const struct dt_moments m[2] = {moments_of((enum dt_moment_type)type, 0),
                                            moments_of((enum dt_moment_type)type, 1)};
            memset(codes, 0, sizeof codes);
            memset(scales, 0, sizeof scales);
            memset(parameters, 0, sizeof whole);
            const int64_t cuts[] = {FIRST, half ? BLOCK + 256 : FIRST, half ? 2 * BLOCK : FIRST,
                                    FIRST + COUNT};
            for (uint64_t step = 0; step < 3; step++)
                for (int i = 0; i < 3; i++)
                    dt_moments_update(m, cuts[i], cuts[i + 1] - cuts[i],
                                      parameters + (cuts[i] - FIRST), gradients + (cuts[i] - FIRST),
                                      &how, dt_random_key(1, step, 0), 0);
            for (int slot = 0; slot < 2; slot++)
                dt_moments_get(&m[slot], FIRST, COUNT, half ? second[slot] : first[slot]);
            if (half) {
                assert_memory_equal(whole, parts, sizeof whole);
                assert_memory_equal(first, second, sizeof first);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoded_moments_are_encoded_to_the_same_codes),
        cmocka_unit_test(magnitudes_are_those_of_dynamic_quantization),
        cmocka_unit_test(rounding_is_unbiased),
        cmocka_unit_test(an_update_in_parts_has_the_same_bits),
        cmocka_unit_test(a_chunk_that_is_not_finite_is_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
