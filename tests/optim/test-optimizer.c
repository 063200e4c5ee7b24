/* SPDX-License-Identifier: MIT */
/* Optimizers compared with PyTorch's, descriptors, and Newton-Schulz steps. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "math/rng.h"
#include "parallel/train-state.h"

static struct dt_error err;

static struct dt_settings settings_of(enum dt_optimizer_kind optimizer)
{
    struct dt_settings s;
    memset(&s, 0, sizeof s);
    dt_config_defaults(dt_settings_schema, &s);
    s.model.vocab_size = 5;
    s.model.hidden_size = 4;
    s.model.num_layers = 1;
    s.model.num_heads = 1;
    s.model.max_seq_len = 3;
    s.model.intermediate_size = 8;
    s.training.optimizer = (int)optimizer;
    s.training.schedule = 0; /* constant */
    s.training.warmup_steps = 0;
    s.training.learning_rate = 0.02;
    assert_int_equal(dt_model_config_check(&s.model, "model", &err), 0);
    return s;
}

/* Parameters at step 0, gradients of step s at s + 1; as in optimizers_oracle.py. */
static void fill(const struct dt_table *t, int step, float *flat)
{
    for (int i = 0; i < t->count; i++)
        for (int64_t j = 0; j < t->params[i].count; j++)
            flat[t->params[i].offset + j] =
                (float)(0.3 * cos(0.7 * (double)j + 1.3 * i + 2.1 * step));
}

static double sum_of(const struct dt_param *p, const float *flat)
{
    double sum = 0;
    for (int64_t j = 0; j < p->count; j++)
        sum += sin((double)j + 1) * (double)flat[p->offset + j];
    return sum;
}

/* python tests/oracles/optimizers_oracle.py */
static const double recorded[4][16] = {
    /* adamw */ {0.1056772, 1.2091537, -0.5398517, -0.4981403, 0.1942978, 0.7981767, 0.8280802,
                 -0.6262182, -0.3939962, 0.4123062, 1.0185814, 0.5044983, -0.6656634, -0.2728324,
                 0.5035861, 0.5425276},
    /* sgd */
    {0.0986194, 1.1211067, -0.5300146, -0.4432989, 0.2235225, 0.7807599, 0.7768065, -0.5849219,
     -0.3410654, 0.4024527, 0.9912372, 0.4062509, -0.6579272, -0.2228617, 0.4932099, 0.4867279},
    /* muon */
    {0.1056772, 1.2091537, -0.5398517, -0.4981403, 0.2298261, 0.7981767, 0.7304669, -0.6262182,
     -0.3939962, 0.4123062, 0.9730460, 0.5044983, -0.6534766, -0.2728324, 0.5035861, 0.5425276},
    /* lion */
    {0.1638173, 1.2103633, -0.5718796, -0.4889099, 0.2011297, 0.8848198, 0.8406405, -0.6463647,
     -0.3924677, 0.4551758, 1.0364336, 0.5148175, -0.7038445, -0.2451743, 0.5385112, 0.5314100},
};

static void check_recorded(const char *engine, enum dt_optimizer_kind optimizer)
{
    struct dt_settings s = settings_of(optimizer);
    struct dt_device *dev;
    struct dt_model *model;
    struct dt_train_state store;
    assert_int_equal(dt_device_open(&dev, engine, 2, &err), 0);
    assert_int_equal(dt_model_new(&model, dev, &s.model, DT_DTYPE_F32, &err), 0);
    struct dt_comm *alone;
    assert_int_equal(dt_comm_open(&alone, "self", NULL, &err), 0);
    const struct dt_mesh mesh = {.data = {alone, alone, NULL, 1}, .part = DT_MODEL_PART_WHOLE};
    assert_int_equal(dt_train_state_plan(&store, model, &s, &mesh, &err), 0);
    assert_int_equal(dt_train_state_allocate(&store, &err), 0);
    float *gradients[8];
    assert_true(model->table.bucket_count <= 8);
    fill(&model->table, 0, model->parameters);
    for (int step = 0; step < 5; step++) {
        fill(&model->table, step + 1, store.dp.arenas[0]);
        for (int b = 0; b < model->table.bucket_count; b++)
            gradients[b] = store.dp.arenas[0] + model->table.buckets[b];
        dt_optimizer_update(&store.optimizer, dev, store.parameters, gradients, &s, step, 1);
    }
    assert_int_equal(model->table.count, 16);
    for (int i = 0; i < 16; i++) {
        double sum = sum_of(&model->table.params[i], model->parameters);
        if (!(fabs(sum - recorded[optimizer][i]) < 2e-5))
            fail_msg("%s, %s: %s: %.7f, recorded %.7f", engine, dt_optimizer_kind_names[optimizer],
                     model->table.params[i].name, sum, recorded[optimizer][i]);
    }
    dt_train_state_release(&store);
    dt_comm_close(alone);
    dt_model_free(model);
    dt_device_close(dev);
}

static void optimizers_take_the_recorded_steps(void **state)
{
    (void)state;
    for (int i = 0; dt_optimizer_kind_names[i]; i++) {
        check_recorded("cpu", (enum dt_optimizer_kind)i);
        check_recorded("cpu-generic", (enum dt_optimizer_kind)i);
    }
}

/* x = (I - 2 v v' / v'v) x, for a v of random numbers: one reflection of a random rotation. */
static void reflect(float *x, int64_t rows, int64_t columns, struct dt_rng *rng)
{
    double v[64], square = 0;
    for (int64_t i = 0; i < rows; i++) {
        v[i] = dt_rng_double(rng) - 0.5;
        square += v[i] * v[i];
    }
    for (int64_t j = 0; j < columns; j++) {
        double dot = 0;
        for (int64_t i = 0; i < rows; i++)
            dot += v[i] * (double)x[i * columns + j];
        for (int64_t i = 0; i < rows; i++)
            x[i * columns + j] -= (float)(2 * dot / square * v[i]);
    }
}

static void transpose(float *to, const float *from, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}

/* Orthogonalizes a matrix with known singular values: they become close to 1, and its
 * singular vectors do not change, so that the inverse reflections give a diagonal matrix. */
static void check_orthogonal(struct dt_device *dev, int64_t rows, int64_t columns)
{
    struct dt_muon_scratch s = {0};
    struct dt_arena arena = {0};
    float turned[64 * 64];
    struct dt_rng rng;
    dt_muon_count(&s, rows, columns);
    dt_muon_layout(&s, &arena);
    assert_int_equal(dt_arena_allocate(&arena, dev, &err), 0);
    dt_muon_layout(&s, &arena);
    for (int64_t i = 0; i < rows && i < columns; i++)
        s.matrix[i * columns + i] = (float)(1 + i);
    dt_rng_init(&rng, 3);
    reflect(s.matrix, rows, columns, &rng);
    transpose(turned, s.matrix, rows, columns);
    reflect(turned, columns, rows, &rng);
    transpose(s.matrix, turned, columns, rows);
    struct dt_tensor x = dt_muon_orthogonalize(dev, &s, rows, columns);
    dt_rng_init(&rng, 3);
    reflect(x.data, rows, columns, &rng);
    transpose(turned, x.data, rows, columns);
    reflect(turned, columns, rows, &rng);
    for (int64_t i = 0; i < columns; i++)
        for (int64_t j = 0; j < rows; j++) {
            float value = turned[i * rows + j];
            if (i == j && !(value > 0.65f && value < 1.25f))
                fail_msg("%d x %d: singular value %g", (int)rows, (int)columns, (double)value);
            if (i != j && !(fabsf(value) < 1e-4f))
                fail_msg("%d x %d: other singular vectors", (int)rows, (int)columns);
        }
    dt_arena_release(&arena, dev);
}

static void newton_schulz_steps_bring_singular_values_near_1(void **state)
{
    (void)state;
    struct dt_device *dev;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    check_orthogonal(dev, 32, 32);
    check_orthogonal(dev, 8, 64);
    check_orthogonal(dev, 64, 8);
    check_orthogonal(dev, 1, 16);
    dt_device_close(dev);
}

static void a_zero_matrix_stays_zero(void **state)
{
    (void)state;
    struct dt_device *dev;
    struct dt_muon_scratch s = {0};
    struct dt_arena arena = {0};
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    dt_muon_count(&s, 4, 4);
    dt_muon_layout(&s, &arena);
    assert_int_equal(dt_arena_allocate(&arena, dev, &err), 0);
    dt_muon_layout(&s, &arena);
    struct dt_tensor x = dt_muon_orthogonalize(dev, &s, 4, 4);
    for (int i = 0; i < 16; i++)
        assert_true(((float *)x.data)[i] == 0);
    dt_arena_release(&arena, dev);
    dt_device_close(dev);
}

/* An optimizer allocates only the state that it has. */
static void each_optimizer_has_the_state_that_it_needs(void **state)
{
    (void)state;
    struct dt_device *dev;
    size_t second[4], scratch[4];
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    for (int i = 0; i < 4; i++) {
        struct dt_settings s = settings_of((enum dt_optimizer_kind)i);
        struct dt_model *model = dt_model_plan(dev, &s.model, DT_DTYPE_F32, NULL);
        struct dt_train_state store;
        struct dt_comm *alone;
        assert_int_equal(dt_comm_open(&alone, "self", NULL, &err), 0);
        const struct dt_mesh mesh = {.data = {alone, alone, NULL, 1}, .part = DT_MODEL_PART_WHOLE};
        assert_int_equal(dt_train_state_plan(&store, model, &s, &mesh, &err), 0);
        assert_int_equal(4 * (size_t)store.optimizer.elements[0],
                         4 * (size_t)model->table.elements);
        second[i] = 4 * (size_t)store.optimizer.elements[1];
        scratch[i] = store.bytes.scratch;
        dt_train_state_release(&store);
        dt_comm_close(alone);
        dt_model_free(model);
    }
    assert_int_equal(second[DT_OPTIMIZER_KIND_SGD] + second[DT_OPTIMIZER_KIND_LION], 0);
    assert_int_equal(scratch[DT_OPTIMIZER_KIND_SGD], scratch[DT_OPTIMIZER_KIND_ADAMW]);
    assert_true(scratch[DT_OPTIMIZER_KIND_MUON] > scratch[DT_OPTIMIZER_KIND_ADAMW]);
    assert_int_equal(second[DT_OPTIMIZER_KIND_ADAMW] - second[DT_OPTIMIZER_KIND_MUON],
                     4 * (4 * 12 + 4 * 4 + 4 * 8 + 8 * 4));
    dt_device_close(dev);
}

static void whole_matrices_are_refused_where_the_layout_shards_them(void **state)
{
    (void)state;
    for (int i = 0; dt_optimizer_kind_names[i]; i++)
        for (int layout = 0; layout < 4; layout++) {
            static const char *const needs[] = {NULL, "distributed.zero_stage 0",
                                                "distributed.tp 1",
                                                "distributed.sync other than parameter_server"};
            struct dt_settings s = settings_of((enum dt_optimizer_kind)i);
            s.distributed.zero_stage = layout == 1;
            s.distributed.tp = layout == 2 ? 2 : 1;
            s.distributed.sync = layout == 3 ? DT_SYNC_PARAMETER_SERVER : DT_SYNC_ALL_REDUCE;
            s.distributed.shard_ranks = 1;
            const bool fits = i != DT_OPTIMIZER_KIND_MUON || layout == 0;
            assert_int_equal(dt_optimizer_check(&s, "run", &err), fits ? 0 : DT_EINVALID);
            if (fits)
                continue;
            char *want = dt_asprintf("run: training.optimizer muon needs %s", needs[layout]);
            assert_string_equal(err.text, want);
            free(want);
        }
}

static void a_descriptor_names_each_state_slot_of_its_rule(void **state)
{
    (void)state;
    for (int i = 0; dt_optimizer_kind_names[i]; i++) {
        const struct dt_optimizer_descriptor *d = dt_optimizer_describe((enum dt_optimizer_kind)i);
        assert_int_equal(d->slots.count, dt_update_slots(d->rule));
        assert_int_equal(d->matrix_slots.count, d->update_matrix ? 1 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers_take_the_recorded_steps),
        cmocka_unit_test(newton_schulz_steps_bring_singular_values_near_1),
        cmocka_unit_test(a_zero_matrix_stays_zero),
        cmocka_unit_test(each_optimizer_has_the_state_that_it_needs),
        cmocka_unit_test(whole_matrices_are_refused_where_the_layout_shards_them),
        cmocka_unit_test(a_descriptor_names_each_state_slot_of_its_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
