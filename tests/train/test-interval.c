/* SPDX-License-Identifier: MIT */
/* Intervals in steps, tokens, samples, epochs and minutes. */
#include "test.h"

#include "train/interval.h"

/* Writes the steps, of 3 samples and 20 seconds, after which the interval is due. */
static void find_due(struct dt_config_amount interval, long first, long due[8])
{
    struct dt_settings s = {.training = {.sequence_length = 16}};
    int count = 0;
    for (long i = first; i < 12; i++) {
        const struct dt_interval_position before = {i, (uint64_t)(3 * i), 20.0 * (double)i},
                                          after = {i + 1, (uint64_t)(3 * i + 3),
                                                   20.0 * (double)(i + 1)};
        if (dt_interval_is_due(&s, &interval, 10, &before, &after))
            due[count++] = i + 1;
    }
    due[count] = 0;
}

static const struct {
    struct dt_config_amount interval;
    long due[8];
} rows[] = {
    {{5, DT_INTERVAL_UNIT_STEPS}, {5, 10, 0}},
    {{100, DT_INTERVAL_UNIT_TOKENS}, {3, 5, 7, 9, 11, 0}}, /* 48 tokens a step */
    {{7, DT_INTERVAL_UNIT_SAMPLES}, {3, 5, 7, 10, 12, 0}},
    {{1, DT_INTERVAL_UNIT_EPOCHS}, {4, 7, 10, 0}},
    {{1.5, DT_INTERVAL_UNIT_EPOCHS}, {5, 10, 0}},
    {{1, DT_INTERVAL_UNIT_MINUTES}, {3, 6, 9, 12, 0}},
    {{1e6, DT_INTERVAL_UNIT_TOKENS}, {0}},
    {{0, DT_INTERVAL_UNIT_STEPS}, {0}},
};

static void an_interval_ends_with_the_step_that_passes_a_multiple(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        long due[8];
        find_due(rows[i].interval, 0, due);
        for (int k = 0; k == 0 || rows[i].due[k - 1]; k++)
            assert_int_equal(due[k], rows[i].due[k]);
    }
}

static void a_resumed_run_keeps_the_cadence(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (long first = 1; first < 12; first++) {
            long due[8];
            int k = 0;
            find_due(rows[i].interval, first, due);
            while (rows[i].due[k] && rows[i].due[k] <= first)
                k++;
            for (int j = 0; j == 0 || due[j - 1]; j++)
                assert_int_equal(due[j], rows[i].due[k + j]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interval_ends_with_the_step_that_passes_a_multiple),
        cmocka_unit_test(a_resumed_run_keeps_the_cadence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
