/* SPDX-License-Identifier: MIT */
#include "checkpoint/checkpoint-settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/path.h"

/* Sets the settings that a resumed run may change: logging, validation, checkpoints, the length of
 * the run (which moves the end of the learning rate schedule), and the parallel layout. */
static void ignore_free_settings(struct dt_settings *s, const struct dt_settings *now)
{
    s->training.log_interval = now->training.log_interval;
    s->training.eval_interval = now->training.eval_interval;
    s->training.eval_batches = now->training.eval_batches;
    s->training.save_interval = now->training.save_interval;
    memcpy(s->training.trace_steps, now->training.trace_steps, sizeof s->training.trace_steps);
    s->training.tensor_metrics = now->training.tensor_metrics;
    memcpy(s->training.layer_metrics, now->training.layer_metrics,
           sizeof s->training.layer_metrics);
    s->training.eval_accuracy = now->training.eval_accuracy;
    memcpy(s->data.validation, now->data.validation, sizeof s->data.validation);
    memcpy(s->training.timeline_steps, now->training.timeline_steps,
           sizeof s->training.timeline_steps);
    s->training.max_steps = now->training.max_steps;
    s->training.max_tokens = now->training.max_tokens;
    s->training.max_epochs = now->training.max_epochs;
    s->training.patience = now->training.patience;
    s->training.max_skipped = now->training.max_skipped;
    s->checkpoint = now->checkpoint;
    s->tracking = now->tracking;
    memcpy(s->data.dataset, now->data.dataset, sizeof s->data.dataset);
    memcpy(s->data.stages, now->data.stages, sizeof s->data.stages);
    s->data.num_workers = now->data.num_workers;
    s->distributed.backend = now->distributed.backend;
    memcpy(s->distributed.rendezvous, now->distributed.rendezvous,
           sizeof s->distributed.rendezvous);
    memcpy(s->distributed.interface, now->distributed.interface, sizeof s->distributed.interface);
    s->distributed.encrypt = now->distributed.encrypt;
    s->distributed.timeout = now->distributed.timeout;
    s->distributed.join_timeout = now->distributed.join_timeout;
    memcpy(s->distributed.elastic, now->distributed.elastic, sizeof s->distributed.elastic);
    s->distributed.staleness = now->distributed.staleness;
    memcpy(s->distributed.replay, now->distributed.replay, sizeof s->distributed.replay);
    s->distributed.overlap = now->distributed.overlap; /* these do not change the bits: */
    s->distributed.zero_stage = now->distributed.zero_stage;
    s->distributed.shard_ranks = now->distributed.shard_ranks;
    s->distributed.check_interval = now->distributed.check_interval;
    if (!dt_compress_has_error_feedback((enum dt_compress)now->distributed.compress)) {
        s->distributed.pp = now->distributed.pp; /* residuals belong to a stage */
        s->distributed.virtual_stages = now->distributed.virtual_stages;
    }
    s->distributed.tp = now->distributed.tp; /* unless invariant, these change the rounding: */
    s->distributed.cp = now->distributed.cp;
    s->distributed.collectives = now->distributed.collectives;
    if (!now->distributed.invariant)
        s->distributed.sequence_parts = now->distributed.sequence_parts;
    s->distributed.sequence_parallel = now->distributed.sequence_parallel;
    s->distributed.schedule = now->distributed.schedule;
    s->training.recompute = now->training.recompute;
    memcpy(s->data.val_split, now->data.val_split, sizeof s->data.val_split);
}

int dt_checkpoint_read_settings(const char *directory, struct dt_settings *saved,
                                struct dt_error *err)
{
    char *path = dt_path_join(directory, DT_CHECKPOINT_SETTINGS);
    dt_config_defaults(dt_settings_schema, saved);
    int rc = dt_config_read(dt_settings_schema, saved, path, err);
    if (rc == 0 && dt_model_config_check(&saved->model, "model", err) < 0)
        rc = dt_fail_context(err, "%s", path); /* keys added since it was written */
    free(path);
    return rc;
}

/* Settings of the model that change neither its tensors nor their meaning. */
static const char *const free_of_model[] = {
    "model.dropout",          "model.attention_dropout",
    "model.max_seq_len",      "model.rope_theta",
    "model.rope_local_theta", "model.rope_scaling",
    "model.rope_factor",      "model.rope_original_length",
    "model.sliding_window",   "model.rope_low_frequency_factor",
    "model.rope_beta_fast",   "model.rope_high_frequency_factor",
    "model.rope_beta_slow",   "model.rope_attention_factor",
};

/* Others whose state a checkpoint has, or lacks. */
static const char *const fixed_of_run[] = {"training.optimizer", "distributed.sync",
                                           "distributed.compress", "data.labels",
                                           "optimizer.moments"};

/* With error feedback, whose residuals belong to a stage, and to a rank of PowerSGD. */
static const char *const fixed_of_residuals[] = {"distributed.pp", "distributed.virtual_stages",
                                                 "distributed.compress_rank"};

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

#define IS_ONE_OF(name, names) is_one_of(name, names, sizeof(names) / sizeof *(names))

static bool can_change(const struct dt_setting *s, const struct dt_settings *saved,
                       const struct dt_settings *now)
{
    if (strcmp(s->name, "training.ema_decay") == 0)
        return (saved->training.ema_decay > 0) == (now->training.ema_decay > 0);
    if (strcmp(s->name, "model.max_seq_len") == 0 && !dt_model_is_rotary(&saved->model))
        return false; /* a row of a tensor for each position */
    if (dt_compress_has_error_feedback((enum dt_compress)saved->distributed.compress) &&
        IS_ONE_OF(s->name, fixed_of_residuals))
        return false;
    if (strncmp(s->name, "lora.", 5) == 0)
        return strcmp(s->name, "lora.dropout") == 0;
    if (strncmp(s->name, "model.", 6) == 0)
        return IS_ONE_OF(s->name, free_of_model);
    return !IS_ONE_OF(s->name, fixed_of_run);
}

static bool differ(const struct dt_setting *s, const struct dt_settings *a,
                   const struct dt_settings *b)
{
    const struct dt_setting one[] = {*s, {NULL}};
    return dt_config_difference(one, a, b) != NULL;
}

static int refuse(const char *directory, const struct dt_setting *different,
                  const struct dt_settings *saved, const struct dt_settings *now, bool branches,
                  struct dt_error *err)
{
    struct dt_buffer then = DT_BUFFER_EMPTY, asked = DT_BUFFER_EMPTY;
    dt_config_print_value(different, saved, &then);
    dt_config_print_value(different, now, &asked);
    const char *hint = strcmp(different->name, "model.vocab_size") == 0
                           ? ": unless it is set, it is that of the data's tokenizer"
                       : strncmp(different->name, "branch.", 7) == 0
                           ? ": a branch begins in a directory without a run, so name another one"
                       : !branches && can_change(different, saved, now)
                           ? "; a branch can change it (--branch-from)"
                           : "";
    int rc = dt_fail(err, DT_EINVALID,
                     "%s/" DT_CHECKPOINT_SETTINGS
                     ": the run was started with %s: %s, which cannot change to %s %s%s",
                     directory, different->name, then.data, asked.data,
                     branches ? "in a branch" : "on a resume", hint);
    dt_buffer_release(&then);
    dt_buffer_release(&asked);
    return rc;
}

int dt_checkpoint_check_resume(const char *directory, const struct dt_settings *now,
                               struct dt_error *err)
{
    struct dt_settings saved;
    DT_TRY(dt_checkpoint_read_settings(directory, &saved, err));
    if (saved.branch.step > 0 && now->branch.step == 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: belongs to a run that branched from another at step %ld: give the same "
                       "--branch-from",
                       directory, saved.branch.step);
    ignore_free_settings(&saved, now);
    const struct dt_setting *different = dt_config_difference(dt_settings_schema, &saved, now);
    return different ? refuse(directory, different, &saved, now, false, err) : 0;
}

/* --- branches --------------------------------------------------------------------------------- */

int dt_checkpoint_check_branch(const char *directory, const struct dt_settings *now,
                               struct dt_error *err)
{
    struct dt_settings saved;
    DT_TRY(dt_checkpoint_read_settings(directory, &saved, err));
    for (const struct dt_setting *s = dt_settings_schema; s->name; s++)
        if (differ(s, &saved, now) && !can_change(s, &saved, now))
            return refuse(directory, s, &saved, now, true, err);
    return 0;
}

/* Of the result: not where it is, nor what is shown of it. */
static bool is_told(const struct dt_setting *s)
{
    return strncmp(s->name, "branch.", 7) != 0 && strncmp(s->name, "checkpoint.", 11) != 0 &&
           strncmp(s->name, "tracking.", 9) != 0;
}

struct json_object *dt_checkpoint_changes(const struct dt_settings *then,
                                          const struct dt_settings *now)
{
    struct json_object *changes = dt_json_new_object();
    struct dt_buffer text = DT_BUFFER_EMPTY;
    for (const struct dt_setting *s = dt_settings_schema; s->name; s++) {
        if (!is_told(s) || !differ(s, then, now))
            continue;
        struct json_object *pair = dt_json_new_array();
        const struct dt_settings *const sides[] = {then, now};
        for (int i = 0; i < 2; i++) {
            dt_buffer_clear(&text);
            dt_config_print_value(s, sides[i], &text);
            dt_json_array_add(pair, dt_json_new_string(text.data));
        }
        dt_json_object_add(changes, s->name, pair);
    }
    dt_buffer_release(&text);
    return changes;
}
