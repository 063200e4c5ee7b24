/* SPDX-License-Identifier: MIT */
/*
 * Each family compared with transformers: losses, gradients and log-probabilities.
 *
 *     build/oracles/bin/python tests/oracles/families_oracle.py golden
 *
 * generated golden/families.txt. Its models and batches are formulas (scattered), so that the file
 * holds results only, and every run checks it. If Python has torch and transformers (make
 * oracles-torch), random models are also exchanged in both directions.
 */
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "formats/safetensors-export.h"
#include "model/forward-backward.h"

static struct dt_device *dev;
static struct dt_error err;

static int open_device(void **state)
{
    if (make_scratch(state) == 0 && dt_device_open(&dev, "cpu", 2, &err) == 0)
        return 0;
    print_error("%s\n", err.text);
    return -1;
}

static int close_device(void **state)
{
    dt_device_close(dev);
    return remove_scratch(state);
}

/* Forward and backward; the gradients are the caller's to free. */
static float *backward(struct dt_model *m, const struct dt_batch *batch, double *loss)
{
    struct dt_workspace *w;
    float *gradients = dt_alloc((size_t)m->table.elements, sizeof *gradients);
    assert_int_equal(
        dt_workspace_new(&w, m, &(struct dt_workspace_shape){batch->count, batch->length, true},
                         &err),
        0);
    struct dt_flat flat = {0};
    dt_flat_set(&flat, &m->table, DT_DTYPE_F32, gradients);
    *loss = dt_model_backward(m, w, batch, &flat, &(struct dt_pass){.scale = 1});
    dt_flat_release(&flat);
    dt_workspace_free(w);
    return gradients;
}

/* --- golden ----------------------------------------------------------------------------------- */

/* Numbers from -1/2 to 1/2, a function of name and index, as in families_oracle.py. */
static void scattered(const char *prefix, const char *name, double *values, int64_t count)
{
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
}

enum { GOLDEN_ROWS = 3, GOLDEN_LENGTH = 10, GOLDEN_VOCABULARY = 29 };

static void fill_golden_batch(struct dt_batch *b)
{
    enum { TOKENS = GOLDEN_ROWS * GOLDEN_LENGTH };
    double inputs[TOKENS], targets[TOKENS], chosen[TOKENS];
    dt_batch_init(b, GOLDEN_ROWS, GOLDEN_LENGTH);
    b->count = GOLDEN_ROWS;
    b->length = GOLDEN_LENGTH;
    scattered("", "inputs", inputs, TOKENS);
    scattered("", "targets", targets, TOKENS);
    scattered("", "chosen", chosen, TOKENS);
    for (int i = 0; i < TOKENS; i++) {
        b->inputs[i] = (int32_t)((inputs[i] + 0.5) * GOLDEN_VOCABULARY);
        b->targets[i] =
            chosen[i] > 0.2 ? DT_NO_TARGET : (int32_t)((targets[i] + 0.5) * GOLDEN_VOCABULARY);
    }
}

static struct dt_model *new_golden_model(const char *family)
{
    struct dt_model_config c = {.vocab_size = GOLDEN_VOCABULARY,
                                .max_seq_len = 16,
                                .hidden_size = 16,
                                .num_layers = 2,
                                .num_heads = 4,
                                .intermediate_size = 24,
                                .rope_theta = 10000,
                                .qk_norm = strcmp(family, "qwen3") == 0};
    const char *name = c.qk_norm ? "llama" : family;
    while (strcmp(dt_family_names[c.family], name) != 0)
        c.family++;
    bool rotary = dt_model_is_rotary(&c);
    c.qk_norm |= c.family == DT_FAMILY_OLMO2;
    c.tie_word_embeddings = !rotary;
    c.num_kv_heads = rotary ? 2 : 0;
    c.layer_norm_epsilon = rotary ? 1e-6 : 0;
    struct dt_model *m;
    assert_int_equal(dt_model_config_check(&c, "model", &err), 0);
    assert_int_equal(dt_model_new(&m, dev, &c, DT_DTYPE_F32, &err), 0);
    for (int i = 0; i < m->table.count; i++) {
        const struct dt_param *p = &m->table.params[i];
        double *values = dt_alloc((size_t)p->count, sizeof *values);
        scattered("", p->name, values, p->count);
        for (int64_t j = 0; j < p->count; j++)
            m->parameters[p->offset + j] = (float)(0.5 * values[j] + (p->init == DT_INIT_ONE));
        free(values);
    }
    return m;
}

/* "NAME NORM ALONG": a gradient's norm, and its product with scattered numbers. Softmax is
 * invariant to the bias of keys, whose gradient is rounding error alone. */
static void check_golden_gradient(const struct dt_model *m, const float *gradients,
                                  const char *name, double norm, double along)
{
    for (int i = 0; i < m->table.count; i++) {
        const struct dt_param *p = &m->table.params[i];
        if (strcmp(p->name, name) != 0)
            continue;
        double squares = 0, product = 0, *values = dt_alloc((size_t)p->count, sizeof *values);
        scattered("along ", name, values, p->count);
        for (int64_t j = 0; j < p->count; j++) {
            squares += pow((double)gradients[p->offset + j], 2);
            product += values[j] * (double)gradients[p->offset + j];
        }
        free(values);
        double slack = p->role == DT_ROLE_K_BIAS ? 1e-5 : 5e-6 * norm;
        if (!(fabs(sqrt(squares) - norm) <= slack && fabs(product - along) <= slack))
            fail_msg("%s: %.9g %.9g instead of %.9g %.9g", name, sqrt(squares), product, norm,
                     along);
        return;
    }
    fail_msg("there is no %s", name);
}

static void check_golden_family(const char *family, FILE *file, double want)
{
    struct dt_model *m = new_golden_model(family);
    struct dt_batch b;
    char name[80];
    double loss, norm, along;
    fill_golden_batch(&b);
    float *gradients = backward(m, &b, &loss);
    if (!(fabs(loss - want) <= 1e-6 * want))
        fail_msg("%s: the loss is %.9g instead of %.9g", family, loss, want);
    for (int i = 0; i < m->table.count; i++) {
        assert_int_equal(fscanf(file, "%79s %lf %lf", name, &norm, &along), 3);
        check_golden_gradient(m, gradients, name, norm, along);
    }
    free(gradients);
    dt_batch_release(&b);
    dt_model_free(m);
}

static void losses_and_gradients_match_the_golden_file(void **state)
{
    (void)state;
    FILE *file = fopen("tests/model/golden/families.txt", "r");
    char family[40];
    double loss;
    int count = 0;
    assert_non_null(file);
    for (; fscanf(file, " family %39s %lf", family, &loss) == 2; count++)
        check_golden_family(family, file, loss);
    assert_int_equal(count, 6);
    assert_true(feof(file));
    fclose(file);
}

/* Sine and cosine of the position, with the standard deviation of the other weights. */
static void positions_of_masked_models_start_as_sinusoids(void **state)
{
    (void)state;
    static const char *const families[] = {"bert", "distilbert"};
    for (int i = 0; i < 2; i++) {
        struct dt_model *m = new_golden_model(families[i]);
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

/* The relative error of gradients computed in 16 bits, over all tensors of a model. */
static double error_in(enum dt_dtype compute, const char *family)
{
    struct dt_model *m = new_golden_model(family), *rounded;
    struct dt_batch b;
    double loss, rounded_loss, difference = 0, whole = 0;
    fill_golden_batch(&b);
    assert_int_equal(dt_model_new(&rounded, dev, &m->config, compute, &err), 0);
    dt_model_set_parameters(rounded, m->parameters);
    float *want = backward(m, &b, &loss), *got = backward(rounded, &b, &rounded_loss);
    for (int64_t i = 0; i < m->table.elements; i++) {
        difference += pow((double)got[i] - (double)want[i], 2);
        whole += pow((double)want[i], 2);
    }
    assert_true(rounded_loss != loss && fabs(rounded_loss / loss - 1) < 0.01);
    free(want);
    free(got);
    dt_batch_release(&b);
    dt_model_free(m);
    dt_model_free(rounded);
    return sqrt(difference / whole);
}

static void sixteen_bit_gradients_are_near_fp32(void **state)
{
    (void)state;
    static const char *const families[] = {"gpt2", "llama", "qwen3", "olmo2", "bert", "distilbert"};
    for (int i = 0; i < 6; i++) {
        double bf16 = error_in(DT_DTYPE_BF16, families[i]),
               f16 = error_in(DT_DTYPE_F16, families[i]);
        /* Norms of outputs amplify rounding errors. */
        double slack = strcmp(families[i], "olmo2") == 0 ? 2 : 1;
        if (!(bf16 < 0.02 * slack && f16 < 0.0025 * slack))
            fail_msg("%s: gradients are off by %g in bf16, %g in fp16", families[i], bf16, f16);
    }
}

/* --- with transformers ------------------------------------------------------------------------ */

static bool run_oracle(const char *arguments)
{
    const char *named = getenv("PYTHON");
    const char *python = access("build/oracles/bin/python", X_OK) == 0 ? "build/oracles/bin/python"
                         : named                                       ? named
                                                                       : "python3";
    char *command = dt_asprintf("'%s' %s", python, arguments);
    int rc = system(command);
    free(command);
    return rc == 0;
}

static void need_transformers(void)
{
    if (run_oracle("-c 'import torch, transformers, safetensors' 2>/dev/null"))
        return;
    print_message("# skipped: needs the Python modules torch, transformers and safetensors\n");
    skip();
}

static char *path_of(const char *model, const char *file)
{
    return dt_asprintf("%s/%s/%s", scratch, model, file);
}

static char *read_whole(const char *model, const char *file, size_t *size)
{
    char *data, *path = path_of(model, file);
    if (dt_file_read(path, 1 << 24, &data, size, &err) < 0)
        fail_msg("%s", err.text);
    free(path);
    return data;
}

static void read_batch(const char *model, struct dt_batch *b)
{
    size_t size;
    char *data = read_whole(model, "batch", &size);
    int32_t shape[2];
    memcpy(shape, data, sizeof shape);
    size_t bytes = (size_t)(shape[0] * shape[1]) * sizeof(int32_t);
    assert_int_equal(size, sizeof shape + 2 * bytes);
    dt_batch_init(b, shape[0], shape[1]);
    b->count = shape[0];
    b->length = shape[1];
    memcpy(b->inputs, data + sizeof shape, bytes);
    memcpy(b->targets, data + sizeof shape + bytes, bytes);
    free(data);
}

/* Log-probabilities of every token at every position: minus its loss as the target. */
static float *log_probabilities(const struct dt_model *m, const struct dt_batch *b)
{
    struct dt_workspace *w;
    int64_t rows = b->count * b->length, vocabulary = m->config.vocab_size;
    struct dt_batch asked = *b;
    float *values = dt_alloc((size_t)(rows * vocabulary), sizeof *values);
    float *losses = dt_alloc((size_t)rows, sizeof *losses);
    asked.targets = dt_alloc((size_t)rows, sizeof *asked.targets);
    assert_int_equal(
        dt_workspace_new(&w, m, &(struct dt_workspace_shape){b->count, b->length, false}, &err), 0);
    for (int64_t id = 0; id < vocabulary; id++) {
        for (int64_t row = 0; row < rows; row++)
            asked.targets[row] = (int32_t)id;
        dt_model_score(m, w, &asked, losses, NULL);
        for (int64_t row = 0; row < rows; row++)
            values[row * vocabulary + id] = -losses[row];
    }
    dt_workspace_free(w);
    free(asked.targets);
    free(losses);
    return values;
}

static double largest_difference(const float *a, const float *b, int64_t count)
{
    double worst = 0;
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs((double)a[i] - (double)b[i]);
        worst = difference <= worst ? worst : difference;
    }
    return worst;
}

static void check_log_probabilities(const char *name, const struct dt_model *m,
                                    const struct dt_batch *b)
{
    size_t size;
    char *want = read_whole(name, "log-probabilities", &size);
    int64_t count = b->count * b->length * m->config.vocab_size;
    float *got = log_probabilities(m, b);
    assert_int_equal(size, (size_t)count * sizeof *got);
    double worst = largest_difference(got, (const float *)(const void *)want, count);
    print_message("# %s: log-probabilities differ by %.2g at most\n", name, worst);
    assert_true(worst <= 1e-4);
    free(got);
    free(want);
}

static double norm_of_difference(const float *a, const float *b, int64_t count)
{
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += pow((double)a[i] - (b ? (double)b[i] : 0), 2);
    return sqrt(squares);
}

/* Relative L2 error of a gradient. The error of the bias of keys, whose gradient is rounding error
 * alone, is relative to the query's. */
static double error_of(const struct dt_table *t, const struct dt_param *p, const float *got,
                       const float *want)
{
    const struct dt_param *scale =
        p->role == DT_ROLE_K_BIAS ? dt_table_find(t, DT_ROLE_Q_BIAS, p->layer) : p;
    return norm_of_difference(got + p->offset, want + p->offset, p->count) /
           norm_of_difference(want + scale->offset, NULL, scale->count);
}

static void check_gradients(const char *name, struct dt_model *m, const struct dt_batch *b)
{
    const struct dt_table *t = &m->table;
    double loss, worst = 0;
    float *want = dt_alloc((size_t)t->elements, sizeof *want), *got = backward(m, b, &loss);
    struct dt_named_tensor *list = dt_model_named_tensors(t, want, "");
    char *path = path_of(name, "gradients");
    size_t size;
    if (dt_safetensors_read(path, list, t->count, NULL, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < t->count; i++) {
        double error = error_of(t, &t->params[i], got, want);
        if (!(error <= 1e-5))
            fail_msg("%s: %s is off by %g", name, t->params[i].name, error);
        worst = fmax(worst, error);
    }
    print_message("# %s: gradients are off by %.2g at most\n", name, worst);
    char *text = read_whole(name, "loss", &size);
    assert_true(fabs(loss / strtod(text, NULL) - 1) < 1e-6);
    free(text);
    free(path);
    free(list);
    free(got);
    free(want);
}

static void random_models_of_transformers_match_in_dt(void **state)
{
    (void)state;
    static const char *const families[] = {"gpt2", "llama", "qwen3", "olmo2", "bert", "distilbert"};
    static const char *const types[] = {"", "-bfloat16", "-float16"};
    need_transformers();
    char *make = dt_asprintf("tests/oracles/families_oracle.py make '%s'", scratch);
    assert_true(run_oracle(make));
    free(make);
    for (int i = 0; i < 18; i++) {
        char *name = dt_asprintf("%s%s", families[i / 3], types[i % 3]);
        char *directory = path_of(name, "");
        struct dt_model *m;
        struct dt_batch b;
        if (dt_model_load(&m, dev, directory, &err) < 0)
            fail_msg("%s", err.text);
        read_batch(name, &b);
        check_gradients(name, m, &b);
        check_log_probabilities(name, m, &b);
        dt_batch_release(&b);
        dt_model_free(m);
        free(directory);
        free(name);
    }
}

static void write_numbers(const char *model, const char *file, const void *data, size_t size)
{
    char *path = path_of(model, file);
    assert_int_equal(dt_file_write(path, data, size, &err), 0);
    free(path);
}

/* Saves a golden model as a directory, with its log-probabilities by dt. */
static void export(const char *family)
{
    struct dt_model *m = new_golden_model(family);
    struct dt_batch b;
    char *directory = path_of(family, "");
    fill_golden_batch(&b);
    size_t bytes = (size_t)(b.count * b.length) * sizeof *b.inputs;
    struct dt_buffer batch = DT_BUFFER_EMPTY;
    dt_buffer_append(&batch, (int32_t[]){GOLDEN_ROWS, GOLDEN_LENGTH}, 2 * sizeof(int32_t));
    dt_buffer_append(&batch, b.inputs, bytes);
    dt_buffer_append(&batch, b.targets, bytes);
    assert_int_equal(dt_file_make_directories(directory, &err), 0);
    assert_int_equal(dt_model_export(m, DT_DTYPE_F32, 0, 7, directory, &err), 0);
    float *values = log_probabilities(m, &b);
    write_numbers(family, "batch", batch.data, batch.size);
    write_numbers(family, "log-probabilities", values,
                  (size_t)(b.count * b.length * m->config.vocab_size) * sizeof *values);
    free(values);
    free(directory);
    dt_buffer_release(&batch);
    dt_batch_release(&b);
    dt_model_free(m);
}

static void saved_models_match_in_transformers(void **state)
{
    (void)state;
    static const char *const families[] = {"gpt2", "llama", "qwen3", "olmo2", "bert", "distilbert"};
    struct dt_buffer arguments = DT_BUFFER_EMPTY;
    need_transformers();
    dt_buffer_add_string(&arguments, "tests/oracles/families_oracle.py check");
    for (int i = 0; i < 6; i++) {
        char *directory = path_of(families[i], "");
        assert_int_equal(dt_file_remove_tree(directory, &err), 0);
        export(families[i]);
        dt_buffer_printf(&arguments, " '%s'", directory);
        free(directory);
    }
    assert_true(run_oracle(arguments.data));
    dt_buffer_release(&arguments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_gradients_match_the_golden_file),
        cmocka_unit_test(sixteen_bit_gradients_are_near_fp32),
        cmocka_unit_test(positions_of_masked_models_start_as_sinusoids),
        cmocka_unit_test(random_models_of_transformers_match_in_dt),
        cmocka_unit_test(saved_models_match_in_transformers),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
