/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "device/time-spans.h"
#include "formats/model-directory.h"
#include "settings/batch-ramp.h"
#include "train/training-internal.h"

int dt_training_new(struct dt_training **result, const struct dt_training_options *o,
                    struct dt_error *err)
{
    struct dt_training *t = dt_alloc(1, sizeof *t);
    int rc = dt_training_open(t, o, err);
    *result = rc < 0 ? NULL : t;
    if (rc < 0)
        dt_training_free(t);
    return rc;
}

void dt_training_free(struct dt_training *t)
{
    if (t == NULL)
        return;
    dt_training_disassemble(t);
    dt_dataset_close(t->train);
    dt_dataset_close(t->val);
    dt_prompts_release(&t->prompts);
    dt_chat_free(t->chat);
    dt_tokenizer_free(t->tokenizer);
    dt_validation_sets_release(t);
    dt_labels_release(&t->labels);
    dt_buffer_release(&t->line);
    dt_buffer_release(&t->damaged);
    free(t->resumed);
    json_object_put(t->branch);
    free(t->parent);
    free(t->first_stage);
    dt_comm_close(t->self);
    dt_elastic_close(t);
    dt_training_unlock_run(t);
    free(t->run);
    free(t->lineage);
    free(t->tokenizer_path);
    free(t);
}

void dt_training_facts(const struct dt_training *t, struct dt_training_facts *facts)
{
    uint64_t tokens = (uint64_t)dt_settings_sample_tokens(&t->settings);
    *facts = (struct dt_training_facts){
        .parameters = t->model->base->parameters,
        .trained = t->model->table.parameters,
        .memory = t->memory,
        .available = t->device->ops->available(t->device),
        .train_tokens = dt_dataset_info(t->train)->tokens,
        .val_tokens = t->val ? dt_dataset_info(t->val)->tokens : 0,
        .samples = t->samples,
        .tokens_per_step = (uint64_t)(t->settings.training.batch_size *
                                      t->settings.training.gradient_accumulation_steps) *
                           tokens,
        .tokens = dt_batch_samples(&t->settings, t->settings.training.max_steps) * (double)tokens,
        .first_step = t->first_step,
        .max_steps = t->settings.training.max_steps,
        .has_tokenizer = t->tokenizer_path != NULL,
        .lost_lines = t->lost_lines,
        .resumed = t->resumed ? t->resumed : "",
        .damaged = t->damaged.data ? t->damaged.data : "",
        .damaged_metrics = t->metrics.damaged,
    };
}

int dt_training_hash(struct dt_training *t, uint64_t *hash, struct dt_error *err)
{
    bool whole = t->mesh.part.stages == 1 && t->mesh.part.tp_size == 1;
    return whole ? dt_train_state_hash(&t->state, hash, err)
                 : dt_checkpoint_hash(t->run, hash, err);
}

int dt_training_parameter_hash(struct dt_training *t, struct dt_sum_hash *hash,
                               struct dt_error *err)
{
    return dt_state_hash_total(&t->trace.parameters, t->mesh.world, hash, err);
}

static int compare_part(struct dt_training *t, const char *checkpoint, enum dt_snapshot_part part,
                        char tensor[DT_TENSOR_NAME], struct dt_error *err)
{
    struct dt_state_hash own;
    dt_state_hash_init(&own, &t->state, part);
    struct dt_sum_hash *theirs = dt_alloc((size_t)own.count, sizeof *theirs);
    int rc = dt_checkpoint_hash_tensors(checkpoint, &own, t->mesh.world, theirs, err);
    rc = rc < 0 ? rc : dt_state_hash_tensors(&own, t->mesh.world, false, err);
    for (int i = 0; rc == 0 && i < own.count && *tensor == '\0'; i++)
        if (!dt_sum_hash_equal(&theirs[i], &own.hashes[i]))
            snprintf(tensor, DT_TENSOR_NAME, "%s", own.tensors[i].name);
    free(theirs);
    dt_state_hash_release(&own);
    return rc;
}

int dt_training_compare(struct dt_training *t, const char *checkpoint, char tensor[DT_TENSOR_NAME],
                        struct dt_error *err)
{
    *tensor = '\0';
    for (int i = 0; i < DT_SNAPSHOT_ERROR_FEEDBACK && *tensor == '\0'; i++)
        if (dt_snapshot_has(&t->state, (enum dt_snapshot_part)i))
            DT_TRY(compare_part(t, checkpoint, (enum dt_snapshot_part)i, tensor, err));
    return 0;
}

static bool is_done(const struct dt_training *t)
{
    return t->progress.step >= t->settings.training.max_steps || dt_training_stopped_early(t);
}

/* Starts a checkpoint. metrics.jsonl is fsync'ed first, so that its lines reach the checkpoint's
 * step even after a power failure. */
static int begin_checkpoint(struct dt_training *t, struct dt_error *err)
{
    int rc = t->leads ? dt_metrics_sync(&t->metrics, err) : 0;
    if (rc == 0 && t->hashes.file)
        rc = dt_metrics_sync(&t->hashes, err);
    if (rc == 0 && t->tensors.file)
        rc = dt_metrics_sync(&t->tensors, err);
    if (rc == 0 && t->async.file.file)
        rc = dt_metrics_sync(&t->async.file, err);
    DT_TRY(dt_comm_agree(t->mesh.world, rc, err));
    return dt_checkpoint_writer_save(t->writer, &t->progress, err);
}

/* A run whose updates were all skipped has trained nothing: an error. */
static int check_updates(const struct dt_training *t, struct dt_error *err)
{
    if (t->progress.step == 0 || t->progress.skipped < t->progress.step)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "step %ld: the updates of all %ld steps were skipped: nothing was trained, and "
                   "nothing is saved",
                   t->progress.step, t->progress.step);
}

/* After a skipped update no regular checkpoint is written until an update succeeds: the model may
 * have diverged, and the previous checkpoint is the one to return to. */
static int save_if_due(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    bool best = dt_training_is_best(t);
    bool regular = (r->due & DT_DUE_CHECKPOINT) && t->progress.skipped_in_row == 0;
    if (t->run == NULL || (!best && !is_done(t) && !regular && !t->saves))
        return 0;
    if (is_done(t)) {
        DT_TRY(check_updates(t, err));
        DT_TRY(dt_training_save(t, err));
        r->saved = true;
        return 0;
    }
    dt_checkpoint_writer_wait(t->writer);
    dt_checkpoint_writer_failed(t->writer, &r->save_error);
    if (dt_checkpoint_writer_saved_step(t->writer) == t->progress.step)
        return 0;
    r->saved = begin_checkpoint(t, err) == 0;
    if (r->saved)
        return 0;
    if (!err->agreed) /* a rank failed, not only the checkpoint */
        return err->code;
    r->save_error = *err;
    return 0;
}

/* Compares parameters between ranks and looks for stragglers, if due. */
static int watch(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    long interval = t->settings.distributed.check_interval;
    if (interval > 0 && r->step % interval == 0 && t->local.equal &&
        dt_watchdog_compare_parameters(&t->state, err) < 0)
        return dt_fail_context(err, "step %ld", r->step);
    if (!(r->due & DT_DUE_LOG))
        return 0;
    struct dt_straggler straggler;
    DT_TRY(dt_watchdog_find_straggler(t->mesh.world, t->busy_seconds, t->busy_batches, &straggler,
                                      err));
    t->busy_seconds = 0;
    t->busy_batches = 0;
    r->slowest_rank = straggler.rank;
    r->slowest_factor = straggler.factor;
    r->crowded = t->crowded;
    return 0;
}

/* A step took that time on the number of threads that was chosen for it. */
static void choose_threads(struct dt_training *t, double seconds, uint64_t tokens)
{
    if (!t->device->chooses_threads)
        return;
    dt_thread_choice_add(&t->threads, seconds, (double)tokens);
    dt_device_use_threads(t->device, t->threads.threads);
}

/* One update. */
static int advance(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    double waited = dt_comm_waited(t->comm);
    t->started = dt_clock_now();
    *r = (struct dt_step_report){.val_loss = NAN, .ema_val_loss = NAN, .val_accuracy = NAN};
    dt_checkpoint_writer_failed(t->writer, &r->save_error);
    DT_TRY(dt_training_update(t, r, err));
    double seconds = dt_clock_now() - t->started;
    t->progress.seconds += seconds;
    t->busy_seconds += seconds - (dt_comm_waited(t->comm) - waited);
    t->busy_batches += t->state.dp.rounds;
    r->step = t->progress.step;
    r->seconds = t->progress.seconds;
    r->threads = t->device->threads;
    r->tokens = t->progress.samples * (uint64_t)dt_settings_sample_tokens(&t->settings);
    dt_training_measure(t, r);
    choose_threads(t, seconds, r->batch_tokens);
    return 0;
}

/* What follows an update. */
static int finish(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    double since = dt_time_spans_begin();
    DT_TRY(watch(t, r, err));
    if ((r->due & DT_DUE_LOG) || r->step == 1 || r->skipped > 0)
        DT_TRY(dt_training_log_step(t, r, err));
    dt_time_spans_end(DT_TIME_LANE_PHASE, "log", -1, since);
    since = dt_time_spans_begin();
    if ((t->val || t->set_count > 0) && (r->due & DT_DUE_VALIDATION))
        DT_TRY(dt_training_validate(t, r, err));
    dt_time_spans_end(DT_TIME_LANE_PHASE, "validation", -1, since);
    since = dt_time_spans_begin();
    DT_TRY(save_if_due(t, r, err));
    dt_time_spans_end(DT_TIME_LANE_PHASE, "checkpoint", -1, since);
    t->saves = false;
    if (!t->regroups)
        return 0;
    dt_checkpoint_writer_wait(t->writer);
    DT_TRY(dt_shard_copies_wait(t, err));
    return dt_comm_barrier(t->comm, err);
}

/* The timeline's file, after its last step. */
static int end_timeline(struct dt_training *t, struct dt_error *err)
{
    const bool is_last = t->progress.step == t->timeline.last || is_done(t);
    dt_step_timeline_end(&t->timeline, t->progress.step);
    if (t->run == NULL || t->progress.step < t->timeline.first || !is_last ||
        t->timeline.spans.count == 0)
        return 0;
    int rc = dt_step_timeline_write(&t->timeline, t->run, dt_comm_rank(t->comm), err);
    t->timeline.spans.count = 0;
    return dt_comm_agree(t->comm, rc, err);
}

/* A run that another directory has completed is whole in its own, too. */
static int end_done(struct dt_training *t, struct dt_error *err)
{
    if (t->run)
        DT_TRY(dt_training_save(t, err));
    return dt_async_end(t, false, 0, err);
}

/* Both, or what is left to do. An update is done by all ranks or by none that stays: after a
 * failure before it, parameters and progress are those of the step before. */
static int step(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    struct dt_step_report next;
    if (t->async.active && !t->async.serves)
        return dt_async_work(t, r, err);
    if (t->regroups)
        DT_TRY(dt_training_regroup(t, err));
    if (!t->unfinished) {
        if (is_done(t))
            return end_done(t, err);
        dt_step_timeline_begin(&t->timeline, t->progress.step + 1);
        DT_TRY(advance(t, &next, err));
        t->report = next;
        t->updated = t->progress;
        t->unfinished = t->members != NULL;
        const double since = dt_clock_now();
        dt_shard_copies_begin(t);
        t->progress.seconds += dt_clock_now() - since;
    }
    *r = t->report;
    DT_TRY(finish(t, r, err));
    DT_TRY(end_timeline(t, err));
    t->unfinished = false;
    if (r->stop || is_done(t))
        DT_TRY(dt_async_end(t, r->stop, 0, err));
    return 1;
}

int dt_training_step(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    long generation = t->members ? dt_membership_seat(t->members)->generation : 0;
    int rc = step(t, r, err);
    while (rc < 0 && dt_elastic_can_go_on(t)) {
        DT_TRY(dt_training_regroup(t, err));
        rc = step(t, r, err);
    }
    if (rc < 0)
        rc = dt_async_end(t, false, rc, err);
    if (t->members)
        r->regrouped = dt_membership_seat(t->members)->generation > generation;
    r->returned = t->returned;
    t->returned = false;
    return rc;
}

int dt_training_save(struct dt_training *t, struct dt_error *err)
{
    struct dt_error earlier; /* of a checkpoint that this one replaces */
    if (t->async.active && !t->async.serves)
        return 0;
    dt_checkpoint_writer_wait(t->writer);
    if (!dt_checkpoint_writer_failed(t->writer, &earlier) &&
        dt_checkpoint_writer_saved_step(t->writer) == t->progress.step)
        return 0;
    DT_TRY(begin_checkpoint(t, err));
    dt_checkpoint_writer_wait(t->writer);
    return dt_checkpoint_writer_failed(t->writer, err) ? err->code : 0;
}
