/* SPDX-License-Identifier: MIT */
/* Whole steps of training on the cuda engine in emulation follow the cpu engine's. */
#include "train/small-run.h"

#include <math.h>

#include "model/forward-backward.h"

#define STEPS 6

static const char *const emulated = "cuda-emulated";

/* Losses of the first steps on both engines, from the same parameters and data. */
static void follow(const struct dt_settings *settings, double tolerance)
{
    double want[STEPS] = {0}, got[STEPS] = {0};
    static int number;
    char *name = dt_asprintf("follow-%d", number++), *emulated_name = dt_asprintf("%s-cuda", name);
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
    for (enum dt_dtype type = DT_DTYPE_BF16; type <= DT_DTYPE_F16; type++) {
        struct dt_settings s = small_settings();
        s.model.hidden_size = 128;
        s.model.num_layers = 1;
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
    s.training.optimizer = DT_OPTIMIZER_KIND_SGD;
    follow(&s, 1e-5);
    s.training.optimizer = DT_OPTIMIZER_KIND_MUON;
    follow(&s, 1e-4);
}

/* Gradients of 96 tokens, of whose logits head_rows exist at a time. */
static float *gradients_of(const char *engine, int64_t head_rows, size_t *count)
{
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_model *m;
    struct dt_workspace *w;
    struct dt_batch batch;
    struct dt_flat flat = {0};
    uint32_t ids[4 * 25];
    for (uint32_t i = 0; i < 4 * 25; i++)
        ids[i] = i * i % 50;
    assert_int_equal(dt_settings_resolve(&s, 50, "test", &err), 0);
    assert_int_equal(dt_device_open(&dev, engine, 1, &err), 0);
    assert_int_equal(dt_model_new(&m, dev, &s.model, DT_DTYPE_F32, &err), 0);
    dt_model_initialize(m, 3);
    const struct dt_workspace_shape shape = {4, 24, .training = true, .head_rows = head_rows};
    assert_int_equal(dt_workspace_new(&w, m, &shape, &err), 0);
    dt_batch_init(&batch, 4, 24);
    dt_batch_next_token(&batch, ids, 4, 24);
    *count = (size_t)m->table.elements;
    float *sums = dev->ops->allocate(dev, *count * sizeof *sums);
    float *host = dt_alloc(*count, sizeof *host);
    dt_flat_set(&flat, &m->table, DT_DTYPE_F32, sums);
    dt_model_backward(m, w, &batch, &flat, &(struct dt_pass){.scale = 1});
    dev->ops->download(dev, host, sums, *count * sizeof *sums);
    dev->ops->release(dev, sums, *count * sizeof *sums);
    dt_flat_release(&flat);
    dt_batch_release(&batch);
    dt_workspace_free(w);
    dt_model_free(m);
    dt_device_close(dev);
    return host;
}

static void the_head_in_chunks_follows_the_cpu(void **state)
{
    (void)state;
    size_t count;
    double apart = 0, norm = 0;
    float *want = gradients_of("cpu", 0, &count), *got = gradients_of(emulated, 40, &count);
    for (size_t i = 0; i < count; i++) {
        apart += pow((double)got[i] - (double)want[i], 2);
        norm += pow((double)want[i], 2);
    }
    assert_true(norm > 0 && sqrt(apart / norm) < 1e-5);
    free(want), free(got);
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
        cmocka_unit_test(the_head_in_chunks_follows_the_cpu),
        cmocka_unit_test(a_run_repeats_itself),
    };
    setenv("CUDA_EMULATOR", "aligned", 0); /* logits of 50 tokens suit tensor cores too */
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
