/* SPDX-License-Identifier: MIT */
/* Pipeline stages as threads have the bits of one stage. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "../comm/threads.h"
#include "math/rng.h"
#include "parallel/pipeline-executor.h"

#define LAYERS 7
#define MOST   12 /* micro-batches */

/* What one stage alone came to, and what the stages are to come to. */
struct job {
    struct dt_settings settings;
    int64_t batches;
    struct dt_table table;
    float *gradients;
    double losses[MOST], score;
};

static struct dt_settings settings_of(enum dt_pipeline_schedule schedule, long stages, long chunks)
{
    return (struct dt_settings){
        .model = {.vocab_size = 19,
                  .max_seq_len = 8,
                  .hidden_size = 8,
                  .num_layers = LAYERS,
                  .num_heads = 2,
                  .num_kv_heads = 2,
                  .intermediate_size = 32,
                  .layer_norm_epsilon = 1e-5,
                  .initializer_range = 0.1,
                  .dropout = 0.1,
                  .tie_word_embeddings = true},
        .training = {.batch_size = 2, .sequence_length = 7, .gradient_accumulation_steps = MOST},
        .distributed = {.pp = stages,
                        .tp = 1,
                        .cp = 1,
                        .schedule = schedule,
                        .virtual_stages = chunks,
                        .invariant = true},
    };
}

static void make_batch(struct dt_batch *batch, uint64_t key)
{
    struct dt_rng rng;
    uint32_t ids[2 * 8];
    dt_rng_init(&rng, key);
    for (int i = 0; i < 16; i++)
        ids[i] = dt_rng_below(&rng, 19);
    dt_batch_next_token(batch, ids, 2, 7);
    batch->first_sample = 10 * key;
}

/* A rank's part of a job. */
struct part {
    struct dt_flat flat;
    int64_t filled;
    double losses[MOST];
    int32_t begins[14], ends[14];
};

static int fill(void *context, int64_t index, struct dt_batch *batch, struct dt_error *err)
{
    struct part *p = context;
    (void)err;
    assert_int_equal(index, p->filled++);
    make_batch(batch, (uint64_t)index);
    for (int i = 0; i < 14; i++) { /* of each token itself and those up to index before it */
        p->begins[i] = (int32_t)(i % 7 > index ? i % 7 - index : 0);
        p->ends[i] = i % 7 + 1;
    }
    batch->begins = p->begins;
    batch->ends = p->ends;
    return 0;
}

static const struct dt_flat *gradients(void *context, int64_t index)
{
    struct part *p = context;
    assert_true(index < p->filled);
    return &p->flat;
}

static void loss(void *context, int64_t index, const struct dt_exact_sum *sum)
{
    struct part *p = context;
    p->losses[index] = dt_exact_sum_round(sum);
}

static double score(struct dt_pipeline_executor *p)
{
    struct dt_batch batch;
    struct dt_error err;
    float losses[14] = {0}, hits[14];
    double sum = 0;
    dt_batch_init(&batch, 2, 7);
    for (uint64_t i = 0; i < 3; i++) {
        make_batch(&batch, 100 + i);
        assert_int_equal(dt_pipeline_executor_score(p, &batch, losses, hits, &err), 0);
        for (int j = 0; j < 14; j++)
            sum += (double)losses[j] * (double)(j + 1);
    }
    dt_batch_release(&batch);
    return sum;
}

static void compare(const struct job *job, const struct dt_table *t, const float *values)
{
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *own = &t->params[i], *same = &job->table.params[own->number];
        const float *want = job->gradients + same->offset;
        if (own->copy)
            want = job->gradients + job->table.buckets[dt_head_bucket(&job->table)];
        assert_memory_equal(values + own->offset, want, (size_t)own->count * sizeof *want);
    }
}

static void pass(struct dt_comm *world, void *context)
{
    struct job *job = context;
    struct dt_device *dev;
    struct dt_error err;
    struct dt_mesh mesh;
    struct dt_pipeline_executor passes;
    struct part part = {.filled = 0};
    const struct dt_micro_batch_source source = {&part, fill, gradients, loss};
    const struct dt_pass how = {.scale = 0.25f, .seed = 9};
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    assert_int_equal(dt_mesh_open(&mesh, world, &job->settings, &err), 0);
    struct dt_model *m = dt_model_plan(dev, &job->settings.model, DT_DTYPE_F32, &mesh.part);
    assert_int_equal(dt_model_allocate(m, &err), 0);
    dt_model_initialize(m, 3);
    assert_int_equal(dt_pipeline_executor_plan(&passes, m, &mesh, &job->settings, &err), 0);
    assert_int_equal(dt_pipeline_executor_allocate(&passes, &err), 0);
    float *values = dt_alloc((size_t)m->table.gradient_elements, sizeof *values);
    dt_flat_set(&part.flat, &m->table, DT_DTYPE_F32, values);
    assert_int_equal(dt_pipeline_executor_run(&passes, job->batches, &source, &how, &err), 0);
    assert_int_equal(part.filled, job->batches);
    double scored = score(&passes);
    bool last = mesh.part.stage == mesh.part.stages - 1;
    if (mesh.part.stages == 1) {
        memcpy(job->gradients, values, (size_t)m->table.gradient_elements * sizeof *values);
        memcpy(job->losses, part.losses, sizeof part.losses);
        job->score = scored;
    }
    compare(job, &m->table, values);
    for (int64_t i = 0; i < job->batches; i++)
        assert_true(part.losses[i] == (last ? job->losses[i] : 0));
    assert_true(scored == (last ? job->score : 0));
    free(values);
    dt_flat_release(&part.flat);
    dt_pipeline_executor_release(&passes);
    dt_model_free(m);
    dt_mesh_release(&mesh);
    dt_device_close(dev);
}

static void every_schedule_gives_the_bits_of_one_stage(void **state)
{
    (void)state;
    struct job job = {.settings = settings_of(DT_PIPELINE_SCHEDULE_1F1B, 1, 1)};
    struct dt_model_part part = DT_MODEL_PART_WHOLE;
    part.tied_apart = true;
    dt_table_init(&job.table, &job.settings.model, &part);
    job.gradients = dt_alloc((size_t)job.table.gradient_elements, sizeof *job.gradients);
    const int64_t counts[] = {1, 3, MOST};
    for (int i = 0; i < 3; i++) {
        job.batches = counts[i];
        job.settings = settings_of(DT_PIPELINE_SCHEDULE_1F1B, 1, 1);
        run_ranks(1, pass, &job);
        assert_true(job.losses[0] > 0 && job.score > 0);
        for (int stages = 2; stages <= 4; stages++) {
            for (int schedule = 0; schedule < 4; schedule++) {
                bool interleaved = schedule == DT_PIPELINE_SCHEDULE_INTERLEAVED;
                job.settings = settings_of((enum dt_pipeline_schedule)schedule, stages, 1);
                if (interleaved && counts[i] == MOST)
                    job.settings.distributed.virtual_stages = stages == 3 ? 2 : stages == 2 ? 3 : 1;
                run_ranks(stages, pass, &job);
            }
        }
    }
    free(job.gradients);
    dt_table_release(&job.table);
}

/* A stage holds the activations that the schedule needs, not more. */
static void memory_follows_the_schedule(void **state)
{
    (void)state;
    struct dt_device *dev;
    struct dt_error err;
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    size_t bytes[2];
    for (int i = 0; i < 2; i++) {
        struct dt_settings s =
            settings_of(i == 0 ? DT_PIPELINE_SCHEDULE_1F1B : DT_PIPELINE_SCHEDULE_AFAB, 4, 1);
        struct dt_mesh mesh = {
            .part = {.stage = 2, .stages = 4, .chunks = 1, .tp_size = 1, .cp_size = 1}};
        struct dt_pipeline_executor passes;
        struct dt_comm *alone;
        assert_int_equal(dt_comm_open(&alone, "self", NULL, &err), 0);
        mesh.data = (struct dt_data_group){alone, alone, NULL, 1};
        mesh.pp_group = alone;
        struct dt_model *m = dt_model_plan(dev, &s.model, DT_DTYPE_F32, &mesh.part);
        assert_int_equal(dt_pipeline_executor_plan(&passes, m, &mesh, &s, &err), 0);
        assert_int_equal(passes.max_in_flight, i == 0 ? 2 : MOST);
        bytes[i] = dt_pipeline_executor_bytes(&passes);
        dt_pipeline_executor_release(&passes);
        dt_model_free(m);
        dt_comm_close(alone);
    }
    assert_true(bytes[0] * 2 < bytes[1]);
    dt_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_gives_the_bits_of_one_stage),
        cmocka_unit_test(memory_follows_the_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
