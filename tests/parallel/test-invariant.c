/* SPDX-License-Identifier: MIT */
/* The bits of one rank with any layout: a sample; tests/full/test-invariant-layouts.c has more. */
#include "test.h"

#include "invariant-job.h"

static const struct layout each[] = {
    {2, 1, 1, 1, 1, 0, 0, false}, {1, 2, 1, 1, 1, 0, 0, false}, {1, 4, 1, 1, 1, 0, 0, true},
    {1, 1, 2, 1, 1, 0, 0, false}, {1, 1, 4, 1, 1, 3, 0, false}, {2, 2, 2, 1, 1, 3, 0, true},
};

static void gpt2_has_the_bits_of_one_rank(void **state)
{
    (void)state;
    struct dt_settings s = invariant_settings(DT_FAMILY_GPT2);
    check_layouts(&s, each, sizeof each / sizeof *each);
}

static void llama_has_the_bits_of_one_rank(void **state)
{
    (void)state;
    struct dt_settings s = invariant_settings(DT_FAMILY_LLAMA);
    s.model.qk_norm = true;
    check_layouts(&s, each, sizeof each / sizeof *each);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_has_the_bits_of_one_rank),
        cmocka_unit_test(llama_has_the_bits_of_one_rank),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
