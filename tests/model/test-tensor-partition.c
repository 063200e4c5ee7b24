/* SPDX-License-Identifier: MIT */
/* Tensor-parallel shards: together they have every element of the model once. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "model/table.h"

static struct dt_model_config config_of(enum dt_family family, long heads, long kv_heads)
{
    struct dt_error err;
    struct dt_model_config c = {
        .family = family,
        .vocab_size = 53,
        .max_seq_len = 12,
        .hidden_size = 4 * heads,
        .num_layers = 3,
        .num_heads = heads,
        .num_kv_heads = kv_heads,
        .intermediate_size = 37,
        .qk_norm = family == DT_FAMILY_LLAMA,
        .rope_theta = family == DT_FAMILY_LLAMA ? 100 : 0,
        .tie_word_embeddings = family != DT_FAMILY_LLAMA,
    };
    assert_int_equal(dt_model_config_check(&c, "model", &err), 0);
    assert_int_equal(dt_tensor_partition_check(&c, 4, "model", &err), 0);
    return c;
}

static void range_is(struct dt_range range, int64_t first, int64_t count)
{
    assert_int_equal(range.first, first);
    assert_int_equal(dt_range_count(range), count);
}

static void query_heads_stay_with_their_kv_heads(void **state)
{
    (void)state;
    struct dt_model_config ten = config_of(DT_FAMILY_LLAMA, 10, 5);
    range_is(dt_tensor_partition_of(&ten, 0, 2).kv_heads, 0, 2);
    range_is(dt_tensor_partition_of(&ten, 0, 2).heads, 0, 4);
    range_is(dt_tensor_partition_of(&ten, 1, 2).kv_heads, 2, 3);
    range_is(dt_tensor_partition_of(&ten, 1, 2).heads, 4, 6);
    range_is(dt_tensor_partition_of(&ten, 1, 2).key_holders, 1, 1);
    struct dt_model_config few = config_of(DT_FAMILY_LLAMA, 10, 2); /* rank 0; ranks 1 and 2 */
    range_is(dt_tensor_partition_of(&few, 0, 3).kv_heads, 0, 1);
    range_is(dt_tensor_partition_of(&few, 0, 3).heads, 0, 5);
    range_is(dt_tensor_partition_of(&few, 0, 3).key_holders, 0, 1);
    range_is(dt_tensor_partition_of(&few, 1, 3).kv_heads, 1, 1);
    range_is(dt_tensor_partition_of(&few, 1, 3).heads, 5, 2);
    range_is(dt_tensor_partition_of(&few, 2, 3).heads, 7, 3);
    range_is(dt_tensor_partition_of(&few, 2, 3).key_holders, 1, 2);
    struct dt_model_config one = config_of(DT_FAMILY_LLAMA, 6, 1);
    range_is(dt_tensor_partition_of(&one, 3, 4).kv_heads, 0, 1);
    range_is(dt_tensor_partition_of(&one, 3, 4).heads, 4, 2);
    range_is(dt_tensor_partition_of(&one, 3, 4).key_holders, 0, 4);
}

/* Counts the shards that own each element of each tensor. */
static void count_elements(const struct dt_table *t, const struct dt_table *whole, int *times)
{
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i], *all = &whole->params[i];
        int64_t here = 0;
        assert_string_equal(p->name, all->name);
        assert_int_equal(p->full[0], all->shape[0]);
        assert_int_equal(p->full[1], all->shape[1]);
        for (int64_t r = 0; r < dt_param_runs(p); r++) {
            struct dt_param_run run = dt_param_run(p, r);
            assert_int_equal(run.here, here);
            here += run.count;
            assert_true(run.there >= 0 && run.there + run.count <= all->count);
            for (int64_t e = 0; p->leads && e < run.count; e++)
                times[all->offset + run.there + e]++;
        }
        assert_int_equal(here, p->count);
    }
}

/* Every element has the initial value of the whole model. */
static void compare_values(const struct dt_table *t, const struct dt_table *whole)
{
    float *own = dt_alloc((size_t)t->elements, sizeof *own);
    float *all = dt_alloc((size_t)whole->elements, sizeof *all);
    dt_table_initialize(t, 7, own);
    dt_table_initialize(whole, 7, all);
    for (int i = 0; i < t->count; i++)
        for (int64_t r = 0; r < dt_param_runs(&t->params[i]); r++) {
            struct dt_param_run run = dt_param_run(&t->params[i], r);
            assert_memory_equal(own + t->params[i].offset + run.here,
                                all + whole->params[i].offset + run.there,
                                (size_t)run.count * sizeof *own);
        }
    free(own), free(all);
}

static void check_config(const struct dt_model_config *config, int tp_size)
{
    struct dt_table whole, t;
    struct dt_model_part part = DT_MODEL_PART_WHOLE;
    dt_table_init(&whole, config, NULL);
    int *times = dt_alloc((size_t)whole.elements, sizeof *times);
    part.tp_size = tp_size;
    for (part.tp_rank = 0; part.tp_rank < tp_size; part.tp_rank++) {
        dt_table_init(&t, config, &part);
        assert_int_equal(t.count, whole.count);
        assert_int_equal(t.parameters, whole.parameters);
        count_elements(&t, &whole, times);
        compare_values(&t, &whole);
        dt_table_release(&t);
    }
    for (int i = 0; i < whole.count; i++)
        for (int64_t e = 0; e < whole.params[i].count; e++)
            if (times[whole.params[i].offset + e] != 1)
                fail_msg("%s: element %d has %d owners, expected 1", whole.params[i].name, (int)e,
                         times[whole.params[i].offset + e]);
    free(times);
    dt_table_release(&whole);
}

static void shards_together_are_the_whole_model(void **state)
{
    (void)state;
    const struct dt_model_config configs[] = {
        config_of(DT_FAMILY_GPT2, 5, 5),  config_of(DT_FAMILY_LLAMA, 10, 5),
        config_of(DT_FAMILY_LLAMA, 6, 2), config_of(DT_FAMILY_LLAMA, 4, 1),
        config_of(DT_FAMILY_BERT, 6, 6),  config_of(DT_FAMILY_DISTILBERT, 4, 4),
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        for (int tp_size = 1; tp_size <= 4; tp_size++)
            check_config(&configs[i], tp_size);
}

/* Shapes of linear layers, and the three column ranges of the fused QKV projection. */
static void linear_pairs_are_column_then_row_parallel(void **state)
{
    (void)state;
    struct dt_model_config c = config_of(DT_FAMILY_GPT2, 5, 5),
                           l = config_of(DT_FAMILY_LLAMA, 6, 2);
    struct dt_model_part part = DT_MODEL_PART_WHOLE;
    struct dt_table t;
    part.tp_size = 2, part.tp_rank = 1;
    dt_table_init(&t, &c, &part);
    const struct dt_param *qkv = dt_table_find(&t, DT_ROLE_QKV_WEIGHT, 1);
    assert_int_equal(qkv->shape[0], 20);
    assert_int_equal(qkv->shape[1], 3 * 12);
    assert_int_equal(qkv->range_count, 3);
    for (int i = 0; i < 3; i++)
        range_is(qkv->ranges[i], 20 * i + 8, 12);
    const struct dt_param *out = dt_table_find(&t, DT_ROLE_PROJECTION_WEIGHT, 1);
    assert_int_equal(out->shape[0], 12);
    assert_int_equal(out->shape[1], 20);
    assert_false(dt_table_find(&t, DT_ROLE_PROJECTION_BIAS, 1)->leads);
    range_is(dt_table_find(&t, DT_ROLE_TOKEN_EMBEDDING, -1)->ranges[0], 28, 25);
    dt_table_release(&t);
    dt_table_init(&t, &l, &part);
    assert_int_equal(dt_table_find(&t, DT_ROLE_K_WEIGHT, 0)->shape[0], 4);
    assert_int_equal(dt_table_find(&t, DT_ROLE_DOWN_WEIGHT, 0)->shape[1], 19);
    assert_true(dt_table_find(&t, DT_ROLE_Q_NORM_WEIGHT, 0)->partial);
    assert_false(dt_table_find(&t, DT_ROLE_K_WEIGHT, 0)->partial);
    dt_table_release(&t);
}

static void empty_shards_are_refused(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_model_config c = config_of(DT_FAMILY_LLAMA, 6, 2);
    assert_int_equal(dt_tensor_partition_check(&c, 6, "here", &err), 0);
    assert_int_equal(dt_tensor_partition_check(&c, 7, "here", &err), DT_EINVALID);
    assert_string_equal(err.text, "here cannot be cut into 7 slices: num_heads is 6");
    assert_int_equal(dt_tensor_partition_check(&c, 1000, "here", &err), DT_EINVALID);
    c.family = DT_FAMILY_OLMO2;
    c.qk_norm = true;
    assert_int_equal(dt_tensor_partition_check(&c, 1, "here", &err), 0);
    assert_int_equal(dt_tensor_partition_check(&c, 2, "here", &err), 0);
    assert_int_equal(dt_tensor_partition_check(&c, 3, "here", &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "num_kv_heads is 2, and the norms of queries and keys with "
                                     "olmo2 span all heads"));
}

/* The rank's parts, and how many tokens each has. */
static void parts_are(const struct dt_model_config *c, int tp_rank, int tp_size, int heads,
                      int inner, int tokens, int64_t first_end)
{
    struct dt_tensor_partition p = dt_tensor_partition_of(c, tp_rank, tp_size);
    assert_int_equal(p.head_parts, heads);
    assert_int_equal(p.inner_parts, inner);
    assert_int_equal(p.token_parts, tokens);
    assert_int_equal(p.token_ends[0], first_end);
    assert_int_equal(p.token_ends[tokens - 1], dt_range_count(p.tokens));
}

/* Every rank has whole parts, or its sums are not divided. */
static void ranks_have_whole_parts(void **state)
{
    (void)state;
    struct dt_model_config c = config_of(DT_FAMILY_GPT2, 12, 12); /* 53 tokens: parts of 7 */
    c.intermediate_size = 48;
    parts_are(&c, 0, 1, 4, 8, 8, 7);
    parts_are(&c, 1, 2, 2, 4, 4, 7);
    range_is(dt_tensor_partition_of(&c, 1, 2).tokens, 28, 25);
    parts_are(&c, 3, 4, 1, 2, 2, 7);
    range_is(dt_tensor_partition_of(&c, 3, 4).tokens, 42, 11);
    parts_are(&c, 0, 3, 1, 1, 1, 17);
    parts_are(&c, 7, 8, 1, 1, 1, 4);
    assert_int_equal(dt_tensor_partition_most_invariant(&c), 4);
    c.vocab_size = 9; /* 5 parts of up to 2 tokens are not enough for 4 ranks */
    range_is(dt_tensor_partition_of(&c, 3, 4).tokens, 6, 3);
    parts_are(&c, 0, 1, 4, 8, 8, 2);
    parts_are(&c, 1, 2, 2, 4, 4, 1);
    parts_are(&c, 3, 4, 1, 2, 1, 3);
    c.intermediate_size = 37;
    assert_int_equal(dt_tensor_partition_most_invariant(&c), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_have_whole_parts),
        cmocka_unit_test(query_heads_stay_with_their_kv_heads),
        cmocka_unit_test(shards_together_are_the_whole_model),
        cmocka_unit_test(linear_pairs_are_column_then_row_parallel),
        cmocka_unit_test(empty_shards_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
