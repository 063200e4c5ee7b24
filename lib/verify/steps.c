/* SPDX-License-Identifier: MIT */
#include "verify/steps.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "base/progress.h"
#include "checkpoint/checkpoint-settings.h"
#include "checkpoint/checkpoint.h"
#include "formats/model-directory.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"
#include "train/interval.h"
#include "train/step-trace.h"
#include "train/training.h"
#include "verify/recorded-steps.h"

struct verification {
    const struct dt_verify_steps_options *options;
    struct dt_verify_report *report;
    struct dt_recorded_steps metrics;
    struct dt_recorded_hashes hashes;
    size_t next_hash; /* the first that no recomputed one has been compared with */
    char *hashes_path;
    long *checkpoints;
    size_t checkpoint_count;
    long first, last; /* the steps to verify */
    struct dt_settings settings;
    struct dt_progress progress;
    struct dt_config_amount log_interval;          /* of the run */
    bool timed_validations;                        /* by an interval in minutes */
    uint64_t samples;                              /* of an epoch */
    long equal_until;                              /* the last step with a line that is equal */
    long lines, validations, hash_lines, compared; /* that are equal: lines of both files,
                                                    * checkpoints */
    bool differs;
};

/* --- findings --------------------------------------------------------------------------------- */

static bool leads(const struct verification *v)
{
    return dt_comm_rank(v->options->comm) == 0;
}

/* The line is of the first difference; frees it. */
static int differ(struct verification *v, char *line, struct dt_error *err)
{
    v->differs = true;
    if (leads(v)) {
        dt_progress_clear(&v->progress);
        return dt_verify_report_differ(v->report, line, err);
    }
    v->report->differ++;
    free(line);
    return 0;
}

/* Advice where the number of ranks may be the cause. */
static const char *hint(const struct verification *v)
{
    bool several = dt_comm_size(v->options->comm) > 1 || v->metrics.several_ranks;
    return several && !v->settings.distributed.invariant
               ? "; without distributed.invariant the bits depend on the parallel layout: verify "
                 "with that of the run"
               : "";
}

/* "step 20", or "one of steps 11 to 20" where only the last of them is logged. */
static char *name_steps(const struct verification *v, long step)
{
    long first = v->equal_until + 1;
    return first < step ? dt_asprintf("one of steps %ld to %ld", first, step)
                        : dt_asprintf("step %ld", step);
}

static int differ_in(struct verification *v, long step, const char *what, const char *recorded,
                     const char *recomputed, const char *cause, struct dt_error *err)
{
    char *steps = name_steps(v, step);
    char *line = dt_asprintf("%s: %s differs: recorded %s, recomputed %s%s", steps, what, recorded,
                             recomputed, cause);
    free(steps);
    return differ(v, line, err);
}

static int differ_in_hash(struct verification *v, long step, const char *what,
                          const struct dt_sum_hash *recorded, const struct dt_sum_hash *recomputed,
                          const char *cause, struct dt_error *err)
{
    char hex[2][DT_SUM_HASH_HEX];
    return differ_in(v, step, what, dt_sum_hash_hex(recorded, hex[0]),
                     dt_sum_hash_hex(recomputed, hex[1]), cause, err);
}

#define NUMBER_BYTES 32

/* As metrics.jsonl has it. */
static const char *print_number(double x, char text[NUMBER_BYTES])
{
    snprintf(text, NUMBER_BYTES, isfinite(x) ? "%.9g" : "null", x);
    return text;
}

/* --- comparisons ------------------------------------------------------------------------------ */

struct number {
    const char *name, *cause;
    double recorded, recomputed;
};

/* Returns 1 if one differs. */
static int compare_numbers(struct verification *v, long step, const struct number *numbers,
                           size_t count, struct dt_error *err)
{
    char text[2][NUMBER_BYTES];
    for (size_t i = 0; i < count; i++) {
        const char *recorded = print_number(numbers[i].recorded, text[0]);
        const char *recomputed = print_number(numbers[i].recomputed, text[1]);
        if (strcmp(recorded, recomputed) == 0)
            continue;
        DT_TRY(differ_in(v, step, numbers[i].name, recorded, recomputed, numbers[i].cause, err));
        return 1;
    }
    return 0;
}

/* Causes come before what they cause. */
static int compare_line(struct verification *v, const struct dt_recorded_step *line,
                        const struct dt_step_report *r, struct dt_error *err)
{
    const struct number numbers[] = {
        {"learning rate", ": the settings", line->learning_rate, r->learning_rate},
        {"loss", hint(v), line->loss, r->loss},
        {"gradient norm", hint(v), line->gradient_norm, r->gradient_norm},
    };
    if (!dt_sum_hash_equal(&line->batch, &r->batch_hash))
        return differ_in_hash(v, line->step, "batch", &line->batch, &r->batch_hash,
                              ": the data, or their order", err);
    int rc = compare_numbers(v, line->step, numbers, sizeof numbers / sizeof *numbers, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (!dt_sum_hash_equal(&line->parameters, &r->parameter_hash))
        return differ_in_hash(v, line->step, "hash of the parameters", &line->parameters,
                              &r->parameter_hash, hint(v), err);
    v->equal_until = line->step;
    v->lines++;
    return 0;
}

static long newest_checkpoint(const struct verification *v)
{
    return v->checkpoints[v->checkpoint_count - 1];
}

/* The settings of a step after the newest checkpoint are not known for certain. */
static bool is_certain(const struct verification *v, long step)
{
    return step > v->metrics.lost_until && step <= newest_checkpoint(v);
}

static int miss_line(struct verification *v, long step, const char *kind, struct dt_error *err)
{
    return differ(v, dt_asprintf("step %ld: metrics.jsonl has no %s line of it", step, kind), err);
}

/* A step without a training line. */
static int check_unlogged(struct verification *v, const struct dt_step_report *r,
                          struct dt_error *err)
{
    const uint64_t sample = (uint64_t)dt_settings_sample_tokens(&v->settings);
    const struct dt_interval_position before = {r->step - 1, (r->tokens - r->batch_tokens) / sample,
                                                0},
                                      after = {r->step, r->tokens / sample, 0};
    bool is_due = r->step == 1 || r->step == v->settings.training.max_steps ||
                  dt_interval_is_due(&v->settings, &v->log_interval, v->samples, &before, &after);
    return is_due && is_certain(v, r->step) ? miss_line(v, r->step, "training", err) : 0;
}

/* Returns 1 if the loss or the accuracy on a set of data.validation differs. */
static int compare_set(struct verification *v, const struct dt_recorded_validation *line,
                       const struct dt_training_set *set, struct dt_error *err)
{
    char *loss = dt_asprintf("val_loss_%s", set->name);
    char *accuracy = dt_asprintf("val_accuracy_%s", set->name);
    const struct number numbers[] = {
        {loss, hint(v), dt_recorded_validation_number(line, loss), set->loss},
        {accuracy, hint(v), dt_recorded_validation_number(line, accuracy), set->accuracy},
    };
    int rc = compare_numbers(v, line->step, numbers, sizeof numbers / sizeof *numbers, err);
    free(loss);
    free(accuracy);
    return rc;
}

static int compare_validation(struct verification *v, const struct dt_training *t,
                              const struct dt_step_report *r, struct dt_error *err)
{
    const struct dt_recorded_validation *line =
        dt_recorded_steps_find_validation(&v->metrics, r->step);
    struct dt_training_set set;
    bool has_sets = (r->due & DT_DUE_VALIDATION) && dt_training_find_set(t, 0, &set);
    bool computed = has_sets || !isnan(r->val_loss);
    if (line == NULL)
        return computed && is_certain(v, r->step) ? miss_line(v, r->step, "validation", err) : 0;
    if (!computed && (v->timed_validations || !is_certain(v, r->step)))
        return 0;
    const struct number numbers[] = {
        {"validation loss", hint(v), line->loss, r->val_loss},
        {"validation accuracy", hint(v), line->accuracy, r->val_accuracy},
        {"validation loss of the average", hint(v), line->ema_loss, r->ema_val_loss},
    };
    int rc = compare_numbers(v, r->step, numbers, sizeof numbers / sizeof *numbers, err);
    for (int i = 0; rc == 0 && has_sets && dt_training_find_set(t, i, &set); i++)
        rc = compare_set(v, line, &set, err);
    v->validations += rc == 0;
    return rc < 0 ? rc : 0;
}

static bool has_checkpoint(const struct verification *v, long step)
{
    for (size_t i = 0; i < v->checkpoint_count; i++)
        if (v->checkpoints[i] == step)
            return true;
    return false;
}

static int compare_checkpoint(struct verification *v, struct dt_training *t, long step,
                              struct dt_error *err)
{
    char tensor[DT_TENSOR_NAME], *path = dt_checkpoint_of_step(v->options->run, step);
    int rc = dt_training_compare(t, path, tensor, err);
    if (rc == 0 && *tensor)
        rc = differ(v, dt_asprintf("step %ld: tensor '%s' of %s differs", step, tensor, path), err);
    else
        v->compared++;
    free(path);
    return rc;
}

/* Compares a recomputed tensor with the next line of the recorded ones. */
static int compare_hash(void *context, const struct dt_trace_line *line, struct dt_error *err)
{
    struct verification *v = context;
    const struct dt_recorded_hash *recorded = &v->hashes.items[v->next_hash];
    if (v->differs || v->next_hash == v->hashes.count || line->step < recorded->step)
        return 0; /* not recorded */
    v->next_hash++;
    if (recorded->step != line->step || strcmp(recorded->operation, line->operation) != 0 ||
        strcmp(recorded->tensor, line->tensor) != 0)
        return dt_fail(err, DT_EFORMAT,
                       "%s:%ld: has step %ld, %s, '%s', expected step %ld, %s, '%s'",
                       v->hashes_path, recorded->line, recorded->step, recorded->operation,
                       recorded->tensor, line->step, line->operation, line->tensor);
    v->hash_lines++;
    if (dt_sum_hash_equal(&recorded->hash, &line->hash))
        return 0;
    char *what = dt_asprintf("%s of '%s'", line->operation, line->tensor);
    v->equal_until = line->step - 1;
    int rc = differ_in_hash(v, line->step, what, &recorded->hash, &line->hash, hint(v), err);
    free(what);
    return rc;
}

/* --- settings of the run ---------------------------------------------------------------------- */

/* The layout of the run is replaced: that of this machine. */
static void reset_layout(struct dt_settings *s)
{
    struct dt_settings plain;
    dt_config_defaults(dt_settings_schema, &plain);
    s->distributed.backend = plain.distributed.backend;
    *s->distributed.rendezvous = *s->distributed.interface = '\0';
    s->distributed.encrypt = false;
    s->distributed.pp = s->distributed.tp = s->distributed.cp = 1;
    s->distributed.sequence_parallel = false;
    s->distributed.schedule = plain.distributed.schedule;
    s->distributed.virtual_stages = plain.distributed.virtual_stages;
    s->distributed.zero_stage = s->distributed.shard_ranks = 0;
    s->distributed.check_interval = 0;
}

/* What does not change results: nothing is written, and every step is compared. */
static void reset_output(struct dt_settings *s)
{
    s->training.log_interval = (struct dt_config_amount){.count = 1};
    if (s->training.eval_interval.unit == DT_INTERVAL_UNIT_MINUTES) /* only after the last step */
        s->training.eval_interval = (struct dt_config_amount){.count = (double)LONG_MAX};
    s->training.patience = 0;
    s->training.save_interval.count = 0;
    s->checkpoint.background = false;
    *s->training.trace_steps = '\0';
}

static int change_layout(struct dt_settings *s, const struct dt_verify_steps_options *o,
                         struct dt_error *err)
{
    for (int i = 0; i < o->setting_count; i++) {
        const char *assignment = o->settings[i];
        const struct dt_setting *named = dt_config_assigned(dt_settings_schema, assignment);
        DT_TRY(dt_config_override(dt_settings_schema, s, assignment, "--set", err));
        if (named && strncmp(named->name, "distributed.", 12) != 0 &&
            strcmp(named->name, "training.recompute") != 0)
            return dt_fail(err, DT_EINVALID,
                           "--set: %s is a setting of the run; only the layout may change: "
                           "section distributed, and training.recompute",
                           named->name);
    }
    return 0;
}

/* The settings that a checkpoint has recorded. */
static int read_settings(const struct verification *v, long checkpoint, struct dt_settings *s,
                         struct dt_error *err)
{
    char *directory = dt_checkpoint_of_step(v->options->run, checkpoint);
    memset(s, 0, sizeof *s);
    int rc = dt_checkpoint_read_settings(directory, s, err);
    free(directory);
    return rc;
}

/* The first checkpoint after a step, which has the settings of that step's successor; the newest
 * one, if there is none. */
static long checkpoint_after(const struct verification *v, long step)
{
    for (size_t i = 0; i < v->checkpoint_count; i++)
        if (v->checkpoints[i] > step)
            return v->checkpoints[i];
    return newest_checkpoint(v);
}

static bool has_equal_interval(const struct dt_config_amount *a, const struct dt_config_amount *b)
{
    return a->count == b->count && a->unit == b->unit;
}

static bool has_equal_validations(const struct dt_settings *a, const struct dt_settings *b)
{
    return has_equal_interval(&a->training.eval_interval, &b->training.eval_interval) &&
           a->training.eval_batches == b->training.eval_batches &&
           a->training.eval_accuracy == b->training.eval_accuracy &&
           strcmp(a->data.val_split, b->data.val_split) == 0 &&
           strcmp(a->data.validation, b->data.validation) == 0;
}

/* Of the settings that a resumed run may change: with another max_steps it has another learning
 * rate schedule, other intervals have other lines, and other collectives and parts other sums. */
static bool has_equal_lines(const struct dt_settings *a, const struct dt_settings *b)
{
    return a->training.max_steps == b->training.max_steps &&
           a->distributed.collectives == b->distributed.collectives &&
           a->distributed.sequence_parts == b->distributed.sequence_parts &&
           has_equal_interval(&a->training.log_interval, &b->training.log_interval) &&
           has_equal_validations(a, b);
}

/* Steps from + 1 .. *end have equal settings. */
static int find_segment(struct verification *v, long from, long *end, struct dt_error *err)
{
    struct dt_settings later;
    DT_TRY(read_settings(v, checkpoint_after(v, from), &v->settings, err));
    *end = v->last;
    for (size_t i = 0; i < v->checkpoint_count; i++) {
        long step = v->checkpoints[i];
        if (step <= from || step >= v->last)
            continue;
        DT_TRY(read_settings(v, checkpoint_after(v, step), &later, err));
        if (has_equal_lines(&later, &v->settings))
            continue;
        *end = step;
        break;
    }
    return 0;
}

/* --- inputs ----------------------------------------------------------------------------------- */

static int find_data(const struct verification *v, const char **data, struct dt_error *err)
{
    const char *recorded = v->settings.data.dataset;
    *data = NULL;
    if (*v->settings.data.stages && v->options->data)
        return dt_fail(err, DT_EINVALID,
                       "%s: its data are those of data.stages, which --data does not replace: "
                       "start where these paths are there",
                       v->options->run);
    if (*v->settings.data.stages)
        return 0;
    *data = v->options->data ? v->options->data : recorded;
    if (**data == '\0')
        return dt_fail(err, DT_EINVALID,
                       "%s: the run has not recorded the path of its data: give it with --data",
                       v->options->run);
    int there = dt_file_probe(*data, err);
    if (there != 0)
        return there < 0 ? there : 0;
    return dt_fail(err, DT_EMISSING, "the data '%s' of the run do not exist%s", *data,
                   v->options->data ? "" : " here: give their path with --data");
}

/* The command of dt-train that wrote a checkpoint, with a space after it; owned by the caller. */
static int read_command(const char *checkpoint, char **command, struct dt_error *err)
{
    char *text, *path = dt_path_join(checkpoint, "trainer/lineage.txt");
    size_t size;
    int rc = dt_file_read(path, 1 << 20, &text, &size, err);
    free(path);
    DT_TRY(rc);
    if (size > 0 && text[size - 1] == '\n')
        text[size - 1] = '\0';
    const char *last = strrchr(text, '\n');
    *command = dt_asprintf("%s ", last ? last + 1 : text);
    free(text);
    return 0;
}

/* A model that the run was given must be given here. option: " --NAME " of both programs. */
static int check_model(const struct verification *v, const char *command, const char *option,
                       const char *given, const char *use, struct dt_error *err)
{
    if (given || strstr(command, option) == NULL)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s %s: name it with%.*s", v->options->run, use,
                   (int)strlen(option) - 1, option);
}

/* A run that began with the parameters of another model or run cannot begin without them. */
static int check_origin(const struct verification *v, const char *command, struct dt_error *err)
{
    if (v->settings.branch.step > 0)
        return dt_fail(
            err, DT_EINVALID,
            "%s branched from another run at step %ld, and has no checkpoint "
            "before these steps: name later steps, or start from a checkpoint with --from",
            v->options->run, v->settings.branch.step);
    const char *resume = strstr(command, " --resume ");
    bool continues = resume && strncmp(resume, " --resume auto ", 15) != 0 &&
                     strncmp(resume, " --resume none ", 15) != 0 && v->metrics.items[0].step > 1;
    if (continues)
        return dt_fail(err, DT_EINVALID,
                       "%s continues another run, and has no line of step 1: start from a "
                       "checkpoint with --from",
                       v->options->run);
    if (!v->options->init_from && strstr(command, " --init-from "))
        return dt_fail(err, DT_EINVALID,
                       "%s began with the parameters of another model: name it with --init-from, "
                       "or start from a checkpoint with --from",
                       v->options->run);
    return check_model(v, command, " --adapter ", v->options->adapter,
                       "began with an adapter that was merged into another model", err);
}

/* Sets the models that a segment begins with and refers to; checkpoint: see checkpoint_after. */
static int find_models(const struct verification *v, long from, const char *checkpoint,
                       struct dt_training_options *o, struct dt_error *err)
{
    const struct dt_verify_steps_options *given = v->options;
    const int objective = v->settings.training.objective;
    char *command;
    if (objective == DT_TRAINING_OBJECTIVE_GRPO)
        return dt_fail(err, DT_EINVALID,
                       "%s: steps with training.objective grpo are not recomputed: a program that "
                       "is not dt's has rewarded their completions",
                       given->run);
    DT_TRY(read_command(checkpoint, &command, err));
    int rc = check_model(v, command, " --reference ", given->reference,
                         "was compared with a reference model", err);
    if (rc == 0 && from == 0)
        rc = check_origin(v, command, err);
    free(command);
    o->init_from = from == 0 ? given->init_from : NULL;
    o->adapter = from == 0 ? given->adapter : NULL;
    o->reference = given->reference;
    if (from > 0 && given->reference == NULL && objective == DT_TRAINING_OBJECTIVE_DPO)
        o->reference = given->init_from;
    return rc;
}

/* The tokenizer in a checkpoint; NULL: none. */
static int open_tokenizer(struct dt_training_options *o, const char *checkpoint,
                          struct dt_error *err)
{
    struct dt_tokenizer *tokenizer;
    char *path = dt_path_join(checkpoint, DT_TOKENIZER_FILE);
    int there = dt_file_probe(path, err);
    if (there > 0)
        there = dt_tokenizer_load(&tokenizer, path, err) < 0 ? err->code : 1;
    if (there <= 0) {
        free(path);
        return there;
    }
    o->tokenizer_path = path;
    o->tokenizer = dt_tokenizer_fingerprint(tokenizer);
    dt_tokenizer_free(tokenizer);
    return 0;
}

/* An asynchronous run is replayed. */
static int follow_order(struct verification *v, struct dt_error *err)
{
    struct dt_settings *s = &v->settings;
    const size_t size = sizeof s->distributed.replay;
    if (s->distributed.sync != DT_SYNC_ASYNC)
        return 0;
    if (dt_comm_size(v->options->comm) > 1)
        return dt_fail(err, DT_EINVALID, "%s: one rank verifies an asynchronous run, not %d",
                       v->options->run, dt_comm_size(v->options->comm));
    if (snprintf(s->distributed.replay, size, "%s/updates.jsonl", v->options->run) >= (int)size)
        return dt_fail(err, DT_EINVALID, "%s: its path is too long", v->options->run);
    return 0;
}

/* The order of NCCL's sums is not known. */
static int refuse_library_sums(const struct verification *v, struct dt_error *err)
{
    const int which = v->settings.distributed.collectives;
    if (which == DT_COLLECTIVES_ORDERED)
        return 0;
    return dt_fail(
        err, DT_EINVALID,
        "%s: distributed.collectives %s: steps whose gradients NCCL has summed cannot be "
        "recomputed to the same bits",
        v->options->run, dt_collectives_names[which]);
}

/* Settings of training of the steps up to end. */
static int set_up(struct verification *v, long end, struct dt_error *err)
{
    struct dt_settings *s = &v->settings;
    reset_layout(s);
    v->log_interval = s->training.log_interval;
    v->timed_validations = s->training.eval_interval.unit == DT_INTERVAL_UNIT_MINUTES;
    reset_output(s);
    DT_TRY(change_layout(s, v->options, err));
    DT_TRY(refuse_library_sums(v, err));
    DT_TRY(follow_order(v, err));
    if (v->options->deep && v->first <= end)
        snprintf(s->training.trace_steps, sizeof s->training.trace_steps, "%ld:%ld", v->first, end);
    return 0;
}

/* --- steps ------------------------------------------------------------------------------------ */

/* The parameters at the start are those that the run had. */
static int check_start(struct verification *v, struct dt_training *t, long from,
                       struct dt_error *err)
{
    const struct dt_recorded_step *line = dt_recorded_steps_find(&v->metrics, from);
    struct dt_sum_hash hash;
    v->equal_until = from;
    if (line == NULL)
        return 0;
    DT_TRY(dt_training_parameter_hash(t, &hash, err));
    if (dt_sum_hash_equal(&hash, &line->parameters))
        return 0;
    v->equal_until = from - 1;
    return differ_in_hash(v, from, "hash of the parameters of its checkpoint", &line->parameters,
                          &hash, ": the checkpoint is not of these steps", err);
}

static int compare_lines(struct verification *v, const struct dt_training *t,
                         const struct dt_step_report *r, struct dt_error *err)
{
    const struct dt_recorded_step *line = dt_recorded_steps_find(&v->metrics, r->step);
    DT_TRY(line ? compare_line(v, line, r, err) : check_unlogged(v, r, err));
    return v->differs ? 0 : compare_validation(v, t, r, err);
}

/* All ranks stop where rank 0 has found a difference. */
static int follow_first_rank(struct verification *v, struct dt_error *err)
{
    int size = dt_comm_size(v->options->comm);
    bool *differ = dt_alloc((size_t)size, sizeof *differ);
    differ[dt_comm_rank(v->options->comm)] = v->differs;
    int rc = dt_comm_share(v->options->comm, differ, sizeof *differ, err);
    if (rc == 0 && !leads(v)) {
        v->report->differ += differ[0] && !v->differs;
        v->differs = differ[0];
    }
    free(differ);
    return rc;
}

/* One step; *step: becomes its number. */
static int recompute(struct verification *v, struct dt_training *t, long *step,
                     struct dt_error *err)
{
    struct dt_step_report r;
    int rc = dt_training_step(t, &r, err);
    if (rc <= 0)
        return rc < 0 ? rc
                      : dt_fail(err, DT_EFORMAT, "%s: training ends before step %ld",
                                v->options->run, *step + 1);
    *step = r.step;
    if (dt_progress_due(&v->progress))
        dt_progress_show(&v->progress, "step %ld of %ld", r.step, v->last);
    if (v->differs) /* a traced tensor */
        return 0;
    if (leads(v)) /* metrics of local_sgd have the gradient norm of rank 0 */
        DT_TRY(compare_lines(v, t, &r, err));
    DT_TRY(follow_first_rank(v, err));
    if (v->differs)
        return 0;
    return has_checkpoint(v, r.step) ? compare_checkpoint(v, t, r.step, err) : 0;
}

static int run_steps(struct verification *v, struct dt_training *t, long from, long end,
                     struct dt_error *err)
{
    struct dt_sum_hash hash;
    struct dt_training_facts facts;
    long step = from;
    dt_training_facts(t, &facts);
    v->samples = facts.samples;
    DT_TRY(check_start(v, t, from, err));
    while (step < end && !v->differs)
        DT_TRY(recompute(v, t, &step, err));
    /* After a validation of the moving average ranks still send parameters: this waits. */
    return dt_training_parameter_hash(t, &hash, err);
}

/* Steps from + 1 to end. */
static int run_segment(struct verification *v, long from, long end, struct dt_error *err)
{
    const struct dt_trace_sink sink = {v, compare_hash};
    struct dt_training *t;
    struct dt_training_options o = {.settings = &v->settings,
                                    .resume = "none",
                                    .command_line = "",
                                    .device = v->options->device,
                                    .comm = v->options->comm,
                                    .sink = &sink};
    char *start = dt_checkpoint_of_step(v->options->run, from);
    char *after = dt_checkpoint_of_step(v->options->run, checkpoint_after(v, from));
    o.settings_path = after;
    if (from > 0)
        o.resume = start;
    int rc = find_data(v, &o.data, err);
    rc = rc < 0 ? rc : find_models(v, from, after, &o, err);
    rc = rc < 0 ? rc : open_tokenizer(&o, after, err);
    rc = rc < 0 ? rc : set_up(v, end, err);
    rc = dt_comm_agree(v->options->comm, rc, err);
    rc = rc < 0 ? rc : dt_training_new(&t, &o, err);
    if (rc == 0) {
        rc = run_steps(v, t, from, end, err);
        dt_training_free(t);
    }
    free((char *)o.tokenizer_path);
    free(start);
    free(after);
    return rc;
}

/* --- the run ---------------------------------------------------------------------------------- */

static int read_hashes(struct verification *v, struct dt_error *err)
{
    const char *deep = v->options->deep;
    char *inside = dt_path_join(deep, "hashes.jsonl");
    int there = dt_file_probe(inside, &(struct dt_error){0});
    v->hashes_path = there > 0 ? inside : dt_strdup(deep);
    if (there <= 0)
        free(inside);
    DT_TRY(dt_recorded_hashes_read(&v->hashes, v->hashes_path, err));
    while (v->next_hash < v->hashes.count && v->hashes.items[v->next_hash].step < v->first)
        v->next_hash++;
    if (v->next_hash < v->hashes.count && v->hashes.items[v->next_hash].step <= v->last)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s: has no hashes of steps %ld to %ld: training.trace_steps writes them",
                   v->hashes_path, v->first, v->last);
}

/* The steps to verify; one of them is logged. */
static int choose_steps(struct verification *v, struct dt_error *err)
{
    const struct dt_recorded_steps *m = &v->metrics;
    long newest = m->items[m->count - 1].step;
    v->first = v->options->from > 0 ? v->options->from + 1 : 1;
    v->last = newest > newest_checkpoint(v) ? newest : newest_checkpoint(v);
    if (v->options->steps)
        DT_TRY(dt_step_trace_read_range(v->options->steps, "the range of steps", &v->first,
                                        &v->last, err));
    for (size_t i = 0; i < m->count; i++)
        if (m->items[i].step >= v->first && m->items[i].step <= v->last)
            return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s: no step of %ld to %ld is logged: the last line is of step %ld",
                   v->options->run, v->first, v->last, newest);
}

static int read_run(struct verification *v, struct dt_error *err)
{
    const char *run = v->options->run;
    char *metrics = dt_path_join(run, "metrics.jsonl");
    int rc = dt_recorded_steps_read(&v->metrics, metrics, err);
    free(metrics);
    rc = rc < 0 ? rc : dt_checkpoint_steps(run, &v->checkpoints, &v->checkpoint_count, err);
    if (rc == 0 && v->checkpoint_count == 0)
        rc = dt_fail(err, DT_EMISSING, "%s: has no checkpoint, which would have its settings", run);
    rc = rc < 0 ? rc : choose_steps(v, err);
    if (rc == 0 && v->options->deep)
        rc = read_hashes(v, err);
    return rc;
}

/* The step to start after. */
static int choose_start(const struct verification *v, long *from, struct dt_error *err)
{
    *from = v->options->from < 0 ? 0 : v->options->from;
    if (*from >= v->first)
        return dt_fail(err, DT_EINVALID, "--from %ld is not before step %ld", *from, v->first);
    if (*from > 0 && !has_checkpoint(v, *from))
        return dt_fail(err, DT_EMISSING, "%s: has no checkpoint of step %ld", v->options->run,
                       *from);
    for (size_t i = 0; v->options->from < 0 && i < v->checkpoint_count; i++)
        if (v->checkpoints[i] < v->first)
            *from = v->checkpoints[i];
    return 0;
}

static int conclude(struct verification *v, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_progress_clear(&v->progress);
    if (v->differs || !leads(v))
        return 0;
    dt_buffer_printf(&text, "verified steps %ld to %ld: %ld of metrics.jsonl", v->first, v->last,
                     v->lines);
    dt_buffer_printf(&text, ", %ld checkpoint%s", v->compared, v->compared == 1 ? "" : "s");
    if (v->validations > 0)
        dt_buffer_printf(&text, ", %ld validation%s", v->validations,
                         v->validations == 1 ? "" : "s");
    if (v->options->deep)
        dt_buffer_printf(&text, ", %ld hashes of traced steps", v->hash_lines);
    if (v->metrics.lost_lines > 0)
        dt_buffer_printf(&text, "; the run reports %ld lines lost", v->metrics.lost_lines);
    return dt_verify_report_say(v->report, text.data, err);
}

static int verify(struct verification *v, struct dt_error *err)
{
    long from = 0, end = 0;
    int rc = read_run(v, err);
    rc = rc < 0 ? rc : choose_start(v, &from, err);
    DT_TRY(dt_comm_agree(v->options->comm, rc, err));
    for (; from < v->last && !v->differs; from = end) {
        DT_TRY(dt_comm_agree(v->options->comm, find_segment(v, from, &end, err), err));
        DT_TRY(run_segment(v, from, end, err));
    }
    return conclude(v, err);
}

int dt_verify_steps(const struct dt_verify_steps_options *o, struct dt_verify_report *report,
                    struct dt_error *err)
{
    struct verification v = {.options = o, .report = report};
    dt_progress_init(&v.progress, o->quiet || dt_comm_rank(o->comm) != 0);
    int rc = verify(&v, err);
    dt_recorded_steps_release(&v.metrics);
    free(v.hashes.items);
    free(v.hashes_path);
    free(v.checkpoints);
    return rc;
}
