/* SPDX-License-Identifier: MIT */
/*
 * Each family compared with transformers: logits, losses, gradients, a step of AdamW, and what is
 * measured of layers.
 *
 *     build/oracles/bin/python tests/oracles/families_oracle.py golden
 *
 * generated golden/families.txt. Its models and batches are formulas (scattered), so that the file
 * holds configurations and results only, and every run checks it. tests/oracles/families.bats
 * compares larger models, where transformers is installed.
 *
 *     model NAME TENSORS LOSS
 *     the text of config.json
 *     logits NORM ALONG
 *     layers COUNT NUMBER...                 (answers.c)
 *     TENSOR ROWS COLUMNS CENTER GRADIENT-NORM GRADIENT-ALONG STEP-NORM STEP-ALONG
 *
 * ALONG is the product with scattered numbers. Vectors have one column.
 */
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "formats/safetensors-export.h"
#include "model/forward-backward.h"
#include "json/json.h"

static struct dt_device *dev;
static struct dt_error err;

/* --- the file --------------------------------------------------------------------------------- */

enum { ROWS = 3, LENGTH = 10, TOKENS = ROWS * LENGTH, VOCABULARY = 29, FIRST_ID = 2 };
enum { TENSORS_MOST = 80, MODELS_MOST = 112, NUMBERS_MOST = 40 };

struct summary {
    double norm, along;
};

struct golden_tensor {
    char name[80];
    int64_t shape[2], count;
    double center; /* of its values */
    struct summary gradient, step;
};

struct golden {
    char name[40];
    int count;
    double loss;
    char json[4096];
    struct summary logits;
    int number_count;
    double numbers[NUMBERS_MOST]; /* of layers */
    struct golden_tensor tensors[TENSORS_MOST];
};

static struct golden models[MODELS_MOST];
static int model_count;

static void read_model(FILE *file, struct golden *g)
{
    assert_true(g->count <= TENSORS_MOST);
    assert_non_null(fgets(g->json, sizeof g->json, file));
    assert_int_equal(fscanf(file, " logits %lf %lf", &g->logits.norm, &g->logits.along), 2);
    assert_int_equal(fscanf(file, " layers %d", &g->number_count), 1);
    assert_true(g->number_count <= NUMBERS_MOST);
    for (int i = 0; i < g->number_count; i++)
        assert_int_equal(fscanf(file, "%lf", &g->numbers[i]), 1);
    for (int i = 0; i < g->count; i++) {
        struct golden_tensor *t = &g->tensors[i];
        assert_int_equal(fscanf(file, " %79s %ld %ld %lf %lf %lf %lf %lf", t->name, &t->shape[0],
                                &t->shape[1], &t->center, &t->gradient.norm, &t->gradient.along,
                                &t->step.norm, &t->step.along),
                         8);
        t->count = t->shape[0] * t->shape[1];
    }
}

static void read_models(void)
{
    FILE *file = fopen("tests/model/golden/families.txt", "r");
    assert_non_null(file);
    for (;; model_count++) {
        struct golden *g = &models[model_count];
        assert_true(model_count < MODELS_MOST);
        if (fscanf(file, " model %39s %d %lf ", g->name, &g->count, &g->loss) != 3)
            break;
        read_model(file, g);
    }
    assert_true(feof(file));
    fclose(file);
}

/* --- its models ------------------------------------------------------------------------------- */

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

static void write_file(const char *model, const char *file, const void *data, size_t size)
{
    char *path = path_of(model, file);
    assert_int_equal(dt_file_write(path, data, size, &err), 0);
    free(path);
}

/* In transformers' names and shapes; data NULL: all 0. */
static struct dt_named_tensor *new_tensors(const struct golden *g)
{
    struct dt_named_tensor *list = dt_alloc((size_t)g->count, sizeof *list);
    for (int i = 0; i < g->count; i++) {
        const struct golden_tensor *t = &g->tensors[i];
        list[i].rank = t->shape[1] > 1 ? 2 : 1;
        memcpy(list[i].shape, t->shape, sizeof t->shape);
        snprintf(list[i].name, sizeof list[i].name, "%s", t->name);
        list[i].data = dt_alloc((size_t)t->count, sizeof(float));
    }
    return list;
}

static void free_tensors(const struct golden *g, struct dt_named_tensor *list)
{
    for (int i = 0; i < g->count; i++)
        free(list[i].data);
    free(list);
}

static struct dt_named_tensor *new_weights(const struct golden *g)
{
    struct dt_named_tensor *list = new_tensors(g);
    for (int i = 0; i < g->count; i++) {
        const struct golden_tensor *t = &g->tensors[i];
        double *values = scattered("", t->name, t->count);
        for (int64_t j = 0; j < t->count; j++)
            list[i].data[j] = (float)(0.5 * values[j] + t->center);
        free(values);
    }
    return list;
}

/* The configuration, if dt computes the model. */
static struct dt_model_config config_of(const struct golden *g)
{
    struct dt_model_config c = {0};
    struct json_object *object;
    assert_int_equal(dt_json_parse(g->json, strlen(g->json), g->name, &object, &err), 0);
    if (dt_model_config_from_json(&c, object, g->name, &err) < 0)
        c.num_labels = 0;
    json_object_put(object);
    return c;
}

/* The targets of a classifier: a label at the token that it classifies. */
static void keep_labels(const struct dt_model_config *c, int32_t *targets, const double *labels)
{
    int64_t chosen = dt_model_is_masked(c) ? 0 : LENGTH - 1;
    for (int i = 0; i < TOKENS; i++)
        targets[i] = i % LENGTH == chosen
                         ? (int32_t)((labels[i] + 0.5) * VOCABULARY) % (int32_t)c->num_labels
                         : DT_NO_TARGET;
}

static void fill_batch(const struct golden *g, int32_t *inputs, int32_t *targets)
{
    const struct dt_model_config c = config_of(g);
    double *first = scattered("", "inputs", TOKENS), *second = scattered("", "targets", TOKENS);
    double *chosen = scattered("", "chosen", TOKENS);
    for (int i = 0; i < TOKENS; i++) {
        inputs[i] = (int32_t)((first[i] + 0.5) * (VOCABULARY - FIRST_ID)) + FIRST_ID;
        targets[i] = chosen[i] > 0.2 ? DT_NO_TARGET : (int32_t)((second[i] + 0.5) * VOCABULARY);
    }
    if (c.num_labels > 0)
        keep_labels(&c, targets, second);
    free(first);
    free(second);
    free(chosen);
}

static void write_model(const struct golden *g)
{
    int32_t batch[2 + 2 * TOKENS] = {ROWS, LENGTH};
    struct dt_named_tensor *weights = new_weights(g);
    char *directory = path_of(g->name, ""), *path = path_of(g->name, "model.safetensors");
    fill_batch(g, batch + 2, batch + 2 + TOKENS);
    assert_int_equal(dt_file_make_directories(directory, &err), 0);
    assert_int_equal(dt_safetensors_write(path, weights, g->count, false, &err), 0);
    write_file(g->name, "config.json", g->json, strlen(g->json));
    write_file(g->name, "batch", batch, sizeof batch);
    free_tensors(g, weights);
    free(directory);
    free(path);
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

/* --- comparison ------------------------------------------------------------------------------- */

static const struct golden *find(const char *name)
{
    for (int i = 0; i < model_count; i++)
        if (strcmp(models[i].name, name) == 0)
            return &models[i];
    fail_msg("there is no %s", name);
    return NULL;
}

/* slack: of both numbers, relative to scale. */
static void check_summary(const char *model, const char *what, const char *name,
                          const float *values, int64_t count, struct summary want, double slack)
{
    double squares = 0, product = 0, *along = scattered("along ", name, count);
    for (int64_t i = 0; i < count; i++) {
        squares += pow((double)values[i], 2);
        product += along[i] * (double)values[i];
    }
    free(along);
    if (!(fabs(sqrt(squares) - want.norm) <= slack && fabs(product - want.along) <= slack))
        fail_msg("%s: %s of %s: %.9g %.9g instead of %.9g %.9g", model, what, name, sqrt(squares),
                 product, want.norm, want.along);
}

static void check_logits(const struct golden *g)
{
    char *data, *path = path_of(g->name, "answers/logits");
    size_t size;
    long labels = config_of(g).num_labels, count = labels > 0 ? ROWS * labels : TOKENS * VOCABULARY;
    if (dt_file_is_regular(path)) { /* not of masked models */
        assert_int_equal(dt_file_read(path, 1 << 20, &data, &size, &err), 0);
        assert_int_equal(size, (size_t)count * sizeof(float));
        check_summary(g->name, "values", "logits", (float *)(void *)data, count, g->logits,
                      2e-6 * g->logits.norm);
        free(data);
    }
    free(path);
}

static void check_loss(const struct golden *g)
{
    char *text, *path = path_of(g->name, "answers/loss");
    size_t size;
    assert_int_equal(dt_file_read(path, 100, &text, &size, &err), 0);
    double loss = strtod(text, NULL);
    if (!(fabs(loss - g->loss) <= 1e-6 * g->loss))
        fail_msg("%s: the loss is %.9g instead of %.9g", g->name, loss, g->loss);
    free(text);
    free(path);
}

/* RMS and entropies of layers, their dead units, and the logits' size. */
static void check_layers(const struct golden *g)
{
    char *path = path_of(g->name, "answers/layers");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int i = 0; i < g->number_count; i++) {
        double got, want = g->numbers[i];
        assert_int_equal(fscanf(file, "%lf", &got), 1);
        if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 1e-5 * fmax(1, fabs(want))))
            fail_msg("%s: number %d of layers is %.9g instead of %.9g", g->name, i, got, want);
    }
    assert_int_equal(fscanf(file, " %*s"), EOF);
    fclose(file);
    free(path);
}

/* The bound of a gradient's error. Without RoPE, softmax is invariant to the bias of keys, whose
 * gradient is rounding error alone. */
static double slack_of(const struct golden_tensor *t)
{
    return fmax(5e-6 * t->gradient.norm, t->gradient.norm < 1e-6 ? 1e-5 : 0);
}

static void read_answer(const struct golden *g, const char *file, struct dt_named_tensor *list)
{
    char *path = path_of(g->name, file);
    if (dt_safetensors_read(path, list, g->count, NULL, &err) < 0)
        fail_msg("%s", err.text);
    free(path);
}

static void check_training(const struct golden *g)
{
    struct dt_named_tensor *before = new_weights(g), *got = new_tensors(g);
    read_answer(g, "answers/gradients/model.safetensors", got);
    for (int i = 0; i < g->count; i++)
        check_summary(g->name, "gradient", g->tensors[i].name, got[i].data, g->tensors[i].count,
                      g->tensors[i].gradient, slack_of(&g->tensors[i]));
    read_answer(g, "answers/stepped/model.safetensors", got);
    for (int i = 0; i < g->count; i++) {
        int64_t count = g->tensors[i].count;
        for (int64_t j = 0; j < count; j++)
            got[i].data[j] -= before[i].data[j];
        check_summary(g->name, "step", g->tensors[i].name, got[i].data, count, g->tensors[i].step,
                      1e-6 * sqrt((double)count));
    }
    free_tensors(g, before);
    free_tensors(g, got);
}

static bool is_refused(const struct golden *g)
{
    char *path = path_of(g->name, "answers/error");
    bool refused = dt_file_is_regular(path);
    free(path);
    return refused;
}

static void answer(const struct golden *g)
{
    const char *build = getenv("DT_BUILD");
    char *command = dt_asprintf("'%s/tests/oracles/answers' all '%s/%s'", build ? build : "build",
                                scratch, g->name);
    if (system(command) != 0)
        fail_msg("%s", command);
    free(command);
}

/* Models that dt refuses. */
static const char *const refused[] = {"gpt_neox-unbiased",   "modernbert-biased",
                                      "modernbert-unbiased", "stablelm-parallel",
                                      "stablelm-normed",     NULL};

static bool should_be_refused(const struct golden *g)
{
    int i = 0;
    while (refused[i] && strcmp(refused[i], g->name) != 0)
        i++;
    return refused[i] != NULL;
}

static void models_match_the_golden_file(void **state)
{
    (void)state;
    for (int i = 0; i < model_count; i++) {
        const struct golden *g = &models[i];
        answer(g);
        if (is_refused(g) != should_be_refused(g))
            fail_msg("%s: %s", g->name, is_refused(g) ? "refused" : "computed");
        if (is_refused(g))
            continue;
        check_logits(g);
        check_layers(g);
        check_loss(g);
        check_training(g);
    }
    assert_int_equal(model_count, 100);
}

/* --- properties of each family ---------------------------------------------------------------- */

static struct dt_model *load(const struct golden *g, enum dt_dtype compute)
{
    struct dt_model *m;
    char *directory = path_of(g->name, "");
    if (dt_model_load_as(&m, dev, (struct dt_model_use){compute}, directory, &err) < 0)
        fail_msg("%s", err.text);
    free(directory);
    return m;
}

/* Sine and cosine of the position, with the standard deviation of the other weights. */
static void positions_of_masked_models_start_as_sinusoids(void **state)
{
    (void)state;
    static const char *const names[] = {"bert-plain", "distilbert-plain"};
    for (int i = 0; i < 2; i++) {
        struct dt_model *m = load(find(names[i]), DT_DTYPE_F32);
        const struct dt_param *p = dt_table_find(&m->table, DT_ROLE_POSITION_EMBEDDING, -1);
        dt_model_initialize(m, 1);
        const float *row = m->parameters + p->offset + 5 * 16;
        float height = 0.02f * sqrtf(2);
        assert_float_equal(row[0], height * sinf(5), 1e-6);
        assert_float_equal(row[1], height * cosf(5), 1e-6);
        assert_float_equal(row[8], height * sinf(5e-2f), 1e-6);
        dt_model_free(m);
    }
}

/* The gradients are the caller's to free. */
static float *backward(const struct golden *g, enum dt_dtype compute, double *loss,
                       int64_t *elements)
{
    struct dt_model *m = load(g, compute);
    struct dt_workspace *w;
    struct dt_batch batch;
    struct dt_flat flat = {0};
    float *gradients = dt_alloc((size_t)m->table.elements, sizeof *gradients);
    assert_int_equal(
        dt_workspace_new(&w, m, &(struct dt_workspace_shape){ROWS, LENGTH, true}, &err), 0);
    dt_batch_init(&batch, ROWS, LENGTH);
    batch.count = ROWS;
    batch.length = LENGTH;
    fill_batch(g, batch.inputs, batch.targets);
    dt_flat_set(&flat, &m->table, DT_DTYPE_F32, gradients);
    *loss = dt_model_backward(m, w, &batch, &flat, &(struct dt_pass){.scale = 1});
    *elements = m->table.elements;
    dt_flat_release(&flat);
    dt_batch_release(&batch);
    dt_workspace_free(w);
    dt_model_free(m);
    return gradients;
}

/* The relative error of gradients computed in 16 bits, over all tensors of a model. */
static double error_in(enum dt_dtype compute, const struct golden *g)
{
    double loss, rounded_loss, difference = 0, whole = 0;
    int64_t elements;
    float *want = backward(g, DT_DTYPE_F32, &loss, &elements);
    float *got = backward(g, compute, &rounded_loss, &elements);
    for (int64_t i = 0; i < elements; i++) {
        difference += pow((double)got[i] - (double)want[i], 2);
        whole += pow((double)want[i], 2);
    }
    assert_true(rounded_loss != loss && fabs(rounded_loss / loss - 1) < 0.01);
    free(want);
    free(got);
    return sqrt(difference / whole);
}

/* Which amplify rounding errors. */
static bool has_output_norms(const struct golden *g)
{
    struct dt_model *m = load(g, DT_DTYPE_F32);
    enum dt_norm_placement placement = dt_family_of(&m->config)->norm_placement;
    dt_model_free(m);
    return placement == DT_NORM_PLACEMENT_OUTPUT || placement == DT_NORM_PLACEMENT_BOTH;
}

static void sixteen_bit_gradients_are_near_fp32(void **state)
{
    (void)state;
    for (int i = 0; i < model_count; i++) {
        const struct golden *g = &models[i];
        if (strstr(g->name, "-plain") == NULL)
            continue;
        double bf16 = error_in(DT_DTYPE_BF16, g), f16 = error_in(DT_DTYPE_F16, g);
        double slack = has_output_norms(g) ? 2 : 1;
        if (!(bf16 < 0.0225 * slack && f16 < 0.0025 * slack))
            fail_msg("%s: gradients are off by %g in bf16, %g in fp16", g->name, bf16, f16);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_match_the_golden_file),
        cmocka_unit_test(sixteen_bit_gradients_are_near_fp32),
        cmocka_unit_test(positions_of_masked_models_start_as_sinusoids),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
