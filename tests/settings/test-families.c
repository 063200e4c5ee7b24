/* SPDX-License-Identifier: MIT */
/* Family descriptors: their fields agree with their lists of tensors, so that code may use either.
 */
#include "test.h"

#include <math.h>
#include <string.h>

#include "settings/model-config.h"

static const struct dt_tensor_spec *find(const struct dt_family_descriptor *f, enum dt_role role)
{
    for (const struct dt_tensor_spec *s = f->tensors; s->site != DT_TENSOR_SITE_END; s++)
        if (s->role == role && s->site != DT_TENSOR_SITE_LABELS)
            return s;
    return NULL;
}

static const struct dt_family_descriptor *family_of(int family)
{
    return dt_family_of(&(struct dt_model_config){.family = family});
}

/* A classifier; families with Llama's list of tensors that transformers gives no classifier have
 * the rows, too. */
static bool has_labels(const struct dt_family_descriptor *f)
{
    const struct dt_tensor_spec *s = f->tensors;
    while (s->site != DT_TENSOR_SITE_END && s->site != DT_TENSOR_SITE_LABELS)
        s++;
    return s->site == DT_TENSOR_SITE_LABELS && f != family_of(DT_FAMILY_GRANITE);
}

static void each_family_has_a_name_and_a_descriptor(void **state)
{
    (void)state;
    for (int i = 0; i < DT_FAMILY_COUNT; i++) {
        const struct dt_family_descriptor *f = family_of(i);
        assert_non_null(dt_family_names[i]);
        assert_non_null(f->tensors);
        assert_non_null(f->extras);
        assert_non_null(f->json->architecture);
        assert_int_equal(f->json->classifier != NULL, has_labels(f));
    }
    assert_null(dt_family_names[DT_FAMILY_COUNT]);
}

/* Whether the family has a norm, or a bias, in every configuration. */
static bool always(const struct dt_family_descriptor *f, int family, enum dt_role role)
{
    struct dt_model_config c = {.family = family};
    return find(f, role) && dt_model_has_role(&c, role);
}

static void fields_agree_with_the_list_of_tensors(void **state)
{
    (void)state;
    for (int i = 0; i < DT_FAMILY_COUNT; i++) {
        const struct dt_family_descriptor *f = family_of(i);
        const struct dt_model_config c = {.family = i};
        bool fused = find(f, DT_ROLE_QKV_WEIGHT), biased = f->biases == DT_BIAS_ALL;
        bool ends = f->norm_placement == DT_NORM_PLACEMENT_BOTH;
        assert_int_equal(find(f, DT_ROLE_GATE_WEIGHT) != NULL, dt_model_is_gated(&c));
        assert_int_equal(find(f, DT_ROLE_POSITION_EMBEDDING) == NULL,
                         f->positions == DT_POSITION_ROPE);
        assert_int_equal(find(f, DT_ROLE_HEAD_WEIGHT) != NULL, f->tying == DT_TYING_OPTIONAL);
        if (f->qk_norm == DT_QK_NORM_ALWAYS)
            assert_non_null(find(f, DT_ROLE_Q_NORM_WEIGHT));
        if (f->norm != DT_NORM_LAYER)
            assert_null(find(f, DT_ROLE_FINAL_NORM_BIAS));
        assert_int_equal(find(f, DT_ROLE_NORM1_OUTPUT_WEIGHT) != NULL, ends);
        assert_int_equal(find(f, DT_ROLE_NORM2_OUTPUT_WEIGHT) != NULL, ends);
        assert_int_equal(always(f, i, fused ? DT_ROLE_QKV_BIAS : DT_ROLE_Q_BIAS), biased);
        assert_int_equal(always(f, i, DT_ROLE_PROJECTION_BIAS), biased);
        assert_int_equal(always(f, i, DT_ROLE_UP_BIAS), biased);
        assert_int_equal(always(f, i, DT_ROLE_DOWN_BIAS), biased);
        assert_false(fused && f->kv_heads == DT_KV_HEADS_GROUPED);
    }
}

/* 6 FLOPs per parameter of a linear layer, and attention, computed by hand. */
static void flops_follow_from_the_list_of_tensors(void **state)
{
    (void)state;
    struct dt_model_config c = {.vocab_size = 100,
                                .max_seq_len = 16,
                                .hidden_size = 8,
                                .num_layers = 3,
                                .num_heads = 4,
                                .num_kv_heads = 2,
                                .intermediate_size = 20};
    double attention = 12 * 3 * 8 * 10;
    c.family = DT_FAMILY_LLAMA;
    assert_true(dt_model_flops_per_token(&c, 10, 0.15) ==
                6 * (3 * (2 * 64 + 2 * 32 + 3 * 160) + 800) + attention / 2);
    c.num_kv_heads = 4;
    c.family = DT_FAMILY_GPT2;
    assert_true(dt_model_flops_per_token(&c, 10, 0.15) ==
                6 * (3 * (4 * 64 + 2 * 160) + 800) + attention / 2);
    c.family = DT_FAMILY_BERT;
    assert_true(dt_model_flops_per_token(&c, 10, 0.15) ==
                6 * (3 * (4 * 64 + 2 * 160) + 0.15 * (800 + 64)) + attention);
    assert_true(dt_model_flops_per_token(&c, 10, 0.5) ==
                6 * (3 * (4 * 64 + 2 * 160) + 0.5 * (800 + 64)) + attention);
}

/* Two of three layers have a window of 4 of 10 tokens; heads of 3 channels at width 8. */
static void flops_count_the_keys_inside_windows(void **state)
{
    (void)state;
    struct dt_model_config c = {.family = DT_FAMILY_LLAMA,
                                .vocab_size = 100,
                                .max_seq_len = 16,
                                .hidden_size = 8,
                                .num_layers = 3,
                                .num_heads = 4,
                                .num_kv_heads = 2,
                                .head_dim = 3,
                                .intermediate_size = 20,
                                .sliding_window = 4,
                                .global_every = 3,
                                .global_first = 2};
    double products = 6 * (3 * (2 * 96 + 2 * 48 + 3 * 160) + 800);
    assert_true(dt_model_keys_seen(&c, 0, 10) == 4 - 0.8 && dt_model_keys_seen(&c, 2, 10) == 5);
    assert_true(fabs(dt_model_mean_keys_seen(&c, 10) - (2 * 3.2 + 5) / 3) < 1e-12);
    assert_true(fabs(dt_model_flops_per_token(&c, 10, 0.15) - products - 12 * 12 * (2 * 3.2 + 5)) <
                1e-9);
    assert_true(dt_model_keys_seen(&c, 0, 4) == 2 && dt_model_keys_seen(&c, 0, 3) == 1.5);
    c.family = DT_FAMILY_BERT;
    assert_true(dt_model_keys_seen(&c, 0, 10) == 4 - 0.4 && dt_model_keys_seen(&c, 2, 10) == 10);
    assert_true(dt_model_keys_seen(&c, 0, 2) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_family_has_a_name_and_a_descriptor),
        cmocka_unit_test(fields_agree_with_the_list_of_tensors),
        cmocka_unit_test(flops_follow_from_the_list_of_tensors),
        cmocka_unit_test(flops_count_the_keys_inside_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
