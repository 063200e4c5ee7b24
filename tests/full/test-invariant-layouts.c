/* SPDX-License-Identifier: MIT */
/* The bits of one rank with every kind of layout; tests/parallel/test-invariant.c
 * has a sample. */
#include "test.h"

#include "../parallel/invariant-job.h"

static const struct layout layouts[] = {
    {2, 1, 1, 1, 1, 0, 0, false}, {3, 1, 1, 1, 1, 2, 0, false}, {1, 2, 1, 1, 1, 0, 0, false},
    {1, 2, 1, 1, 1, 0, 0, true},  {1, 4, 1, 1, 1, 0, 0, false}, {1, 4, 1, 1, 1, 0, 0, true},
    {1, 1, 2, 1, 1, 0, 0, false}, {1, 1, 2, 1, 1, 1, 0, false}, {1, 1, 2, 1, 1, 2, 0, false},
    {1, 1, 2, 1, 1, 3, 0, false}, {1, 1, 4, 1, 1, 0, 0, false}, {2, 1, 2, 1, 1, 2, 2, false},
    {3, 1, 2, 1, 1, 0, 0, false}, {3, 1, 2, 1, 1, 3, 2, false}, {1, 1, 1, 2, 1, 0, 0, false},
    {1, 1, 1, 2, 2, 0, 0, false}, {2, 1, 1, 2, 2, 3, 0, false}, {1, 1, 2, 2, 2, 0, 0, false},
    {1, 2, 2, 1, 1, 0, 0, true},  {2, 2, 2, 1, 1, 3, 0, false}, {2, 2, 2, 1, 1, 3, 0, true},
    {1, 4, 2, 1, 1, 1, 0, true},  {1, 2, 4, 1, 1, 0, 0, true},  {1, 2, 2, 2, 2, 2, 0, true},
};

static void check_all(const struct dt_settings *s)
{
    check_layouts(s, layouts, sizeof layouts / sizeof *layouts);
}

static void gpt2_has_the_bits_of_one_rank(void **state)
{
    (void)state;
    struct dt_settings s = invariant_settings(DT_FAMILY_GPT2);
    s.model.dropout = 0.1;
    s.model.attention_dropout = 0.1;
    check_all(&s);
}

static void llama_has_the_bits_of_one_rank(void **state)
{
    (void)state;
    struct dt_settings s = invariant_settings(DT_FAMILY_LLAMA);
    s.training.label_smoothing = 0.1;
    s.training.z_loss = 0.01;
    check_all(&s);
}

/* Parts of three heads, and the norms of heads. */
static void qwen3_has_the_bits_of_one_rank(void **state)
{
    (void)state;
    struct dt_settings s = invariant_settings(DT_FAMILY_LLAMA);
    s.model.qk_norm = true;
    check_all(&s);
    s.model.hidden_size = 48;
    s.model.num_heads = s.model.num_kv_heads = 12;
    s.training.recompute = DT_RECOMPUTE_FULL;
    check_all(&s);
}

static void other_structures_have_the_bits_of_one_rank(void **state)
{
    (void)state;
    const enum dt_family families[] = {DT_FAMILY_GPT_NEOX, DT_FAMILY_GRANITE, DT_FAMILY_GEMMA2,
                                       DT_FAMILY_OLMO2};
    for (int i = 0; i < 4; i++) {
        struct dt_settings s = invariant_settings(families[i]);
        s.model.dropout = 0.1;
        check_all(&s);
    }
}

static void sixteen_bit_types_have_the_bits_of_one_rank(void **state)
{
    (void)state;
    for (int llama = 0; llama < 2; llama++) {
        struct dt_settings s = invariant_settings(llama ? DT_FAMILY_LLAMA : DT_FAMILY_GPT2);
        s.training.precision = llama ? DT_DTYPE_BF16 : DT_DTYPE_F16;
        s.training.arithmetic = DT_ARITHMETIC_CANONICAL;
        s.model.qk_norm = llama;
        check_all(&s);
    }
}

static void eight_tensor_parallel_ranks_have_the_bits_of_one_rank(void **state)
{
    (void)state;
    static const struct layout eight[] = {{1, 8, 1, 1, 1, 0, 0, false},
                                          {1, 8, 1, 1, 1, 0, 0, true}};
    struct dt_settings s = invariant_settings(DT_FAMILY_GPT2);
    check_layouts(&s, eight, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_has_the_bits_of_one_rank),
        cmocka_unit_test(llama_has_the_bits_of_one_rank),
        cmocka_unit_test(qwen3_has_the_bits_of_one_rank),
        cmocka_unit_test(other_structures_have_the_bits_of_one_rank),
        cmocka_unit_test(sixteen_bit_types_have_the_bits_of_one_rank),
        cmocka_unit_test(eight_tensor_parallel_ranks_have_the_bits_of_one_rank),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
