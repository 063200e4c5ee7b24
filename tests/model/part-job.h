/* SPDX-License-Identifier: MIT */
/* Runs models with tensor and context parallelism, and compares them with the model on one rank. */
#ifndef DT_TESTS_PART_JOB_H
#define DT_TESTS_PART_JOB_H

#include "test.h"

#include <math.h>

#include "comm/threads.h"
#include "math/rng.h"
#include "model/forward-backward.h"

#define MOST_ROWS 128

/* A model and its batch, and the results of one rank. */
struct job {
    struct dt_model_config config;
    enum dt_dtype compute;
    enum dt_recompute recompute;
    int64_t count, length; /* of the batch */
    bool sequence, masked, documents;
    int cp_size;
    struct dt_pass how;
    int passes;
    const struct dt_table *whole;
    float *gradients; /* of one rank */
    double loss;
    float losses[MOST_ROWS], hits[MOST_ROWS];
    int32_t begins[MOST_ROWS], ends[MOST_ROWS]; /* with documents */
    double worst, worst_loss; /* relative errors: of a tensor's gradient, of a loss */
    int other_hits;
    uint64_t bytes; /* sent by all ranks in one pass */
    pthread_mutex_t lock;
};

static const struct dt_model_config gpt2 = {
    .family = DT_FAMILY_GPT2,
    .vocab_size = 53,
    .max_seq_len = 9,
    .hidden_size = 24,
    .num_layers = 2,
    .num_heads = 6,
    .intermediate_size = 41,
    .initializer_range = 0.1, /* about as far as 0.02 goes in 768 columns */
    .tie_word_embeddings = true,
};

static const struct dt_model_config llama = {
    .family = DT_FAMILY_LLAMA,
    .vocab_size = 57,
    .max_seq_len = 9,
    .hidden_size = 40,
    .num_layers = 2,
    .num_heads = 10,
    .num_kv_heads = 5,
    .intermediate_size = 50,
    .rope_theta = 100,
    .initializer_range = 0.1, /* about as far as 0.02 goes in 768 columns */
};

/* Attention and MLP in parallel, biases, a part of the channels rotated; uneven on 4 ranks. */
static const struct dt_model_config gpt_neox = {
    .family = DT_FAMILY_GPT_NEOX,
    .vocab_size = 53,
    .max_seq_len = 9,
    .hidden_size = 24,
    .num_layers = 2,
    .num_heads = 6,
    .intermediate_size = 41,
    .rope_theta = 100,
    .rotary_dim = 2,
    .initializer_range = 0.1,
    .parallel_residual = true,
};

/* Biases and scales. */
static const struct dt_model_config granite = {
    .family = DT_FAMILY_GRANITE,
    .vocab_size = 57,
    .max_seq_len = 9,
    .hidden_size = 40,
    .num_layers = 2,
    .num_heads = 10,
    .num_kv_heads = 5,
    .intermediate_size = 50,
    .rope_theta = 100,
    .initializer_range = 0.1,
    .attention_bias = DT_ATTENTION_BIAS_ALL,
    .mlp_bias = true,
    .embedding_scale = 3,
    .residual_scale = 0.4,
};

static inline struct job job_of(const struct dt_model_config *config)
{
    struct dt_error err;
    struct job job = {.config = *config,
                      .how = {.scale = 0.5f, .seed = 4},
                      .passes = 2,
                      .count = 3,
                      .length = 7,
                      .cp_size = 1,
                      .masked = dt_model_is_masked(config),
                      .lock = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(dt_model_config_check(&job.config, "model", &err), 0);
    return job;
}

/* Heads wider than C / H, a window in the first layer, a scale and a soft cap. */
static inline void set_window(struct job *job)
{
    job->config.head_dim = 6;
    job->config.sliding_window = 4;
    job->config.global_every = 2;
    job->config.global_first = 1;
    job->config.attention_scale = 0.3;
    job->config.attention_softcap = 1.5;
}

static inline struct dt_model_config config_of(enum dt_family family)
{
    struct dt_model_config config = family == DT_FAMILY_LLAMA ? llama : gpt2;
    config.family = family;
    return config;
}

static inline void check_masked_models(void (*check)(const struct dt_model_config *config))
{
    const enum dt_family families[] = {DT_FAMILY_BERT, DT_FAMILY_DISTILBERT};
    for (int f = 0; f < 2; f++) {
        struct dt_model_config config = config_of(families[f]);
        check(&config);
    }
}

/* Dropout masks do not depend on the layout. */
static inline void check_dropout(void (*check)(const struct dt_model_config *config))
{
    const enum dt_family families[] = {DT_FAMILY_GPT2, DT_FAMILY_LLAMA, DT_FAMILY_BERT};
    for (int f = 0; f < 3; f++) {
        struct dt_model_config config = config_of(families[f]);
        config.dropout = 0.2;
        config.attention_dropout = 0.3;
        check(&config);
    }
}

/* One pass of a random model of any family. */
static inline struct job random_job(struct dt_rng *rng)
{
    const enum dt_family families[] = {DT_FAMILY_GPT2, DT_FAMILY_LLAMA, DT_FAMILY_BERT,
                                       DT_FAMILY_DISTILBERT};
    struct dt_model_config config = llama;
    config.family = families[dt_rng_below(rng, 4)];
    if (config.family != DT_FAMILY_LLAMA)
        config.rope_theta = 0;
    config.num_layers = 1 + dt_rng_below(rng, 3);
    config.vocab_size = 20 + dt_rng_below(rng, 50);
    config.intermediate_size = 20 + dt_rng_below(rng, 50);
    config.max_seq_len = 40;
    config.num_heads = 4;
    config.num_kv_heads = config.family == DT_FAMILY_LLAMA ? 1 << dt_rng_below(rng, 3) : 4;
    config.qk_norm = config.family == DT_FAMILY_LLAMA && dt_rng_below(rng, 2);
    config.tie_word_embeddings = config.family != DT_FAMILY_LLAMA || dt_rng_below(rng, 2);
    struct job job = job_of(&config);
    job.passes = 1;
    job.count = 1 + dt_rng_below(rng, 3);
    job.compute = dt_rng_below(rng, 2) ? DT_DTYPE_F32 : DT_DTYPE_BF16;
    job.recompute = (enum dt_recompute)dt_rng_below(rng, 3);
    return job;
}

/* A random batch; masked models predict a quarter of the tokens. */
static inline void fill_batch(struct dt_batch *batch, const struct job *job)
{
    struct dt_rng rng;
    uint32_t ids[2 * MOST_ROWS], vocabulary = (uint32_t)job->config.vocab_size;
    dt_rng_init(&rng, 8);
    for (int64_t i = 0; i < job->count * (job->length + 1); i++)
        ids[i] = dt_rng_below(&rng, vocabulary);
    dt_batch_init(batch, job->count, job->length);
    dt_batch_next_token(batch, ids, job->count, job->length);
    for (int64_t i = 0; job->masked && i < job->count * job->length; i++)
        if (i % 4 != 1)
            batch->targets[i] = DT_NO_TARGET;
    batch->first_sample = 100;
    batch->begins = job->documents ? job->begins : NULL;
    batch->ends = job->documents ? job->ends : NULL;
}

struct run {
    struct dt_device *dev;
    struct dt_model *model;
    struct dt_workspace *work;
    struct dt_batch batch;
    float *gradients;
    double loss;
    struct dt_comm *ring; /* of context-parallel ranks; NULL: one rank */
};

/* The rank's group of size ranks, stride apart. */
static inline struct dt_comm *group_of(struct dt_comm *world, int size, int stride)
{
    int ranks[MOST_RANKS], rank = dt_comm_rank(world);
    for (int i = 0; i < size; i++)
        ranks[i] = rank + (i - rank / stride % size) * stride;
    return dt_comm_group(world, "test", ranks, size);
}

/* Tensor-parallel ranks are adjacent. */
static inline struct dt_model_part part_of(struct dt_comm *world, const struct job *job)
{
    int tp_size = dt_comm_size(world) / job->cp_size;
    struct dt_model_part part = DT_MODEL_PART_WHOLE;
    part.tp_group = group_of(world, tp_size, 1);
    part.tp_rank = dt_comm_rank(part.tp_group);
    part.tp_size = tp_size;
    part.sequence = job->sequence;
    part.cp_group = group_of(world, job->cp_size, tp_size);
    part.cp_rank = dt_comm_rank(part.cp_group);
    part.cp_size = job->cp_size;
    return part;
}

static inline void open_run(struct run *r, const struct job *job, struct dt_comm *world)
{
    struct dt_error err;
    struct dt_model_part part = DT_MODEL_PART_WHOLE;
    struct dt_workspace_shape shape = {
        .batch = job->count, .length = job->length, .training = true, .recompute = job->recompute};
    if (world)
        part = part_of(world, job);
    r->ring = part.cp_size > 1 ? part.cp_group : NULL;
    assert_int_equal(dt_device_open(&r->dev, "cpu", 1, &err), 0);
    r->model = dt_model_plan(r->dev, &job->config, job->compute, &part);
    assert_int_equal(dt_model_allocate(r->model, &err), 0);
    dt_model_initialize(r->model, 3);
    assert_int_equal(dt_workspace_new(&r->work, r->model, &shape, &err), 0);
    fill_batch(&r->batch, job);
    r->gradients = dt_alloc((size_t)r->model->table.elements, sizeof *r->gradients);
}

/* Accumulates the gradients of several passes. */
static inline void run_backward(struct run *r, const struct job *job, int times)
{
    struct dt_flat flat = {0};
    dt_flat_set(&flat, &r->model->table, DT_DTYPE_F32, r->gradients);
    for (int i = 0; i < times; i++)
        r->loss = dt_model_backward(r->model, r->work, &r->batch, &flat, &job->how);
    dt_flat_release(&flat);
}

static inline void close_run(struct run *r)
{
    dt_batch_release(&r->batch);
    dt_workspace_free(r->work);
    dt_model_free(r->model);
    dt_device_close(r->dev);
    free(r->gradients);
}

static inline double norm_of(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static inline bool feeds_scores(const struct dt_param *p)
{
    return p->role >= DT_ROLE_Q_WEIGHT && p->role <= DT_ROLE_K_NORM_WEIGHT;
}

/* The norm that errors are relative to. The gradient of the bias of keys is rounding error alone,
 * because softmax is invariant to it. Those of other queries and keys are small differences of
 * larger numbers, and context parallelism changes the order of their sums: with it, errors are
 * relative to queries, keys and values together, as in GPT-2's fused tensor. */
static inline double size_of(const struct job *job, const struct dt_param *all)
{
    double squares = 0;
    for (int i = 0; i < job->whole->count; i++) {
        const struct dt_param *p = &job->whole->params[i];
        if (p->layer == all->layer && feeds_scores(p))
            squares += pow(norm_of(job->gradients + p->offset, p->count), 2);
    }
    if (job->cp_size > 1 && feeds_scores(all))
        return sqrt(squares);
    return all->role == DT_ROLE_K_BIAS ? norm_of(job->gradients, job->whole->elements)
                                       : norm_of(job->gradients + all->offset, all->count);
}

static inline double error_of(const struct run *r, const struct job *job, int i)
{
    const struct dt_param *own = &r->model->table.params[i], *all = &job->whole->params[i];
    double difference = 0;
    for (int64_t n = 0; n < dt_param_runs(own); n++) {
        struct dt_param_run run = dt_param_run(own, n);
        const float *want = job->gradients + all->offset + run.there;
        const float *got = r->gradients + own->offset + run.here;
        for (int64_t e = 0; e < run.count; e++)
            difference += pow((double)got[e] - (double)want[e], 2);
    }
    return sqrt(difference) / size_of(job, all);
}

static inline void all_reduce(struct dt_comm *ring, float *values, int64_t n)
{
    struct dt_error err;
    if (ring)
        assert_int_equal(dt_comm_all_reduce(ring, values, n, &err), 0);
}

/* With context parallelism, each rank has partial sums of all results. */
static inline void compare(struct run *r, struct job *job)
{
    float losses[MOST_ROWS], hits[MOST_ROWS], loss = (float)r->loss;
    dt_model_score(r->model, r->work, &r->batch, losses, hits);
    all_reduce(r->ring, r->gradients, r->model->table.elements);
    all_reduce(r->ring, losses, r->batch.count * r->batch.length);
    all_reduce(r->ring, hits, r->batch.count * r->batch.length);
    all_reduce(r->ring, &loss, 1);
    r->loss = r->ring ? (double)loss : r->loss;
    pthread_mutex_lock(&job->lock);
    for (int i = 0; i < r->model->table.count; i++)
        job->worst = fmax(job->worst, error_of(r, job, i));
    job->worst_loss = fmax(job->worst_loss, fabs(r->loss / job->loss - 1));
    for (int64_t i = 0; i < job->count * job->length; i++) {
        double want = (double)job->losses[i], got = (double)losses[i];
        job->worst_loss = fmax(job->worst_loss, fabs(got - want) / (want + 1e-3));
        job->other_hits += hits[i] != job->hits[i];
    }
    pthread_mutex_unlock(&job->lock);
}

static inline void run_sharded_rank(struct dt_comm *world, void *context)
{
    struct job *job = context;
    struct run r;
    open_run(&r, job, world);
    run_backward(&r, job, 1);
    pthread_mutex_lock(&job->lock);
    job->bytes += dt_comm_bytes_sent(world);
    pthread_mutex_unlock(&job->lock);
    run_backward(&r, job, job->passes - 1);
    compare(&r, job);
    close_run(&r);
}

/* Runs the job on ranks, job->cp_size of them context-parallel, the others tensor-parallel, and
 * compares them with one rank. */
static inline void run_sharded(struct job *job, int ranks)
{
    struct run whole;
    open_run(&whole, job, NULL);
    run_backward(&whole, job, job->passes);
    job->whole = &whole.model->table;
    job->gradients = whole.gradients;
    job->loss = whole.loss;
    job->worst = job->worst_loss = 0;
    job->other_hits = 0;
    job->bytes = 0;
    dt_model_score(whole.model, whole.work, &whole.batch, job->losses, job->hits);
    run_ranks(ranks, run_sharded_rank, job);
    close_run(&whole);
}

#endif
