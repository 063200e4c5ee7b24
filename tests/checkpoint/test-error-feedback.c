/* SPDX-License-Identifier: MIT */
/* Error feedback residuals are restored on a resume. */
#include "test.h"

#include <math.h>

#include "base/path.h"
#include "formats/tensor-file.h"
#include "optim/learning-rate.h"
#include "train/rank-run.h"
#include "train/training-internal.h"

static struct dt_settings settings_of(enum dt_compress compress)
{
    struct dt_settings s = small_settings();
    s.training.batch_size = 1;
    s.training.gradient_accumulation_steps = 5;
    s.training.max_steps = 6;
    s.training.warmup_steps = 2;
    s.training.eval_interval.count = 0;
    s.training.save_interval.count = 3;
    s.distributed.compress = compress;
    if (compress == DT_COMPRESS_TOPK)
        s.distributed.compress_share = 0.05;
    return s;
}

/* Stopped after that number of steps and resumed. */
static void check_resume(const struct dt_settings *s, long most, const char *file)
{
    char *run = dt_path_join(scratch, "stopped");
    assert_int_equal(dt_file_remove_tree(run, &err), 0);
    struct job straight = run_new(2, s);
    uint64_t expected = hash_of_file("new", file);
    run_job(2, s, "stopped", most);
    struct job resumed = run_job(2, s, "stopped", 1000);
    check_same(&straight, &resumed);
    assert_true(expected != 0 && hash_of_file("stopped", file) == expected);
    free(run);
}

static void a_run_resumes_to_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct dt_settings s = settings_of(i % 2 ? DT_COMPRESS_POWERSGD : DT_COMPRESS_TOPK);
        s.checkpoint.background = i / 2;
        check_resume(&s, 4, "trainer/errors.safetensors");
    }
    struct dt_settings s = settings_of(DT_COMPRESS_NONE);
    s.distributed.sync = DT_SYNC_DILOCO;
    s.distributed.local_steps = 3;
    check_resume(&s, 3, "trainer/outer.safetensors");
}

/* The residual of a tensor on one rank, in the checkpoint. */
static float *read_owed(const struct dt_train_state *s, const char *tensor, long dp_rank,
                        int64_t count)
{
    struct dt_tensor_file file;
    int tensors, at = 0;
    char *path = dt_path_join(scratch, "residual/latest/trainer/errors.safetensors");
    char *name = dt_asprintf("%s.error.%ld", tensor, dp_rank);
    struct dt_named_tensor *list = dt_snapshot_tensors(s, DT_SNAPSHOT_ERROR_FEEDBACK, 5, &tensors);
    float *values = dt_alloc((size_t)count, sizeof *values);
    struct dt_error error;
    while (at < tensors && strcmp(list[at].name, name) != 0)
        at++;
    assert_int_equal(dt_tensor_file_open(&file, path, list, tensors, false, &error), 0);
    assert_int_equal(dt_tensor_file_read(&file, at, 0, count, values, &error), 0);
    dt_tensor_file_close(&file);
    free(path), free(name), free(list);
    return values;
}

/* From five ranks to two: rank i loads the residuals of i, i + 2 and i + 4. */
static void check_residual(struct dt_comm *world, void *context)
{
    struct dt_device *dev;
    struct dt_error error;
    int owing = 0, rank = dt_comm_rank(world);
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &error), 0);
    struct dt_training *t = open_rank(context, world, dev);
    const struct dt_table *table = &t->model->table;
    for (int i = 0; i < table->count; i++) {
        const struct dt_param *p = &table->params[i];
        const float *errors = t->state.compression.residual + p->offset;
        float *sum = read_owed(&t->state, p->name, rank, p->count);
        for (int r = rank + 2; r < 5; r += 2) {
            float *more = read_owed(&t->state, p->name, r, p->count);
            for (int64_t k = 0; k < p->count; k++)
                sum[k] = more[k] + sum[k];
            free(more);
        }
        assert_memory_equal(errors, sum, (size_t)p->count * sizeof *sum);
        for (int64_t k = 0; k < p->count; k++)
            owing += sum[k] != 0;
        free(sum);
    }
    assert_true(owing > table->elements / 2);
    dt_training_free(t);
    dt_device_close(dev);
}

static void another_number_of_ranks_keeps_the_sum_of_residuals(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct job job = {.name = "residual",
                          .settings = settings_of(i ? DT_COMPRESS_POWERSGD : DT_COMPRESS_TOPK)};
        char *run = dt_path_join(scratch, "residual");
        assert_int_equal(dt_file_remove_tree(run, &err), 0);
        run_job(5, &job.settings, "residual", 3);
        run_ranks(2, check_residual, &job);
        free(run);
    }
}

/* NaN in the second step only. */
static void nan_gradients_leave_the_residual_unchanged(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct dt_settings s = settings_of(i ? DT_COMPRESS_POWERSGD : DT_COMPRESS_TOPK);
        s.training.max_skipped = 1;
        setenv("DT_DEBUG_POISON", "2", 1);
        struct job job = run_new(2, &s);
        unsetenv("DT_DEBUG_POISON");
        assert_string_equal(job.error, "");
        assert_true(isnan(job.norms[1]) && isfinite(job.norms[2]) && isfinite(job.norms[5]));
    }
}

/* All residuals after that number of steps; owned by the caller. */
static float *residual_after(struct dt_settings s, long steps, size_t *count)
{
    char *path = dt_path_join(scratch, "new/latest/trainer/errors.safetensors"), *file;
    uint64_t header;
    size_t size;
    s.training.max_steps = steps;
    run_new(2, &s);
    assert_int_equal(dt_file_read(path, SIZE_MAX - 1, &file, &size, &err), 0);
    memcpy(&header, file, sizeof header);
    *count = (size - sizeof header - header) / sizeof(float);
    float *residual = dt_alloc(*count, sizeof *residual);
    memcpy(residual, file + sizeof header + header, *count * sizeof *residual);
    free(file), free(path);
    return residual;
}

/* An overflow halves the loss scale, and so the residual. */
static void the_residual_follows_the_loss_scale(void **state)
{
    (void)state;
    struct dt_settings s = settings_of(DT_COMPRESS_TOPK);
    size_t count, other, owing = 0;
    s.training.precision = DT_DTYPE_F16;
    s.training.schedule = DT_LR_SCHEDULE_CONSTANT;
    s.training.warmup_steps = 1;
    setenv("DT_DEBUG_POISON", "2", 1);
    float *before = residual_after(s, 1, &count), *after = residual_after(s, 2, &other);
    unsetenv("DT_DEBUG_POISON");
    assert_int_equal(count, other);
    for (size_t i = 0; i < count; i++) {
        assert_true(after[i] == before[i] / 2);
        owing += before[i] != 0;
    }
    assert_true(owing > count / 2);
    free(before), free(after);
}

/* Whether any update of the run was skipped. */
static bool has_skipped(void)
{
    char *path = dt_path_join(scratch, "new/metrics.jsonl"), *lines;
    size_t size;
    assert_int_equal(dt_file_read(path, SIZE_MAX - 1, &lines, &size, &err), 0);
    bool skipped = strstr(lines, "\"skipped\"") != NULL;
    free(lines), free(path);
    return skipped;
}

/* A spike's gradients are finite, and yet not applied. */
static void a_skipped_step_leaves_the_residual(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct dt_settings s = settings_of(i ? DT_COMPRESS_POWERSGD : DT_COMPRESS_TOPK);
        size_t count, other;
        s.training.schedule = DT_LR_SCHEDULE_CONSTANT;
        s.training.learning_rate = 1e-7; /* the loss stays where it is */
        s.training.spike_threshold = 0.001;
        s.training.save_interval.count = 0;
        s.training.log_interval.count = 1;
        s.training.max_skipped = 100;
        float *before = NULL, *after = residual_after(s, 100, &count);
        bool spike = false;
        for (long steps = 101; steps < 120 && !spike; steps++) {
            free(before), before = after;
            after = residual_after(s, steps, &other);
            assert_int_equal(count, other);
            spike = has_skipped();
        }
        assert_true(spike);
        assert_memory_equal(before, after, count * sizeof *before);
        free(before), free(after);
    }
}

static void slices_are_refused(struct dt_comm *world, void *context)
{
    struct dt_settings s = settings_of(DT_COMPRESS_POWERSGD);
    (void)context;
    s.distributed.tp = 2;
    check_refused(world, &s, "distributed.compress powersgd needs distributed.tp 1");
}

static void tensor_parallel_ranks_have_no_residual_between_them(void **state)
{
    (void)state;
    run_ranks(2, slices_are_refused, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_resumes_to_the_same_bits),
        cmocka_unit_test(another_number_of_ranks_keeps_the_sum_of_residuals),
        cmocka_unit_test(nan_gradients_leave_the_residual_unchanged),
        cmocka_unit_test(a_skipped_step_leaves_the_residual),
        cmocka_unit_test(the_residual_follows_the_loss_scale),
        cmocka_unit_test(tensor_parallel_ranks_have_no_residual_between_them),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
