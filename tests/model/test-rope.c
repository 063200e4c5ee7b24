/* SPDX-License-Identifier: MIT */
/*
 * RoPE's frequencies are those of transformers, in golden/rope.txt:
 *
 *     build/oracles/bin/python tests/oracles/rope_oracle.py > tests/model/golden/rope.txt
 */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "model/rope.h"

/* A line of the golden file up to its numbers; false at the end. */
static bool read_case(FILE *file, struct dt_model_config *c)
{
    char kind[16];
    *c = (struct dt_model_config){.family = DT_FAMILY_LLAMA, .num_heads = 2};
    if (fscanf(file, "%15s %lf %ld %ld %ld %ld %lf %lf %lf %lf %lf %lf", kind, &c->rope_theta,
               &c->head_dim, &c->rotary_dim, &c->max_seq_len, &c->rope_original_length,
               &c->rope_factor, &c->rope_low_frequency_factor, &c->rope_high_frequency_factor,
               &c->rope_beta_fast, &c->rope_beta_slow, &c->rope_attention_factor) != 12)
        return false;
    while (strcmp(dt_rope_scaling_names[c->rope_scaling], kind) != 0)
        c->rope_scaling++;
    return true;
}

/* Row 1 of the table has the cosines and sines of the frequencies. */
static void check_row(const struct dt_model_config *c, const double *frequencies, double height)
{
    struct dt_model_config two = *c;
    two.rope_original_length = c->rope_original_length ? c->rope_original_length : c->max_seq_len;
    if (c->rope_scaling != DT_ROPE_SCALING_DYNAMIC)
        two.max_seq_len = 2; /* it does not count with an original length */
    int64_t half = c->rotary_dim / 2;
    float *values = dt_alloc((size_t)(two.max_seq_len * c->rotary_dim), sizeof *values);
    dt_rope_fill(&two, DT_ROPE_TABLE_GLOBAL, values);
    for (int64_t j = 0; j < half; j++) {
        const float *row = values + c->rotary_dim;
        assert_float_equal(values[j], (float)height, 1e-6);
        assert_true(values[half + j] == 0);
        assert_float_equal(row[j], (float)(height * cos(frequencies[j])), 2e-6);
        assert_float_equal(row[half + j], (float)(height * sin(frequencies[j])), 2e-6);
    }
    free(values);
}

static void frequencies_are_those_of_transformers(void **state)
{
    (void)state;
    FILE *file = fopen("tests/model/golden/rope.txt", "r");
    struct dt_model_config c;
    int count = 0;
    assert_non_null(file);
    for (; read_case(file, &c); count++) {
        double height, frequencies[64], want;
        assert_int_equal(dt_rope_columns(&c, DT_ROPE_TABLE_GLOBAL), c.rotary_dim);
        assert_int_equal(fscanf(file, "%lf", &height), 1);
        dt_rope_frequencies(&c, DT_ROPE_TABLE_GLOBAL, frequencies);
        for (int64_t j = 0; j < c.rotary_dim / 2; j++) {
            assert_int_equal(fscanf(file, "%lf", &want), 1);
            if (!(fabs(frequencies[j] / want - 1) < 2e-6)) /* they are fp32 */
                fail_msg("case %d, pair %d: %.9g instead of %.9g", count, (int)j, frequencies[j],
                         want);
        }
        check_row(&c, frequencies, height);
    }
    assert_int_equal(count, 12);
    assert_true(feof(file));
    fclose(file);
}

/* Gemma 3: a local layer turns by rope_local_theta, without scaling. */
static void local_layers_have_their_own_base(void **state)
{
    (void)state;
    struct dt_model_config c = {.family = DT_FAMILY_LLAMA,
                                .max_seq_len = 8,
                                .hidden_size = 16,
                                .num_heads = 2,
                                .rope_theta = 1e6,
                                .rope_local_theta = 10000,
                                .rope_scaling = DT_ROPE_SCALING_LINEAR,
                                .rope_factor = 8,
                                .sliding_window = 4,
                                .global_every = 3,
                                .global_first = 2};
    double global[4], local[4];
    for (int layer = 0; layer < 6; layer++)
        assert_int_equal(dt_rope_table_of(&c, layer),
                         layer % 3 == 2 ? DT_ROPE_TABLE_GLOBAL : DT_ROPE_TABLE_LOCAL);
    dt_rope_frequencies(&c, DT_ROPE_TABLE_GLOBAL, global);
    dt_rope_frequencies(&c, DT_ROPE_TABLE_LOCAL, local);
    assert_true(fabs(global[2] - 1e-3 / 8) < 1e-15 && fabs(local[2] - 1e-2) < 1e-15);
    c.rope_local_theta = 0;
    assert_int_equal(dt_rope_columns(&c, DT_ROPE_TABLE_LOCAL), 0);
    assert_int_equal(dt_rope_table_of(&c, 0), DT_ROPE_TABLE_GLOBAL);
}

/* SmolLM3: every fourth layer has no positions. */
static void layers_may_have_no_rope(void **state)
{
    (void)state;
    struct dt_model_config c = {.family = DT_FAMILY_LLAMA, .hidden_size = 16, .num_heads = 2};
    assert_int_equal(dt_rope_table_of(&c, 3), DT_ROPE_TABLE_GLOBAL);
    c.rope_skip_every = 4;
    for (int layer = 0; layer < 8; layer++)
        assert_int_equal(dt_rope_table_of(&c, layer),
                         layer % 4 == 3 ? DT_ROPE_TABLE_COUNT : DT_ROPE_TABLE_GLOBAL);
    c.family = DT_FAMILY_GPT2;
    assert_int_equal(dt_rope_table_of(&c, 0), DT_ROPE_TABLE_COUNT);
    assert_int_equal(dt_rope_columns(&c, DT_ROPE_TABLE_GLOBAL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_are_those_of_transformers),
        cmocka_unit_test(local_layers_have_their_own_base),
        cmocka_unit_test(layers_may_have_no_rope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
