/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "base/buffer.h"
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

/* What ranks tell each other of every pass. */
enum { PASS_LOSS, PASS_TARGETS, PASS_STOP, PASS_VALUES };

/* Passes over this rank's part of the step's batches. */
static int pass_own(struct dt_training *t, double scale, double *values, struct dt_error *err)
{
    struct dt_parallel *p = &t->store.parallel;
    long batch = t->settings.training.batch_size, length = t->settings.training.sequence_length;
    const struct dt_pass how = {
        .scale = (float)scale,
        .label_smoothing = (float)t->settings.training.label_smoothing,
        .z_loss = (float)t->settings.training.z_loss,
        .seed = (uint64_t)t->settings.training.seed,
    };
    for (int64_t i = p->first; i < p->end; i++) {
        const uint32_t *ids;
        double *of_pass = values + i * PASS_VALUES;
        DT_TRY(dt_loader_next(t->loader, &ids, err));
        t->batch.first_sample = t->state.samples + (uint64_t)(i * batch);
        dt_objective_fill(&t->objective, &t->batch, ids, batch, length);
        of_pass[PASS_TARGETS] = (double)dt_batch_targets(&t->batch);
        of_pass[PASS_LOSS] =
            dt_model_backward(t->model, t->work, &t->batch, dt_parallel_gradients(p), &how);
        of_pass[PASS_STOP] = t->stop && *t->stop;
        dt_parallel_add(p, i);
    }
    return 0;
}

/* Adds up gradients and losses of passes over the next batches, of all ranks. The
 * gradients are gradient_factor times those of the mean loss: the loss scale, and what
 * is put right when the number of targets is known. */
static int accumulate(struct dt_training *t, long passes, struct dt_step_report *r,
                      double *gradient_factor, struct dt_error *err)
{
    long samples = passes * t->settings.training.batch_size;
    double places = (double)samples * (double)t->settings.training.sequence_length;
    double sum = 0, targets = 0;
    dt_parallel_begin(&t->store.parallel, passes);
    DT_TRY(pass_own(t, r->loss_scale / places, t->pass_values, err));
    DT_TRY(dt_parallel_share(&t->store.parallel, t->pass_values, passes, PASS_VALUES, err));
    for (long i = 0; i < passes; i++) {
        sum += t->pass_values[i * PASS_VALUES + PASS_LOSS];
        targets += t->pass_values[i * PASS_VALUES + PASS_TARGETS];
        r->stop |= t->pass_values[i * PASS_VALUES + PASS_STOP] > 0;
    }
    r->loss = targets > 0 ? sum / targets : 0;
    *gradient_factor = targets > 0 ? r->loss_scale * (targets / places) : 1;
    DT_TRY(dt_parallel_sum(&t->store.parallel, &r->gradient_norm, err));
    r->gradient_norm /= *gradient_factor;
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

double *dt_training_pass_values(const struct dt_settings *settings)
{
    return dt_alloc((size_t)settings->training.gradient_accumulation_steps,
                    PASS_VALUES * sizeof(double));
}

int dt_training_update(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    long passes = dt_batch_passes(&t->settings, t->state.samples);
    r->batch_tokens =
        (uint64_t)(passes * t->settings.training.batch_size * t->settings.training.sequence_length);
    double factor;
    r->loss_scale = t->state.loss_scale.factor;
    DT_TRY(accumulate(t, passes, r, &factor, err));
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
