/* SPDX-License-Identifier: MIT */
/* Training runs over a small data set: their numbers, their independence of
 * threads and of interruptions, and what they refuse. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/inventory.h"
#include "base/rng.h"
#include "model/directory.h"
#include "shard/shard.h"
#include "train/checkpoint.h"
#include "train/training.h"

static struct dt_error err;
static char scratch[] = "/tmp/dt-test-training-XXXXXX";
static char *data_path;

/* Tokens with something to learn: each is the last plus 1, 2 or 3, modulo 50. */
static int write_data(uint64_t key)
{
    struct dt_output out;
    struct dt_shard_writer *w;
    struct dt_rng rng;
    uint32_t ids[6000];
    const struct dt_shard_info info = {.token_bytes = 2,
                                       .vocab_size = 50,
                                       .eot = UINT32_MAX,
                                       .tokenizer = 7,
                                       .provenance = "test\n"};
    dt_rng_init(&rng, key);
    for (int i = 0; i < 6000; i++)
        ids[i] = ((i ? ids[i - 1] : 0) + 1 + dt_rng_below(&rng, 3)) % 50;
    DT_TRY(dt_output_open(&out, data_path, &err));
    DT_TRY(dt_shard_writer_new(&w, &out, &info, 1, &err));
    DT_TRY(dt_shard_write(w, ids, &(struct dt_shard_document){1, 6000, 9000}, &err));
    DT_TRY(dt_shard_writer_finish(w, &err));
    dt_shard_writer_free(w);
    return dt_output_commit(&out, &err);
}

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(scratch) == NULL)
        return -1;
    data_path = dt_path_join(scratch, "data.dts");
    if (write_data(2) == 0)
        return 0;
    print_error("%s\n", err.text);
    return -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(data_path);
    return dt_remove_tree(scratch, &err);
}

static struct dt_settings small_settings(void)
{
    struct dt_settings s;
    memset(&s, 0, sizeof s);
    dt_config_defaults(dt_settings_schema, &s);
    s.model.hidden_size = 16;
    s.model.num_layers = 2;
    s.model.num_heads = 2;
    s.model.max_seq_len = 24;
    s.training.batch_size = 4;
    s.training.gradient_accumulation_steps = 2;
    s.training.max_steps = 20;
    s.training.warmup_steps = 5;
    s.training.learning_rate = 1e-2;
    s.training.log_interval = 1;
    return s;
}

static struct dt_settings small_llama(void)
{
    struct dt_settings s = small_settings();
    s.model.family = DT_LLAMA;
    s.model.num_heads = 4;
    s.model.num_kv_heads = 2;
    s.model.tie_word_embeddings = false;
    return s;
}

static int open_run(struct dt_training **t, struct dt_device *dev, const struct dt_settings *s,
                    const char *name, const char *resume)
{
    char *run = dt_path_join(scratch, name);
    int rc = dt_training_new(t,
                             &(struct dt_training_options){.settings = s,
                                                           .settings_path = "small.yaml",
                                                           .data = data_path,
                                                           .run = run,
                                                           .resume = resume,
                                                           .command_line = "test",
                                                           .device = dev},
                             &err);
    free(run);
    return rc;
}

/* Runs until the end, or for some steps; returns the hash of the parameters. */
static uint64_t train(const char *engine, int threads, const char *name, const char *resume,
                      int most, double *losses, const struct dt_settings *settings)
{
    struct dt_settings s = settings ? *settings : small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    struct dt_step_report report;
    assert_int_equal(dt_device_open(&dev, engine, threads, &err), 0);
    if (open_run(&t, dev, &s, name, resume) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < most && dt_training_step(t, &report, &err) > 0; i++)
        if (losses)
            losses[report.step - 1] = report.loss;
    uint64_t hash = dt_training_hash(t);
    dt_training_free(t);
    dt_device_close(dev);
    return hash;
}

/* Trajectories were recorded with cpu-generic; other instruction sets round
 * differently, and agree to a few units of fp32. */
static void check_recorded(const char *name, const struct dt_settings *settings,
                           const double *recorded)
{
    const char *engines[] = {"cpu", "cpu-generic"};
    for (int e = 0; e < 2; e++) {
        double losses[20] = {0};
        char *run = dt_format("recorded-%s-%s", name, engines[e]);
        train(engines[e], 2, run, "none", 99, losses, settings);
        free(run);
        for (int i = 0; i < 20; i++)
            if (!(fabs(losses[i] - recorded[i]) < 1e-5))
                fail_msg("%s: step %d: loss %.7f, recorded %.7f", engines[e], i + 1, losses[i],
                         recorded[i]);
    }
}

static void twenty_steps_have_the_recorded_losses(void **state)
{
    (void)state;
    static const double recorded[20] = {3.9142653, 3.8947303, 3.8794730, 3.8119756, 3.7119284,
                                        3.6253509, 3.5222043, 3.4338586, 3.3348840, 3.2556422,
                                        3.1637716, 3.0779016, 3.0239300, 2.9829329, 2.9266524,
                                        2.8851955, 2.8578841, 2.8339845, 2.8320248, 2.8038140};
    check_recorded("gpt2", NULL, recorded);
}

static void twenty_steps_of_llama_have_the_recorded_losses(void **state)
{
    (void)state;
    static const double recorded[20] = {3.9156083, 3.8849343, 3.8482657, 3.7865315, 3.7071713,
                                        3.6194510, 3.5314836, 3.4431559, 3.3312389, 3.2587530,
                                        3.1642249, 3.1019291, 3.0365528, 2.9808714, 2.9252819,
                                        2.8906675, 2.8551361, 2.8401511, 2.8318594, 2.8079764};
    struct dt_settings s = small_llama();
    check_recorded("llama", &s, recorded);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    uint64_t one = train("cpu", 1, "one", "none", 99, NULL, NULL);
    assert_true(one == train("cpu", 2, "two", "none", 99, NULL, NULL));
    assert_true(one == train("cpu", 3, "three", "none", 99, NULL, NULL));
    assert_true(one == train("cpu", 7, "seven", "none", 99, NULL, NULL));
    struct dt_settings s = small_llama();
    one = train("cpu", 1, "llama-one", "none", 99, NULL, &s);
    assert_true(one == train("cpu", 2, "llama-two", "none", 99, NULL, &s));
    assert_true(one == train("cpu", 5, "llama-five", "none", 99, NULL, &s));
}

/* A run that is stopped and resumed ends with the same parameters as one that is not. */
static void check_resuming(struct dt_settings *s, const char *straight_name, const char *name)
{
    s->training.save_interval = 3;
    uint64_t straight = train("cpu", 2, straight_name, "auto", 99, NULL, s);
    train("cpu", 2, name, "auto", 8, NULL, s); /* dies two steps after step-6 */
    assert_true(straight == train("cpu", 2, name, "auto", 99, NULL, s));
}

static void a_resumed_run_equals_one_never_stopped(void **state)
{
    (void)state;
    struct dt_settings s = small_settings(), llama = small_llama();
    check_resuming(&llama, "llama-straight", "llama-stopped");
    check_resuming(&s, "straight", "stopped");
    char *metrics = dt_path_join(scratch, "stopped/metrics.jsonl"), *text;
    size_t size, lines = 0;
    assert_int_equal(dt_file_read(metrics, 1 << 20, &text, &size, &err), 0);
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    assert_int_equal(lines, 20); /* steps 7 and 8 were done twice, and stand there once */
    free(metrics);
    free(text);
}

static void every_optimizer_is_resumed_and_no_other_takes_over(void **state)
{
    (void)state;
    for (int i = 1; dt_optimizers[i]; i++) {
        struct dt_settings s = small_settings();
        struct dt_device *dev;
        struct dt_training *t;
        char *straight = dt_format("straight-%s", dt_optimizers[i]);
        s.training.optimizer = i;
        check_resuming(&s, straight, dt_optimizers[i]);
        assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
        s.training.optimizer = DT_RULE_ADAMW;
        assert_true(open_run(&t, dev, &s, straight, "auto") < 0);
        assert_non_null(strstr(err.text, "training.optimizer"));
        dt_device_close(dev);
        free(straight);
    }
}

/* Takes the line of a setting out of the run's configuration, as if it had not been there yet. */
static void forget_setting(const char *run, const char *key)
{
    static const char *const files[] = {"config.json",
                                        "model.safetensors",
                                        "trainer/optimizer.safetensors.zst",
                                        "trainer/state.json",
                                        "trainer/config.yaml",
                                        "trainer/lineage.txt",
                                        NULL};
    char *directory = dt_format("%s/%s/latest", scratch, run), *text;
    char *path = dt_path_join(directory, "trainer/config.yaml");
    size_t size;
    assert_int_equal(dt_file_read(path, 1 << 20, &text, &size, &err), 0);
    char *line = strstr(text, key);
    assert_non_null(line);
    memset(line - 2, '\n', (size_t)(strchr(line, '\n') - line) + 2);
    assert_int_equal(dt_file_write(path, text, size, &err), 0);
    assert_int_equal(dt_inventory_write(directory, DT_MANIFEST_FILE, files, &err), 0);
    free(text);
    free(path);
    free(directory);
}

static void a_run_older_than_a_setting_is_resumed(void **state)
{
    (void)state;
    uint64_t hash = train("cpu", 2, "older", "auto", 99, NULL, NULL);
    forget_setting("older", "num_kv_heads");
    assert_true(hash == train("cpu", 2, "older", "auto", 99, NULL, NULL));
}

static void a_finished_run_does_nothing_more(void **state)
{
    (void)state;
    uint64_t hash = train("cpu", 2, "finished", "auto", 99, NULL, NULL);
    assert_true(hash == train("cpu", 2, "finished", "auto", 99, NULL, NULL));
}

static void a_run_refuses_other_settings_and_other_data(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    train("cpu", 2, "fixed", "auto", 99, NULL, NULL);
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    s.training.learning_rate = 0.5;
    assert_true(open_run(&t, dev, &s, "fixed", "auto") < 0);
    assert_non_null(strstr(err.text, "training.learning_rate"));
    s = small_settings();
    assert_true(open_run(&t, dev, &s, "fixed", "none") < 0);
    assert_non_null(strstr(err.text, "already holds a run"));
    assert_int_equal(write_data(4), 0);
    assert_true(open_run(&t, dev, &s, "fixed", "auto") < 0);
    assert_non_null(strstr(err.text, "trained on other data"));
    assert_int_equal(write_data(2), 0);
    dt_device_close(dev);
}

static void a_damaged_checkpoint_is_refused(void **state)
{
    (void)state;
    static const char *const files[] = {
        "config.json",        "model.safetensors",   "trainer/optimizer.safetensors.zst",
        "trainer/state.json", "trainer/config.yaml", "trainer/manifest.json"};
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    train("cpu", 2, "damaged", "auto", 99, NULL, NULL);
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = dt_format("%s/damaged/latest/%s", scratch, files[i]), *text;
        size_t size;
        assert_int_equal(dt_file_read(path, SIZE_MAX / 2, &text, &size, &err), 0);
        text[size / 2] ^= 4;
        assert_int_equal(dt_file_write(path, text, size, &err), 0);
        assert_true(open_run(&t, dev, &s, "damaged", "auto") < 0);
        assert_non_null(strstr(err.text, "damaged/latest"));
        text[size / 2] ^= 4;
        assert_int_equal(dt_file_write(path, text, size, &err), 0);
        free(text);
        free(path);
    }
    assert_int_equal(open_run(&t, dev, &s, "damaged", "auto"), 0);
    dt_training_free(t);
    dt_device_close(dev);
}

static void a_link_to_a_lost_checkpoint_is_no_new_run(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    char *lost = dt_path_join(scratch, "lost/step-00000020");
    train("cpu", 2, "lost", "auto", 99, NULL, NULL);
    assert_int_equal(dt_remove_tree(lost, &err), 0);
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    assert_true(open_run(&t, dev, &s, "lost", "auto") < 0);
    assert_non_null(strstr(err.text, "lost/latest"));
    dt_device_close(dev);
    free(lost);
}

static void a_checkpoint_of_the_same_step_is_replaced(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    s.training.save_interval = 10;
    uint64_t hash = train("cpu", 2, "replaced", "auto", 99, NULL, &s);
    char *latest = dt_path_join(scratch, "replaced/latest");
    assert_int_equal(dt_replace_symlink("step-00000010", latest, &err), 0);
    assert_true(hash == train("cpu", 2, "replaced", "auto", 99, NULL, &s));
    char target[32] = "";
    assert_true(readlink(latest, target, sizeof target - 1) > 0);
    assert_string_equal(target, "step-00000020");
    assert_true(hash == train("cpu", 2, "replaced", "auto", 99, NULL, &s));
    free(latest);
}

static void accumulation_equals_one_larger_batch(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    double accumulated[20], whole[20];
    train("cpu", 2, "accumulated", "none", 99, accumulated, &s);
    s.training.batch_size = 8;
    s.training.gradient_accumulation_steps = 1;
    train("cpu", 2, "whole", "none", 99, whole, &s);
    for (int i = 0; i < 20; i++)
        assert_true(fabs(accumulated[i] - whole[i]) < 1e-4);
}

static void gradients_are_clipped_to_the_norm(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    s.training.max_steps = 1;
    s.training.warmup_steps = 0;
    s.training.epsilon = 1; /* large against the gradients: a step then follows their size */
    s.training.weight_decay = 0;
    s.training.grad_clip = 0;
    uint64_t free_hash = train("cpu", 2, "free", "none", 9, NULL, &s);
    s.training.grad_clip = 1e6;
    assert_true(free_hash == train("cpu", 2, "loose", "none", 9, NULL, &s));
    s.training.grad_clip = 1e-3;
    assert_true(free_hash != train("cpu", 2, "tight", "none", 9, NULL, &s));
}

/* Gradients that overflow in the steps of a 1. */
static const struct dt_ops *sound_ops;
static const char *overflows;
static long norm_step;

static double sum_squares_or_infinity(struct dt_device *dev, const float *x, int64_t n)
{
    double sum = sound_ops->sum_squares(dev, x, n);
    return overflows[norm_step++] == '1' ? INFINITY : sum;
}

/* Goes on with run name until step most; returns the last result, and the run. */
static int train_overflowing(struct dt_device *dev, const struct dt_settings *s, const char *name,
                             long most, struct dt_training **t)
{
    struct dt_step_report report = {.step = 0};
    struct dt_training_facts facts;
    struct dt_ops ops = *dev->ops;
    int rc = 1;
    sound_ops = dev->ops;
    ops.sum_squares = sum_squares_or_infinity;
    dev->ops = &ops;
    if (open_run(t, dev, s, name, "auto") < 0)
        fail_msg("%s", err.text);
    dt_training_facts(*t, &facts);
    norm_step = facts.first_step;
    while (report.step < most && (rc = dt_training_step(*t, &report, &err)) > 0)
        assert_int_equal(report.skipped > 0, overflows[report.step - 1] == '1');
    dev->ops = sound_ops;
    return rc;
}

static bool has_checkpoint(const char *name, long step)
{
    char *path = dt_format("%s/%s/step-%08ld", scratch, name, step);
    bool found = dt_is_directory(path);
    free(path);
    return found;
}

static void updates_that_are_not_finite_are_skipped(void **state)
{
    (void)state;
    static const char *const names[] = {"until-2", "until-4", "until-5"};
    static const long steps[] = {2, 4, 5};
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    uint64_t hashes[3];
    overflows = "00110001010000000000";
    s.training.save_interval = 4;
    s.training.max_skipped = 2;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(train_overflowing(dev, &s, names[i], steps[i], &t), 1);
        hashes[i] = dt_training_hash(t);
        assert_int_equal(dt_training_save(t, &err), 0);
        dt_training_free(t);
    }
    assert_true(hashes[0] == hashes[1]);
    assert_true(hashes[1] != hashes[2]);
    assert_int_equal(train_overflowing(dev, &s, "skipping", 99, &t), 0);
    uint64_t straight = dt_training_hash(t);
    dt_training_free(t);
    assert_false(has_checkpoint("skipping", 4));
    assert_false(has_checkpoint("skipping", 8));
    assert_true(has_checkpoint("skipping", 12));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(train_overflowing(dev, &s, names[i], 99, &t), 0);
        assert_true(straight == dt_training_hash(t));
        dt_training_free(t);
    }
    dt_device_close(dev);
}

static void too_many_skipped_updates_end_the_run(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    overflows = "00001110000000000000";
    s.training.save_interval = 2;
    s.training.max_skipped = 2;
    s.checkpoint.keep_last = 1;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    for (int i = 0; i < 2; i++) { /* and again from the last checkpoint */
        assert_int_equal(train_overflowing(dev, &s, "overflowing", 99, &t), DT_EINVALID);
        assert_non_null(strstr(err.text, "step 7: "));
        dt_training_free(t);
        assert_true(has_checkpoint("overflowing", 4));
        assert_false(has_checkpoint("overflowing", 6));
    }
    /* One asked to stop among them has not forgotten them, and keeps the one before. */
    assert_int_equal(train_overflowing(dev, &s, "overflowing", 6, &t), 1);
    assert_int_equal(dt_training_save(t, &err), 0);
    dt_training_free(t);
    assert_true(has_checkpoint("overflowing", 4));
    assert_int_equal(train_overflowing(dev, &s, "overflowing", 99, &t), DT_EINVALID);
    assert_non_null(strstr(err.text, "step 7: "));
    dt_training_free(t);
    s.training.max_skipped = 3;
    assert_int_equal(train_overflowing(dev, &s, "overflowing", 99, &t), 0);
    dt_training_free(t);
    dt_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_steps_have_the_recorded_losses),
        cmocka_unit_test(twenty_steps_of_llama_have_the_recorded_losses),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_resumed_run_equals_one_never_stopped),
        cmocka_unit_test(every_optimizer_is_resumed_and_no_other_takes_over),
        cmocka_unit_test(a_run_older_than_a_setting_is_resumed),
        cmocka_unit_test(a_finished_run_does_nothing_more),
        cmocka_unit_test(a_run_refuses_other_settings_and_other_data),
        cmocka_unit_test(a_damaged_checkpoint_is_refused),
        cmocka_unit_test(a_link_to_a_lost_checkpoint_is_no_new_run),
        cmocka_unit_test(a_checkpoint_of_the_same_step_is_replaced),
        cmocka_unit_test(accumulation_equals_one_larger_batch),
        cmocka_unit_test(gradients_are_clipped_to_the_norm),
        cmocka_unit_test(updates_that_are_not_finite_are_skipped),
        cmocka_unit_test(too_many_skipped_updates_end_the_run),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
