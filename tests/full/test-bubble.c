/* SPDX-License-Identifier: MIT */
/* Measures the pipeline bubble: steps of the pipeline executor with ranks as threads, in which
 * attention takes a fixed time and other operations almost none. */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../comm/threads.h"
#include "base/clock.h"
#include "math/rng.h"
#include "parallel/pipeline-executor.h"

#define LAYERS  8
#define LENGTH  7
#define FORWARD 40 /* milliseconds of a layer; twice as many backward */
#define TRIES   20

static const struct dt_ops *sound_ops;
static struct dt_ops slow_ops;

static void wait_milliseconds(long milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}

static void slow_forward(struct dt_device *dev, struct dt_tensor *y, struct dt_tensor *lse,
                         const struct dt_tensor *q, const struct dt_tensor *k,
                         const struct dt_tensor *v, const struct dt_attention *how)
{
    sound_ops->attention_forward(dev, y, lse, q, k, v, how);
    wait_milliseconds(FORWARD);
}

static void slow_backward(struct dt_device *dev, struct dt_tensor *dq, struct dt_tensor *dk,
                          struct dt_tensor *dv, const struct dt_tensor *dy,
                          const struct dt_tensor *y, const struct dt_tensor *lse,
                          const struct dt_tensor *q, const struct dt_tensor *k,
                          const struct dt_tensor *v, const struct dt_attention *how)
{
    sound_ops->attention_backward(dev, dq, dk, dv, dy, y, lse, q, k, v, how);
    wait_milliseconds(2 * FORWARD);
}

struct job {
    struct dt_settings settings;
    int64_t batches;
    double begin[MOST_RANKS], end[MOST_RANKS];
};

static struct job job_of(enum dt_pipeline_schedule schedule, long stages, long chunks,
                         int64_t batches)
{
    return (struct job){
        .settings = {.model = {.vocab_size = 19,
                               .max_seq_len = 8,
                               .hidden_size = 8,
                               .num_layers = LAYERS,
                               .num_heads = 2,
                               .num_kv_heads = 2,
                               .intermediate_size = 32,
                               .layer_norm_epsilon = 1e-5,
                               .initializer_range = 0.1,
                               .tie_word_embeddings = true},
                     .training = {.batch_size = 1,
                                  .sequence_length = LENGTH,
                                  .gradient_accumulation_steps = batches},
                     .distributed = {.pp = stages,
                                     .cp = 1,
                                     .tp = 1,
                                     .schedule = schedule,
                                     .virtual_stages = chunks}},
        .batches = batches,
    };
}

static int fill(void *context, int64_t index, struct dt_batch *batch, struct dt_error *err)
{
    uint32_t ids[LENGTH + 1];
    (void)context, (void)err;
    for (uint32_t i = 0; i <= LENGTH; i++)
        ids[i] = (i + (uint32_t)index) % 19;
    dt_batch_next_token(batch, ids, 1, LENGTH);
    return 0;
}

static const struct dt_flat *gradients(void *context, int64_t index)
{
    (void)index;
    return context;
}

static void loss(void *context, int64_t index, const struct dt_exact_sum *value)
{
    (void)context, (void)index, (void)value;
}

static void time_steps(struct dt_comm *world, struct job *job,
                       struct dt_pipeline_executor *executor, struct dt_flat *flat)
{
    const struct dt_micro_batch_source source = {flat, fill, gradients, loss};
    const struct dt_pass how = {.scale = 1, .seed = 9};
    struct dt_error err;
    int rank = dt_comm_rank(world);
    assert_int_equal(dt_comm_barrier(world, &err), 0);
    job->begin[rank] = dt_clock_now();
    assert_int_equal(dt_pipeline_executor_run(executor, job->batches, &source, &how, &err), 0);
    job->end[rank] = dt_clock_now();
}

static void run_stage(struct dt_comm *world, void *context)
{
    struct job *job = context;
    struct dt_device *dev;
    struct dt_error err;
    struct dt_mesh mesh;
    struct dt_pipeline_executor executor;
    struct dt_flat flat = {0};
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    dev->ops = &slow_ops;
    assert_int_equal(dt_mesh_open(&mesh, world, &job->settings, &err), 0);
    struct dt_model *m = dt_model_plan(dev, &job->settings.model, DT_DTYPE_F32, &mesh.part);
    assert_int_equal(dt_model_allocate(m, &err), 0);
    dt_model_initialize(m, 3);
    assert_int_equal(dt_pipeline_executor_plan(&executor, m, &mesh, &job->settings, &err), 0);
    assert_int_equal(dt_pipeline_executor_allocate(&executor, &err), 0);
    float *values = dt_alloc((size_t)m->table.gradient_elements, sizeof *values);
    dt_flat_set(&flat, &m->table, DT_DTYPE_F32, values);
    time_steps(world, job, &executor, &flat);
    free(values);
    dt_flat_release(&flat);
    dt_pipeline_executor_release(&executor);
    dt_model_free(m);
    dt_mesh_release(&mesh);
    dev->ops = sound_ops;
    dt_device_close(dev);
}

/* The bubble: idle time relative to the compute time of a stage. */
static double measure(struct job *job)
{
    int stages = (int)job->settings.distributed.pp;
    double computing = 3e-3 * FORWARD * LAYERS / stages * (double)job->batches;
    run_ranks(stages, run_stage, job);
    double begin = job->begin[0], end = job->end[0];
    for (int r = 1; r < stages; r++) {
        begin = job->begin[r] < begin ? job->begin[r] : begin;
        end = job->end[r] > end ? job->end[r] : end;
    }
    return (end - begin) / computing - 1;
}

/* Load of the machine can only make the bubble longer, so the best of a few tries counts. */
static void check_bubble(struct job job, const char *name, double expected)
{
    double least = 1e9;
    for (int i = 0; i < TRIES && least > expected + 0.05; i++) {
        double bubble = measure(&job);
        assert_true(bubble > expected - 1e-3);
        least = bubble < least ? bubble : least;
    }
    print_message("%-14s %ld stages, %2ld micro-batches: bubble %.3f, formula %.3f\n", name,
                  job.settings.distributed.pp, (long)job.batches, least, expected);
    assert_true(least <= expected + 0.05);
}

static void measured_bubbles_are_those_of_the_formula(void **state)
{
    struct dt_device *dev;
    struct dt_error err;
    (void)state;
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    sound_ops = dev->ops;
    slow_ops = *sound_ops;
    slow_ops.attention_forward = slow_forward;
    slow_ops.attention_backward = slow_backward;
    for (long stages = 2; stages <= 4; stages *= 2)
        for (int64_t batches = stages; batches <= 2 * stages; batches += stages) {
            double bubble = (double)(stages - 1) / (double)batches;
            check_bubble(job_of(DT_PIPELINE_SCHEDULE_1F1B, stages, 1, batches), "1f1b", bubble);
            check_bubble(job_of(DT_PIPELINE_SCHEDULE_AFAB, stages, 1, batches), "afab", bubble);
            check_bubble(job_of(DT_PIPELINE_SCHEDULE_INTERLEAVED, stages, 2, batches),
                         "interleaved", bubble / 2);
        }
    dt_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(measured_bubbles_are_those_of_the_formula)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
