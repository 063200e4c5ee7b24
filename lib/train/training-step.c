/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "base/clock.h"
#include "device/time-spans.h"
#include "optim/learning-rate.h"
#include "settings/batch-ramp.h"
#include "train/training-internal.h"

static const char *reason(enum dt_skip skip)
{
    return skip == DT_SKIP_SPIKE ? "are a spike" : "are not finite";
}

/* Counts a skipped update; DT_EINVALID after too many in a row. */
static int skip_update(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    if (r->skip != DT_SKIP_OVERFLOW) {
        if (t->progress.skipped_in_row >= t->settings.training.max_skipped)
            return dt_fail(err, DT_EINVALID,
                           "step %ld: loss %g and gradient norm %g %s, after %ld skipped updates "
                           "in a row",
                           t->progress.step + 1, r->loss, r->gradient_norm, reason(r->skip),
                           t->progress.skipped_in_row);
        t->progress.skipped_in_row++;
    }
    dt_compression_undo(&t->state.compression);
    r->skipped = ++t->progress.skipped;
    return 0;
}

/* Flags that ranks combine in every step. Those above are enum dt_due, of rank 0: intervals in
 * minutes. */
enum { FLAG_STOP = 1, FLAG_SAVING = 2, FLAG_JOINED = 4, FLAG_DUE = 8 };

/* Whether any rank was asked to stop: the run stops, or an elastic one loses that rank. Starts the
 * next phase of a background checkpoint when all ranks are idle. */
static int exchange_flags(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    unsigned flags = t->stop && *t->stop ? FLAG_STOP : 0;
    unsigned any = 0;
    const struct dt_interval_position last = {.seconds = t->progress.timed},
                                      now = {.seconds =
                                                 t->progress.seconds + dt_clock_now() - t->started};
    if (t->leads)
        flags |= FLAG_DUE * dt_training_due(t, true, &last, &now);
    if (!dt_checkpoint_writer_idle(t->writer))
        flags |= FLAG_SAVING;
    if (dt_elastic_is_joined(t))
        flags |= FLAG_JOINED;
    DT_TRY(dt_step_trace_share(&t->trace, (unsigned char)flags, err));
    for (int rank = 0; rank < dt_comm_size(t->trace.comm); rank++)
        any |= t->trace.flags[rank];
    if (!(any & FLAG_SAVING))
        dt_checkpoint_writer_advance(t->writer);
    r->due = any / FLAG_DUE;
    r->timed = now.seconds;
    t->regroups = (any & FLAG_JOINED) != 0;
    if (dt_elastic_let_go(t, t->trace.flags, FLAG_STOP))
        r->stop = r->leaves = (flags & FLAG_STOP) != 0;
    else
        r->stop |= (any & FLAG_STOP) != 0;
    return 0;
}

/* Removes the sign of a NaN, which would be printed as "-nan". */
static double without_sign(double x)
{
    return isnan(x) ? NAN : x;
}

/* Before other squares take the place of these. */
static void add_first_gradient(struct dt_training *t)
{
    struct dt_exact_sum squares;
    if (!t->state.dp.sums_first)
        return;
    dt_gradient_norm_end(&t->state.dp.norm, t->device, &squares);
    dt_layer_metrics_add_gradient(&t->layers, dt_exact_sum_round(&squares));
}

/* What training.layer_metrics measures in the step, if it will be logged. */
static void begin_layers(struct dt_training *t, unsigned due)
{
    const bool measures =
        t->layers.wanted != 0 && ((due & DT_DUE_LOG) != 0 || t->progress.step == 0);
    t->has_layers = measures;
    t->state.dp.sums_first = measures && dt_settings_measures(&t->settings, DT_LAYER_METRIC_NOISE);
    if (measures)
        dt_layer_metrics_begin(
            &t->layers, t->progress.samples * (uint64_t)dt_settings_sample_sequences(&t->settings));
}

static int end_layers(struct dt_training *t, const struct dt_step_report *r, double factor,
                      struct dt_error *err)
{
    const struct dt_data_parallel *dp = &t->state.dp;
    if (!t->has_layers)
        return 0;
    DT_TRY(dt_layer_metrics_end(&t->layers, t->comm, err));
    t->noise = dt_layer_metrics_noise(&t->layers, r->gradient_norm, factor, dp->batches,
                                      (double)r->batch_tokens / (double)dp->batches,
                                      dt_data_parallel_size(dp));
    return 0;
}

#define MEASUREMENTS "measurements" /* a phase: hashes, and metrics of layers and tensors */

/* Gradients and mean loss of the step's micro-batches, over all ranks. The gradients are
 * gradient_factor times those of the mean loss: the loss scale, and a correction for positions
 * without targets, whose number is known only afterwards. */
static int accumulate(struct dt_training *t, long batches, struct dt_step_report *r,
                      double *gradient_factor, struct dt_error *err)
{
    long samples = batches * t->settings.training.batch_size;
    double positions = (double)samples * (double)dt_settings_sample_tokens(&t->settings);
    struct dt_token_sums sums;
    if (t->async.active)
        DT_TRY(dt_async_take_gradient(t, &sums, err));
    else
        DT_TRY(dt_training_gradients(t, batches, r->loss_scale, &sums, err));
    double since = dt_time_spans_begin();
    DT_TRY(dt_shard_copies_wait(t, err)); /* before any rank updates */
    DT_TRY(exchange_flags(t, r, err));
    dt_time_spans_end(DT_TIME_LANE_PHASE, "wait for ranks", -1, since);
    since = dt_time_spans_begin();
    if (!dt_local_sgd_due(&t->local, t->progress.step + 1, t->settings.training.max_steps))
        r->stop = false; /* not before ranks have synchronized */
    if (t->async.active)
        r->stop = (r->stop || t->async.stops) && dt_async_is_even(t);
    double targets = (double)sums.counts[0];
    r->loss = without_sign(targets > 0 ? dt_exact_sum_round(&sums.loss) / targets : 0);
    if (dt_training_has_pairs(t))
        DT_TRY(dt_preferences_means(&t->preferences, &t->mesh, targets, r->preferences, err));
    if (dt_training_has_prompts(t))
        DT_TRY(dt_groups_means(&t->groups, &t->mesh, (double)(samples * t->settings.grpo.group),
                               r->groups, err));
    *gradient_factor = targets > 0 ? r->loss_scale * (targets / positions) : 1;
    if (t->local.active) /* gradients of one rank, not the sum of all */
        *gradient_factor /= dt_comm_size(t->mesh.data.all);
    add_first_gradient(t);
    DT_TRY(dt_train_state_reduce_gradients(&t->state, &r->gradient_norm, err));
    r->gradient_norm = without_sign(r->gradient_norm / *gradient_factor);
    dt_time_spans_end(DT_TIME_LANE_PHASE, "reduce gradients", -1, since);
    return 0;
}

/* Whether to skip the update; an overflow lowers the loss scale. */
static enum dt_skip judge(struct dt_training *t, const struct dt_step_report *r)
{
    double threshold = t->settings.training.spike_threshold;
    if (!isfinite(r->loss))
        return DT_SKIP_NOT_FINITE;
    if (!isfinite(r->gradient_norm))
        return dt_loss_scale_shrink(&t->progress.loss_scale) ? DT_SKIP_OVERFLOW
                                                             : DT_SKIP_NOT_FINITE;
    if (threshold > 0 && dt_loss_statistics_is_spike(&t->progress.losses, r->loss, threshold))
        return DT_SKIP_SPIKE;
    return DT_SKIP_NONE;
}

static int apply(struct dt_training *t, const struct dt_step_report *r, double gradient_factor,
                 struct dt_error *err)
{
    const bool measures =
        t->settings.training.tensor_metrics && ((r->due & DT_DUE_LOG) || t->progress.step == 0);
    double since = dt_time_spans_begin();
    if (measures)
        dt_tensor_norms_before(&t->norms, gradient_factor);
    dt_time_spans_end(DT_TIME_LANE_PHASE, MEASUREMENTS, -1, since);
    since = dt_time_spans_begin();
    dt_train_state_update(&t->state, &t->settings, t->progress.step, r->gradient_norm,
                          gradient_factor);
    DT_TRY(t->device->ops->synchronize(t->device, err));
    dt_time_spans_end(DT_TIME_LANE_PHASE, "update", -1, since);
    since = dt_time_spans_begin();
    if (measures)
        DT_TRY(dt_tensor_norms_after(&t->norms, t->mesh.world, err));
    dt_time_spans_end(DT_TIME_LANE_PHASE, MEASUREMENTS, -1, since);
    t->has_norms = measures;
    t->progress.skipped_in_row = 0;
    if (t->settings.training.precision == DT_DTYPE_F16)
        dt_loss_scale_grow(&t->progress.loss_scale);
    if (t->settings.training.spike_threshold > 0)
        dt_loss_statistics_add(&t->progress.losses, r->loss);
    return 0;
}

/* What is due after the step, besides what exchange_flags finds. */
static unsigned find_due(const struct dt_training *t, long batches)
{
    const struct dt_progress_state *p = &t->progress;
    const uint64_t samples = (uint64_t)(batches * t->settings.training.batch_size);
    const struct dt_interval_position before = {p->step, p->samples, 0};
    const struct dt_interval_position after = {p->step + 1, p->samples + samples, 0};
    if (p->step + 1 == t->settings.training.max_steps)
        return DT_DUE_LOG | DT_DUE_VALIDATION | DT_DUE_CHECKPOINT;
    return dt_training_due(t, false, &before, &after);
}

int dt_training_update(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    long batches = dt_batch_passes(&t->settings, t->progress.samples);
    r->batch_tokens = (uint64_t)(batches * t->settings.training.batch_size *
                                 dt_settings_sample_tokens(&t->settings));
    double factor;
    r->loss_scale = t->progress.loss_scale.factor;
    dt_step_trace_begin(&t->trace, t->progress.step + 1,
                        t->progress.samples * (uint64_t)dt_settings_sample_sequences(&t->settings));
    const unsigned due = find_due(t, batches);
    begin_layers(t, due);
    DT_TRY(accumulate(t, batches, r, &factor, err));
    r->due |= due;
    if (t->async.active)
        DT_TRY(dt_async_check_due(t, r, err));
    double since = dt_time_spans_begin();
    DT_TRY(dt_step_trace_passes(&t->trace, err));
    DT_TRY(end_layers(t, r, factor, err));
    dt_time_spans_end(DT_TIME_LANE_PHASE, MEASUREMENTS, -1, since);
    r->learning_rate = dt_learning_rate(&t->settings, t->progress.step);
    r->skip = judge(t, r);
    if (r->skip == DT_SKIP_NONE)
        DT_TRY(apply(t, r, factor, err));
    else
        DT_TRY(skip_update(t, r, err));
    if (t->progress.loss_scale.factor != r->loss_scale)
        dt_compression_rescale(&t->state.compression,
                               t->progress.loss_scale.factor / r->loss_scale);
    t->progress.step++;
    t->progress.timed = r->timed;
    since = dt_time_spans_begin();
    if (t->has_layers)
        DT_TRY(dt_training_log_layers(t, err));
    if (r->skip == DT_SKIP_NONE && t->has_norms)
        DT_TRY(dt_training_log_norms(t, err));
    dt_time_spans_end(DT_TIME_LANE_PHASE, MEASUREMENTS, -1, since);
    const long step = t->progress.step, last = t->settings.training.max_steps;
    const bool needed =
        step == last || r->stop || (r->due & (DT_DUE_VALIDATION | DT_DUE_CHECKPOINT)) != 0;
    since = dt_time_spans_begin();
    DT_TRY(dt_local_sgd_step(&t->local, step, last, needed, err));
    if (t->local.active)
        dt_time_spans_end(DT_TIME_LANE_PHASE, "synchronize ranks", -1, since);
    t->progress.samples += (uint64_t)(batches * t->settings.training.batch_size);
    r->batch_hash = t->trace.batch;
    since = dt_time_spans_begin();
    DT_TRY(dt_step_trace_update(&t->trace, err));
    dt_time_spans_end(DT_TIME_LANE_PHASE, MEASUREMENTS, -1, since);
    return 0;
}
