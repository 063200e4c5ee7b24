/* SPDX-License-Identifier: MIT */
/* Tensor parallelism: losses and gradients match one rank. */
#include "model/context-parallel.h"
#include "model/part-job.h"

#include <stdio.h>

/* 1 to 4 tensor-parallel ranks, without and with sequence parallelism. */
static void check_job(struct job *job)
{
    for (int tp_size = 1; tp_size <= 4; tp_size++)
        for (int sequence = 0; sequence < 2; sequence++) {
            job->sequence = sequence;
            run_sharded(job, tp_size);
            if (!(job->worst <= 1e-6 && job->worst_loss <= 1e-6 && job->other_hits == 0))
                fail_msg("%d tensor-parallel ranks%s: gradients %g, losses %g, hits %d", tp_size,
                         sequence ? ", sequence parallelism" : "", job->worst, job->worst_loss,
                         job->other_hits);
        }
}

static void check_config(const struct dt_model_config *config)
{
    struct job job = job_of(config);
    check_job(&job);
}

static void gpt2_matches_one_rank(void **state)
{
    (void)state;
    check_config(&gpt2);
}

/* 5 heads of keys on 2, 3 and 4 ranks. */
static void llama_matches_one_rank(void **state)
{
    (void)state;
    check_config(&llama);
}

/* Also with dropout and full recomputation. */
static void check_structure(const struct dt_model_config *config)
{
    struct dt_model_config dropping = *config;
    check_config(config);
    dropping.dropout = 0.2;
    struct job job = job_of(&dropping);
    job.recompute = DT_RECOMPUTE_FULL;
    check_job(&job);
}

static void parallel_residuals_match_one_rank(void **state)
{
    (void)state;
    check_structure(&gpt_neox);
}

static void scales_and_biases_match_one_rank(void **state)
{
    (void)state;
    struct dt_model_config one_key_head = granite;
    check_structure(&granite);
    one_key_head.num_kv_heads = 1;
    check_config(&one_key_head);
}

/* Gemma 2, and ModernBERT, whose first block begins with the norm of the embeddings. */
static void other_norms_match_one_rank(void **state)
{
    (void)state;
    struct dt_model_config both = llama, first = gpt2;
    both.family = DT_FAMILY_GEMMA2;
    both.tie_word_embeddings = true;
    first.family = DT_FAMILY_MODERNBERT;
    first.rope_theta = 100;
    check_structure(&both);
    check_config(&first);
}

/* A size that is divisible by neither 2, 3 nor 4, as GPT-2's. */
static void uneven_vocabulary_shards_match_one_rank(void **state)
{
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        struct dt_model_config config = llama;
        config.vocab_size = 1009;
        config.tie_word_embeddings = tied;
        check_config(&config);
    }
}

/* With norms of queries and keys, and fewer heads of keys than ranks. */
static void qwen3_matches_one_rank(void **state)
{
    (void)state;
    for (long kv_heads = 1; kv_heads <= 2; kv_heads++) {
        struct dt_model_config config = llama;
        config.qk_norm = true;
        config.tie_word_embeddings = true;
        config.num_heads = 4;
        config.num_kv_heads = kv_heads;
        check_config(&config);
    }
}

static void windows_and_wide_heads_match_one_rank(void **state)
{
    (void)state;
    for (int recompute = 0; recompute <= DT_RECOMPUTE_FULL; recompute++) {
        struct job job = job_of(&llama);
        job.recompute = (enum dt_recompute)recompute;
        set_window(&job);
        check_job(&job);
    }
}

static void masked_models_match_one_rank(void **state)
{
    (void)state;
    check_masked_models(check_config);
}

static void dropout_matches_one_rank(void **state)
{
    (void)state;
    check_dropout(check_config);
}

static void recomputation_matches_one_rank(void **state)
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

static void label_smoothing_and_z_loss_match_one_rank(void **state)
{
    (void)state;
    struct job job = job_of(&llama);
    job.how.label_smoothing = 0.1f;
    job.how.z_loss = 0.01f;
    check_job(&job);
}

static void mapped_logits_match_one_rank(void **state)
{
    (void)state;
    struct dt_model_config scaled = granite, capped = llama;
    scaled.logit_scale = 0.7;
    capped.family = DT_FAMILY_GEMMA2;
    capped.logit_softcap = 0.5;
    check_config(&scaled);
    check_config(&capped);
}

/* Sums over the ranks are rounded once, as on one rank: where the order of the sum changes the last
 * bit of fp32, few of them are rounded to other 16 bits. */
static void sixteen_bit_types_agree_within_rounding(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int sequence = 0; sequence < 2; sequence++) {
            struct job job = job_of(i ? &llama : &gpt2);
            job.compute = i ? DT_DTYPE_F16 : DT_DTYPE_BF16;
            job.sequence = sequence;
            run_sharded(&job, 3);
            assert_true(job.worst < (i ? 5e-4 : 4e-3));
            assert_true(job.worst_loss < (i ? 1e-4 : 1e-3));
        }
}

/* Collectives in a pass of gpt2 with two layers: of the embeddings, four per layer in forward and
 * in backward (and with sequence parallelism the all-reduce of the gradients of norms), of the
 * head. */
#define EXCHANGES(sequence) ((sequence) ? 2 + 2 * (4 + 6) + 5 : 2 + 2 * (4 + 4) + 3)

/* Without any one of them, gradients are wrong. */
static void skipping_any_collective_changes_the_gradients(void **state)
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
            run_sharded(&job, 2);
            unsetenv("DT_DEBUG_SKIP_EXCHANGE");
            bool all = i == EXCHANGES(sequence); /* the next one is in scoring */
            if (all != (job.worst <= 1e-6))
                fail_msg("collective %d skipped: %g", i, job.worst);
        }
}

/* Elements that t ranks send in an all-reduce of n, divided by t - 1. */
static int64_t sum_of(int64_t n)
{
    return 2 * n;
}

/* All-reduces of the gradients of norms; those of heads in parts of the rows. */
static int64_t norm_sums(const struct job *job)
{
    int64_t width = job->config.hidden_size, layers = job->config.num_layers;
    int64_t vectors = dt_family_of(&job->config)->norm == DT_NORM_LAYER ? 2 : 1;
    int64_t heads = job->config.qk_norm ? 2 * layers * width / job->config.num_heads : 0;
    heads *= DT_ROW_PARTS;
    return sum_of(job->sequence ? vectors * (2 * layers + 1) * width + heads : heads);
}

/* All-reduces of the gradients of key and value heads that several ranks replicate. */
static int64_t key_sums(const struct job *job, int tp_size)
{
    const struct dt_model_config *c = &job->config;
    int64_t columns = c->hidden_size / c->num_heads, sent = 0;
    for (int64_t head = 0; head < c->num_kv_heads && c->num_kv_heads < tp_size; head++)
        sent += (dt_range_count(dt_range_part(tp_size, head, c->num_kv_heads)) - 1) *
                sum_of(2 * columns * c->hidden_size * c->num_layers);
    return sent;
}

/* Bytes that all t ranks send in a pass with C columns and n targets in R rows. SP: sequence
 * parallelism.
 *     embeddings  2 R C
 *     layer       8 R C; full recomputation: 2 R C more, with SP 3 R C; selective: with SP 2 R C
 *     head        2 n C; with SP R C more, and with fp32 without a dense layer R C instead of 2 n
 * C; losses: 6 t n floats elements t - 1 times, and the all-reduces of partial gradients. Products
 * are fp32 until they are summed: 4 R C in a layer, 1 R C more with full recomputation, and once in
 * the head. */
static uint64_t expected_bytes(const struct job *job, int tp_size)
{
    const struct dt_model_config *c = &job->config;
    int64_t rows = job->count * job->length, stream = rows * c->hidden_size, targets = rows;
    int64_t layer = 8, size = (int64_t)dt_dtype_size(job->compute), products = 4;
    bool late = job->sequence && !job->masked && job->compute == DT_DTYPE_F32;
    if (job->masked)
        targets = (rows + 2) / 4;
    if (job->recompute == DT_RECOMPUTE_FULL)
        layer += job->sequence ? 3 : 2;
    if (job->recompute == DT_RECOMPUTE_SELECTIVE)
        layer += job->sequence ? 2 : 0;
    products += job->recompute == DT_RECOMPUTE_FULL;
    int64_t sent = 2 * stream + layer * c->num_layers * stream;
    int64_t parts = DT_LOGIT_PARTS % tp_size == 0 ? DT_LOGIT_PARTS : tp_size;
    sent += job->sequence ? stream : 0;
    sent += late ? stream : 2 * targets * c->hidden_size;
    int64_t sums = products * c->num_layers * stream + (late ? stream : targets * c->hidden_size);
    int64_t floats = DT_LOGIT_SUMS * parts * targets + norm_sums(job);
    return (uint64_t)((tp_size - 1) * ((sent - sums) * size + (sums + floats) * 4) +
                      key_sums(job, tp_size) * 4);
}

static void bytes_sent_match_the_formula(void **state)
{
    (void)state;
    struct dt_rng rng;
    dt_rng_init(&rng, 5);
    for (int i = 0; i < 50; i++) {
        struct job job = random_job(&rng);
        job.length = 3 + dt_rng_below(&rng, 6);
        job.sequence = dt_rng_below(&rng, 2);
        int tp_size = 2 + (int)dt_rng_below(&rng, 3);
        run_sharded(&job, tp_size);
        if (job.bytes != expected_bytes(&job, tp_size))
            fail_msg("layout %d: %llu bytes, expected %llu", i, (unsigned long long)job.bytes,
                     (unsigned long long)expected_bytes(&job, tp_size));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_matches_one_rank),
        cmocka_unit_test(llama_matches_one_rank),
        cmocka_unit_test(parallel_residuals_match_one_rank),
        cmocka_unit_test(scales_and_biases_match_one_rank),
        cmocka_unit_test(other_norms_match_one_rank),
        cmocka_unit_test(uneven_vocabulary_shards_match_one_rank),
        cmocka_unit_test(qwen3_matches_one_rank),
        cmocka_unit_test(windows_and_wide_heads_match_one_rank),
        cmocka_unit_test(masked_models_match_one_rank),
        cmocka_unit_test(dropout_matches_one_rank),
        cmocka_unit_test(recomputation_matches_one_rank),
        cmocka_unit_test(label_smoothing_and_z_loss_match_one_rank),
        cmocka_unit_test(mapped_logits_match_one_rank),
        cmocka_unit_test(sixteen_bit_types_agree_within_rounding),
        cmocka_unit_test(skipping_any_collective_changes_the_gradients),
        cmocka_unit_test(bytes_sent_match_the_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
