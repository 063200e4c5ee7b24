/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>

#include "base/buffer.h"
#include "model/context-parallel.h"
#include "model/finite.h"
#include "train/training-internal.h"

/* The sample at a position of the validation order. */
static uint64_t sample_at(uint64_t samples, uint64_t position)
{
    return dt_dataset_sample_at(0, samples, position);
}

/* Refuses losses of the last batch that are not finite. */
static int check_losses(const struct dt_training *t, uint64_t samples, uint64_t first,
                        uint64_t rows, struct dt_error *err)
{
    uint64_t length = (uint64_t)dt_settings_sample_tokens(&t->settings);
    for (uint64_t i = 0; i < rows * length; i++)
        if (!isfinite(t->val_losses[i]))
            return dt_fail(err, DT_EFORMAT,
                           "step %ld: validation: split '%s': sample %" PRIu64 ": token %" PRIu64
                           ": the loss is %s: the model's numbers overflow",
                           t->progress.step, t->settings.data.val_split,
                           sample_at(samples, first + i / length), i % length + 1,
                           dt_finite_name((double)t->val_losses[i]));
    return 0;
}

/* The losses of pairs instead of those of their tokens. */
static void judge(struct dt_training *t, uint64_t samples, uint64_t first, uint64_t rows)
{
    uint64_t *pairs = dt_alloc(rows, sizeof *pairs);
    for (uint64_t i = 0; i < rows; i++)
        pairs[i] = sample_at(samples, first + i);
    dt_preferences_judge(&t->preferences, &t->preferences.pairs[DT_PAIR_SPLIT_VALIDATION], pairs,
                         &t->batch, t->val_losses, NULL, NULL);
    free(pairs);
}

/* Loss of the samples at positions first .. first + rows - 1 of the order. */
static int validate_batch(struct dt_training *t, uint64_t samples, uint64_t first, uint64_t rows,
                          struct dt_token_sums *sums, struct dt_error *err)
{
    uint64_t length = (uint64_t)t->settings.training.sequence_length;
    uint32_t row = dt_training_row(t);
    bool has_pairs = dt_training_has_pairs(t);
    for (uint64_t i = 0; i < rows; i++) {
        uint32_t *ids = t->val_ids + i * ((uint64_t)row + 1);
        DT_TRY(dt_dataset_sample(t->val, row, sample_at(samples, first + i), ids, err));
        if (t->scope != DT_SCOPE_ROW)
            dt_attention_spans(t->scope, dt_dataset_info(t->val), ids, (uint32_t)length,
                               t->val_span_begins + i * length, t->val_span_ends + i * length);
    }
    float *hits = dt_training_scores_accuracy(t) ? t->val_hits : NULL;
    t->batch.first_sample = first;
    t->batch.begins = t->val_span_begins;
    t->batch.ends = t->val_span_ends;
    dt_objective_fill_validation(&t->objective, &t->batch, t->val_ids, (int64_t)rows,
                                 (int64_t)length);
    DT_TRY(dt_pipeline_executor_score(&t->executor, &t->batch, t->val_losses, hits, err));
    if (has_pairs)
        judge(t, samples, first, rows);
    for (uint64_t i = 0; i < rows * (uint64_t)dt_settings_sample_tokens(&t->settings); i++) {
        dt_exact_sum_add(&sums->loss, t->val_losses[i]);
        sums->counts[1] += hits && hits[i] > 0;
    }
    dt_exact_sum_normalize(&sums->loss);
    sums->counts[0] +=
        has_pairs ? (int64_t)rows : dt_context_parallel_targets(&t->mesh.part, &t->batch);
    return 0;
}

/* With zero_stage 3 every forward all-gathers weights, so all ranks compute the same number of
 * batches. */
static int run_padding(struct dt_training *t, uint64_t samples, int64_t own, int64_t batches,
                       struct dt_error *err)
{
    int ranks = dt_data_parallel_size(&t->state.dp);
    struct dt_token_sums dropped = {.counts = {0}};
    if (t->state.dp.zero_stage < 3)
        return 0;
    for (int64_t i = own; i < (batches + ranks - 1) / ranks; i++)
        DT_TRY(validate_batch(t, samples, 0, 1, &dropped, err));
    return 0;
}

/* Mean loss, and perhaps the accuracy, over a fixed random sample of the validation
 * split's sequences. Batches are distributed over the data-parallel ranks. */
static int validate(struct dt_training *t, double *loss, double *accuracy, struct dt_error *err)
{
    uint64_t batch = (uint64_t)t->settings.training.batch_size, samples = 0;
    struct dt_token_sums sums = {.counts = {0}};
    DT_TRY(dt_dataset_samples(t->val, dt_training_row(t), &samples, err));
    uint64_t wanted = batch * (uint64_t)t->settings.training.eval_batches;
    uint64_t count = wanted < samples ? wanted : samples;
    int64_t batches = (int64_t)((count + batch - 1) / batch);
    struct dt_range own = dt_data_parallel_part(&t->state.dp, batches);
    struct dt_error reason = {0};
    int found = 0;
    for (int64_t i = own.first; i < own.end; i++) {
        uint64_t from = (uint64_t)i * batch, rows = count - from < batch ? count - from : batch;
        DT_TRY(validate_batch(t, samples, from, rows, &sums, err));
        if (found == 0)
            found = check_losses(t, samples, from, rows, &reason);
    }
    DT_TRY(run_padding(t, samples, dt_range_count(own), batches, err));
    DT_TRY(dt_mesh_sum_tokens(&t->mesh, &sums, err));
    double sum = dt_exact_sum_round(&sums.loss), targets = (double)sums.counts[0];
    if (!isfinite(sum)) { /* on all ranks; those that computed it have the reason */
        *err = reason;
        DT_TRY(dt_comm_agree(t->mesh.world, found, err));
    }
    *loss = targets > 0 ? sum / targets : NAN;
    *accuracy = dt_training_scores_accuracy(t) ? (double)sums.counts[1] / targets : NAN;
    return 0;
}

/* The best validations that are remembered; 0: none. */
static int best_places(const struct dt_training *t)
{
    const long kept = t->settings.checkpoint.keep_best;
    return kept > 0 ? (int)kept : t->settings.training.patience > 0;
}

/* Inserts the loss where it belongs; equal losses are in the order of their steps. */
static void note_best(struct dt_progress_state *p, int places, double loss)
{
    int i = p->best_count < places ? p->best_count : places;
    p->best_count = i < places ? i + 1 : places;
    for (; i > 0 && loss < p->best[i - 1].loss; i--)
        if (i < places)
            p->best[i] = p->best[i - 1];
    p->validations_since_best = i == 0 ? 0 : p->validations_since_best + 1;
    if (i < places) {
        p->best[i].step = p->step;
        p->best[i].loss = loss;
    }
}

bool dt_training_is_best(const struct dt_training *t)
{
    for (int i = 0; i < t->progress.best_count; i++)
        if (t->progress.best[i].step == t->progress.step)
            return true;
    return false;
}

bool dt_training_stopped_early(const struct dt_training *t)
{
    long patience = t->settings.training.patience;
    return patience > 0 && t->progress.validations_since_best >= patience;
}

/* The loss with the EMA of the parameters. */
static int validate_ema(struct dt_training *t, double *loss, struct dt_error *err)
{
    double accuracy;
    dt_train_state_swap_ema(&t->state);
    int rc = validate(t, loss, &accuracy, err);
    dt_train_state_swap_ema(&t->state);
    return rc;
}

/* The losses of data.validation's sets, each in place of the split. */
static int validate_sets(struct dt_training *t, struct dt_error *err)
{
    struct dt_dataset *split = t->val;
    int rc = 0;
    for (int i = 0; rc == 0 && i < t->set_count; i++) {
        struct dt_validation_set *set = &t->sets[i];
        t->val = set->data;
        if (validate(t, &set->loss, &set->accuracy, err) < 0)
            rc = dt_fail_context(err, "data.validation: %s", set->name);
    }
    t->val = split;
    return rc;
}

int dt_training_validate(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    DT_TRY(validate_sets(t, err));
    if (t->val)
        DT_TRY(validate(t, &r->val_loss, &r->val_accuracy, err));
    if (t->val && t->state.ema)
        DT_TRY(validate_ema(t, &r->ema_val_loss, err));
    if (best_places(t) > 0 && isfinite(r->val_loss))
        note_best(&t->progress, best_places(t), r->val_loss);
    r->stopped_early = dt_training_stopped_early(t);
    r->best_step = t->progress.best[0].step;
    r->best_loss = t->progress.best[0].loss;
    return dt_training_log_validation(t, r, err);
}
