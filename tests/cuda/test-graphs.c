/* SPDX-License-Identifier: MIT */
/* What the cuda engine computes by graphs has the bits of what it computes launch by launch,
 * whatever changes from one launch of a graph to the next. */
#include "train/small-run.h"

#include <math.h>

#include "model/decode.h"
#include "model/forward-backward.h"

#define STEPS 6

static const char *const engine = "cuda-emulated";

static void use_graphs(bool use)
{
    assert_int_equal(setenv("DT_CUDA_GRAPH", use ? "1" : "0", 1), 0);
}

/* Steps of training end with the same parameters. */
static void same_parameters(const struct dt_settings *s)
{
    static int number;
    uint64_t hashes[2];
    for (int graphs = 0; graphs < 2; graphs++) {
        char *name = dt_asprintf("run-%d", number++);
        use_graphs(graphs);
        hashes[graphs] = train(engine, 1, name, "none", STEPS, NULL, s);
        free(name);
    }
    assert_true(hashes[0] == hashes[1]);
}

static struct dt_settings few_tokens(void)
{
    struct dt_settings s = small_settings();
    s.model.max_seq_len = 8;
    s.training.batch_size = 2;
    return s;
}

/* Learning rates and the place of the batch, which dropout falls by, are others in each step. */
static void training_with_dropout_has_the_same_bits(void **state)
{
    (void)state;
    struct dt_settings s = few_tokens();
    s.model.dropout = s.model.attention_dropout = 0.1;
    same_parameters(&s);
}

/* The loss scale falls where gradients are not finite. */
static void fp16_has_the_same_bits_as_its_loss_scale_changes(void **state)
{
    (void)state;
    struct dt_settings s = few_tokens();
    s.training.precision = DT_DTYPE_F16;
    s.training.gradient_accumulation_steps = 1;
    setenv("DT_DEBUG_POISON", "4", 1);
    same_parameters(&s);
    unsetenv("DT_DEBUG_POISON");
}

/* --- passes and decoding ---------------------------------------------------------------------- */
struct subject {
    struct dt_device *dev;
    struct dt_model *model;
};

static struct subject open_subject(bool graphs)
{
    struct subject s;
    struct dt_settings settings = small_settings();
    use_graphs(graphs);
    assert_int_equal(dt_settings_resolve(&settings, 50, "test", &err), 0);
    assert_int_equal(dt_device_open(&s.dev, engine, 1, &err), 0);
    assert_int_equal(dt_model_new(&s.model, s.dev, &settings.model, DT_DTYPE_F32, &err), 0);
    dt_model_initialize(s.model, 3);
    return s;
}

static void close_subject(struct subject *s)
{
    dt_model_free(s->model);
    dt_device_close(s->dev);
}

/* Losses of passes, with the number of sequences of each, of 8 tokens. */
static void pass_losses(const struct subject *s, const int *sequences, double *losses, int passes)
{
    struct dt_workspace *w;
    struct dt_batch batch;
    struct dt_flat flat = {0};
    const struct dt_workspace_shape shape = {3, 8, .training = true};
    size_t bytes = (size_t)s->model->table.elements * sizeof(float);
    float *gradients = s->dev->ops->allocate(s->dev, bytes);
    assert_int_equal(dt_workspace_new(&w, s->model, &shape, &err), 0);
    dt_batch_init(&batch, 3, 8);
    dt_flat_set(&flat, &s->model->table, DT_DTYPE_F32, gradients);
    for (int i = 0; i < passes; i++) {
        uint32_t ids[3 * 9];
        for (uint32_t j = 0; j < 3 * 9; j++)
            ids[j] = (j * j + (uint32_t)i) % 50;
        dt_batch_next_token(&batch, ids, sequences[i], 8);
        losses[i] = dt_model_backward(s->model, w, &batch, &flat, &(struct dt_pass){.scale = 1});
    }
    losses[passes] = s->dev->ops->sum_squares(s->dev, gradients, s->model->table.elements);
    s->dev->ops->release(s->dev, gradients, bytes);
    dt_flat_release(&flat);
    dt_batch_release(&batch);
    dt_workspace_free(w);
}

static void passes_of_other_shapes_have_the_same_bits(void **state)
{
    (void)state;
    static const int sequences[] = {3, 3, 3, 2, 2, 2, 3};
    double losses[2][8];
    for (int graphs = 0; graphs < 2; graphs++) {
        struct subject s = open_subject(graphs);
        pass_losses(&s, sequences, losses[graphs], 7);
        close_subject(&s);
    }
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
}

enum { TOKENS = 7, VOCABULARY = 50 };

/* Two sequences side by side, of which one begins again. */
static void decode(const struct subject *s, float (*logits)[2 * VOCABULARY])
{
    struct dt_decoder *d;
    const uint32_t prompt[] = {1, 2, 3};
    const int64_t slots[] = {0, 1};
    assert_int_equal(dt_decoder_new(&d, s->model, 2, 16, &err), 0);
    dt_decoder_feed(d, 0, prompt, 3, logits[0]);
    dt_decoder_feed(d, 1, prompt, 2, logits[1]);
    for (uint32_t i = 2; i < TOKENS; i++) {
        const uint32_t ids[] = {i, i + 20};
        if (i == 5)
            dt_decoder_reset(d, 1);
        dt_decoder_step(d, slots, ids, 2, logits[i]);
    }
    dt_decoder_free(d);
}

static void tokens_that_are_decoded_have_the_same_bits(void **state)
{
    (void)state;
    static float logits[2][TOKENS][2 * VOCABULARY];
    for (int graphs = 0; graphs < 2; graphs++) {
        struct subject s = open_subject(graphs);
        decode(&s, logits[graphs]);
        close_subject(&s);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
}

/* --- single ops ------------------------------------------------------------------------------- */
enum { ADDITIONS = 20, MOST = 3000, WIDE = 50304 };

/* y[0 .. n) += x, often enough for a graph. */
static void add_often(struct dt_device *dev, float *y, float *x, int64_t n)
{
    struct dt_tensor to = dt_matrix_of(DT_DTYPE_F32, y, 1, n),
                     from = dt_matrix_of(DT_DTYPE_F32, x, 1, n);
    for (int i = 0; i < ADDITIONS; i++)
        dev->ops->combine(dev, &to, 1, &from, 1);
}

static void launches_of_other_grids_are_followed(void **state)
{
    (void)state;
    static float sums[MOST];
    static const int64_t lengths[] = {10, 10, 3000, 10, 3000};
    struct subject s = open_subject(true);
    const struct dt_ops *ops = s.dev->ops;
    float *x = ops->allocate(s.dev, sizeof sums), *y = ops->allocate(s.dev, sizeof sums);
    for (int i = 0; i < MOST; i++)
        sums[i] = 1;
    ops->upload(s.dev, x, sums, sizeof sums);
    for (int i = 0; i < 5; i++) {
        add_often(s.dev, y, x, lengths[i]);
        ops->download(s.dev, sums, y, sizeof sums);
    }
    for (int i = 0; i < MOST; i++)
        assert_true(sums[i] == (i < 10 ? 5 : 2) * ADDITIONS);
    ops->release(s.dev, x, sizeof sums), ops->release(s.dev, y, sizeof sums);
    close_subject(&s);
}

/* Losses of rows that a block keeps in shared memory: what a launch may take of it is asked for
 * before the launch, which may run after others. */
static void rows_of_other_widths_may_be_put_off(void **state)
{
    (void)state;
    static const int64_t widths[] = {WIDE, 64};
    struct subject s = open_subject(true);
    const struct dt_ops *ops = s.dev->ops;
    const int32_t target = 0;
    void *logits = ops->allocate(s.dev, WIDE * 2), *targets = ops->allocate(s.dev, sizeof target);
    float *losses = ops->allocate(s.dev, 2 * sizeof *losses), found[2];
    for (int i = 0; i < 2; i++) {
        struct dt_tensor x = dt_matrix_of(DT_DTYPE_BF16, logits, 1, widths[i]);
        ops->cross_entropy(s.dev, losses + i, NULL, &x, targets, &(struct dt_cross_entropy){0});
    }
    ops->download(s.dev, found, losses, sizeof found);
    for (int i = 0; i < 2; i++)
        assert_float_equal(found[i], log((double)widths[i]), 1e-4);
    ops->release(s.dev, logits, WIDE * 2), ops->release(s.dev, targets, sizeof target);
    ops->release(s.dev, losses, sizeof found);
    close_subject(&s);
}

static void uploads_and_releases_keep_their_place_among_ops(void **state)
{
    (void)state;
    struct subject s = open_subject(true);
    const struct dt_ops *ops = s.dev->ops;
    float *x = ops->allocate(s.dev, sizeof *x), *y = ops->allocate(s.dev, sizeof *y), sum;
    const float late = 1000;
    for (float value = 1; value <= 4; value++) {
        float *z = ops->allocate(s.dev, sizeof *z);
        ops->upload(s.dev, x, &value, sizeof value);
        add_often(s.dev, y, x, 1);
        add_often(s.dev, z, x, 1);
        ops->release(s.dev, z, sizeof *z);
        add_often(s.dev, y, x, 1);
        ops->upload(s.dev, x, &late, sizeof late);
    }
    ops->download(s.dev, &sum, y, sizeof sum);
    assert_true(sum == 2 * ADDITIONS * (1 + 2 + 3 + 4));
    ops->release(s.dev, x, sizeof *x), ops->release(s.dev, y, sizeof *y);
    close_subject(&s);
}

/* Where the emulator lets the host see memory of the device, and does at once what is put into a
 * stream. */
static void what_was_put_off_is_done_when_it_was_waited_for(void **state)
{
    (void)state;
    const char *how = getenv("CUDA_EMULATOR");
    if (how == NULL || strstr(how, "eager") == NULL)
        skip();
    struct subject s = open_subject(true);
    const struct dt_ops *ops = s.dev->ops;
    const float one = 1;
    float *x = ops->allocate(s.dev, sizeof *x);
    struct dt_tensor all = dt_matrix_of(DT_DTYPE_F32, x, 1, 1);
    ops->upload(s.dev, x, &one, sizeof one);
    ops->zero(s.dev, &all);
    assert_true(*x == 1);
    assert_int_equal(ops->synchronize(s.dev, &err), 0);
    assert_true(*x == 0);
    ops->release(s.dev, x, sizeof *x);
    close_subject(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_with_dropout_has_the_same_bits),
        cmocka_unit_test(fp16_has_the_same_bits_as_its_loss_scale_changes),
        cmocka_unit_test(passes_of_other_shapes_have_the_same_bits),
        cmocka_unit_test(tokens_that_are_decoded_have_the_same_bits),
        cmocka_unit_test(launches_of_other_grids_are_followed),
        cmocka_unit_test(rows_of_other_widths_may_be_put_off),
        cmocka_unit_test(uploads_and_releases_keep_their_place_among_ops),
        cmocka_unit_test(what_was_put_off_is_done_when_it_was_waited_for),
    };
    /* A product that is tuned is another one, and so is its sequence. */
    assert_int_equal(setenv("DT_CUDA_TUNE", "0", 1), 0);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
