/* SPDX-License-Identifier: MIT */
/* Generated text does not depend on the KV cache or on the other sequences of a batch. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "math/rng.h"
#include "model/block.h"
#include "model/decode.h"
#include "model/forward-backward.h"

#define V      211
#define LENGTH 90

static struct dt_device *dev;
static struct dt_error err;
static uint32_t ids[4][LENGTH];

static const struct dt_model_config shapes[] = {
    {.family = DT_FAMILY_GPT2,
     .vocab_size = V,
     .max_seq_len = 96,
     .hidden_size = 48,
     .num_layers = 2,
     .num_heads = 3,
     .layer_norm_epsilon = 1e-5,
     .tie_word_embeddings = true},
    {.family = DT_FAMILY_LLAMA,
     .vocab_size = V,
     .max_seq_len = 96,
     .hidden_size = 48,
     .num_layers = 2,
     .num_heads = 4,
     .num_kv_heads = 2,
     .intermediate_size = 100,
     .layer_norm_epsilon = 1e-6,
     .rope_theta = 10000},
    {.family = DT_FAMILY_LLAMA,
     .vocab_size = V,
     .max_seq_len = 96,
     .hidden_size = 40,
     .num_layers = 3,
     .num_heads = 5,
     .head_dim = 12,
     .sliding_window = 20, /* in layers 0 and 1 */
     .global_every = 3,
     .global_first = 2,
     .attention_scale = 0.4,
     .attention_softcap = 2,
     .intermediate_size = 100,
     .layer_norm_epsilon = 1e-6,
     .rope_theta = 10000},
};
#define SHAPES 3

static int open_device(void **state)
{
    (void)state;
    struct dt_rng rng;
    dt_rng_init(&rng, 5);
    for (int i = 0; i < 4 * LENGTH; i++)
        ids[i / LENGTH][i % LENGTH] = dt_rng_below(&rng, V);
    return dt_device_open(&dev, "cpu", 2, &err);
}

static int close_device(void **state)
{
    (void)state;
    dt_device_close(dev);
    return 0;
}

/* Each shape in fp32, then in bf16. */
static struct dt_model *new_model(int number)
{
    const int shape = number % SHAPES;
    struct dt_model *m;
    struct dt_model_config config = shapes[shape];
    dt_model_config_derive(&config);
    assert_int_equal(
        dt_model_new(&m, dev, &config, number < SHAPES ? DT_DTYPE_F32 : DT_DTYPE_BF16, &err), 0);
    dt_model_initialize(m, 3);
    for (int64_t i = 0; i < m->table.elements; i++)
        m->parameters[i] *= 4;
    dt_model_refresh(m);
    return m;
}

/* Logits after each token of a sequence, decoded token by token, alone. */
static float *one_by_one(const struct dt_model *m, const uint32_t *sequence)
{
    struct dt_decoder *d;
    float *all = dt_alloc(LENGTH * V, sizeof *all);
    assert_int_equal(dt_decoder_new(&d, m, 1, LENGTH, &err), 0);
    for (int t = 0; t < LENGTH; t++)
        dt_decoder_feed(d, 0, sequence + t, 1, all + t * V);
    dt_decoder_free(d);
    return all;
}

static void the_kv_cache_changes_no_bit(void **state)
{
    (void)state;
    for (int shape = 0; shape < 2 * SHAPES; shape++) {
        struct dt_model *m = new_model(shape);
        struct dt_decoder *d;
        float *want = one_by_one(m, ids[0]), logits[V];
        assert_int_equal(dt_decoder_new(&d, m, 1, LENGTH, &err), 0);
        for (int t = 1; t <= LENGTH; t++) { /* feeds all tokens again */
            dt_decoder_reset(d, 0);
            dt_decoder_feed(d, 0, ids[0], t, logits);
            assert_memory_equal(logits, want + (t - 1) * V, sizeof logits);
        }
        free(want);
        dt_decoder_free(d);
        dt_model_free(m);
    }
}

/* arranged: for decoding; in fp32 the single ones are computed before. */
static void check_batched(bool arranged)
{
    for (int shape = 0; shape < 2 * SHAPES; shape++) {
        struct dt_model *m = new_model(shape);
        struct dt_decoder *d;
        float *want[4], *logits = dt_alloc(20 * V, sizeof *logits);
        if (arranged && m->compute != DT_DTYPE_F32) /* which has fast products */
            dt_model_arrange_for_decoding(m);
        for (int i = 0; i < 4; i++)
            want[i] = one_by_one(m, ids[i]);
        if (arranged && m->compute == DT_DTYPE_F32)
            dt_model_arrange_for_decoding(m);
        assert_int_equal(m->in_panels, arranged);
        assert_int_equal(dt_decoder_new(&d, m, 20, LENGTH, &err), 0);
        for (int i = 0; i < 4; i++) {
            dt_decoder_feed(d, 5 * i, ids[i], 7 * i + 1, logits); /* of different lengths */
            for (int copy = 1; copy < 5; copy++)
                dt_decoder_copy(d, 5 * i + copy, 5 * i);
        }
        for (int t = 0; t < LENGTH - 22; t++) {
            int64_t slots[20];
            uint32_t next[20];
            for (int i = 0; i < 20; i++) {
                slots[i] = (i * 7) % 20;
                int64_t length = dt_decoder_length(d, slots[i]);
                assert_int_equal(length, 7 * (slots[i] / 5) + 1 + t);
                next[i] = ids[slots[i] / 5][length];
            }
            dt_decoder_step(d, slots, next, 20, logits);
            for (int i = 0; i < 20; i++)
                assert_memory_equal(logits + i * V,
                                    want[slots[i] / 5] + (dt_decoder_length(d, slots[i]) - 1) * V,
                                    V * sizeof *logits);
        }
        for (int i = 0; i < 4; i++)
            free(want[i]);
        free(logits);
        dt_decoder_free(d);
        dt_model_free(m);
    }
}

#define LONG 1200

/* The losses of a sequence, without a cache. */
static void score(const struct dt_model *m, const uint32_t *sequence, float *losses)
{
    struct dt_workspace *w;
    struct dt_batch batch;
    assert_int_equal(dt_workspace_new(&w, m, &(struct dt_workspace_shape){1, LONG, false}, &err),
                     0);
    dt_batch_init(&batch, 1, LONG);
    dt_batch_next_token(&batch, sequence, 1, LONG);
    dt_model_score(m, w, &batch, losses, NULL);
    dt_batch_release(&batch);
    dt_workspace_free(w);
}

/* -ln p of a token. */
static double loss_of(const float *logits, uint32_t token)
{
    double sum = 0;
    for (int i = 0; i < V; i++)
        sum += exp((double)logits[i]);
    return log(sum) - (double)logits[token];
}

/* 1200 tokens, of which the layers with a window keep at most 704. */
static void a_window_bounds_the_cache_and_changes_no_bit(void **state)
{
    (void)state;
    struct dt_model_config config = shapes[2];
    struct dt_model *m;
    struct dt_decoder *d;
    struct dt_rng rng;
    uint32_t sequence[LONG + 1];
    float logits[V], losses[LONG];
    dt_rng_init(&rng, 9);
    for (int i = 0; i <= LONG; i++)
        sequence[i] = dt_rng_below(&rng, V);
    config.max_seq_len = LONG;
    dt_model_config_derive(&config);
    assert_int_equal(dt_model_new(&m, dev, &config, DT_DTYPE_F32, &err), 0);
    dt_model_initialize(m, 3);
    assert_int_equal(dt_block_cache_rows(m, 0, LONG), 704);
    assert_int_equal(dt_block_cache_rows(m, 0, 100), 100);
    assert_int_equal(dt_block_cache_rows(m, 2, LONG), LONG);
    score(m, sequence, losses);
    float *want = dt_alloc(LONG * V, sizeof *want);
    assert_int_equal(dt_decoder_new(&d, m, 2, LONG, &err), 0);
    for (int t = 0; t < LONG; t++) {
        dt_decoder_feed(d, 0, sequence + t, 1, want + t * V);
        assert_float_equal(loss_of(want + t * V, sequence[t + 1]), losses[t], 1e-4);
    }
    for (int pass = 0; pass < 2; pass++) { /* again after reset, in pieces, and in a copy */
        dt_decoder_reset(d, 0);
        for (int t = 0, some, slot = 0; t < LONG; t += some) {
            int most = pass == 0 ? 40 : 700;
            some = 1 + (int)dt_rng_below(&rng, (uint32_t)(LONG - t < most ? LONG - t : most));
            if (t > LONG / 2 && slot == 0)
                dt_decoder_copy(d, slot = 1, 0);
            dt_decoder_feed(d, slot, sequence + t, some, logits);
            assert_memory_equal(logits, want + (t + some - 1) * V, sizeof logits);
        }
    }
    dt_decoder_reset(d, 0);
    dt_decoder_feed(d, 0, sequence, LONG, logits);
    assert_int_equal(dt_decoder_share(d, 1, 0, 100), 0); /* their window has left the cache */
    assert_int_equal(dt_decoder_share(d, 1, 0, LONG - 1), LONG - 1);
    dt_decoder_feed(d, 1, sequence + LONG - 1, 1, logits);
    assert_memory_equal(logits, want + (LONG - 1) * V, sizeof logits);
    free(want);
    dt_decoder_free(d);
    dt_model_free(m);
}

static void shared_tokens_change_no_bit(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 17, 64, LENGTH - 1};
    for (int shape = 0; shape < 2 * SHAPES; shape++) {
        struct dt_model *m = new_model(shape);
        struct dt_decoder *d;
        float logits[V];
        bool exact = m->compute == DT_DTYPE_F32 || shape % 2;
        if (exact)
            dt_model_arrange_for_decoding(m);
        float *want = one_by_one(m, ids[0]);
        assert_int_equal(dt_decoder_new(&d, m, 2, LENGTH, &err), 0);
        dt_decoder_feed(d, 0, ids[0], LENGTH, logits);
        for (int i = 0; i < 8; i++) { /* by another slot, and by the same */
            int64_t count = counts[i % 4], from = i / 4;
            int64_t kept = dt_decoder_share(d, 1, from, count);
            assert_int_equal(kept, exact ? count : 0);
            assert_int_equal(dt_decoder_length(d, 1), kept);
            dt_decoder_feed(d, 1, ids[0] + kept, LENGTH - kept, logits);
            assert_memory_equal(logits, want + (LENGTH - 1) * V, sizeof logits);
        }
        assert_int_equal(dt_decoder_share(d, 1, 0, 0), 0);
        assert_int_equal(dt_decoder_length(d, 1), 0);
        free(want);
        dt_decoder_free(d);
        dt_model_free(m);
    }
}

static void batched_sequences_have_the_bits_of_single_ones(void **state)
{
    (void)state;
    check_batched(false);
}

static void arranging_weights_changes_no_bit(void **state)
{
    (void)state;
    check_batched(true);
}

static struct dt_ops watched;
static void (*embed)(struct dt_device *, struct dt_tensor *, const int32_t *,
                     const struct dt_tensor *, const struct dt_tensor *, int64_t, int64_t);
static int fewest;

static void embed_watched(struct dt_device *device, struct dt_tensor *x, const int32_t *tokens,
                          const struct dt_tensor *table, const struct dt_tensor *positions,
                          int64_t length, int64_t first)
{
    fewest = device->threads < fewest ? device->threads : fewest;
    embed(device, x, tokens, table, positions, length, first);
}

static void steps_choose_their_threads_and_change_no_bit(void **state)
{
    (void)state;
    struct dt_model *m = new_model(0);
    struct dt_decoder *d;
    float *want = one_by_one(m, ids[0]), logits[V];
    const struct dt_ops *ops = dev->ops;
    watched = *ops;
    embed = ops->embedding_forward;
    watched.embedding_forward = embed_watched;
    dev->ops = &watched;
    for (int chooses = 0; chooses < 2; chooses++) {
        dev->chooses_threads = chooses;
        fewest = dev->threads;
        assert_int_equal(dt_decoder_new(&d, m, 1, LENGTH, &err), 0);
        for (int pass = 0; chooses ? fewest == 2 : pass < 50; pass++) {
            dt_decoder_reset(d, 0);
            for (int t = 0; t < LENGTH; t++) {
                dt_decoder_step(d, &(int64_t){0}, ids[0] + t, 1, logits);
                assert_memory_equal(logits, want + t * V, sizeof logits);
                assert_int_equal(dev->threads, 2);
            }
        }
        assert_int_equal(fewest, chooses ? 1 : 2);
        dt_decoder_free(d);
    }
    dev->chooses_threads = false;
    dev->ops = ops;
    free(want);
    dt_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kv_cache_changes_no_bit),
        cmocka_unit_test(a_window_bounds_the_cache_and_changes_no_bit),
        cmocka_unit_test(shared_tokens_change_no_bit),
        cmocka_unit_test(batched_sequences_have_the_bits_of_single_ones),
        cmocka_unit_test(arranging_weights_changes_no_bit),
        cmocka_unit_test(steps_choose_their_threads_and_change_no_bit),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
