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

/* The window is shorter, as long, and longer than a chunk. */
static void windows_match_one_rank(void **state)
{
    (void)state;
    const enum dt_family families[] = {DT_FAMILY_LLAMA, DT_FAMILY_BERT};
    for (int f = 0; f < 2; f++)
        for (int64_t chunk = 1; chunk <= 5; chunk += 2) {
            const struct dt_model_config config = config_of(families[f]);
            struct job job = chunked_job(&config, 4, chunk);
            set_window(&job);
            check(&job, 4);
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

/* --- bits ------------------------------------------------------------------------------------- */

enum { BATCH = 2, MOST_CHUNKS = 8, TOKENS = 144 };

/* Attention of one layer: all rows of the batch, in the order of the batch; and the results that
 * the ranks must have. */
struct layer {
    struct dt_attention how;
    int cp_size;
    struct dt_qkv s, d; /* d: expected */
    struct dt_tensor y, lse, dy;
};

static struct dt_tensor new_rows(int64_t rows, int64_t columns)
{
    return dt_matrix(dt_alloc((size_t)(rows * columns), sizeof(float)), rows, columns);
}

static struct dt_tensor random_rows(struct dt_rng *rng, int64_t rows, int64_t columns)
{
    struct dt_tensor x = new_rows(rows, columns);
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)x.data)[i] = (float)(2 * dt_rng_double(rng) - 1);
    return x;
}

/* Rows of a rank. */
static struct dt_tensor select_rows(const struct dt_model_part *part, const struct dt_tensor *all)
{
    const struct dt_batch batch = {.count = BATCH, .length = TOKENS};
    struct dt_tensor x = new_rows(dt_context_parallel_rows(part, BATCH, TOKENS), all->columns);
    for (int64_t i = 0; i < x.rows; i++)
        memcpy((float *)x.data + i * x.columns,
               (float *)all->data + dt_context_parallel_row(part, &batch, i) * x.columns,
               (size_t)x.columns * sizeof(float));
    return x;
}

static void assert_rows(const char *name, const struct dt_model_part *part, struct dt_tensor *got,
                        const struct dt_tensor *all)
{
    struct dt_tensor want = select_rows(part, all);
    if (memcmp(got->data, want.data, (size_t)(want.rows * want.columns) * sizeof(float)) != 0)
        fail_msg("%d ranks: %s of rank %d has other bits", part->cp_size, name, part->cp_rank);
    free(want.data), free(got->data);
}

/* Gradients of all keys and values from chunk i of the queries of a rank, of one rank alone. */
static struct dt_qkv chunk_gradients(struct dt_device *dev, const struct layer *l,
                                     const struct dt_model_part *part, int i)
{
    struct dt_tensor q = select_rows(part, &l->s.q), dy = select_rows(part, &l->dy);
    struct dt_tensor y = select_rows(part, &l->y), lse = select_rows(part, &l->lse);
    struct dt_qkv d = {new_rows(q.rows, q.columns), new_rows(l->s.k.rows, l->s.k.columns),
                       new_rows(l->s.k.rows, l->s.k.columns)};
    struct dt_attention how = l->how;
    how.queries = dt_context_parallel_chunk_length(part, TOKENS);
    how.past = dt_context_parallel_chunk_start(part, TOKENS, i);
    struct dt_tensor one[] = {
        dt_context_parallel_chunk_rows(part, &d.q, i), dt_context_parallel_chunk_rows(part, &dy, i),
        dt_context_parallel_chunk_rows(part, &y, i), dt_context_parallel_chunk_rows(part, &lse, i),
        dt_context_parallel_chunk_rows(part, &q, i)};
    dev->ops->attention_backward(dev, &one[0], &d.k, &d.v, &one[1], &one[2], &one[3], &one[4],
                                 &l->s.k, &l->s.v, &how);
    free(d.q.data), free(q.data), free(dy.data), free(y.data), free(lse.data);
    return d;
}

/* x[0] = the binary tree over x. */
static void add_up(struct dt_tensor *x, int count)
{
    for (int step = 1; step < count; step *= 2)
        for (int i = 0; i + step < count; i += 2 * step)
            for (int64_t e = 0; e < x[i].rows * x[i].columns; e++)
                ((float *)x[i].data)[e] += ((float *)x[i + step].data)[e];
    for (int i = 1; i < count; i++)
        free(x[i].data);
}

/* Outputs and gradients of queries are those of whole sequences; those of keys and values are
 * added in the order of the rows of all ranks. */
static void expect(struct dt_device *dev, struct layer *l)
{
    struct dt_model_part part = {.cp_size = l->cp_size};
    struct dt_tensor dk[MOST_CHUNKS], dv[MOST_CHUNKS];
    int count = 0;
    dev->ops->attention_forward(dev, &l->y, &l->lse, &l->s.q, &l->s.k, &l->s.v, &l->how);
    dev->ops->attention_backward(dev, &l->d.q, &l->d.k, &l->d.v, &l->dy, &l->y, &l->lse, &l->s.q,
                                 &l->s.k, &l->s.v, &l->how);
    free(l->d.k.data), free(l->d.v.data);
    for (; part.cp_rank < l->cp_size; part.cp_rank++)
        for (int i = 0; i < dt_context_parallel_chunks(&part); i++, count++) {
            struct dt_qkv d = chunk_gradients(dev, l, &part, i);
            dk[count] = d.k, dv[count] = d.v;
        }
    add_up(dk, count), add_up(dv, count);
    l->d.k = dk[0], l->d.v = dv[0];
}

static struct dt_model_config layer_config(void)
{
    struct dt_model_config config = llama;
    config.max_seq_len = TOKENS;
    return config;
}

static void run_layer_rank(struct dt_comm *world, void *context)
{
    const struct layer *l = context;
    const struct dt_model_config config = layer_config();
    struct job job = job_of(&config);
    struct dt_context_attention scratch;
    struct dt_arena arena = {0};
    struct dt_error err;
    struct dt_device *dev;
    job.cp_size = l->cp_size;
    struct dt_model_part part = part_of(world, &job);
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    struct dt_model *m = dt_model_plan(dev, &job.config, DT_DTYPE_F32, &part);
    struct dt_qkv s = {select_rows(&part, &l->s.q), select_rows(&part, &l->s.k),
                       select_rows(&part, &l->s.v)};
    struct dt_tensor dy = select_rows(&part, &l->dy), y = new_rows(dy.rows, dy.columns);
    struct dt_tensor lse = new_rows(dy.rows, l->lse.columns);
    struct dt_qkv d = {new_rows(s.q.rows, s.q.columns), new_rows(s.k.rows, s.k.columns),
                       new_rows(s.k.rows, s.k.columns)};
    struct dt_attention how = dt_model_attention(m, BATCH, TOKENS);
    how.dropout = l->how.dropout;
    how.window = l->how.window, how.softcap = l->how.softcap;
    dt_context_attention_layout(&scratch, &arena, m, s.q.rows, true);
    assert_int_equal(dt_arena_allocate(&arena, dev, &err), 0);
    dt_context_attention_layout(&scratch, &arena, m, s.q.rows, true);
    dt_context_attention_forward(m, &scratch, &y, &lse, &s, &how);
    dt_context_attention_backward(m, &scratch, &d, &dy, &y, &lse, &s, &how);
    assert_rows("y", &part, &y, &l->y), assert_rows("lse", &part, &lse, &l->lse);
    assert_rows("dq", &part, &d.q, &l->d.q);
    assert_rows("dk", &part, &d.k, &l->d.k), assert_rows("dv", &part, &d.v, &l->d.v);
    free(s.q.data), free(s.k.data), free(s.v.data), free(dy.data);
    dt_arena_release(&arena, dev);
    dt_model_free(m);
    dt_device_close(dev);
}

static void ranks_have_the_bits_of_one_rank(void **state)
{
    (void)state;
    const int64_t rows = BATCH * TOKENS, queries = llama.hidden_size, keys = queries / 2;
    struct dt_rng rng;
    struct dt_error err;
    struct dt_device *dev;
    dt_rng_init(&rng, 5);
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &err), 0);
    for (int i = 0; i < 4; i++) {
        int cp_size = i % 2 ? 4 : 2;
        struct layer l = {
            .how = {.batch = BATCH,
                    .heads = llama.num_heads,
                    .kv_heads = llama.num_kv_heads,
                    .queries = TOKENS,
                    .key_stride = TOKENS,
                    .length = TOKENS,
                    .window = i < 2 ? 0 : 50,
                    .softcap = i < 2 ? 0 : 1,
                    .dropout = {.rate = cp_size == 2 ? 0.2f : 0, .key = 3, .sample = 7}},
            .cp_size = cp_size,
            .s = {random_rows(&rng, rows, queries), random_rows(&rng, rows, keys),
                  random_rows(&rng, rows, keys)},
            .d = {new_rows(rows, queries), new_rows(rows, keys), new_rows(rows, keys)},
            .y = new_rows(rows, queries),
            .lse = new_rows(rows, llama.num_heads),
            .dy = random_rows(&rng, rows, queries)};
        expect(dev, &l);
        run_ranks(cp_size, run_layer_rank, &l);
        free(l.s.q.data), free(l.s.k.data), free(l.s.v.data), free(l.y.data), free(l.lse.data);
        free(l.d.q.data), free(l.d.k.data), free(l.d.v.data), free(l.dy.data);
    }
    dt_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_a_batch_belongs_to_one_rank),
        cmocka_unit_test(causal_attention_is_balanced_across_ranks),
        cmocka_unit_test(gpt2_matches_one_rank),
        cmocka_unit_test(llama_matches_one_rank),
        cmocka_unit_test(windows_match_one_rank),
        cmocka_unit_test(masked_models_match_one_rank),
        cmocka_unit_test(dropout_matches_one_rank),
        cmocka_unit_test(recomputation_matches_one_rank),
        cmocka_unit_test(attention_stays_within_documents),
        cmocka_unit_test(context_and_tensor_parallelism_combine),
        cmocka_unit_test(sixteen_bit_types_agree_within_rounding),
        cmocka_unit_test(skipping_the_keys_of_any_rank_changes_the_gradients),
        cmocka_unit_test(random_models_send_the_expected_bytes),
        cmocka_unit_test(ranks_have_the_bits_of_one_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
