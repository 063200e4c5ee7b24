/* SPDX-License-Identifier: MIT */
/*
 * answers forward|all DIRECTORY...: what dt computes with the model and the batch in each
 * directory, for families_oracle.py and test-families.c. Writes to DIRECTORY/answers:
 *
 *     error       if dt refuses the model: why; nothing else is written
 *     logits      rows x V floats by decoding, of a causal model; of a classifier, B x its labels
 *     losses      LOSSES x rows floats: of token i V / LOSSES as the target, i = 0, 1, ...; not of
 *                 a classifier
 *                 and with all:
 *     loss        the sum of the losses of the batch's targets, as text
 *     layers      what train/layer-metrics.h measures, as text: of each layer input and middle RMS,
 *                 dead units and the entropy of each head (nan with a softcap); then RMS before and
 *                 after the final norm, RMS and largest magnitude of the logits
 *     gradients/  its gradients, as a model directory
 *     stepped/    the model after one step of AdamW
 *
 * A batch is int32: B, T, B x T inputs, B x T targets (-1: none).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "formats/safetensors-export.h"
#include "model/decode.h"
#include "model/forward-backward.h"
#include "optim/optimizer.h"
#include "train/layer-metrics.h"

enum { LOSSES = 16, PREFILL = 3 };

struct question {
    const char *directory;
    struct dt_model *model;
    struct dt_batch batch;
};

static char *path_in(const struct question *q, const char *file)
{
    return dt_asprintf("%s/answers/%s", q->directory, file);
}

static int write_answer(const struct question *q, const char *file, const void *data, size_t size,
                        struct dt_error *err)
{
    char *path = path_in(q, file);
    int rc = dt_file_write(path, data, size, err);
    free(path);
    return rc;
}

static int read_batch(struct question *q, struct dt_error *err)
{
    char *data, *path = dt_asprintf("%s/batch", q->directory);
    size_t size;
    int32_t shape[2];
    int rc = dt_file_read(path, 1 << 24, &data, &size, err);
    free(path);
    DT_TRY(rc);
    memcpy(shape, data, sizeof shape);
    size_t bytes = (size_t)(shape[0] * shape[1]) * sizeof(int32_t);
    dt_batch_init(&q->batch, shape[0], shape[1]);
    q->batch.count = shape[0];
    q->batch.length = shape[1];
    memcpy(q->batch.inputs, data + sizeof shape, bytes);
    memcpy(q->batch.targets, data + sizeof shape + bytes, bytes);
    free(data);
    return 0;
}

/* Prefills and decodes each sequence of the batch. */
static int answer_logits(const struct question *q, struct dt_error *err)
{
    int64_t length = q->batch.length, vocabulary = q->model->config.vocab_size;
    size_t bytes = (size_t)(q->batch.count * length * vocabulary) * sizeof(float);
    struct dt_decoder *d;
    float *logits = dt_alloc(bytes, 1);
    int rc = dt_decoder_new(&d, q->model, q->batch.count, length, err);
    for (int64_t b = 0; rc == 0 && b < q->batch.count; b++) {
        const uint32_t *ids = (const uint32_t *)q->batch.inputs + b * length;
        float *rows = logits + b * length * vocabulary;
        for (int64_t t = 0; t < PREFILL; t++) {
            dt_decoder_reset(d, b);
            dt_decoder_feed(d, b, ids, t + 1, rows + t * vocabulary);
        }
        for (int64_t t = PREFILL; t < length; t++)
            dt_decoder_step(d, &b, ids + t, 1, rows + t * vocabulary);
    }
    if (rc == 0) {
        dt_decoder_free(d);
        rc = write_answer(q, "logits", logits, bytes, err);
    }
    free(logits);
    return rc;
}

static int answer_label_logits(const struct question *q, struct dt_error *err)
{
    struct dt_workspace *w;
    size_t bytes =
        (size_t)(q->batch.count * dt_model_logit_count(&q->model->config)) * sizeof(float);
    DT_TRY(dt_workspace_new(
        &w, q->model, &(struct dt_workspace_shape){q->batch.count, q->batch.length, false}, err));
    float *logits = dt_alloc(bytes, 1);
    dt_model_logits(q->model, w, &q->batch, logits);
    int rc = write_answer(q, "logits", logits, bytes, err);
    free(logits);
    dt_workspace_free(w);
    return rc;
}

static int answer_losses(const struct question *q, struct dt_error *err)
{
    struct dt_workspace *w;
    struct dt_batch asked = q->batch;
    int64_t rows = asked.count * asked.length;
    DT_TRY(dt_workspace_new(&w, q->model,
                            &(struct dt_workspace_shape){asked.count, asked.length, false}, err));
    float *losses = dt_alloc((size_t)(LOSSES * rows), sizeof *losses);
    asked.targets = dt_alloc((size_t)rows, sizeof *asked.targets);
    for (int64_t i = 0; i < LOSSES; i++) {
        for (int64_t row = 0; row < rows; row++)
            asked.targets[row] = (int32_t)(i * q->model->config.vocab_size / LOSSES);
        dt_model_score(q->model, w, &asked, losses + i * rows, NULL);
    }
    int rc = write_answer(q, "losses", losses, (size_t)(LOSSES * rows) * sizeof *losses, err);
    free(asked.targets);
    free(losses);
    dt_workspace_free(w);
    return rc;
}

static void print_layer(const struct dt_layer_metrics *m, int layer, struct dt_buffer *text)
{
    dt_buffer_printf(text, "%.9g %.9g %.9g", dt_layer_metrics_rms(m, layer, DT_TRACE_POINT_INPUT),
                     dt_layer_metrics_rms(m, layer, DT_TRACE_POINT_MIDDLE),
                     dt_layer_metrics_dead_units(m, layer));
    for (int head = 0; head < m->model->config.num_heads; head++)
        dt_buffer_printf(text, " %.9g", dt_layer_metrics_entropy(m, layer, head));
    dt_buffer_add_char(text, '\n');
}

static int write_layers(const struct question *q, struct dt_layer_metrics *m, struct dt_error *err)
{
    const int layers = q->model->table.layers;
    struct dt_comm *self;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    DT_TRY(dt_comm_open(&self, "self", NULL, err));
    int rc = dt_layer_metrics_end(m, self, err);
    dt_comm_close(self);
    for (int layer = 0; layer < layers; layer++)
        print_layer(m, layer, &text);
    dt_buffer_printf(&text, "%.9g %.9g %.9g %.9g\n",
                     dt_layer_metrics_rms(m, layers, DT_TRACE_POINT_INPUT),
                     dt_layer_metrics_rms(m, layers, DT_TRACE_POINT_OUTPUT),
                     dt_layer_metrics_logit_rms(m), dt_layer_metrics_logit_max(m));
    rc = rc < 0 ? rc : write_answer(q, "layers", text.data, text.size, err);
    dt_buffer_release(&text);
    return rc;
}

/* All that can be measured, from now on. */
static int begin_layers(const struct question *q, struct dt_layer_metrics *m, struct dt_error *err)
{
    unsigned wanted =
        1U << DT_LAYER_METRIC_RMS | 1U << DT_LAYER_METRIC_DEAD_UNITS | 1U << DT_LAYER_METRIC_LOGITS;
    if (q->model->config.attention_softcap == 0)
        wanted |= 1U << DT_LAYER_METRIC_ENTROPY;
    DT_TRY(
        dt_layer_metrics_init(m, wanted, q->model, q->batch.count, q->batch.length, 1, NULL, err));
    dt_layer_metrics_begin(m, 0);
    return 0;
}

/* Without dropout, as the loss is compared. */
static int backward(const struct question *q, float *gradients, struct dt_error *err)
{
    struct dt_workspace *w;
    char text[40];
    struct dt_model_config *c = &q->model->config, kept = *c;
    c->dropout = c->attention_dropout = 0;
    DT_TRY(dt_workspace_new(
        &w, q->model, &(struct dt_workspace_shape){q->batch.count, q->batch.length, true}, err));
    struct dt_flat flat = {0};
    struct dt_layer_metrics layers;
    int rc = begin_layers(q, &layers, err);
    dt_flat_set(&flat, &q->model->table, DT_DTYPE_F32, gradients);
    double loss = dt_model_backward(q->model, w, &q->batch, &flat, &(struct dt_pass){.scale = 1});
    dt_flat_release(&flat);
    q->model->trace = NULL;
    rc = rc < 0 ? rc : write_layers(q, &layers, err);
    dt_layer_metrics_release(&layers);
    dt_workspace_free(w);
    *c = kept;
    DT_TRY(rc);
    int size = snprintf(text, sizeof text, "%.12g\n", loss);
    return write_answer(q, "loss", text, (size_t)size, err);
}

/* With an epsilon that hides rounding errors of gradients near 0. */
static int step(struct dt_model *m, float *gradients, struct dt_error *err)
{
    struct dt_settings s = {0};
    struct dt_optimizer o;
    struct dt_arena arena = {0};
    dt_config_defaults(dt_settings_schema, &s);
    s.training.schedule = 0; /* constant */
    s.training.warmup_steps = 0;
    s.training.learning_rate = 0.01;
    s.training.epsilon = 0.1;
    dt_optimizer_init(&o, &m->table, NULL, NULL, &s);
    dt_optimizer_layout_state(&o, &arena);
    int rc = dt_arena_allocate(&arena, m->device, err);
    if (rc == 0) {
        size_t buckets = (size_t)m->table.bucket_count;
        float **from = dt_alloc(buckets, sizeof *from), **to = dt_alloc(buckets, sizeof *to);
        for (size_t b = 0; b < buckets; b++) {
            from[b] = gradients + m->table.buckets[b];
            to[b] = m->parameters + m->table.buckets[b];
        }
        dt_optimizer_layout_state(&o, &arena);
        dt_optimizer_update(&o, m->device, to, from, &s, 0, 1);
        free(from);
        free(to);
        dt_arena_release(&arena, m->device);
    }
    dt_optimizer_release(&o);
    return rc;
}

static int export(const struct question *q, const char *name, struct dt_error *err)
{
    char *path = path_in(q, name);
    struct dt_labels labels;
    int rc = dt_labels_read(&labels, q->directory, q->model->config.num_labels, err);
    rc = rc < 0 ? rc : dt_file_make_directories(path, err);
    if (rc == 0)
        rc = dt_model_export(q->model, DT_DTYPE_F32, 0, UINT32_MAX, &labels, path, err);
    dt_labels_release(&labels);
    free(path);
    return rc;
}

static int answer_training(const struct question *q, struct dt_error *err)
{
    size_t bytes = (size_t)q->model->table.elements * sizeof(float);
    float *gradients = dt_alloc(bytes, 1), *parameters = dt_alloc(bytes, 1);
    int rc = backward(q, gradients, err);
    if (rc == 0) {
        memcpy(parameters, q->model->parameters, bytes);
        dt_model_set_parameters(q->model, gradients);
        rc = export(q, "gradients", err);
        dt_model_set_parameters(q->model, parameters);
    }
    if (rc == 0)
        rc = step(q->model, gradients, err);
    free(gradients);
    free(parameters);
    return rc == 0 ? export(q, "stepped", err) : rc;
}

static int answer_all(struct question *q, bool training, struct dt_error *err)
{
    DT_TRY(read_batch(q, err));
    bool labels = q->model->config.num_labels > 0;
    if (labels)
        DT_TRY(answer_label_logits(q, err));
    else if (!dt_model_is_masked(&q->model->config))
        DT_TRY(answer_logits(q, err));
    if (!labels)
        DT_TRY(answer_losses(q, err));
    return training ? answer_training(q, err) : 0;
}

static int answer(struct dt_device *dev, const char *directory, bool training, struct dt_error *err)
{
    struct question q = {.directory = directory};
    struct dt_error refusal;
    char *path = path_in(&q, "");
    int rc = dt_file_remove_tree(path, err);
    if (rc == 0)
        rc = dt_file_make_directories(path, err);
    free(path);
    DT_TRY(rc);
    if (dt_model_load(&q.model, dev, directory, &refusal) < 0)
        return write_answer(&q, "error", refusal.text, strlen(refusal.text), err);
    rc = answer_all(&q, training, err);
    dt_batch_release(&q.batch);
    dt_model_free(q.model);
    return rc;
}

int main(int argc, char **argv)
{
    struct dt_device *dev;
    struct dt_error err;
    int rc = dt_device_open(&dev, "cpu", 2, &err);
    for (int i = 2; rc == 0 && i < argc; i++)
        rc = answer(dev, argv[i], strcmp(argv[1], "all") == 0, &err);
    if (rc < 0) {
        fprintf(stderr, "answers: %s\n", err.text);
        return 1;
    }
    dt_device_close(dev);
    return 0;
}
