/* SPDX-License-Identifier: MIT */
/* The whole model: gradients compared with finite differences, decoding with scoring, the tensor
 * table, memory. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "math/rng.h"
#include "model/decode.h"
#include "model/forward-backward.h"
#include "model/head.h"
#include "tiny-models.h"

static struct dt_model *new_model(void)
{
    return new_model_of(&tiny);
}

static void fill_ids(uint32_t *ids, size_t count, uint64_t key)
{
    struct dt_rng rng;
    dt_rng_init(&rng, key);
    for (size_t i = 0; i < count; i++)
        ids[i] = dt_rng_below(&rng, 19);
}

static void score(const struct dt_model *m, struct dt_workspace *w, const uint32_t *ids,
                  int64_t count, int64_t length, float *losses)
{
    struct dt_batch batch;
    dt_batch_init(&batch, count, length);
    dt_batch_next_token(&batch, ids, count, length);
    dt_model_score(m, w, &batch, losses, NULL);
    dt_batch_release(&batch);
}

static double backward(const struct dt_model *m, struct dt_workspace *w, const uint32_t *ids,
                       int64_t count, int64_t length, float *gradients, float scale)
{
    struct dt_batch batch;
    dt_batch_init(&batch, count, length);
    dt_batch_next_token(&batch, ids, count, length);
    struct dt_flat flat = {0};
    dt_flat_set(&flat, &m->table, DT_DTYPE_F32, gradients);
    double loss = dt_model_backward(m, w, &batch, &flat, &(struct dt_pass){.scale = scale});
    dt_flat_release(&flat);
    dt_batch_release(&batch);
    return loss;
}

static double total_loss(const struct dt_model *m, struct dt_workspace *w, const uint32_t *ids,
                         int64_t batch, int64_t length)
{
    float losses[64];
    double sum = 0;
    score(m, w, ids, batch, length, losses);
    for (int64_t i = 0; i < batch * length; i++)
        sum += (double)losses[i];
    return sum;
}

/* For every tensor, compares the gradient's norm, its derivative along the gradient, with a central
 * difference of the loss. */
static void check_gradients(const struct dt_model_config *config)
{
    const int64_t batch = 3, length = 9;
    struct dt_model *m = new_model_of(config);
    struct dt_workspace *w;
    uint32_t ids[3 * 10];
    float *gradients = dt_alloc((size_t)m->table.elements, sizeof *gradients);
    fill_ids(ids, 30, 5);
    assert_int_equal(
        dt_workspace_new(&w, m, &(struct dt_workspace_shape){batch, length, true}, &err), 0);
    double loss = backward(m, w, ids, batch, length, gradients, 1.0f);
    assert_true(fabs(loss - total_loss(m, w, ids, batch, length)) < 1e-4);
    for (int i = 0; i < m->table.count; i++) {
        const struct dt_param *p = &m->table.params[i];
        float *values = m->parameters + p->offset, *kept = dt_alloc((size_t)p->count, sizeof *kept);
        double along = 0, norm = 0;
        memcpy(kept, values, (size_t)p->count * sizeof *kept);
        for (int64_t j = 0; j < p->count; j++)
            norm += pow((double)gradients[p->offset + j], 2);
        norm = sqrt(norm);
        assert_true(norm > 0); /* every tensor has a gradient */
        double step = 2e-2 / (norm > 1e-3 ? norm : 1e-3);
        /* Along the gradient itself, the derivative is its norm. */
        double up, down;
        for (int64_t j = 0; j < p->count; j++)
            values[j] = kept[j] + (float)(step * (double)gradients[p->offset + j] / (norm + 1e-30));
        up = total_loss(m, w, ids, batch, length);
        for (int64_t j = 0; j < p->count; j++)
            values[j] = kept[j] - (float)(step * (double)gradients[p->offset + j] / (norm + 1e-30));
        down = total_loss(m, w, ids, batch, length);
        along = (up - down) / (2 * step);
        memcpy(values, kept, (size_t)p->count * sizeof *kept);
        free(kept);
        if (!(fabs(along - norm) <= 0.02 * norm + 1e-3))
            fail_msg("%s: gradient norm %g, finite difference %g", p->name, norm, along);
    }
    free(gradients);
    dt_workspace_free(w);
    dt_model_free(m);
}

static void gradients_match_finite_differences(void **state)
{
    (void)state;
    check_gradients(&tiny);
}

static void llamas_gradients_match_finite_differences(void **state)
{
    (void)state;
    struct dt_model_config tied = tiny_llama;
    check_gradients(&tiny_llama);
    tied.tie_word_embeddings = true;
    check_gradients(&tied);
    check_gradients(&tiny_qwen3);
    check_gradients(&tiny_olmo2);
    check_gradients(&tiny_gpt_neox);
    check_gradients(&tiny_gemma2);
    check_gradients(&tiny_capped);
    check_gradients(&tiny_window);
    tied = tiny_olmo2;
    tied.head_dim = 6; /* norms of 24 channels at width 8 */
    check_gradients(&tied);
}

static void masked_models_gradients_match_finite_differences(void **state)
{
    (void)state;
    check_gradients(&tiny_bert);
    check_gradients(&tiny_distilbert);
    check_gradients(&tiny_modernbert);
}

/* Gradients of a pass with recomputation and the model's dropout, and its bytes of memory. */
static double pass(const struct dt_model *m, enum dt_recompute recompute, float *gradients,
                   size_t *bytes)
{
    struct dt_workspace *w;
    struct dt_batch batch;
    uint32_t ids[3 * 10];
    fill_ids(ids, 30, 5);
    dt_batch_init(&batch, 3, 9);
    dt_batch_next_token(&batch, ids, 3, 9);
    batch.first_sample = 77;
    struct dt_workspace_shape shape = {3, 9, true, recompute};
    memset(gradients, 0, (size_t)m->table.elements * sizeof *gradients);
    assert_int_equal(dt_workspace_new(&w, m, &shape, &err), 0);
    struct dt_flat flat = {0};
    dt_flat_set(&flat, &m->table, DT_DTYPE_F32, gradients);
    double loss = dt_model_backward(m, w, &batch, &flat, &(struct dt_pass){.scale = 1, .seed = 4});
    dt_flat_release(&flat);
    *bytes = dt_workspace_bytes(w);
    dt_workspace_free(w);
    dt_batch_release(&batch);
    return loss;
}

static void recomputation_gives_the_same_bits_in_less_memory(void **state)
{
    (void)state;
    static const struct dt_model_config *const configs[] = {
        &tiny,      &tiny_llama,   &tiny_qwen3,  &tiny_olmo2,      &tiny_gpt_neox,
        &tiny_bert, &tiny_granite, &tiny_gemma2, &tiny_modernbert, &tiny_window,
    };
    for (size_t i = 0; i < 2 * sizeof configs / sizeof *configs; i++) {
        struct dt_model_config config = *configs[i / 2];
        config.dropout = i % 2 ? 0.2 : 0;
        config.attention_dropout = i % 2 ? 0.3 : 0;
        struct dt_model *m = new_model_of(&config);
        size_t n = (size_t)m->table.elements, last = SIZE_MAX, bytes;
        float *kept = dt_alloc(n, sizeof *kept), *again = dt_alloc(n, sizeof *again);
        double loss = pass(m, DT_RECOMPUTE_NONE, kept, &last);
        for (enum dt_recompute r = DT_RECOMPUTE_SELECTIVE; r <= DT_RECOMPUTE_FULL; r++) {
            assert_true(pass(m, r, again, &bytes) == loss);
            assert_memory_equal(again, kept, n * sizeof *kept);
            assert_true(bytes < last);
            last = bytes;
        }
        free(kept), free(again);
        dt_model_free(m);
    }
}

static double loss_of(const struct dt_model *m, float *gradients)
{
    size_t bytes;
    return pass(m, DT_RECOMPUTE_NONE, gradients, &bytes);
}

/* The seed fixes the dropout masks, so that finite differences apply. */
static void check_dropout(const struct dt_model_config *config)
{
    struct dt_model_config dropping = *config;
    dropping.dropout = 0.3;
    dropping.attention_dropout = 0.4;
    struct dt_model *m = new_model_of(&dropping), *plain = new_model_of(config);
    size_t n = (size_t)m->table.elements;
    float *gradients = dt_alloc(n, sizeof *gradients), *ignored = dt_alloc(n, sizeof *ignored);
    assert_true(fabs(loss_of(m, gradients) - loss_of(plain, ignored)) > 1e-3);
    loss_of(m, gradients);
    for (int i = 0; i < m->table.count; i++) {
        const struct dt_param *p = &m->table.params[i];
        double norm = 0, losses[2];
        for (int64_t j = 0; j < p->count; j++)
            norm += pow((double)gradients[p->offset + j], 2);
        norm = sqrt(norm);
        float step = (float)(2e-2 / norm / (norm > 1e-3 ? norm : 1e-3));
        for (int side = 0; side < 2; side++) {
            float by = side ? -2 * step : step;
            for (int64_t j = 0; j < p->count; j++)
                m->parameters[p->offset + j] += by * gradients[p->offset + j];
            losses[side] = loss_of(m, ignored);
        }
        for (int64_t j = 0; j < p->count; j++)
            m->parameters[p->offset + j] += step * gradients[p->offset + j];
        double along = (losses[0] - losses[1]) / (2 * (double)step * norm);
        if (!(fabs(along - norm) <= 0.02 * norm + 1e-3))
            fail_msg("%s: gradient norm %g, finite difference %g", p->name, norm, along);
    }
    free(gradients), free(ignored);
    dt_model_free(m);
    dt_model_free(plain);
}

static void gradients_pass_through_dropout(void **state)
{
    (void)state;
    check_dropout(&tiny);
    check_dropout(&tiny_llama);
    check_dropout(&tiny_bert);
    check_dropout(&tiny_olmo2);
    check_dropout(&tiny_granite);
    check_dropout(&tiny_gemma2);
    check_dropout(&tiny_modernbert);
    check_dropout(&tiny_gpt_neox);
    check_dropout(&tiny_window);
}

static void gradients_accumulate_and_scale(void **state)
{
    (void)state;
    struct dt_model *m = new_model();
    struct dt_workspace *w;
    uint32_t ids[2 * 8];
    size_t n = (size_t)m->table.elements;
    float *once = dt_alloc(n, sizeof *once), *twice = dt_alloc(n, sizeof *twice);
    fill_ids(ids, 16, 6);
    assert_int_equal(dt_workspace_new(&w, m, &(struct dt_workspace_shape){2, 7, true}, &err), 0);
    backward(m, w, ids, 2, 7, once, 1.0f);
    backward(m, w, ids, 2, 7, twice, 0.25f);
    backward(m, w, ids, 2, 7, twice, 0.25f);
    for (size_t i = 0; i < n; i++)
        assert_true(fabsf(once[i] - 2 * twice[i]) <= 1e-4f * (fabsf(once[i]) + 0.1f));
    free(once), free(twice);
    dt_workspace_free(w);
    dt_model_free(m);
}

/* The loss of the decoder's logits is that of scoring the same tokens. */
static void check_decoding(const struct dt_model_config *config)
{
    struct dt_model *m = new_model_of(config);
    struct dt_workspace *w;
    struct dt_decoder *d;
    uint32_t ids[13];
    float losses[12], logits[19];
    fill_ids(ids, 13, 7);
    assert_int_equal(dt_workspace_new(&w, m, &(struct dt_workspace_shape){1, 12, false}, &err), 0);
    assert_int_equal(dt_decoder_new(&d, m, 1, 12, &err), 0);
    score(m, w, ids, 1, 12, losses);
    for (int64_t t = 0; t < 12; t++) {
        double sum = 0;
        if (t == 0)
            dt_decoder_feed(d, 0, ids, 1, logits);
        else if (t == 5) { /* a prompt of six tokens at once */
            dt_decoder_reset(d, 0);
            dt_decoder_feed(d, 0, ids, 6, logits);
        } else
            dt_decoder_feed(d, 0, ids + t, 1, logits);
        assert_int_equal(dt_decoder_length(d, 0), t + 1);
        for (int j = 0; j < 19; j++)
            sum += exp((double)logits[j]);
        assert_true(fabs(log(sum) - (double)logits[ids[t + 1]] - (double)losses[t]) < 1e-4);
    }
    dt_decoder_free(d);
    dt_workspace_free(w);
    dt_model_free(m);
}

static void decoding_agrees_with_scoring(void **state)
{
    (void)state;
    check_decoding(&tiny);
    check_decoding(&tiny_llama);
    check_decoding(&tiny_qwen3);
    check_decoding(&tiny_olmo2);
    check_decoding(&tiny_granite);
    check_decoding(&tiny_gpt_neox);
    check_decoding(&tiny_smollm3);
    check_decoding(&tiny_gemma2);
    check_decoding(&tiny_capped);
    check_decoding(&tiny_window);
}

static void masked_models_are_bidirectional_and_do_not_generate(void **state)
{
    (void)state;
    struct dt_model *m = new_model_of(&tiny_bert);
    struct dt_workspace *w;
    struct dt_decoder *d;
    uint32_t ids[13];
    float a[12], b[12];
    fill_ids(ids, 13, 8);
    assert_int_equal(dt_workspace_new(&w, m, &(struct dt_workspace_shape){1, 12, false}, &err), 0);
    score(m, w, ids, 1, 12, a);
    ids[11] = (ids[11] + 1) % 19;
    score(m, w, ids, 1, 12, b);
    for (int t = 0; t < 9; t++)
        assert_true(a[t] != b[t]);
    assert_int_equal(dt_decoder_new(&d, m, 1, 12, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "'bert' fills in masked tokens"));
    dt_workspace_free(w);
    dt_model_free(m);
}

/* Losses that change with the first token: with windows of 3 in both layers, the first 5. */
static void check_window(long global_every, int changing)
{
    struct dt_model_config config = tiny_window;
    config.global_every = global_every;
    struct dt_model *m = new_model_of(&config);
    struct dt_workspace *w;
    uint32_t ids[13];
    float a[12], b[12];
    fill_ids(ids, 13, 8);
    assert_int_equal(dt_workspace_new(&w, m, &(struct dt_workspace_shape){1, 12, false}, &err), 0);
    score(m, w, ids, 1, 12, a);
    ids[0] = (ids[0] + 1) % 19;
    score(m, w, ids, 1, 12, b);
    for (int t = 0; t < 12; t++)
        assert_int_equal(a[t] != b[t], t < changing);
    dt_workspace_free(w);
    dt_model_free(m);
}

static void a_window_limits_what_a_layer_sees(void **state)
{
    (void)state;
    check_window(0, 5);
    check_window(2, 12); /* the second layer is global */
}

static void scoring_is_causal(void **state)
{
    (void)state;
    struct dt_model *m = new_model();
    struct dt_workspace *w;
    uint32_t ids[13], changed[13];
    float a[12], b[12];
    fill_ids(ids, 13, 8);
    memcpy(changed, ids, sizeof ids);
    changed[9] = (changed[9] + 1) % 19;
    assert_int_equal(dt_workspace_new(&w, m, &(struct dt_workspace_shape){1, 12, false}, &err), 0);
    score(m, w, ids, 1, 12, a);
    score(m, w, changed, 1, 12, b);
    assert_memory_equal(a, b, 8 * sizeof *a);
    assert_true(a[8] != b[8] && a[10] != b[10]);
    dt_workspace_free(w);
    dt_model_free(m);
}

static void only_tokens_with_a_target_are_scored(void **state)
{
    (void)state;
    struct dt_model *m = new_model();
    struct dt_workspace *w;
    struct dt_batch batch;
    uint32_t ids[3 * 6];
    float all[15], some[15];
    assert_int_equal(dt_workspace_new(&w, m, &(struct dt_workspace_shape){3, 5, false}, &err), 0);
    fill_ids(ids, 18, 4);
    dt_batch_init(&batch, 3, 5);
    dt_batch_next_token(&batch, ids, 3, 5);
    dt_model_score(m, w, &batch, all, NULL);
    for (int times = 0; times < 2; times++) {
        for (int i = 0; i < 15; i++)
            if (i % 4 < 2 || i == 6)
                batch.targets[i] = DT_NO_TARGET;
        dt_model_score(m, w, &batch, some, NULL);
        for (int i = 0; i < 15; i++)
            assert_float_equal(some[i], batch.targets[i] < 0 ? 0 : all[i], 1e-5);
    }
    dt_batch_release(&batch);
    dt_workspace_free(w);
    dt_model_free(m);
}

static void initial_weights_have_the_configured_deviation(void **state)
{
    (void)state;
    struct dt_model_config c = tiny;
    struct dt_table t;
    c.hidden_size = 64;
    c.initializer_range = 0.5;
    dt_table_init(&t, &c, NULL);
    float *parameters = dt_alloc((size_t)t.elements, sizeof *parameters);
    dt_table_initialize(&t, 1, parameters);
    const struct dt_param *p = dt_table_find(&t, DT_ROLE_QKV_WEIGHT, 0);
    double squares = 0;
    for (int64_t i = 0; i < p->count; i++)
        squares += (double)parameters[p->offset + i] * parameters[p->offset + i];
    assert_float_equal(sqrt(squares / (double)p->count), 0.5, 0.02);
    free(parameters);
    dt_table_release(&t);
}

/* Each thread draws a million numbers; across the boundary, each number follows from its index. */
static void initial_weights_are_functions_of_their_index(void **state)
{
    (void)state;
    struct dt_model_config c = tiny;
    struct dt_table t;
    c.vocab_size = 1 << 18;
    dt_table_init(&t, &c, NULL);
    float *parameters = dt_alloc((size_t)t.elements, sizeof *parameters);
    dt_table_initialize(&t, 7, parameters);
    const struct dt_param *p = dt_table_find(&t, DT_ROLE_TOKEN_EMBEDDING, -1);
    uint64_t key = dt_random_key(7, 'I', (uint64_t)p->number);
    for (int64_t e = (1 << 20) - 3; e < (1 << 20) + 3; e++) {
        double pair[2];
        dt_rng_normal_pair(dt_random(key, 0, (uint64_t)e / 2), pair);
        assert_true(parameters[p->offset + e] == p->init_std * (float)pair[e % 2]);
    }
    free(parameters);
    dt_table_release(&t);
}

static void table_has_gpt2s_names_shapes_and_size(void **state)
{
    (void)state;
    struct dt_model_config gpt2 = {.vocab_size = 50257,
                                   .max_seq_len = 1024,
                                   .hidden_size = 768,
                                   .num_layers = 12,
                                   .num_heads = 12,
                                   .layer_norm_epsilon = 1e-5,
                                   .tie_word_embeddings = true};
    struct dt_table t;
    assert_int_equal(dt_model_config_check(&gpt2, "model", &err), 0);
    dt_table_init(&t, &gpt2, NULL);
    assert_int_equal(t.parameters, 124439808);
    assert_int_equal(t.count, 2 + 12 * 12 + 2);
    const struct dt_param *p = dt_table_find(&t, DT_ROLE_QKV_WEIGHT, 11);
    assert_string_equal(p->name, "transformer.h.11.attn.c_attn.weight");
    assert_int_equal(p->shape[0], 768);
    assert_int_equal(p->shape[1], 2304);
    assert_true(p->decay);
    assert_false(dt_table_find(&t, DT_ROLE_QKV_BIAS, 0)->decay);
    for (int i = 1; i < t.count; i++)
        assert_true(t.params[i].offset >= t.params[i - 1].offset + t.params[i - 1].count);
    dt_table_release(&t);
}

/* Llama 3 8B (Grattafiori et al. 2024): 8,030,261,248 parameters. */
static void table_has_llamas_names_shapes_and_size(void **state)
{
    (void)state;
    struct dt_model_config llama = {.family = DT_FAMILY_LLAMA,
                                    .vocab_size = 128256,
                                    .max_seq_len = 8192,
                                    .hidden_size = 4096,
                                    .num_layers = 32,
                                    .num_heads = 32,
                                    .num_kv_heads = 8,
                                    .intermediate_size = 14336,
                                    .layer_norm_epsilon = 1e-5,
                                    .rope_theta = 500000};
    struct dt_table t;
    assert_int_equal(dt_model_config_check(&llama, "model", &err), 0);
    dt_table_init(&t, &llama, NULL);
    assert_int_equal(t.parameters, 8030261248);
    assert_int_equal(t.count, 1 + 32 * 9 + 2);
    const struct dt_param *p = dt_table_find(&t, DT_ROLE_K_WEIGHT, 31);
    assert_string_equal(p->name, "model.layers.31.self_attn.k_proj.weight");
    assert_int_equal(p->shape[0], 1024);
    assert_int_equal(p->shape[1], 4096);
    assert_true(p->transposed && p->decay);
    assert_false(dt_table_find(&t, DT_ROLE_NORM2_WEIGHT, 0)->decay);
    assert_string_equal(dt_table_find(&t, DT_ROLE_HEAD_WEIGHT, 32)->name, "lm_head.weight");
    assert_null(dt_table_find(&t, DT_ROLE_POSITION_EMBEDDING, -1));
    assert_null(dt_table_find(&t, DT_ROLE_NORM1_BIAS, 0));
    dt_table_release(&t);
    llama.tie_word_embeddings = true;
    dt_table_init(&t, &llama, NULL);
    assert_null(dt_table_find(&t, DT_ROLE_HEAD_WEIGHT, 32));
    dt_table_release(&t);
}

/* 6 FLOPs per parameter of a linear layer, and causal attention. */
static void heads_too_wide_for_the_engine_are_refused(void **state)
{
    (void)state;
    struct dt_engine narrow = *dev->engine;
    struct dt_device device = *dev;
    struct dt_model *m;
    narrow.head_channels = 3;
    device.engine = &narrow;
    assert_int_equal(dt_model_new(&m, &device, &tiny, DT_DTYPE_F32, &err), DT_EINVALID);
    assert_non_null(
        strstr(err.text, "computes heads of at most 3 channels, and the model's have 4"));
    narrow.head_channels = 4;
    assert_int_equal(dt_model_new(&m, &device, &tiny, DT_DTYPE_F32, &err), 0);
    dt_model_free(m);
}

static void flops_are_counted_per_product(void **state)
{
    (void)state;
    double block = 8 * 8 + 2 * 8 * 4 + 8 * 8 + 3 * 8 * 20;
    assert_true(dt_model_flops_per_token(&tiny_llama, 12, 0.15) ==
                6 * (2 * block + 19 * 8) + 6 * 2 * 8 * 12);
}

/* Llama also has RoPE tables, padded to 64 bytes; and a plan predicts the model's memory. */
static void memory_is_that_of_parameters_and_rope_tables(void **state)
{
    (void)state;
    struct dt_model *gpt2 = new_model(), *llama = new_model_of(&tiny_llama);
    assert_int_equal(dt_model_bytes(gpt2), 4 * gpt2->table.elements);
    assert_int_equal(dt_model_bytes(llama), 4 * (llama->table.elements + 12 * 2 + 8));
    struct dt_model *plan = dt_model_plan(dev, &tiny_llama, DT_DTYPE_BF16, NULL);
    assert_int_equal(dt_model_bytes(plan),
                     dt_model_bytes(llama) + (2 * (size_t)llama->table.elements + 63) / 64 * 64);
    dt_model_free(plan);
    dt_model_free(gpt2);
    dt_model_free(llama);
}

/* A batch in which every fifth token lacks a target. */
static struct dt_batch gapped_batch(int64_t count, int64_t length)
{
    struct dt_batch batch;
    uint32_t ids[3 * 10];
    fill_ids(ids, (size_t)(count * (length + 1)), 5);
    dt_batch_init(&batch, count, length);
    dt_batch_next_token(&batch, ids, count, length);
    for (int64_t i = 0; i < count * length; i += 5)
        batch.targets[i] = DT_NO_TARGET;
    return batch;
}

/* Returns the loss, and adds to gradients. */
static double backward_in_chunks(const struct dt_model *m, int64_t head_rows, bool gaps,
                                 const struct dt_workspace *owner, float *gradients, size_t *bytes)
{
    struct dt_workspace *w;
    struct dt_batch batch = gapped_batch(3, 9);
    uint32_t ids[30];
    fill_ids(ids, 30, 5);
    if (!gaps)
        dt_batch_next_token(&batch, ids, 3, 9);
    const struct dt_workspace_shape shape = {3, 9, .training = true, .head_rows = head_rows,
                                             .scratch_owner = owner};
    assert_int_equal(dt_workspace_new(&w, m, &shape, &err), 0);
    struct dt_flat flat = {0};
    dt_flat_set(&flat, &m->table, DT_DTYPE_F32, gradients);
    double loss = dt_model_backward(m, w, &batch, &flat, &(struct dt_pass){.scale = 1});
    *bytes = dt_workspace_bytes(w);
    dt_flat_release(&flat);
    dt_batch_release(&batch);
    dt_workspace_free(w);
    return loss;
}

static size_t lines(int64_t elements)
{
    return ((size_t)elements * sizeof(float) + 63) / 64 * 64;
}

/* 27 rows in chunks of 8: the last has 3. Gradients match those of one chunk within rounding, and
 * memory shrinks by the rows not allocated: a row of logits has 32 floats, one of the norm and one
 * of its gradient 8 each; a dense layer adds five such rows, and one of 2 floats. */
static void check_chunks(const struct dt_model_config *config, bool gaps)
{
    struct dt_model *m = new_model_of(config);
    size_t count = (size_t)m->table.elements, whole_bytes, bytes;
    float *whole = dt_alloc(count, sizeof *whole), *parts = dt_alloc(count, sizeof *parts);
    double want = backward_in_chunks(m, 0, gaps, NULL, whole, &whole_bytes), apart = 0, norm = 0;
    assert_true(fabs(backward_in_chunks(m, 8, gaps, NULL, parts, &bytes) - want) < 1e-5 * want);
    for (size_t i = 0; i < count; i++) {
        apart += pow((double)parts[i] - (double)whole[i], 2);
        norm += pow((double)whole[i], 2);
    }
    assert_true(sqrt(apart / norm) < 1e-6);
    size_t rows = lines(27 * 8) - lines(8 * 8), less = 2 * rows + lines(27 * 32) - lines(8 * 32);
    if (m->table.has[DT_ROLE_HEAD_DENSE_WEIGHT])
        less += 5 * rows + lines(27 * 2) - lines(8 * 2);
    assert_int_equal(whole_bytes - bytes, less);
    free(whole), free(parts);
    dt_model_free(m);
}

static void logits_in_chunks_give_the_same_gradients_in_less_memory(void **state)
{
    (void)state;
    for (int gaps = 0; gaps < 2; gaps++) {
        check_chunks(&tiny, gaps);
        check_chunks(&tiny_llama, gaps);
        check_chunks(&tiny_bert, gaps);
    }
}

/* A workspace that borrows scratch uses chunks no larger than its owner's. */
static void the_scratch_owner_limits_the_chunk_size(void **state)
{
    (void)state;
    struct dt_model *m = new_model();
    struct dt_workspace *owner;
    size_t count = (size_t)m->table.elements, bytes;
    float *own = dt_alloc(count, sizeof *own), *borrowed = dt_alloc(count, sizeof *borrowed);
    const struct dt_workspace_shape shape = {3, 9, .training = true, .head_rows = 8};
    assert_int_equal(dt_workspace_new(&owner, m, &shape, &err), 0);
    double want = backward_in_chunks(m, 8, true, NULL, own, &bytes);
    assert_true(backward_in_chunks(m, 0, true, owner, borrowed, &bytes) == want);
    assert_memory_equal(own, borrowed, count * sizeof *own);
    free(own), free(borrowed);
    dt_workspace_free(owner);
    dt_model_free(m);
}

/* A chunk is a multiple of 128 rows, of at most 256 MiB, and chunks have about the same size. */
static void chunks_are_even_blocks_of_rows(void **state)
{
    (void)state;
    struct dt_model_config wide = tiny;
    wide.vocab_size = 50257;
    struct dt_model *m = dt_model_plan(dev, &wide, DT_DTYPE_BF16, NULL);
    static const int64_t rows_and_chunk[][2] = {
        {100, 100}, {2560, 2560}, {2561, 1408}, {8192, 2048}, {32768, 2560}};
    for (size_t i = 0; i < sizeof rows_and_chunk / sizeof *rows_and_chunk; i++) {
        struct dt_head head;
        dt_head_init(&head, m, rows_and_chunk[i][0], 0);
        assert_int_equal(head.chunk, rows_and_chunk[i][1]);
        dt_head_release(&head);
    }
    dt_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_finite_differences),
        cmocka_unit_test(llamas_gradients_match_finite_differences),
        cmocka_unit_test(masked_models_gradients_match_finite_differences),
        cmocka_unit_test(recomputation_gives_the_same_bits_in_less_memory),
        cmocka_unit_test(gradients_pass_through_dropout),
        cmocka_unit_test(gradients_accumulate_and_scale),
        cmocka_unit_test(decoding_agrees_with_scoring),
        cmocka_unit_test(masked_models_are_bidirectional_and_do_not_generate),
        cmocka_unit_test(a_window_limits_what_a_layer_sees),
        cmocka_unit_test(scoring_is_causal),
        cmocka_unit_test(only_tokens_with_a_target_are_scored),
        cmocka_unit_test(initial_weights_have_the_configured_deviation),
        cmocka_unit_test(initial_weights_are_functions_of_their_index),
        cmocka_unit_test(table_has_gpt2s_names_shapes_and_size),
        cmocka_unit_test(table_has_llamas_names_shapes_and_size),
        cmocka_unit_test(heads_too_wide_for_the_engine_are_refused),
        cmocka_unit_test(flops_are_counted_per_product),
        cmocka_unit_test(memory_is_that_of_parameters_and_rope_tables),
        cmocka_unit_test(logits_in_chunks_give_the_same_gradients_in_less_memory),
        cmocka_unit_test(the_scratch_owner_limits_the_chunk_size),
        cmocka_unit_test(chunks_are_even_blocks_of_rows),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
