/* SPDX-License-Identifier: MIT */
/* Pipeline stages, with one or more model chunks each, compute the bits of the whole model. */
#include "test.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "math/rng.h"
#include "model/forward-backward.h"
#include "model/layer.h"

#define LAYERS  5
#define STAGES  4
#define BATCHES 2 /* in flight */
#define ROWS    (2 * 7)

static struct dt_device *dev;
static struct dt_error err;

static int open_device(void **state)
{
    (void)state;
    return dt_device_open(&dev, "cpu", 2, &err);
}

static int close_device(void **state)
{
    (void)state;
    dt_device_close(dev);
    return 0;
}

static struct dt_model_config config_of(enum dt_family family, bool tied)
{
    return (struct dt_model_config){
        .family = family,
        .vocab_size = 19,
        .max_seq_len = 12,
        .hidden_size = 8,
        .num_layers = LAYERS,
        .num_heads = 4,
        .num_kv_heads = family == DT_FAMILY_LLAMA ? 2 : 4,
        .intermediate_size = 20,
        .qk_norm = family == DT_FAMILY_LLAMA && tied,
        .layer_norm_epsilon = 1e-6,
        .rope_theta = 100,
        .initializer_range = 0.1,
        .tie_word_embeddings = tied,
        .dropout = 0.1,
    };
}

static struct dt_model *new_part(const struct dt_model_config *config, enum dt_dtype compute,
                                 const struct dt_model_part *part)
{
    struct dt_model *m = dt_model_plan(dev, config, compute, part);
    assert_int_equal(dt_model_allocate(m, &err), 0);
    dt_model_initialize(m, 3);
    return m;
}

static void fill_batch(struct dt_batch *batch, uint64_t key)
{
    struct dt_rng rng;
    uint32_t ids[2 * 8];
    dt_rng_init(&rng, key);
    for (int i = 0; i < 16; i++)
        ids[i] = dt_rng_below(&rng, 19);
    dt_batch_init(batch, 2, 7);
    dt_batch_next_token(batch, ids, 2, 7);
    batch->first_sample = 10 * key;
}

/* Hooks that count the uses of each bucket. */
struct visits {
    int inside[LAYERS + 4], gradients[LAYERS + 4];
};

static void gather_bucket(void *context, int bucket, bool gradients)
{
    struct visits *v = context;
    v->inside[bucket]++;
    (void)gradients;
}

static void release_bucket(void *context, int bucket, bool gradients)
{
    struct visits *v = context;
    assert_true(v->inside[bucket] > 0);
    v->inside[bucket]--;
    v->gradients[bucket] += gradients;
}

/* A pipeline rank: its model, gradients, and a workspace for each model chunk and micro-batch. */
struct part {
    struct dt_model *model;
    struct dt_bucket_hooks hooks;
    struct visits visits;
    float *gradients;
    struct dt_flat flat;
    struct dt_workspace *work[2][BATCHES]; /* [chunk][micro-batch] */
};

static void open_part(struct part *p, const struct dt_model_config *config, enum dt_dtype compute,
                      const struct dt_model_part *part)
{
    *p = (struct part){.model = new_part(config, compute, part)};
    p->hooks = (struct dt_bucket_hooks){&p->visits, gather_bucket, release_bucket};
    p->model->hooks = &p->hooks;
    p->gradients = dt_alloc((size_t)p->model->table.gradient_elements, sizeof *p->gradients);
    dt_flat_set(&p->flat, &p->model->table, DT_DTYPE_F32, p->gradients);
    for (int chunk = 0; chunk < part->chunks; chunk++)
        for (int i = 0; i < BATCHES; i++) {
            struct dt_workspace_shape shape = {
                .batch = 2,
                .length = 7,
                .training = true,
                .run = dt_model_part_run(part, LAYERS, chunk * part->stages + part->stage),
                .recompute = DT_RECOMPUTE_SELECTIVE,
                .scratch_owner = chunk + i > 0 ? p->work[0][0] : NULL,
            };
            assert_int_equal(dt_workspace_new(&p->work[chunk][i], p->model, &shape, &err), 0);
        }
}

static void close_part(struct part *p)
{
    for (int i = 0; i < 2 * BATCHES; i++)
        dt_workspace_free(p->work[i / BATCHES][i % BATCHES]);
    dt_flat_release(&p->flat);
    free(p->gradients);
    dt_model_free(p->model);
}

static void move(struct dt_tensor to, struct dt_tensor from)
{
    dev->ops->copy(dev, &to, &from);
}

/* Forward of all micro-batches through all model chunks, then backward in reverse. */
static double pass(struct part *parts, int stages, int chunks)
{
    struct dt_batch batches[BATCHES];
    const struct dt_pass how = {.scale = 0.5f, .seed = 4};
    struct dt_exact_sum loss = {0};
    int runs = stages * chunks;
    for (int b = 0; b < BATCHES; b++) {
        fill_batch(&batches[b], (uint64_t)b);
        for (int r = 0; r < runs; r++) {
            struct dt_workspace *w = parts[r % stages].work[r / stages][b];
            dt_pass_begin(w, &batches[b], &how);
            if (r > 0)
                move(dt_pass_input(w),
                     dt_pass_output(parts[(r - 1) % stages].work[(r - 1) / stages][b]));
            dt_pass_forward(w);
        }
    }
    for (int b = 0; b < BATCHES; b++) {
        for (int r = runs - 1; r >= 0; r--) {
            struct dt_workspace *w = parts[r % stages].work[r / stages][b];
            if (r < runs - 1)
                move(dt_pass_gradient(w),
                     dt_pass_gradient(parts[(r + 1) % stages].work[(r + 1) / stages][b]));
            dt_pass_backward(w, &parts[r % stages].flat, &loss);
        }
        dt_batch_release(&batches[b]);
    }
    return dt_exact_sum_round(&loss);
}

static void check_visits(const struct part *p)
{
    const struct dt_table *t = &p->model->table;
    for (int bucket = 0; bucket < t->bucket_count; bucket++) {
        bool some = t->buckets[bucket + 1] > t->buckets[bucket];
        assert_int_equal(p->visits.inside[bucket], 0);
        if (some)
            assert_int_equal(p->visits.gradients[bucket], BATCHES);
    }
}

/* Every tensor has the initial values and gradients of the whole model. */
static void compare(const struct part *p, const struct part *whole)
{
    const struct dt_table *t = &p->model->table, *all = &whole->model->table;
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *own = &t->params[i], *same = &all->params[own->number];
        size_t bytes = (size_t)own->count * sizeof(float);
        const float *gradients = whole->gradients + same->offset;
        if (own->copy)
            gradients = whole->gradients + all->buckets[dt_head_bucket(all)];
        assert_string_equal(own->name, same->name);
        assert_memory_equal(p->model->parameters + own->offset,
                            whole->model->parameters + same->offset, bytes);
        assert_memory_equal(p->gradients + own->offset, gradients, bytes);
    }
}

static void check_parts(enum dt_family family, bool tied, enum dt_dtype compute, int stages,
                        int chunks)
{
    struct dt_model_config config = config_of(family, tied);
    struct dt_model_part part = DT_MODEL_PART_WHOLE;
    struct part whole, parts[STAGES];
    part.tied_apart = true;
    open_part(&whole, &config, compute, &part);
    part.stages = stages;
    part.chunks = chunks;
    for (part.stage = 0; part.stage < stages; part.stage++)
        open_part(&parts[part.stage], &config, compute, &part);
    double want = pass(&whole, 1, 1), got = pass(parts, stages, chunks);
    assert_true(want > 0 && want == got);
    check_visits(&whole);
    int64_t count = 0;
    for (int i = 0; i < stages; i++) {
        check_visits(&parts[i]);
        compare(&parts[i], &whole);
        for (int j = 0; j < parts[i].model->table.count; j++)
            count += !parts[i].model->table.params[j].copy;
        close_part(&parts[i]);
    }
    assert_int_equal(count, whole.model->table.count);
    close_part(&whole);
}

static void pipeline_stages_compute_the_bits_of_the_whole(void **state)
{
    (void)state;
    const enum dt_family families[] = {DT_FAMILY_GPT2, DT_FAMILY_LLAMA, DT_FAMILY_BERT,
                                       DT_FAMILY_DISTILBERT};
    for (int f = 0; f < 4; f++)
        for (int stages = 2; stages <= STAGES; stages++)
            check_parts(families[f], true, DT_DTYPE_F32, stages, 1);
    check_parts(DT_FAMILY_GPT2, true, DT_DTYPE_F32, 2, 2);
    check_parts(DT_FAMILY_LLAMA, false, DT_DTYPE_F32, 2, 2);
    check_parts(DT_FAMILY_LLAMA, false, DT_DTYPE_BF16, 3, 1);
    check_parts(DT_FAMILY_BERT, true, DT_DTYPE_BF16, 2, 1);
}

/* Separate gradients of head and embedding sum to the gradient of the tied tensor. */
static void separate_gradients_of_a_tied_head_sum_to_the_same(void **state)
{
    (void)state;
    struct dt_model_config config = config_of(DT_FAMILY_GPT2, true);
    struct dt_model_part part = DT_MODEL_PART_WHOLE;
    struct part together, apart;
    open_part(&together, &config, DT_DTYPE_F32, &part);
    part.tied_apart = true;
    open_part(&apart, &config, DT_DTYPE_F32, &part);
    assert_true(pass(&together, 1, 1) == pass(&apart, 1, 1));
    check_visits(&together);
    const struct dt_table *t = &apart.model->table;
    const float *head = apart.gradients + t->buckets[dt_head_bucket(t)];
    double difference = 0, size = 0;
    for (int64_t i = 0; i < 19 * 8; i++) {
        double sum = (double)apart.gradients[i] + (double)head[i], want = together.gradients[i];
        difference += (sum - want) * (sum - want);
        size += want * want;
    }
    assert_true(size > 0 && difference <= 1e-12 * size);
    close_part(&together);
    close_part(&apart);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_stages_compute_the_bits_of_the_whole),
        cmocka_unit_test(separate_gradients_of_a_tied_head_sum_to_the_same),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
