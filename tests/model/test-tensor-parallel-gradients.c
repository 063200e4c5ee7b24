/* SPDX-License-Identifier: MIT */
/* A model whose tensors are cut into slices, one a rank, computes what the whole does. */
#include "model/part-job.h"

#include <stdio.h>

/* Any number of slices, and rows of the stream dealt out or not. */
static void check_job(struct job *job)
{
    for (int tp_size = 1; tp_size <= 4; tp_size++)
        for (int sequence = 0; sequence < 2; sequence++) {
            job->sequence = sequence;
            run_parts(job, tp_size);
            if (!(job->worst <= 1e-6 && job->worst_loss <= 1e-6 && job->other_hits == 0))
                fail_msg("%d slices%s: gradients %g, losses %g, hits %d", tp_size,
                         sequence ? ", rows apart" : "", job->worst, job->worst_loss,
                         job->other_hits);
        }
}

static void check_slices(const struct dt_model_config *config)
{
    struct job job = job_of(config);
    check_job(&job);
}

static void gpt2_in_slices(void **state)
{
    (void)state;
    check_slices(&gpt2);
}

/* 5 heads of keys over 2 slices, and over 3 and 4. */
static void llama_in_slices(void **state)
{
    (void)state;
    check_slices(&llama);
}

/* GPT-2's vocabulary, which no number of slices but one divides. */
static void a_real_vocabulary_in_slices(void **state)
{
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        struct dt_model_config config = llama;
        config.vocab_size = 50257;
        config.tie_word_embeddings = tied;
        check_slices(&config);
    }
}

/* With norms of queries and keys, and fewer heads of keys than slices. */
static void qwen3_in_slices(void **state)
{
    (void)state;
    for (long kv_heads = 1; kv_heads <= 2; kv_heads++) {
        struct dt_model_config config = llama;
        config.qk_norm = true;
        config.tie_word_embeddings = true;
        config.num_heads = 4;
        config.num_kv_heads = kv_heads;
        check_slices(&config);
    }
}

static void masked_models_in_slices(void **state)
{
    (void)state;
    check_masked_models(check_slices);
}

static void dropout_is_that_of_the_whole(void **state)
{
    (void)state;
    check_dropout(check_slices);
}

static void what_is_computed_again_is_the_same(void **state)
{
    (void)state;
    const enum dt_family families[] = {DT_FAMILY_GPT2, DT_FAMILY_LLAMA, DT_FAMILY_DISTILBERT};
    for (int f = 0; f < 3; f++)
        for (int recompute = 1; recompute <= DT_RECOMPUTE_FULL; recompute++) {
            struct dt_model_config config = config_of(families[f]);
            config.dropout = 0.2;
            struct job job = job_of(&config);
            job.recompute = (enum dt_recompute)recompute;
            check_job(&job);
        }
}

static void losses_may_be_smoothed(void **state)
{
    (void)state;
    struct job job = job_of(&llama);
    job.how.label_smoothing = 0.1f;
    job.how.z_loss = 0.01f;
    check_job(&job);
}

/* 16-bit sums are rounded once a sum; the rest is their rounding too. */
static void sixteen_bits_agree_as_far_as_they_go(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int sequence = 0; sequence < 2; sequence++) {
            struct job job = job_of(i ? &llama : &gpt2);
            job.compute = i ? DT_DTYPE_F16 : DT_DTYPE_BF16;
            job.sequence = sequence;
            run_parts(&job, 3);
            assert_true(job.worst > 1e-6 && job.worst < (i ? 5e-3 : 4e-2));
            assert_true(job.worst_loss < (i ? 1e-3 : 1e-2));
        }
}

/* Exchanges in a pass of gpt2, of two layers: of the embeddings, four in each layer and way (and
 * where rows are apart the sum of gradients of norms), of the head. */
#define EXCHANGES(sequence) ((sequence) ? 2 + 2 * (4 + 6) + 5 : 2 + 2 * (4 + 4) + 3)

/* Each of them is needed. */
static void without_any_one_exchange_the_gradients_are_wrong(void **state)
{
    (void)state;
    for (int sequence = 0; sequence < 2; sequence++)
        for (int i = 0; i <= EXCHANGES(sequence); i++) {
            struct job job = job_of(&gpt2);
            char number[16];
            job.sequence = sequence;
            job.passes = 1;
            snprintf(number, sizeof number, "%d", i);
            setenv("DT_DEBUG_SKIP_EXCHANGE", number, 1);
            run_parts(&job, 2);
            unsetenv("DT_DEBUG_SKIP_EXCHANGE");
            bool all = i == EXCHANGES(sequence); /* the next is of scoring */
            if (all != (job.worst <= 1e-6))
                fail_msg("exchange %d left out: %g", i, job.worst);
        }
}

/* Elements that all slices send for a sum of n, or to gather n: t - 1 times these. */
static int64_t sum_of(int64_t n)
{
    return 2 * n;
}

/* Gradients in parts of a layer, and of the final norm. */
static int64_t norm_sums(const struct job *job)
{
    int64_t width = job->config.hidden_size, layers = job->config.num_layers;
    int64_t vectors = job->config.family == DT_FAMILY_LLAMA ? 1 : 2;
    int64_t heads = job->config.qk_norm ? 2 * layers * width / job->config.num_heads : 0;
    return sum_of(job->sequence ? vectors * (2 * layers + 1) * width + heads : heads);
}

/* Parts of gradients of keys and values that several slices hold, t - 1 times or so. */
static int64_t key_sums(const struct job *job, int tp_size)
{
    const struct dt_model_config *c = &job->config;
    int64_t columns = c->hidden_size / c->num_heads, sent = 0;
    for (int64_t head = 0; head < c->num_kv_heads && c->num_kv_heads < tp_size; head++)
        sent += (dt_range_count(dt_range_part(tp_size, head, c->num_kv_heads)) - 1) *
                sum_of(2 * columns * c->hidden_size * c->num_layers);
    return sent;
}

/* Bytes that all slices send in a pass, of C columns and n targets in R rows:
 *     embeddings  2 R C
 *     layer       8 R C, and 2 R C or with rows apart 3 R C more where all is computed again,
 *                 with rows apart 2 R C where norms are
 *     head        2 n C (with rows apart 2 R C, and 2 n C where there is a dense layer), and of
 *                 the losses 6 t n floats
 * elements t - 1 times, and sums of gradients in parts. */
static uint64_t expected_bytes(const struct job *job, int tp_size)
{
    const struct dt_model_config *c = &job->config;
    int64_t rows = job->count * job->length, stream = rows * c->hidden_size, targets = rows;
    int64_t layer = 8, size = (int64_t)dt_dtype_size(job->compute);
    if (job->masked)
        targets = (rows + 2) / 4;
    if (job->recompute == DT_RECOMPUTE_FULL)
        layer += job->sequence ? 3 : 2;
    if (job->recompute == DT_RECOMPUTE_SELECTIVE)
        layer += job->sequence ? 2 : 0;
    int64_t sent = 2 * stream + layer * c->num_layers * stream;
    sent += job->sequence ? stream + (job->masked ? 0 : stream) : 0;
    sent += job->sequence && !job->masked ? 0 : 2 * targets * c->hidden_size;
    int64_t floats = DT_LOGIT_SUMS * tp_size * targets + norm_sums(job);
    return (uint64_t)((tp_size - 1) * (sent * size + floats * 4) + key_sums(job, tp_size) * 4);
}

static void bytes_sent_are_those_of_the_formula(void **state)
{
    (void)state;
    struct dt_rng rng;
    dt_rng_init(&rng, 5);
    for (int i = 0; i < 50; i++) {
        struct job job = random_job(&rng);
        job.length = 3 + dt_rng_below(&rng, 6);
        job.sequence = dt_rng_below(&rng, 2);
        int tp_size = 2 + (int)dt_rng_below(&rng, 3);
        run_parts(&job, tp_size);
        if (job.bytes != expected_bytes(&job, tp_size))
            fail_msg("layout %d: %llu bytes, not %llu", i, (unsigned long long)job.bytes,
                     (unsigned long long)expected_bytes(&job, tp_size));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_in_slices),
        cmocka_unit_test(llama_in_slices),
        cmocka_unit_test(a_real_vocabulary_in_slices),
        cmocka_unit_test(qwen3_in_slices),
        cmocka_unit_test(masked_models_in_slices),
        cmocka_unit_test(dropout_is_that_of_the_whole),
        cmocka_unit_test(what_is_computed_again_is_the_same),
        cmocka_unit_test(losses_may_be_smoothed),
        cmocka_unit_test(sixteen_bits_agree_as_far_as_they_go),
        cmocka_unit_test(without_any_one_exchange_the_gradients_are_wrong),
        cmocka_unit_test(bytes_sent_are_those_of_the_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
