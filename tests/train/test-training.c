/* SPDX-License-Identifier: MIT */
/* Training runs over a small data set: their numbers, their independence of
 * threads and of interruptions, and what they refuse. */
#include "train/small-run.h"

#include <math.h>
#include <unistd.h>

#include "base/path.h"
#include "checkpoint/checkpoint.h"
#include "formats/model-directory.h"
#include "io/directory-manifest.h"

/* Trajectories were recorded with cpu-generic; other instruction sets round
 * differently, and agree to a few units of fp32. */
static void check_recorded(const char *name, const struct dt_settings *settings,
                           const double *recorded)
{
    const char *engines[] = {"cpu", "cpu-generic"};
    for (int e = 0; e < 2; e++) {
        double losses[20] = {0};
        char *run = dt_asprintf("recorded-%s-%s", name, engines[e]);
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

static uint64_t train_on_changing_threads(const struct dt_settings *s)
{
    struct dt_device *dev;
    struct dt_training *t;
    struct dt_step_report report;
    assert_int_equal(dt_device_open(&dev, "cpu", 7, &err), 0);
    if (open_run(&t, dev, s, NULL, "none") < 0)
        fail_msg("%s", err.text);
    for (int i = 0; dt_training_step(t, &report, &err) > 0; i++) {
        assert_int_equal(report.threads, dev->threads);
        dt_device_use_threads(dev, 1 + 4 * i % 7);
    }
    uint64_t hash = hash_of(t);
    dt_training_free(t);
    dt_device_close(dev);
    return hash;
}

static void the_number_of_threads_may_change_at_any_step(void **state)
{
    (void)state;
    const struct dt_settings gpt2 = small_settings(), llama = small_llama();
    assert_true(train("cpu", 7, NULL, "none", 99, NULL, &gpt2) == train_on_changing_threads(&gpt2));
    assert_true(train("cpu", 7, NULL, "none", 99, NULL, &llama) ==
                train_on_changing_threads(&llama));
}

static void a_run_that_chooses_its_threads_tries_fewer(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    struct dt_step_report report = {.threads = 2};
    s.training.max_steps = 1000000;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    struct dt_training_options o = options_of(&s, dev);
    dev->chooses_threads = true;
    assert_int_equal(dt_training_new(&t, &o, &err), 0);
    while (report.threads == 2)
        assert_true(dt_training_step(t, &report, &err) > 0);
    assert_int_equal(report.threads, 1);
    uint64_t hash = hash_of(t);
    dt_training_free(t);
    dt_device_close(dev);
    assert_true(hash == train("cpu", 2, NULL, "none", (int)report.step, NULL, &s));
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

static void every_optimizer_is_resumed_and_another_is_refused(void **state)
{
    (void)state;
    for (int i = 1; dt_optimizer_kind_names[i]; i++) {
        struct dt_settings s = small_settings();
        struct dt_device *dev;
        struct dt_training *t;
        char *straight = dt_asprintf("straight-%s", dt_optimizer_kind_names[i]);
        s.training.optimizer = i;
        check_resuming(&s, straight, dt_optimizer_kind_names[i]);
        assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
        s.training.optimizer = DT_OPTIMIZER_KIND_ADAMW;
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
                                        "trainer/optimizer.safetensors",
                                        "trainer/state.json",
                                        "trainer/config.yaml",
                                        "trainer/lineage.txt",
                                        NULL};
    char *directory = dt_asprintf("%s/%s/latest", scratch, run), *text;
    char *path = dt_path_join(directory, "trainer/config.yaml");
    size_t size;
    assert_int_equal(dt_file_read(path, 1 << 20, &text, &size, &err), 0);
    char *line = strstr(text, key);
    assert_non_null(line);
    memset(line - 2, '\n', (size_t)(strchr(line, '\n') - line) + 2);
    assert_int_equal(dt_file_write(path, text, size, &err), 0);
    assert_int_equal(dt_directory_manifest_write(directory, DT_MANIFEST_FILE, files, &err), 0);
    free(text);
    free(path);
    free(directory);
}

/* Makes a run's newest checkpoint one of an older form, whose optimizer.safetensors was
 * compressed. */
static void compress_optimizer(const char *run)
{
    static const char *const files[] = {"config.json",
                                        "model.safetensors",
                                        "trainer/optimizer.safetensors.zst",
                                        "trainer/state.json",
                                        "trainer/config.yaml",
                                        "trainer/lineage.txt",
                                        NULL};
    char *directory = dt_asprintf("%s/%s/latest", scratch, run);
    char *command = dt_asprintf("zstd -q -1 --rm '%s/trainer/optimizer.safetensors'", directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(dt_directory_manifest_write(directory, DT_MANIFEST_FILE, files, &err), 0);
    free(command);
    free(directory);
}

static void a_checkpoint_with_a_compressed_optimizer_is_resumed(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    s.training.save_interval.count = 3;
    uint64_t straight = train("cpu", 2, "straight-of-compressed", "auto", 99, NULL, &s);
    train("cpu", 2, "compressed", "auto", 8, NULL, &s);
    compress_optimizer("compressed");
    assert_true(straight == train("cpu", 2, "compressed", "auto", 99, NULL, &s));
    char *path = dt_path_join(scratch, "compressed/latest/trainer/optimizer.safetensors.zst");
    compress_optimizer("compressed");
    assert_int_equal(truncate(path, 300), 0); /* and so is not what the manifest says */
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    char *latest = dt_path_join(scratch, "compressed/latest");
    assert_true(open_run(&t, dev, &s, "compressed", latest) < 0);
    assert_non_null(strstr(err.text, "optimizer.safetensors.zst"));
    dt_device_close(dev);
    free(latest);
    free(path);
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
        "config.json",        "model.safetensors",   "trainer/optimizer.safetensors",
        "trainer/state.json", "trainer/config.yaml", "trainer/manifest.json"};
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    train("cpu", 2, "damaged", "auto", 99, NULL, NULL);
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = dt_asprintf("%s/damaged/latest/%s", scratch, files[i]), *text;
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

/* The run cannot be resumed, for a reason that names these. */
static void refuses(const char *run, const char *file, const char *reason)
{
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    assert_true(open_run(&t, dev, &s, run, "auto") < 0);
    if (strstr(err.text, file) == NULL || strstr(err.text, reason) == NULL)
        fail_msg("%s", err.text);
    dt_device_close(dev);
}

/* Writes the manifest of a run's newest checkpoint again, without the file left_out. */
static void list_files(const char *run, const char *left_out)
{
    static const char *const all[] = {"config.json", "model.safetensors", "trainer/state.json",
                                      "trainer/optimizer.safetensors", "trainer/config.yaml"};
    const char *files[6] = {NULL};
    char *directory = dt_asprintf("%s/%s/latest", scratch, run);
    for (int i = 0, count = 0; i < 5; i++)
        if (strcmp(all[i], left_out) != 0)
            files[count++] = all[i];
    assert_int_equal(dt_directory_manifest_write(directory, DT_MANIFEST_FILE, files, &err), 0);
    free(directory);
}

static void a_manifest_must_list_every_file_that_a_resume_reads(void **state)
{
    (void)state;
    static const char *const required[] = {"config.json", "model.safetensors", "trainer/state.json",
                                           "trainer/optimizer.safetensors", "trainer/config.yaml"};
    train("cpu", 2, "unlisted", "auto", 99, NULL, NULL);
    for (int i = 0; i < 5; i++) {
        char *reason = dt_asprintf("does not list '%s'", required[i]);
        list_files("unlisted", required[i]);
        refuses("unlisted", "trainer/manifest.json", reason);
        free(reason);
    }
    char *manifest = dt_path_join(scratch, "unlisted/latest/trainer/manifest.json");
    assert_int_equal(dt_file_write(manifest, "{\"files\":{}}", 12, &err), 0);
    refuses("unlisted", "trainer/manifest.json", "does not list 'config.json'");
    list_files("unlisted", "");
    train("cpu", 2, "unlisted", "auto", 99, NULL, NULL);
    free(manifest);
}

/* Reads a file of a run's newest checkpoint; its bytes are the caller's. */
static void read_part(const char *run, const char *file, char **path, char **bytes, size_t *size)
{
    *path = dt_asprintf("%s/%s/latest/%s", scratch, run, file);
    assert_int_equal(dt_file_read(*path, 1 << 24, bytes, size, &err), 0);
}

static void a_state_of_other_parameters_is_refused(void **state)
{
    (void)state;
    char *path, *text;
    size_t size;
    train("cpu", 2, "mixed", "auto", 99, NULL, NULL);
    read_part("mixed", "trainer/state.json", &path, &text, &size);
    char *digit = strstr(text, "\"parameters\"") + strlen("\"parameters\"");
    digit += strcspn(digit, "0123456789abcdef");
    *digit = *digit == '0' ? '1' : '0';
    assert_int_equal(dt_file_write(path, text, size, &err), 0);
    list_files("mixed", "");
    refuses("mixed", "trainer/state.json", "'parameters' is");
    free(text);
    free(path);
}

static void a_negative_second_moment_is_refused(void **state)
{
    (void)state;
    const float negative = -1;
    char *path, *bytes;
    size_t size;
    train("cpu", 2, "negative", "auto", 99, NULL, NULL);
    read_part("negative", "trainer/optimizer.safetensors", &path, &bytes, &size);
    memcpy(bytes + size - 3 * sizeof negative, &negative, sizeof negative);
    assert_int_equal(dt_file_write(path, bytes, size, &err), 0);
    list_files("negative", "");
    refuses("negative", "trainer/optimizer.safetensors",
            "tensor 'transformer.ln_f.bias.second_moment': element 13 is -1");
    free(bytes);
    free(path);
}

static void a_dangling_latest_link_is_an_error(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    char *lost = dt_path_join(scratch, "lost/step-00000020");
    train("cpu", 2, "lost", "auto", 99, NULL, NULL);
    assert_int_equal(dt_file_remove_tree(lost, &err), 0);
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
    s.training.save_interval.count = 10;
    uint64_t hash = train("cpu", 2, "replaced", "auto", 99, NULL, &s);
    char *latest = dt_path_join(scratch, "replaced/latest");
    assert_int_equal(dt_file_replace_symlink("step-00000010", latest, &err), 0);
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
static long norm_step; /* the step at hand, from 0 */

static void squares_or_infinity(struct dt_device *dev, struct dt_exact_sum *sum, const float *x,
                                int64_t n, bool squares)
{
    sound_ops->exact_sum(dev, sum, x, n, squares);
    if (squares && overflows[norm_step] == '1')
        sum->infinities[0]++;
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
    ops.exact_sum = squares_or_infinity;
    dev->ops = &ops;
    if (open_run(t, dev, s, name, "auto") < 0)
        fail_msg("%s", err.text);
    dt_training_facts(*t, &facts);
    norm_step = facts.first_step;
    for (; report.step < most && (rc = dt_training_step(*t, &report, &err)) > 0; norm_step++)
        assert_int_equal(report.skipped > 0, overflows[report.step - 1] == '1');
    dev->ops = sound_ops;
    return rc;
}

static bool has_checkpoint(const char *name, long step)
{
    char *path = dt_asprintf("%s/%s/step-%08ld", scratch, name, step);
    bool found = dt_file_is_directory(path);
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
    s.training.save_interval.count = 4;
    s.training.max_skipped = 2;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(train_overflowing(dev, &s, names[i], steps[i], &t), 1);
        hashes[i] = hash_of(t);
        assert_int_equal(dt_training_save(t, &err), 0);
        dt_training_free(t);
    }
    assert_true(hashes[0] == hashes[1]);
    assert_true(hashes[1] != hashes[2]);
    assert_int_equal(train_overflowing(dev, &s, "skipping", 99, &t), 0);
    uint64_t straight = hash_of(t);
    dt_training_free(t);
    assert_false(has_checkpoint("skipping", 4));
    assert_false(has_checkpoint("skipping", 8));
    assert_true(has_checkpoint("skipping", 12));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(train_overflowing(dev, &s, names[i], 99, &t), 0);
        assert_true(straight == hash_of(t));
        dt_training_free(t);
    }
    dt_device_close(dev);
}

static void a_speed_above_the_measured_peak_has_no_mfu(void **state)
{
    (void)state;
    struct dt_device *dev;
    struct dt_training *t;
    struct dt_step_report report;
    struct dt_settings s = small_settings();
    char *run = dt_path_join(scratch, "slow-peak"), *text;
    size_t size;
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    struct dt_training_options o = options_of(&s, dev);
    o.run = run;
    o.peak = 1; /* operation a second */
    assert_int_equal(dt_training_new(&t, &o, &err), 0);
    assert_int_equal(dt_training_step(t, &report, &err), 1);
    assert_true(isnan(report.mfu));
    char *metrics = dt_path_join(run, "metrics.jsonl");
    assert_int_equal(dt_file_read(metrics, 1 << 20, &text, &size, &err), 0);
    assert_non_null(strstr(text, ",\"mfu\":null"));
    dt_training_free(t);
    dt_device_close(dev);
    free(text);
    free(metrics);
    free(run);
}

static void too_many_skipped_updates_end_the_run(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    overflows = "00001110000000000000";
    s.training.save_interval.count = 2;
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

static void the_ema_follows_the_parameters(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    uint64_t plain = train("cpu", 2, "not-averaged", "none", 99, NULL, &s);
    s.training.ema_decay = 0.9;
    check_resuming(&s, "averaged", "averaged-stopped");
    assert_true(plain == train("cpu", 2, "averaged", "auto", 99, NULL, &s));
    char *paths[] = {dt_path_join(scratch, "averaged/latest/ema"),
                     dt_path_join(scratch, "averaged-stopped/latest/ema"),
                     dt_path_join(scratch, "averaged/latest")};
    struct dt_device *dev;
    struct dt_model *models[3];
    double distance[2] = {0, 0};
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(dt_model_load(&models[i], dev, paths[i], &err), 0);
    assert_memory_equal(models[0]->parameters, models[1]->parameters,
                        (size_t)models[0]->table.elements * sizeof *models[0]->parameters);
    for (int64_t i = 0; i < models[0]->table.elements; i++) {
        distance[0] += fabs((double)models[0]->parameters[i] - (double)models[2]->parameters[i]);
        distance[1] += fabs((double)models[2]->parameters[i]);
    }
    assert_true(distance[0] > 0 && distance[0] < 0.5 * distance[1]);
    for (int i = 0; i < 3; i++) {
        dt_model_free(models[i]);
        free(paths[i]);
    }
    dt_device_close(dev);
}

static void checkpoints_in_the_background_are_the_same(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    s.training.ema_decay = 0.9;
    s.training.save_interval.count = 1;
    s.checkpoint.keep_last = 2;
    uint64_t hash = train("cpu", 2, "foreground", "none", 99, NULL, &s);
    s.checkpoint.background = true;
    assert_true(hash == train("cpu", 2, "background", "none", 99, NULL, &s));
    assert_true(has_checkpoint("background", 19));
    assert_false(has_checkpoint("background", 18));
    char *manifests[2];
    for (int i = 0; i < 2; i++) {
        size_t size;
        char *path = dt_asprintf("%s/%s/step-00000020/model.safetensors", scratch,
                                 i ? "background" : "foreground");
        assert_int_equal(dt_file_read(path, 1 << 24, &manifests[i], &size, &err), 0);
        free(path);
    }
    assert_memory_equal(manifests[0], manifests[1], 1000);
    free(manifests[0]);
    free(manifests[1]);
    assert_true(hash == train("cpu", 2, "background", "auto", 99, NULL, &s));
}

/* A run whose directory is taken away cannot save; it says so at the next step, once. */
static void a_checkpoint_that_fails_in_the_background_is_reported(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    struct dt_step_report report;
    int reports = 0;
    s.checkpoint.background = true;
    s.training.save_interval.count = 5;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    assert_int_equal(open_run(&t, dev, &s, "taken", "none"), 0);
    char *run = dt_path_join(scratch, "taken"), *away = dt_path_join(scratch, "away");
    char *file = dt_path_join(scratch, "taken");
    assert_int_equal(rename(run, away), 0);
    assert_int_equal(dt_file_write(file, "x", 1, &err), 0);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(dt_training_step(t, &report, &err), 1);
        reports += report.save_error.code != DT_OK;
    }
    assert_true(reports >= 1 && reports <= 2);
    assert_int_equal(remove(file), 0);
    assert_int_equal(rename(away, run), 0);
    while (dt_training_step(t, &report, &err) > 0)
        ;
    assert_true(has_checkpoint("taken", 20));
    dt_training_free(t);
    dt_device_close(dev);
    free(run);
    free(away);
    free(file);
}

/* Losses times 50 from a step on: finite, but absurd. */
static long absurd_from, absurd_until, losses_summed;

static void sum_or_absurd(struct dt_device *dev, struct dt_exact_sum *sum, const float *x,
                          int64_t n, bool squares)
{
    long step = squares ? 0 : losses_summed++ / 2 + 1; /* two passes a step */
    for (int i = step >= absurd_from && step < absurd_until ? 50 : 1; i > 0; i--)
        sound_ops->exact_sum(dev, sum, x, n, squares);
}

static void loss_spikes_are_skipped_and_limited(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    struct dt_step_report report = {.step = 0};
    s.training.max_steps = 150;
    s.training.max_skipped = 3;
    s.training.spike_threshold = 8;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    struct dt_ops ops = *dev->ops;
    ops.exact_sum = sum_or_absurd;
    for (int i = 0; i < 3; i++) { /* within the limit; beyond it; without a guard */
        char *name = dt_asprintf("spikes-%d", i);
        s.training.spike_threshold = i == 2 ? 0 : 8;
        absurd_from = 120;
        absurd_until = i == 0 ? 123 : 124;
        losses_summed = 0;
        sound_ops = dev->ops;
        dev->ops = &ops;
        assert_int_equal(open_run(&t, dev, &s, name, "none"), 0);
        int rc;
        while ((rc = dt_training_step(t, &report, &err)) > 0)
            assert_int_equal(report.skip, i < 2 && report.step >= 120 && report.step < 123
                                              ? DT_SKIP_SPIKE
                                              : DT_SKIP_NONE);
        dev->ops = sound_ops;
        assert_int_equal(rc, i == 1 ? DT_EINVALID : 0);
        if (i == 1)
            assert_non_null(strstr(err.text, "are a spike, after 3 skipped updates"));
        dt_training_free(t);
        free(name);
    }
    dt_device_close(dev);
}

/* What is fetched from the device. */
static long waits;

static void waiting_download(struct dt_device *dev, void *to, const void *from, size_t bytes)
{
    waits++;
    sound_ops->download(dev, to, from, bytes);
}

static double waiting_sum_squares(struct dt_device *dev, const float *x, int64_t n)
{
    waits++;
    return sound_ops->sum_squares(dev, x, n);
}

static long waits_of_a_step(long passes)
{
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    struct dt_step_report report;
    char *name = dt_asprintf("waits-%ld", passes);
    s.training.gradient_accumulation_steps = passes;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    struct dt_ops ops = *dev->ops;
    ops.download = waiting_download;
    ops.sum_squares = waiting_sum_squares;
    sound_ops = dev->ops;
    assert_int_equal(open_run(&t, dev, &s, name, "none"), 0);
    assert_int_equal(dt_training_step(t, &report, &err), 1);
    dev->ops = &ops;
    waits = 0;
    assert_int_equal(dt_training_step(t, &report, &err), 1);
    dev->ops = sound_ops;
    dt_training_free(t);
    dt_device_close(dev);
    free(name);
    return waits;
}

/* Once for the losses, once for the squared norms: the device runs ahead otherwise. */
static void a_step_waits_for_the_device_twice(void **state)
{
    (void)state;
    assert_int_equal(waits_of_a_step(1), 2);
    assert_int_equal(waits_of_a_step(4), 2);
}

static void loss_statistics_are_resumed(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    s.training.spike_threshold = 0.1; /* so low that many updates are skipped after step 100 */
    s.training.learning_rate = 1e-7;  /* the loss stays where it is */
    s.training.max_skipped = 100;
    s.training.max_steps = 130;
    s.training.save_interval.count = 115;
    uint64_t straight = train("cpu", 2, "guarded", "none", 200, NULL, &s);
    train("cpu", 2, "guarded-stopped", "auto", 117, NULL, &s);
    assert_true(straight == train("cpu", 2, "guarded-stopped", "auto", 200, NULL, &s));
    s.training.spike_threshold = 0;
    assert_true(straight != train("cpu", 2, "not-guarded", "none", 200, NULL, &s));
}

static void smoothing_and_z_loss_add_to_the_loss(void **state)
{
    (void)state;
    double plain[20], smooth[20], z[20];
    struct dt_settings s = small_settings();
    train("cpu", 2, "plain-loss", "none", 99, plain, &s);
    s.training.label_smoothing = 0.1;
    train("cpu", 2, "smooth-loss", "none", 99, smooth, &s);
    s.training.label_smoothing = 0;
    s.training.z_loss = 1e-2;
    train("cpu", 2, "z-loss", "none", 99, z, &s);
    assert_true(smooth[19] > plain[19] + 0.05);
    assert_true(z[0] > plain[0] + 0.1); /* log 50 squared, times 1e-2 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_steps_have_the_recorded_losses),
        cmocka_unit_test(twenty_steps_of_llama_have_the_recorded_losses),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(the_number_of_threads_may_change_at_any_step),
        cmocka_unit_test(a_run_that_chooses_its_threads_tries_fewer),
        cmocka_unit_test(a_resumed_run_equals_one_never_stopped),
        cmocka_unit_test(every_optimizer_is_resumed_and_another_is_refused),
        cmocka_unit_test(a_run_older_than_a_setting_is_resumed),
        cmocka_unit_test(a_checkpoint_with_a_compressed_optimizer_is_resumed),
        cmocka_unit_test(a_finished_run_does_nothing_more),
        cmocka_unit_test(a_run_refuses_other_settings_and_other_data),
        cmocka_unit_test(a_damaged_checkpoint_is_refused),
        cmocka_unit_test(a_manifest_must_list_every_file_that_a_resume_reads),
        cmocka_unit_test(a_state_of_other_parameters_is_refused),
        cmocka_unit_test(a_negative_second_moment_is_refused),
        cmocka_unit_test(a_dangling_latest_link_is_an_error),
        cmocka_unit_test(a_checkpoint_of_the_same_step_is_replaced),
        cmocka_unit_test(accumulation_equals_one_larger_batch),
        cmocka_unit_test(gradients_are_clipped_to_the_norm),
        cmocka_unit_test(updates_that_are_not_finite_are_skipped),
        cmocka_unit_test(a_speed_above_the_measured_peak_has_no_mfu),
        cmocka_unit_test(too_many_skipped_updates_end_the_run),
        cmocka_unit_test(the_ema_follows_the_parameters),
        cmocka_unit_test(checkpoints_in_the_background_are_the_same),
        cmocka_unit_test(a_checkpoint_that_fails_in_the_background_is_reported),
        cmocka_unit_test(loss_spikes_are_skipped_and_limited),
        cmocka_unit_test(a_step_waits_for_the_device_twice),
        cmocka_unit_test(loss_statistics_are_resumed),
        cmocka_unit_test(smoothing_and_z_loss_add_to_the_loss),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
