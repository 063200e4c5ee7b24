/* SPDX-License-Identifier: MIT */
/* Whole steps of training on the cuda engine in emulation follow the cpu engine's. */
#include "train/small-run.h"

#include <math.h>

#define STEPS 6

static const char *const emulated = "cuda-emulated";

/* Losses of the first steps on both engines, from the same parameters and data. */
static void follow(const struct dt_settings *settings, double tolerance)
{
    double want[STEPS] = {0}, got[STEPS] = {0};
    static int number;
    char *name = dt_format("follow-%d", number++), *emulated_name = dt_format("%s-cuda", name);
    train("cpu", 1, name, "none", STEPS, want, settings);
    train(emulated, 1, emulated_name, "none", STEPS, got, settings);
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance * want[i]))
            fail_msg("step %d: loss %.7f, on the cpu %.7f", i + 1, got[i], want[i]);
    assert_true(want[STEPS - 1] < want[0]);
    free(name), free(emulated_name);
}

static void gpt2_follows_the_cpu(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    s.model.dropout = s.model.attention_dropout = 0.1;
    follow(&s, 1e-5);
}

static void llama_follows_the_cpu(void **state)
{
    (void)state;
    struct dt_settings s = small_llama();
    follow(&s, 1e-5);
}

static void heads_of_64_channels_in_16_bits_follow_the_cpu(void **state)
{
    (void)state;
    for (enum dt_dtype type = DT_BF16; type <= DT_F16; type++) {
        struct dt_settings s = small_settings();
        s.model.hidden_size = 128;
        s.training.precision = (int)type;
        s.training.learning_rate = 1e-3;
        follow(&s, 1e-2);
    }
}

static void clipping_sgd_and_muon_follow_the_cpu(void **state)
{
    (void)state;
    struct dt_settings s = small_llama();
    s.training.grad_clip = 0.1;
    s.training.optimizer = DT_RULE_SGD;
    follow(&s, 1e-5);
    s.training.optimizer = DT_RULE_MUON;
    follow(&s, 1e-4);
}

/* The same run twice has the same bits: no sum depends on the order of threads. */
static void a_run_repeats_itself(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    assert_true(train(emulated, 1, "once", "none", STEPS, NULL, &s) ==
                train(emulated, 1, "again", "none", STEPS, NULL, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_follows_the_cpu),
        cmocka_unit_test(llama_follows_the_cpu),
        cmocka_unit_test(heads_of_64_channels_in_16_bits_follow_the_cpu),
        cmocka_unit_test(clipping_sgd_and_muon_follow_the_cpu),
        cmocka_unit_test(a_run_repeats_itself),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
