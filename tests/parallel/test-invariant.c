/* SPDX-License-Identifier: MIT */
/* The bits of one rank with any layout: a sample; tests/full/test-invariant-layouts.c has more. */
#include "test.h"

#include "invariant-job.h"

static const struct layout each[] = {
    {2, 1, 1, 1, 1, 0, 0, false}, {1, 2, 1, 1, 1, 0, 0, false}, {1, 4, 1, 1, 1, 0, 0, true},
    {1, 1, 2, 1, 1, 0, 0, false}, {1, 1, 4, 1, 1, 3, 0, false}, {2, 2, 2, 1, 1, 3, 0, true},
};

/* Of other structures of blocks. */
static const struct layout some[] = {{2, 2, 1, 1, 1, 3, 0, true}, {1, 2, 2, 2, 1, 1, 0, false}};

/* Each of two data-parallel ranks has two micro-batches. */
static struct dt_settings settings_of(enum dt_family family)
{
    struct dt_settings s = invariant_settings(family);
    s.training.gradient_accumulation_steps = 4;
    return s;
}

static void gpt2_has_the_bits_of_one_rank(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(DT_FAMILY_GPT2);
    check_layouts(&s, each, sizeof each / sizeof *each);
}

static void llama_has_the_bits_of_one_rank(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(DT_FAMILY_LLAMA);
    s.model.qk_norm = true;
    check_layouts(&s, each, sizeof each / sizeof *each);
}

static void parallel_residuals_have_the_bits_of_one_rank(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(DT_FAMILY_GPT_NEOX);
    check_layouts(&s, some, sizeof some / sizeof *some);
}

static void scales_and_biases_have_the_bits_of_one_rank(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(DT_FAMILY_GRANITE);
    s.model.dropout = 0.1;
    s.training.recompute = DT_RECOMPUTE_FULL;
    check_layouts(&s, some, sizeof some / sizeof *some);
}

static void norms_of_inputs_and_outputs_have_the_bits_of_one_rank(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(DT_FAMILY_GEMMA2);
    check_layouts(&s, some, sizeof some / sizeof *some);
}

/* Norms of queries and keys over the heads of all ranks, and of outputs. */
static void norms_of_all_heads_have_the_bits_of_one_rank(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(DT_FAMILY_OLMO2);
    check_layouts(&s, each, sizeof each / sizeof *each);
    s.model.dropout = 0.1;
    s.training.recompute = DT_RECOMPUTE_FULL;
    check_layouts(&s, some, sizeof some / sizeof *some);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_has_the_bits_of_one_rank),
        cmocka_unit_test(llama_has_the_bits_of_one_rank),
        cmocka_unit_test(parallel_residuals_have_the_bits_of_one_rank),
        cmocka_unit_test(scales_and_biases_have_the_bits_of_one_rank),
        cmocka_unit_test(norms_of_inputs_and_outputs_have_the_bits_of_one_rank),
        cmocka_unit_test(norms_of_all_heads_have_the_bits_of_one_rank),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
