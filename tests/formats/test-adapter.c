/* SPDX-License-Identifier: MIT */
/*
 * Adapters compared with peft: gradients, the losses of 20 steps, and merged models.
 *
 *     python tests/oracles/lora_oracle.py golden
 *
 * generated golden/lora.txt, whose models and batches are formulas, as those of families.txt:
 *
 *     model NAME TENSORS MATRICES
 *     the text of config.json
 *     the text of adapter_config.json
 *     the loss of each step
 *     TENSOR ROWS COLUMNS CENTER
 *     MATRIX ROWS COLUMNS GRADIENT-NORM GRADIENT-ALONG TRAINED-NORM TRAINED-ALONG
 */
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "formats/adapter.h"
#include "formats/model-directory.h"
#include "formats/safetensors.h"
#include "model/forward-backward.h"
#include "optim/optimizer.h"

#define MODELS_MOST  10
#define TENSORS_MOST 64
#define STEPS        20
#define BATCHES      4
#define ROWS         3
#define LENGTH       10
#define TOKENS       (ROWS * LENGTH)
#define VOCABULARY   29
#define FIRST_ID     2

struct summary {
    double norm, along;
};

struct golden_tensor {
    char name[DT_TENSOR_NAME];
    long shape[2];
    double center;
    struct summary gradient, trained;
};

struct golden {
    char name[40], config[4096], adapter[4096];
    int base_count, adapter_count;
    double losses[STEPS];
    struct golden_tensor base[TENSORS_MOST], adapters[TENSORS_MOST];
};

static struct golden models[MODELS_MOST];
static int model_count;
static struct dt_device *dev;
static struct dt_error err;

static void check(int rc)
{
    if (rc < 0)
        fail_msg("%s", err.text);
}

static void read_line(char *to, size_t size, FILE *file)
{
    assert_non_null(fgets(to, (int)size, file));
    assert_non_null(strchr(to, '\n'));
}

static void read_model(struct golden *g, FILE *file)
{
    read_line(g->config, sizeof g->config, file);
    read_line(g->adapter, sizeof g->adapter, file);
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(fscanf(file, "%lf", &g->losses[i]), 1);
    assert_true(g->base_count <= TENSORS_MOST && g->adapter_count <= TENSORS_MOST);
    for (int i = 0; i < g->base_count; i++) {
        struct golden_tensor *t = &g->base[i];
        assert_int_equal(
            fscanf(file, "%143s %ld %ld %lf", t->name, &t->shape[0], &t->shape[1], &t->center), 4);
    }
    for (int i = 0; i < g->adapter_count; i++) {
        struct golden_tensor *t = &g->adapters[i];
        assert_int_equal(fscanf(file, "%143s %ld %ld %lf %lf %lf %lf", t->name, &t->shape[0],
                                &t->shape[1], &t->gradient.norm, &t->gradient.along,
                                &t->trained.norm, &t->trained.along),
                         7);
    }
}

static void read_models(void)
{
    FILE *file = fopen("tests/formats/golden/lora.txt", "r");
    assert_non_null(file);
    for (;; model_count++) {
        struct golden *g = &models[model_count];
        assert_true(model_count < MODELS_MOST);
        if (fscanf(file, " model %39s %d %d ", g->name, &g->base_count, &g->adapter_count) != 3)
            break;
        read_model(g, file);
    }
    assert_true(feof(file));
    fclose(file);
}

/* Numbers from -1/2 to 1/2, a function of name and index, as in families_oracle.py. */
static double *scattered(const char *prefix, const char *name, int64_t count)
{
    double *values = dt_alloc((size_t)count, sizeof *values);
    const char *parts[] = {prefix, name};
    uint32_t key = 2166136261u;
    for (int i = 0; i < 2; i++)
        for (const char *c = parts[i]; *c; c++)
            key = (key ^ (uint8_t)*c) * 16777619u;
    for (int64_t i = 0; i < count; i++) {
        uint32_t x = (key + (uint32_t)i) * 2654435761u;
        x = (x ^ x >> 16) * 2246822507u;
        x ^= x >> 13;
        values[i] = (double)(x >> 8) * 0x1p-24 - 0.5;
    }
    return values;
}

static char *path_of(const char *model, const char *file)
{
    return dt_asprintf("%s/%s/%s", scratch, model, file);
}

static void write_tensors(const char *path, const struct golden_tensor *tensors, int count)
{
    struct dt_named_tensor *list = dt_alloc((size_t)count, sizeof *list);
    for (int i = 0; i < count; i++) {
        const struct golden_tensor *t = &tensors[i];
        int64_t elements = t->shape[0] * t->shape[1];
        double *values = scattered("", t->name, elements);
        list[i] = (struct dt_named_tensor){.rank = t->shape[1] > 1 ? 2 : 1,
                                           .shape = {t->shape[0], t->shape[1]},
                                           .data = dt_alloc((size_t)elements, sizeof(float))};
        snprintf(list[i].name, sizeof list[i].name, "%s", t->name);
        for (int64_t j = 0; j < elements; j++)
            list[i].data[j] = (float)(0.5 * values[j] + t->center);
        free(values);
    }
    check(dt_safetensors_write(path, list, count, false, &err));
    for (int i = 0; i < count; i++)
        free(list[i].data);
    free(list);
}

static void write_text(const char *directory, const char *file, const char *text)
{
    char *path = dt_path_join(directory, file);
    check(dt_file_write(path, text, strlen(text), &err));
    free(path);
}

/* SCRATCH/NAME/base is the model and SCRATCH/NAME/adapter the adapter, which names it. */
static void write_model(const struct golden *g)
{
    char *base = path_of(g->name, "base"), *adapter = path_of(g->name, "adapter");
    char *weights = dt_path_join(base, "model.safetensors");
    char *matrices = dt_path_join(adapter, "adapter_model.safetensors");
    const char *name = strstr(g->adapter, "\"base\"");
    char *config = dt_asprintf("%.*s\"%s\"%s", (int)(name - g->adapter), g->adapter, base,
                               name + strlen("\"base\""));
    check(dt_file_make_directories(base, &err));
    check(dt_file_make_directories(adapter, &err));
    write_text(base, "config.json", g->config);
    write_text(adapter, "adapter_config.json", config);
    write_tensors(weights, g->base, g->base_count);
    write_tensors(matrices, g->adapters, g->adapter_count);
    free(base);
    free(adapter);
    free(weights);
    free(matrices);
    free(config);
}

static int set_up(void **state)
{
    if (make_scratch(state) < 0 || dt_device_open(&dev, "cpu", 2, &err) < 0)
        return -1;
    read_models();
    for (int i = 0; i < model_count; i++)
        write_model(&models[i]);
    return 0;
}

static int tear_down(void **state)
{
    dt_device_close(dev);
    return remove_scratch(state);
}

/* --- training --------------------------------------------------------------------------------- */

/* A model with the adapter of a directory, and what trains it. */
struct trainer {
    struct dt_model *model;
    struct dt_workspace *work;
    struct dt_batch batch;
    struct dt_settings settings;
    struct dt_optimizer optimizer;
    struct dt_arena arena; /* the optimizer's state */
    struct dt_flat gradients;
    float *values; /* of the gradients */
    float **parameters, **reduced;
};

static void load_frozen(struct dt_model *m, const char *directory)
{
    float *host = dt_alloc((size_t)m->base->elements, sizeof *host);
    check(dt_model_read_parameters(&m->config, m->base, m->compute, directory, host, &err));
    dt_model_set_frozen(m, host);
    free(host);
}

static void load_adapter(struct dt_model *m, const char *directory)
{
    float *host = dt_alloc((size_t)m->table.elements, sizeof *host);
    check(dt_adapter_read(directory, &m->table, host, &err));
    dt_model_set_parameters(m, host);
    free(host);
}

static void open_model(struct trainer *t, const struct golden *g, enum dt_dtype compute,
                       enum dt_recompute recompute, double dropout)
{
    char *base = path_of(g->name, "base"), *adapter = path_of(g->name, "adapter");
    struct dt_model_config config;
    check(dt_model_read_config(&config, base, &err));
    check(dt_adapter_read_config(adapter, &config.lora, NULL, &err));
    check(dt_lora_check(&config, adapter, &err));
    config.lora.dropout = dropout;
    check(dt_model_new(&t->model, dev, &config, compute, &err));
    load_frozen(t->model, base);
    load_adapter(t->model, adapter);
    const struct dt_workspace_shape shape = {
        .batch = ROWS, .length = LENGTH, .training = true, .recompute = recompute};
    check(dt_workspace_new(&t->work, t->model, &shape, &err));
    free(base);
    free(adapter);
}

static void open_trainer(struct trainer *t, const struct golden *g, enum dt_dtype compute,
                         enum dt_recompute recompute, double dropout)
{
    *t = (struct trainer){0};
    open_model(t, g, compute, recompute, dropout);
    const struct dt_table *table = &t->model->table;
    dt_batch_init(&t->batch, ROWS, LENGTH);
    t->settings.training.optimizer = DT_OPTIMIZER_KIND_ADAMW;
    t->settings.training.schedule = DT_LR_SCHEDULE_CONSTANT;
    t->settings.training.max_steps = STEPS;
    t->settings.training.learning_rate = 0.01;
    t->settings.training.min_learning_rate_ratio = 1;
    t->settings.training.beta1 = 0.9;
    t->settings.training.beta2 = 0.95;
    t->settings.training.epsilon = 1e-3;
    t->settings.training.weight_decay = 0.1;
    dt_optimizer_init(&t->optimizer, table, NULL, NULL, &t->settings);
    dt_optimizer_layout_state(&t->optimizer, &t->arena);
    check(dt_arena_allocate(&t->arena, dev, &err));
    dt_optimizer_layout_state(&t->optimizer, &t->arena);
    t->values = dt_alloc((size_t)table->elements, sizeof *t->values);
    dt_flat_set(&t->gradients, table, DT_DTYPE_F32, t->values);
    t->parameters = dt_alloc((size_t)table->bucket_count, sizeof *t->parameters);
    t->reduced = dt_alloc((size_t)table->bucket_count, sizeof *t->reduced);
    for (int b = 0; b < table->bucket_count; b++) {
        t->parameters[b] = t->model->parameters + table->buckets[b];
        t->reduced[b] = t->values + table->buckets[b];
    }
}

static void close_trainer(struct trainer *t)
{
    dt_optimizer_release(&t->optimizer);
    dt_arena_release(&t->arena, dev);
    dt_flat_release(&t->gradients);
    dt_batch_release(&t->batch);
    dt_workspace_free(t->work);
    dt_model_free(t->model);
    free(t->values);
    free(t->parameters);
    free(t->reduced);
}

/* Returns the number of targets. */
static int fill_batch(struct dt_batch *batch, int number)
{
    char names[3][16];
    static const char *const kinds[] = {"inputs", "targets", "chosen"};
    double *values[3];
    int targets = 0;
    for (int i = 0; i < 3; i++) {
        snprintf(names[i], sizeof names[i], "%s %d", kinds[i], number);
        values[i] = scattered("", names[i], TOKENS);
    }
    batch->count = ROWS;
    batch->length = LENGTH;
    for (int i = 0; i < TOKENS; i++) {
        batch->inputs[i] = (int32_t)((values[0][i] + 0.5) * (VOCABULARY - FIRST_ID)) + FIRST_ID;
        batch->targets[i] =
            values[2][i] > 0.2 ? DT_NO_TARGET : (int32_t)((values[1][i] + 0.5) * VOCABULARY);
        targets += batch->targets[i] >= 0;
    }
    for (int i = 0; i < 3; i++)
        free(values[i]);
    return targets;
}

/* Sets the gradients of a step's mean loss, and returns that. */
static double backward(struct trainer *t, int step)
{
    const struct dt_pass how = {.scale = 1, .seed = (uint64_t)step};
    int targets = fill_batch(&t->batch, step % BATCHES);
    memset(t->values, 0, (size_t)t->model->table.elements * sizeof *t->values);
    double loss = dt_model_backward(t->model, t->work, &t->batch, &t->gradients, &how) / targets;
    for (int64_t i = 0; i < t->model->table.elements; i++)
        t->values[i] /= (float)targets;
    return loss;
}

static void update(struct trainer *t, int step)
{
    dt_optimizer_update(&t->optimizer, dev, t->parameters, t->reduced, &t->settings, step, 1);
    dt_model_refresh(t->model);
}

/* slack: relative to the norm. */
static void check_summary(const char *model, const char *what, const char *name,
                          const float *values, int64_t count, struct summary want, double slack)
{
    double squares = 0, product = 0, *along = scattered("along ", name, count);
    for (int64_t i = 0; i < count; i++) {
        squares += pow((double)values[i], 2);
        product += along[i] * (double)values[i];
    }
    free(along);
    slack *= want.norm;
    if (!(fabs(sqrt(squares) - want.norm) <= slack && fabs(product - want.along) <= slack))
        fail_msg("%s: %s of %s: %.9g %.9g instead of %.9g %.9g", model, what, name, sqrt(squares),
                 product, want.norm, want.along);
}

/* Compares a flat arena with the tensors of peft's file. */
static void check_tensors(const struct golden *g, const struct dt_table *table, float *values,
                          bool trained, double slack)
{
    char *path = path_of(g->name, "written.safetensors");
    struct dt_named_tensor *list = dt_weights_named_tensors(table, values, "");
    check(dt_safetensors_write(path, list, table->count, false, &err));
    struct dt_named_tensor *again = dt_alloc((size_t)g->adapter_count, sizeof *again);
    for (int i = 0; i < g->adapter_count; i++) {
        const struct golden_tensor *t = &g->adapters[i];
        again[i].rank = 2;
        memcpy(again[i].shape, t->shape, sizeof t->shape);
        snprintf(again[i].name, sizeof again[i].name, "%s", t->name);
        again[i].data = dt_alloc((size_t)(t->shape[0] * t->shape[1]), sizeof(float));
    }
    check(dt_safetensors_read(path, again, g->adapter_count, NULL, &err));
    for (int i = 0; i < g->adapter_count; i++) {
        const struct golden_tensor *t = &g->adapters[i];
        check_summary(g->name, trained ? "values" : "gradient", t->name, again[i].data,
                      t->shape[0] * t->shape[1], trained ? t->trained : t->gradient, slack);
        free(again[i].data);
    }
    free(again);
    free(list);
    free(path);
}

static void train_as_peft(const struct golden *g, enum dt_recompute recompute)
{
    struct trainer t;
    open_trainer(&t, g, DT_DTYPE_F32, recompute, 0);
    for (int step = 0; step < STEPS; step++) {
        double loss = backward(&t, step);
        if (!(fabs(loss / g->losses[step] - 1) <= 1e-5))
            fail_msg("%s: loss %d is %.9g instead of %.9g", g->name, step, loss, g->losses[step]);
        if (step == 0)
            check_tensors(g, &t.model->table, t.values, false, 1e-5);
        update(&t, step);
    }
    check_tensors(g, &t.model->table, t.model->parameters, true, 1e-5);
    close_trainer(&t);
}

static void losses_and_gradients_of_20_steps_are_those_of_peft(void **state)
{
    (void)state;
    assert_int_equal(model_count, 8);
    for (int i = 0; i < model_count; i++)
        train_as_peft(&models[i], DT_RECOMPUTE_NONE);
}

static void recomputation_changes_nothing(void **state)
{
    (void)state;
    train_as_peft(&models[0], DT_RECOMPUTE_FULL);
    train_as_peft(&models[1], DT_RECOMPUTE_SELECTIVE);
}

/* --- merging ---------------------------------------------------------------------------------- */

/* The sum of the losses, without dropout. */
static double score_batch(const struct dt_model *m, const struct dt_batch *batch)
{
    struct dt_workspace *w;
    float losses[TOKENS];
    double sum = 0;
    check(dt_workspace_new(&w, m, &(struct dt_workspace_shape){ROWS, LENGTH}, &err));
    dt_model_score(m, w, batch, losses, NULL);
    for (int i = 0; i < TOKENS; i++)
        sum += (double)losses[i];
    dt_workspace_free(w);
    return sum;
}

static double score(const struct dt_model *m)
{
    struct dt_batch batch;
    dt_batch_init(&batch, ROWS, LENGTH);
    int targets = fill_batch(&batch, 0);
    double sum = score_batch(m, &batch);
    dt_batch_release(&batch);
    return sum / targets;
}

/* The adapter names its base model. */
static void a_directory_of_peft_is_read_as_the_merged_model(void **state)
{
    (void)state;
    for (int i = 0; i < model_count; i++) {
        struct dt_model *m;
        char *adapter = path_of(models[i].name, "adapter");
        check(dt_model_load(&m, dev, adapter, &err));
        assert_true(fabs(score(m) / models[i].losses[0] - 1) < 1e-5);
        dt_model_free(m);
        free(adapter);
    }
}

static void an_adapter_is_merged_into_a_loaded_model(void **state)
{
    (void)state;
    struct dt_model *m;
    char *base = path_of(models[0].name, "base"), *adapter = path_of(models[0].name, "adapter");
    check(dt_model_load(&m, dev, base, &err));
    assert_true(fabs(score(m) / models[0].losses[0] - 1) > 1e-3);
    check(dt_model_merge_adapter(m, adapter, &err));
    assert_true(fabs(score(m) / models[0].losses[0] - 1) < 1e-5);
    dt_model_free(m);
    free(base);
    free(adapter);
}

/* --- dropout and 16 bits ---------------------------------------------------------------------- */

/* The loss of the first batch, with the adapter moved by h along a direction. */
static double moved_loss(struct trainer *t, const float *direction, double h)
{
    const struct dt_pass how = {.scale = 1, .seed = 5};
    size_t count = (size_t)t->model->table.elements;
    float *moved = dt_alloc(count, sizeof *moved);
    float *before = dt_model_exchange(t->model, moved);
    for (size_t i = 0; i < count; i++)
        moved[i] = before[i] + (float)(h * (double)direction[i]);
    dt_model_refresh(t->model);
    memset(t->values, 0, count * sizeof *t->values);
    double loss = dt_model_backward(t->model, t->work, &t->batch, &t->gradients, &how);
    dt_model_exchange(t->model, before);
    free(moved);
    return loss;
}

/* Along the gradient the loss grows by the gradient's square. */
static void gradients_with_dropout_are_those_of_finite_differences(void **state)
{
    (void)state;
    for (int i = 0; i < model_count; i++) {
        struct trainer t;
        double squares = 0, plain;
        open_trainer(&t, &models[i], DT_DTYPE_F32, DT_RECOMPUTE_FULL, 0.3);
        size_t count = (size_t)t.model->table.elements;
        float *gradient = dt_alloc(count, sizeof *gradient);
        fill_batch(&t.batch, 0);
        plain = score_batch(t.model, &t.batch);
        assert_true(fabs(moved_loss(&t, t.values, 0) / plain - 1) > 1e-4); /* it is on */
        memcpy(gradient, t.values, count * sizeof *gradient);
        for (size_t e = 0; e < count; e++)
            squares += pow((double)gradient[e], 2);
        const double h = 1e-2 / sqrt(squares);
        double slope = (moved_loss(&t, gradient, h) - moved_loss(&t, gradient, -h)) / (2 * h);
        if (!(fabs(slope / squares - 1) < 2e-3))
            fail_msg("%s: %g instead of %g", models[i].name, slope, squares);
        free(gradient);
        close_trainer(&t);
    }
}

static void gradients_in_bf16_are_near_fp32(void **state)
{
    (void)state;
    for (int i = 0; i < model_count; i++) {
        struct trainer t, narrow;
        double difference = 0, whole = 0;
        open_trainer(&t, &models[i], DT_DTYPE_F32, DT_RECOMPUTE_NONE, 0);
        open_trainer(&narrow, &models[i], DT_DTYPE_BF16, DT_RECOMPUTE_NONE, 0);
        backward(&t, 0);
        backward(&narrow, 0);
        for (int64_t e = 0; e < t.model->table.elements; e++) {
            difference += pow((double)t.values[e] - (double)narrow.values[e], 2);
            whole += pow((double)t.values[e], 2);
        }
        if (!(sqrt(difference / whole) < 0.05))
            fail_msg("%s: gradients are off by %g", models[i].name, sqrt(difference / whole));
        close_trainer(&t);
        close_trainer(&narrow);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_gradients_of_20_steps_are_those_of_peft),
        cmocka_unit_test(recomputation_changes_nothing),
        cmocka_unit_test(a_directory_of_peft_is_read_as_the_merged_model),
        cmocka_unit_test(an_adapter_is_merged_into_a_loaded_model),
        cmocka_unit_test(gradients_with_dropout_are_those_of_finite_differences),
        cmocka_unit_test(gradients_in_bf16_are_near_fp32),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
