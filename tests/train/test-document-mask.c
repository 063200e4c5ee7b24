/* SPDX-License-Identifier: MIT */
/* Attention within documents, and without padding. */
#include "train/small-run.h"

#include <math.h>

#include "model/forward-backward.h"
#include "shard/dataset.h"
#include "shard/loader.h"

#define VOCAB  50
#define EOT    49
#define LENGTH 24
#define ROWS   4

/* Documents of 1 to 14 tokens, so that every sequence has some. */
static int write_documents(void)
{
    struct dt_output out;
    struct dt_shard_writer *w;
    const struct dt_shard_info info = {
        .token_bytes = 2, .vocab_size = VOCAB, .eot = EOT, .tokenizer = 7, .provenance = "test\n"};
    DT_TRY(dt_output_open(&out, data_path, &err));
    DT_TRY(dt_shard_writer_new(&w, &out, &info, 1, &err));
    for (uint64_t i = 0; i < 400; i++) {
        uint32_t ids[14];
        uint64_t count = 1 + dt_random(3, 0, i).word[0] % 14;
        for (uint64_t k = 0; k + 1 < count; k++)
            ids[k] = dt_random(3, 1 + i, k).word[0] % EOT;
        ids[count - 1] = EOT;
        DT_TRY(dt_shard_write(w, ids, &(struct dt_shard_document){i, count, count}, &err));
    }
    DT_TRY(dt_shard_writer_finish(w, &err));
    dt_shard_writer_free(w);
    return dt_output_commit(&out, &err);
}

static int set_up_documents(void **state)
{
    return set_up(state) < 0 || write_documents() < 0 ? -1 : 0;
}

static struct dt_model *new_model(struct dt_device *dev, const struct dt_settings *s)
{
    struct dt_model *m;
    struct dt_model_config config = s->model;
    config.vocab_size = VOCAB;
    assert_int_equal(dt_model_config_check(&config, "model", &err), 0);
    if (dt_model_new(&m, dev, &config, DT_DTYPE_F32, &err) < 0)
        fail_msg("%s", err.text);
    dt_model_initialize(m, (uint64_t)s->training.seed);
    return m;
}

static double backward(const struct dt_model *m, const struct dt_batch *b, float *gradients)
{
    struct dt_workspace *w;
    struct dt_flat flat = {0};
    const struct dt_workspace_shape shape = {
        .batch = b->count, .length = b->length, .training = true};
    assert_int_equal(dt_workspace_new(&w, m, &shape, &err), 0);
    dt_flat_set(&flat, &m->table, DT_DTYPE_F32, gradients);
    double loss = dt_model_backward(m, w, b, &flat, &(struct dt_pass){.scale = 1});
    dt_flat_release(&flat);
    dt_workspace_free(w);
    return loss;
}

static void score(const struct dt_model *m, const struct dt_batch *b, float *losses)
{
    struct dt_workspace *w;
    const struct dt_workspace_shape shape = {.batch = b->count, .length = b->length};
    assert_int_equal(dt_workspace_new(&w, m, &shape, &err), 0);
    dt_model_score(m, w, b, losses, NULL);
    dt_workspace_free(w);
}

/* Each document of a sample separately: its tokens and targets. */
static double pass_one_by_one(const struct dt_model *m, const uint32_t *ids, float *gradients)
{
    double sum = 0;
    for (int64_t from = 0, to; from < LENGTH; from = to) {
        struct dt_batch b;
        for (to = from + 1; to < LENGTH && ids[to - 1] != EOT;)
            to++;
        dt_batch_init(&b, 1, to - from);
        dt_batch_next_token(&b, ids + from, 1, to - from);
        sum += backward(m, &b, gradients);
        dt_batch_release(&b);
    }
    return sum;
}

static double pass_samples_one_by_one(const struct dt_model *m, float *gradients)
{
    struct dt_dataset *d;
    uint32_t ids[LENGTH + 1];
    double sum = 0;
    assert_int_equal(dt_dataset_open(&d, data_path, "train", &err), 0);
    for (uint64_t k = 0; k < ROWS; k++) {
        assert_int_equal(dt_dataset_sample(d, LENGTH, k, ids, &err), 0);
        sum += pass_one_by_one(m, ids, gradients);
    }
    dt_dataset_close(d);
    return sum / (ROWS * LENGTH);
}

/* The loss of the first step of a run over the same samples. */
static double first_loss(struct dt_settings s, bool document_mask, const char *name)
{
    double losses[20];
    s.data.shuffle = false;
    s.data.document_mask = document_mask;
    s.training.gradient_accumulation_steps = 1;
    train("cpu", 2, name, "none", 1, losses, &s);
    return losses[0];
}

static void a_run_has_the_loss_of_its_documents_one_by_one(void **state)
{
    (void)state;
    struct dt_settings s = small_llama();
    struct dt_device *dev;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    struct dt_model *m = new_model(dev, &s);
    float *gradients = dt_alloc((size_t)m->table.elements, sizeof *gradients);
    double alone = pass_samples_one_by_one(m, gradients);
    assert_float_equal(first_loss(s, true, "masked"), alone, 1e-6);
    assert_true(fabs(first_loss(s, false, "unmasked") - alone) > 1e-5);
    free(gradients);
    dt_model_free(m);
    dt_device_close(dev);
}

static void gradients_are_those_of_documents_one_by_one(void **state)
{
    (void)state;
    struct dt_settings s = small_llama();
    struct dt_device *dev;
    struct dt_dataset *d;
    struct dt_batch b;
    uint32_t ids[LENGTH + 1];
    int32_t begins[LENGTH], ends[LENGTH];
    double difference = 0, whole = 0;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    struct dt_model *m = new_model(dev, &s);
    float *got = dt_alloc((size_t)m->table.elements, sizeof *got);
    float *want = dt_alloc((size_t)m->table.elements, sizeof *want);
    assert_int_equal(dt_dataset_open(&d, data_path, "train", &err), 0);
    assert_int_equal(dt_dataset_sample(d, LENGTH, 5, ids, &err), 0);
    dt_attention_spans(DT_SCOPE_DOCUMENT, dt_dataset_info(d), ids, LENGTH, begins, ends);
    dt_batch_init(&b, 1, LENGTH);
    dt_batch_next_token(&b, ids, 1, LENGTH);
    b.begins = begins;
    b.ends = ends;
    assert_float_equal(backward(m, &b, got), pass_one_by_one(m, ids, want), 1e-4);
    for (int64_t i = 0; i < m->table.elements; i++) {
        difference += pow((double)got[i] - (double)want[i], 2);
        whole += pow((double)want[i], 2);
    }
    assert_true(difference < 1e-10 * whole);
    free(got);
    free(want);
    dt_batch_release(&b);
    dt_dataset_close(d);
    dt_model_free(m);
    dt_device_close(dev);
}

/* Positions are counted from the first of the sample, but nothing else is seen of it. */
static void a_document_does_not_depend_on_the_one_before(void **state)
{
    (void)state;
    const struct dt_shard_info info = {.eot = EOT};
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_batch b;
    uint32_t ids[LENGTH + 1];
    int32_t begins[LENGTH], ends[LENGTH];
    float before[LENGTH], after[LENGTH];
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    struct dt_model *m = new_model(dev, &s);
    for (uint32_t i = 0; i <= LENGTH; i++)
        ids[i] = i == 9 ? EOT : i;
    dt_attention_spans(DT_SCOPE_DOCUMENT, &info, ids, LENGTH, begins, ends);
    for (int masked = 0; masked < 2; masked++) {
        dt_batch_init(&b, 1, LENGTH);
        b.begins = masked ? begins : NULL;
        b.ends = masked ? ends : NULL;
        ids[3] = 3;
        dt_batch_next_token(&b, ids, 1, LENGTH);
        score(m, &b, before);
        ids[3] = 30;
        dt_batch_next_token(&b, ids, 1, LENGTH);
        score(m, &b, after);
        assert_true(before[9] != after[9]);
        assert_true((memcmp(before + 10, after + 10, 14 * sizeof *before) == 0) == masked);
        dt_batch_release(&b);
    }
    dt_model_free(m);
    dt_device_close(dev);
}

/* Losses of a masked model at the first places of a row, the rest of which is padding. */
static void score_row(const struct dt_model *m, uint32_t length, enum dt_scope scope, float *losses)
{
    const struct dt_shard_info info = {.eot = UINT32_MAX, .row = LENGTH + 1, .padding_id = 0};
    int32_t begins[LENGTH], ends[LENGTH];
    uint32_t ids[LENGTH];
    float all[LENGTH];
    struct dt_batch b;
    dt_batch_init(&b, 1, length);
    b.count = 1;
    b.length = length;
    for (uint32_t i = 0; i < length; i++) {
        ids[i] = i < 10 ? 2 + i : 0 | DT_NO_LOSS;
        b.inputs[i] = (int32_t)(ids[i] & ~DT_NO_LOSS);
        b.targets[i] = i < 10 ? (int32_t)i : DT_NO_TARGET;
    }
    dt_attention_spans(scope, &info, ids, length, begins, ends);
    b.begins = begins;
    b.ends = ends;
    score(m, &b, all);
    memcpy(losses, all, 10 * sizeof *losses);
    dt_batch_release(&b);
}

static void padding_is_not_attended_to(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    float alone[10], padded[10];
    s.model.family = DT_FAMILY_BERT;
    assert_int_equal(dt_device_open(&dev, "cpu", 2, &err), 0);
    struct dt_model *m = new_model(dev, &s);
    score_row(m, 10, DT_SCOPE_CONTENT, alone);
    score_row(m, LENGTH, DT_SCOPE_CONTENT, padded);
    for (int i = 0; i < 10; i++)
        assert_float_equal(alone[i], padded[i], 1e-5);
    dt_model_free(m);
    dt_device_close(dev);
}

static void a_mask_of_documents_needs_their_ends(void **state)
{
    (void)state;
    struct dt_settings s = small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    s.data.document_mask = true;
    assert_int_equal(write_data(2), 0); /* without an end-of-text token */
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    assert_int_equal(open_run(&t, dev, &s, "refused", "none"), DT_EINVALID);
    assert_non_null(strstr(err.text, "small.yaml: data.document_mask needs an end-of-text token"));
    dt_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_has_the_loss_of_its_documents_one_by_one),
        cmocka_unit_test(gradients_are_those_of_documents_one_by_one),
        cmocka_unit_test(a_document_does_not_depend_on_the_one_before),
        cmocka_unit_test(padding_is_not_attended_to),
        cmocka_unit_test(a_mask_of_documents_needs_their_ends),
    };
    return cmocka_run_group_tests(tests, set_up_documents, tear_down);
}
