/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "train/batch-ramp.h"
#include "train/schedule.h"
#include "train/training-parts.h"

static const char *reason(enum dt_skip skip)
{
    return skip == DT_SKIP_SPIKE ? "are a spike" : "are not finite";
}

/* Of the next step. */
static int skip_update(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    if (r->skip != DT_SKIP_OVERFLOW) {
        if (t->state.skipped_in_row >= t->settings.training.max_skipped)
            return dt_fail(err, DT_EINVALID,
                           "step %ld: loss %g and gradient norm %g %s, after %ld skipped updates "
                           "in a row",
                           t->state.step + 1, r->loss, r->gradient_norm, reason(r->skip),
                           t->state.skipped_in_row);
        t->state.skipped_in_row++;
    }
    r->skipped = ++t->state.skipped;
    return 0;
}

/* Adds up gradients and losses of passes over the next batches. The gradients are
 * gradient_factor times those of the mean loss: the loss scale, and what is put
 * right when the number of targets is known. */
static int accumulate(struct dt_training *t, long passes, struct dt_step_report *r,
                      double *gradient_factor, struct dt_error *err)
{
    long batch = t->settings.training.batch_size, length = t->settings.training.sequence_length;
    double places = (double)passes * (double)batch * (double)length, sum = 0;
    int64_t targets = 0;
    const struct dt_pass how = {
        .scale = (float)(r->loss_scale / places),
        .label_smoothing = (float)t->settings.training.label_smoothing,
        .z_loss = (float)t->settings.training.z_loss,
        .seed = (uint64_t)t->settings.training.seed,
    };
    dt_store_zero_gradients(&t->store);
    for (long i = 0; i < passes; i++) {
        const uint32_t *ids;
        DT_TRY(dt_loader_next(t->loader, &ids, err));
        dt_batch_next_token(&t->batch, ids, batch, length);
        t->batch.first_sample = t->state.samples + (uint64_t)(i * batch);
        targets += dt_batch_targets(&t->batch);
        sum += dt_model_backward(t->model, t->work, &t->batch, t->store.gradients, &how);
    }
    r->loss = targets > 0 ? sum / (double)targets : 0;
    *gradient_factor = targets > 0 ? r->loss_scale * ((double)targets / places) : 1;
    return 0;
}

/* Whether the update may be done; if not because of an overflow, a smaller scale is set. */
static enum dt_skip judge(struct dt_training *t, const struct dt_step_report *r)
{
    double threshold = t->settings.training.spike_threshold;
    if (!isfinite(r->loss))
        return DT_SKIP_NOT_FINITE;
    if (!isfinite(r->gradient_norm))
        return dt_loss_scale_shrink(&t->state.loss_scale) ? DT_SKIP_OVERFLOW : DT_SKIP_NOT_FINITE;
    if (threshold > 0 && dt_loss_is_spike(&t->state.losses, r->loss, threshold))
        return DT_SKIP_SPIKE;
    return DT_SKIP_NONE;
}

static int apply(struct dt_training *t, const struct dt_step_report *r, double gradient_factor,
                 struct dt_error *err)
{
    dt_store_update(&t->store, &t->settings, t->state.step, r->gradient_norm, gradient_factor);
    DT_TRY(t->device->ops->synchronize(t->device, err));
    t->state.skipped_in_row = 0;
    if (t->settings.training.precision == DT_F16)
        dt_loss_scale_grow(&t->state.loss_scale);
    if (t->settings.training.spike_threshold > 0)
        dt_loss_note(&t->state.losses, r->loss);
    return 0;
}

int dt_training_update(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    long passes = dt_batch_passes(&t->settings, t->state.samples);
    double factor;
    r->loss_scale = t->state.loss_scale.factor;
    DT_TRY(accumulate(t, passes, r, &factor, err));
    r->gradient_norm = dt_store_gradient_norm(&t->store) / factor;
    r->learning_rate = dt_learning_rate(&t->settings, t->state.step);
    r->skip = judge(t, r);
    if (r->skip == DT_SKIP_NONE)
        DT_TRY(apply(t, r, factor, err));
    else
        DT_TRY(skip_update(t, r, err));
    t->state.step++;
    t->state.samples += (uint64_t)(passes * t->settings.training.batch_size);
    return 0;
}
