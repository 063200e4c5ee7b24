/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "train/training-parts.h"

/* Mean loss over a fixed, random choice of the validation split's sequences. */
static int validate(struct dt_training *t, const struct dt_model *model, double *loss,
                    struct dt_error *err)
{
    uint64_t length = (uint64_t)t->settings.training.sequence_length, seed = 0;
    uint64_t batch = (uint64_t)t->settings.training.batch_size;
    uint64_t samples = 0, targets = 0;
    DT_TRY(dt_dataset_samples(t->val, (uint32_t)length, &samples, err));
    uint64_t wanted = batch * (uint64_t)t->settings.training.eval_batches;
    uint64_t count = wanted < samples ? wanted : samples;
    double sum = 0;
    for (uint64_t from = 0; from < count; from += batch) {
        uint64_t rows = count - from < batch ? count - from : batch;
        for (uint64_t i = 0; i < rows; i++)
            DT_TRY(dt_dataset_sample(t->val, (uint32_t)length,
                                     dt_sample_at(seed, samples, from + i),
                                     t->val_ids + i * (length + 1), err));
        dt_batch_next_token(&t->batch, t->val_ids, (int64_t)rows, (int64_t)length);
        dt_model_score(model, t->work, &t->batch, t->val_losses, NULL);
        for (uint64_t i = 0; i < rows * length; i++)
            sum += (double)t->val_losses[i];
        targets += (uint64_t)dt_batch_targets(&t->batch);
    }
    *loss = sum / (double)targets;
    return 0;
}

static void note_best(struct dt_training *t, double loss)
{
    if (t->state.best_step > 0 && !(loss < t->state.best_loss)) {
        t->state.validations_since_best++;
        return;
    }
    t->state.best_step = t->state.step;
    t->state.best_loss = loss;
    t->state.validations_since_best = 0;
}

bool dt_training_stopped_early(const struct dt_training *t)
{
    long patience = t->settings.training.patience;
    return patience > 0 && t->state.validations_since_best >= patience;
}

/* The same with the average of the parameters, which takes the place of the model's own. */
static int validate_average(struct dt_training *t, double *loss, struct dt_error *err)
{
    struct dt_model averaged = *t->model;
    averaged.parameters = t->store.average;
    if (averaged.compute == DT_F32)
        averaged.weights = averaged.parameters;
    dt_model_refresh(&averaged);
    int rc = validate(t, &averaged, loss, err);
    dt_model_refresh(t->model);
    return rc;
}

int dt_training_validate(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    DT_TRY(validate(t, t->model, &r->val_loss, err));
    if (t->store.average)
        DT_TRY(validate_average(t, &r->ema_val_loss, err));
    if (t->settings.training.patience > 0 && isfinite(r->val_loss))
        note_best(t, r->val_loss);
    r->stopped_early = dt_training_stopped_early(t);
    return dt_training_log_validation(t, r, err);
}
