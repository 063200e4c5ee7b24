/* SPDX-License-Identifier: MIT */
/* Context parallelism: ranks with chunks of every sequence match one rank. */
#include "test.h"

#include "model/part-job.h"

#include <stdio.h>

#include "model/context-parallel.h"

/* Each context-parallel rank has two chunks of every sequence. */
static void set_context_parallelism(struct job *job, int cp_size, int64_t chunk)
{
    job->cp_size = cp_size;
    job->length = 2 * cp_size * chunk;
}

static struct job chunked_job(const struct dt_model_config *config, int cp_size, int64_t chunk)
{
    struct dt_model_config longer = *config;
    longer.max_seq_len = 40;
    struct job job = job_of(&longer);
    set_context_parallelism(&job, cp_size, chunk);
    job.count = 2;
    return job;
}

static void check(struct job *job, int ranks)
{
    run_sharded(job, ranks);
    if (!(job->worst <= 1e-6 && job->worst_loss <= 1e-6 && job->other_hits == 0))
        fail_msg(
            "%d of %d ranks are context-parallel, %lld tokens: gradients %g, losses %g, hits %d",
            job->cp_size, ranks, (long long)job->length, job->worst, job->worst_loss,
            job->other_hits);
}

static void check_config(const struct dt_model_config *config)
{
    for (int cp_size = 2; cp_size <= 4; cp_size++)
        for (int64_t chunk = 1; chunk <= 5; chunk += 2) {
            struct job job = chunked_job(config, cp_size, chunk);
            check(&job, cp_size);
        }
}

static void every_row_of_a_batch_belongs_to_one_rank(void **state)
{
    (void)state;
    for (int cp_size = 1; cp_size <= 5; cp_size++) {
        struct dt_model_part part = {.cp_size = cp_size};
        struct dt_batch batch = {.count = 3, .length = 6L * cp_size};
        int seen[3 * 6 * 5] = {0};
        for (part.cp_rank = 0; part.cp_rank < cp_size; part.cp_rank++)
            for (int64_t i = 0; i < dt_context_parallel_rows(&part, batch.count, batch.length); i++)
                seen[dt_context_parallel_row(&part, &batch, i)]++;
        for (int64_t row = 0; row < batch.count * batch.length; row++)
            assert_int_equal(seen[row], 1);
    }
}

/* Counts the pairs of query and key of each rank under the causal mask. */
static void causal_attention_is_balanced_across_ranks(void **state)
{
    (void)state;
    int64_t before = 0;
    struct dt_model_part part = {.cp_size = 4};
    const struct dt_batch batch = {.count = 1, .length = 48};
    for (part.cp_rank = 0; part.cp_rank < 4; part.cp_rank++) {
        int64_t pairs = 0;
        for (int64_t i = 0; i < dt_context_parallel_rows(&part, 1, 48); i++)
            pairs += dt_context_parallel_row(&part, &batch, i) + 1;
        assert_true(part.cp_rank == 0 || pairs == before);
        before = pairs;
    }
}

static void gpt2_matches_one_rank(void **state)
{
    (void)state;
    check_config(&gpt2);
}

static void llama_matches_one_rank(void **state)
{
    (void)state;
    struct dt_model_config config = llama;
    check_config(&config);
    config.qk_norm = true;
    config.num_heads = 4;
    config.num_kv_heads = 1;
    check_config(&config);
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
    for (int recompute = 1; recompute <= DT_RECOMPUTE_FULL; recompute++) {
        struct dt_model_config config = recompute == 1 ? gpt2 : llama;
        config.dropout = 0.2;
        struct job job = chunked_job(&config, 3, 2);
        job.recompute = (enum dt_recompute)recompute;
        check(&job, 3);
    }
}

/* Documents of 1, 2, 3 ... tokens. */
static void attention_stays_within_documents(void **state)
{
    (void)state;
    const enum dt_family families[] = {DT_FAMILY_GPT2, DT_FAMILY_LLAMA, DT_FAMILY_BERT};
    for (int f = 0; f < 3; f++)
        for (int cp_size = 2; cp_size <= 4; cp_size++) {
            struct dt_model_config config = config_of(families[f]);
            struct job job = chunked_job(&config, cp_size, 3);
            job.documents = true;
            for (int64_t row = 0, begin = 0, end = 0; row < job.count * job.length; row++) {
                int64_t t = row % job.length;
                if (t == 0)
                    end = 0;
                if (t == end)
                    begin = end, end += 1 + row % 9;
                job.begins[row] = (int32_t)begin;
                job.ends[row] = (int32_t)(end < job.length ? end : job.length);
            }
            check(&job, cp_size);
        }
}

static void context_and_tensor_parallelism_combine(void **state)
{
    (void)state;
    const enum dt_family families[] = {DT_FAMILY_GPT2, DT_FAMILY_LLAMA, DT_FAMILY_BERT};
    for (int f = 0; f < 3; f++)
        for (int sequence = 0; sequence < 2; sequence++) {
            struct dt_model_config config = config_of(families[f]);
            config.dropout = 0.1;
            struct job job = chunked_job(&config, 2, 3);
            job.sequence = sequence;
            check(&job, 4);
            check(&job, 6);
            job = chunked_job(&config, 4, 1);
            job.sequence = sequence;
            check(&job, 8);
        }
}

static void sixteen_bit_types_agree_within_rounding(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct job job = chunked_job(i ? &llama : &gpt2, 4, 3);
        job.compute = i ? DT_DTYPE_F16 : DT_DTYPE_BF16;
        run_sharded(&job, 4);
        if (!(job.worst < (i ? 5e-3 : 4e-2) && job.worst_loss < (i ? 1e-3 : 1e-2)))
            fail_msg("%s: gradients %g, losses %g", i ? "fp16" : "bf16", job.worst, job.worst_loss);
    }
}

/* Without the keys of any rank, gradients are wrong. */
static void skipping_the_keys_of_any_rank_changes_the_gradients(void **state)
{
    (void)state;
    for (int rank = 1; rank <= 4; rank++) {
        struct job job = chunked_job(&llama, 4, 2);
        char number[16];
        snprintf(number, sizeof number, "%d", rank);
        setenv("DT_DEBUG_SKIP_BLOCK", number, 1);
        run_sharded(&job, 4);
        unsetenv("DT_DEBUG_SKIP_BLOCK");
        if ((rank == 4) != (job.worst <= 1e-6)) /* the fifth does not exist */
            fail_msg("keys of rank %d left out: %g", rank, job.worst);
    }
}

/* In each layer, each of c ranks sends its keys and values to the c - 1 others in forward,
 * recomputation and backward, and gradients in fp32 of each of the others' keys and values. */
static uint64_t expected_bytes(const struct job *job)
{
    const struct dt_model_config *c = &job->config;
    int64_t passes = job->recompute == DT_RECOMPUTE_FULL ? 3 : 2;
    int64_t block = job->count * job->length * 2 * dt_model_kv_width(c);
    int64_t element = (int64_t)dt_dtype_size(job->compute);
    return (uint64_t)((job->cp_size - 1) * c->num_layers * block *
                      (passes * element + (int64_t)sizeof(float)));
}

static void random_models_send_the_expected_bytes(void **state)
{
    struct dt_rng rng;
    (void)state;
    dt_rng_init(&rng, 9);
    for (int i = 0; i < 40; i++) {
        struct job job = random_job(&rng);
        set_context_parallelism(&job, 2 + (int)dt_rng_below(&rng, 3), 1 + dt_rng_below(&rng, 5));
        run_sharded(&job, job.cp_size);
        bool exact = job.compute == DT_DTYPE_F32;
        if (!(job.worst <= (exact ? 1e-6 : 4e-2)) || job.bytes != expected_bytes(&job))
            fail_msg("model %d: gradients %g, %llu bytes, expected %llu", i, job.worst,
                     (unsigned long long)job.bytes, (unsigned long long)expected_bytes(&job));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_a_batch_belongs_to_one_rank),
        cmocka_unit_test(causal_attention_is_balanced_across_ranks),
        cmocka_unit_test(gpt2_matches_one_rank),
        cmocka_unit_test(llama_matches_one_rank),
        cmocka_unit_test(masked_models_match_one_rank),
        cmocka_unit_test(dropout_matches_one_rank),
        cmocka_unit_test(recomputation_matches_one_rank),
        cmocka_unit_test(attention_stays_within_documents),
        cmocka_unit_test(context_and_tensor_parallelism_combine),
        cmocka_unit_test(sixteen_bit_types_agree_within_rounding),
        cmocka_unit_test(skipping_the_keys_of_any_rank_changes_the_gradients),
        cmocka_unit_test(random_models_send_the_expected_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
