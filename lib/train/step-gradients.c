/* SPDX-License-Identifier: MIT */
/* Forward and backward of the micro-batches of a step. */
#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/fault.h"
#include "device/time-spans.h"
#include "model/context-parallel.h"
#include "train/training-internal.h"

/* Context of struct dt_micro_batch_source. */
struct step_source {
    struct dt_training *training;
    struct dt_token_sums sums;     /* of its micro-batches */
    int64_t loaded;                /* index of the last micro-batch filled in; -1: none */
    const struct dt_batch *filled; /* the batch that holds it */
};

/* What the loss is the mean of. */
static int64_t count_targets(const struct dt_training *t, const struct dt_batch *batch)
{
    return dt_training_has_pairs(t) ? batch->count / 2
                                    : dt_context_parallel_targets(&t->mesh.part, batch);
}

/* Completions of the samples, which are prompts. */
static int fill_groups(struct dt_training *t, int64_t i, const struct dt_samples *samples,
                       struct dt_batch *batch, struct dt_token_sums *sums, struct dt_error *err)
{
    long size = t->settings.training.batch_size, length = t->settings.training.sequence_length;
    int64_t count;
    DT_TRY(dt_parameter_gather_wait(&t->state.gather, err)); /* the sampler reads all weights */
    uint64_t *numbers = dt_alloc((size_t)size, sizeof *numbers);
    for (long j = 0; j < size; j++)
        numbers[j] = samples->ids[j * (length + 1)];
    int rc = dt_groups_fill(&t->groups, numbers, t->progress.samples + (uint64_t)(i * size), size,
                            batch, &count, err);
    free(numbers);
    DT_TRY(rc);
    dt_step_trace_add_batch(&t->trace, i, batch);
    sums->counts[0] += count;
    return 0;
}

static int load_batch(struct dt_training *t, int64_t i, struct dt_batch *batch,
                      struct dt_token_sums *sums, struct dt_error *err)
{
    long size = t->settings.training.batch_size, length = t->settings.training.sequence_length;
    struct dt_samples samples;
    double since = dt_time_spans_begin(), begun = dt_clock_now();
    DT_TRY(dt_loader_next(t->loader, &samples, err));
    t->loader_seconds += dt_clock_now() - begun;
    dt_time_spans_end(DT_TIME_LANE_LAYER, "loader", -1, since);
    batch->first_sample = (t->progress.samples + (uint64_t)(i * size)) *
                          (uint64_t)dt_settings_sample_sequences(&t->settings);
    batch->begins = samples.begins;
    batch->ends = samples.ends;
    if (dt_training_has_prompts(t))
        return fill_groups(t, i, &samples, batch, sums, err);
    dt_objective_fill(&t->objective, batch, samples.ids, size, length);
    dt_step_trace_add_batch(&t->trace, i, batch);
    sums->counts[0] += count_targets(t, batch);
    return 0;
}

/* A rank without a micro-batch in this round computes one that it already has, or will have, so
 * that every rank makes the same collective calls; its gradients are dropped. */
static int fill(void *context, int64_t round, struct dt_batch *batch, struct dt_error *err)
{
    struct step_source *s = context;
    const struct dt_data_parallel *p = &s->training->state.dp;
    int64_t i = dt_data_parallel_round_batch(p, round);
    if (i < 0)
        i = s->loaded < 0 ? dt_data_parallel_round_batch(p, round + 1) : s->loaded;
    if (i != s->loaded)
        DT_TRY(load_batch(s->training, i, batch, &s->sums, err));
    else if (batch != s->filled)
        dt_batch_copy(batch, s->filled);
    s->loaded = i;
    s->filled = batch;
    return 0;
}

static const struct dt_flat *gradients(void *context, int64_t round)
{
    struct step_source *s = context;
    struct dt_train_state *state = &s->training->state;
    dt_shard_copies_send(s->training); /* the weights have arrived */
    state->dp.padding = dt_data_parallel_round_batch(&state->dp, round) < 0;
    return &state->gradients;
}

static void note_loss(void *context, int64_t round, const struct dt_exact_sum *loss)
{
    struct step_source *s = context;
    if (dt_data_parallel_round_batch(&s->training->state.dp, round) >= 0)
        dt_exact_sum_merge(&s->sums.loss, loss);
}

/* Forward and backward of this rank's micro-batches. *sums: over those of all ranks. */
static int run_batches(struct dt_training *t, double scale, struct dt_token_sums *sums,
                       struct dt_error *err)
{
    struct step_source step = {.training = t, .loaded = -1};
    const struct dt_micro_batch_source source = {&step, fill, gradients, note_loss};
    const struct dt_pass options = {
        .scale = dt_fault_injected(DT_FAULT_POISON, t->progress.step + 1) ? NAN : (float)scale,
        .label_smoothing = (float)t->settings.training.label_smoothing,
        .z_loss = (float)t->settings.training.z_loss,
        .seed = (uint64_t)t->settings.training.seed,
        .temperature = dt_training_has_prompts(t) ? (float)t->settings.grpo.temperature : 0,
        .weights = dt_training_has_pairs(t)     ? &t->preferences.weights
                   : dt_training_has_prompts(t) ? &t->groups.weights
                                                : NULL,
    };
    DT_TRY(dt_pipeline_executor_run(&t->executor, t->state.dp.rounds, &source, &options, err));
    *sums = step.sums;
    double since = dt_time_spans_begin();
    DT_TRY(dt_mesh_sum_tokens(&t->mesh, sums, err));
    dt_time_spans_end(DT_TIME_LANE_PHASE, "wait for ranks", -1, since);
    return 0;
}

int dt_training_gradients(struct dt_training *t, long batches, double loss_scale,
                          struct dt_token_sums *sums, struct dt_error *err)
{
    double positions = (double)(batches * t->settings.training.batch_size) *
                       (double)dt_settings_sample_tokens(&t->settings);
    dt_data_parallel_begin_step(&t->state.dp, batches);
    return run_batches(t, loss_scale / positions, sums, err);
}
