/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "train/schedule.h"
#include "train/training-parts.h"

int64_t dt_training_tokens_per_step(const struct dt_training *t)
{
    return t->settings.training.batch_size * t->settings.training.gradient_accumulation_steps *
           t->settings.training.sequence_length;
}

/* Of the next step, whose loss or gradient is not finite. */
static int skip_update(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    if (t->state.skipped_in_row >= t->settings.training.max_skipped)
        return dt_fail(err, DT_EINVALID,
                       "step %ld: loss %g and gradient norm %g are not finite, after %ld skipped "
                       "updates in a row",
                       t->state.step + 1, r->loss, r->gradient_norm, t->state.skipped_in_row);
    t->state.skipped_in_row++;
    r->skipped = ++t->state.skipped;
    return 0;
}

int dt_training_update(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    long batch = t->settings.training.batch_size, length = t->settings.training.sequence_length;
    long passes = t->settings.training.gradient_accumulation_steps;
    double sum = 0;
    struct dt_samples samples; /* of all passes */
    dt_store_zero_gradients(&t->store);
    DT_TRY(dt_loader_next_batch(t->loader, &samples, err));
    double targets = (double)samples.targets;
    for (long i = 0; i < passes; i++) {
        dt_batch_next_token(&t->batch, samples.ids + i * batch * (length + 1), batch, length);
        sum += dt_model_backward(t->model, t->work, &t->batch, t->store.gradients,
                                 &(struct dt_pass){.scale = (float)(1 / targets)});
    }
    r->loss = sum / targets;
    r->gradient_norm = dt_store_gradient_norm(&t->store);
    r->learning_rate = dt_learning_rate(&t->settings, t->state.step);
    if (isfinite(r->loss) && isfinite(r->gradient_norm)) {
        dt_store_update(&t->store, &t->settings, t->state.step, r->gradient_norm);
        DT_TRY(t->device->ops->synchronize(t->device, err));
        t->state.skipped_in_row = 0;
    } else {
        DT_TRY(skip_update(t, r, err));
    }
    t->state.step++;
    t->state.samples += (uint64_t)(batch * passes);
    return 0;
}
