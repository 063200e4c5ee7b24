/* SPDX-License-Identifier: MIT */
/* The state that a run begins with: initial parameters, a checkpoint of it, or of the run that
 * it branches from, or that of other ranks. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "checkpoint/checkpoint-settings.h"
#include "formats/adapter.h"
#include "formats/model-directory.h"
#include "hash/hash.h"
#include "io/directory-manifest.h"
#include "train/training-internal.h"

static bool is_of_head(const struct dt_param *p)
{
    return p->role >= DT_ROLE_HEAD_DENSE_WEIGHT && p->role <= DT_ROLE_HEAD_BIAS;
}

/* all (a table whole) = the parameters of a model; those of a classifier's head, which a model of
 * tokens lacks, stay. */
static int read_parameters(const struct dt_model_config *source, const struct dt_table *whole,
                           const struct dt_train_state *state, const char *directory, float *all,
                           struct dt_error *err)
{
    enum dt_dtype compute = state->model->compute;
    struct dt_table theirs;
    if (source->num_labels == state->model->config.num_labels)
        return dt_model_read_parameters(source, whole, compute, directory, all, err);
    dt_table_init(&theirs, source, NULL);
    float *values = dt_alloc((size_t)theirs.elements, sizeof *values);
    int rc = dt_model_read_parameters(source, &theirs, compute, directory, values, err);
    for (int i = 0; rc == 0 && i < whole->count; i++) {
        const struct dt_param *to = &whole->params[i];
        const struct dt_param *from = dt_table_find(&theirs, to->role, to->layer);
        if (from && !is_of_head(to))
            memcpy(all + to->offset, values + from->offset, (size_t)to->count * sizeof *all);
    }
    dt_table_release(&theirs);
    free(values);
    return rc;
}

/* Sets the parameters from a model directory, after checking its manifest if it has one; of an
 * adapter, the weights that it leaves frozen. */
static int take_parameters(struct dt_train_state *state, const char *directory, const char *adapter,
                           uint64_t seed, uint64_t *hash, struct dt_error *err)
{
    const struct dt_table *t = state->model->base;
    struct dt_table whole;
    struct dt_model_config source; /* whose number of positions may differ */
    DT_TRY(dt_model_verify(directory, err));
    DT_TRY(dt_model_read_config(&source, directory, err));
    dt_table_init(&whole, &state->model->config, NULL);
    const bool is_part = t->elements < whole.elements;
    float *all = dt_alloc((size_t)whole.elements, sizeof *all);
    float *own = is_part ? dt_alloc((size_t)t->elements, sizeof *own) : all;
    if (source.num_labels != state->model->config.num_labels)
        dt_table_initialize(&whole, seed, all);
    int rc = read_parameters(&source, &whole, state, directory, all, err);
    if (rc == 0 && adapter)
        rc = dt_adapter_merge(adapter, &state->model->config, &whole, all, err);
    if (rc == 0) {
        *hash = dt_adapter_base_hash(&whole, all);
        if (is_part)
            dt_table_shard(t, own, &whole, all);
        if (state->model->adapter)
            dt_model_set_frozen(state->model, own);
        else
            dt_train_state_set_parameters(state, own);
    }
    dt_table_release(&whole);
    free(all);
    if (is_part)
        free(own);
    return rc;
}

bool dt_training_goes_on(const struct dt_training *t)
{
    return t->members && dt_membership_seat(t->members)->generation > 1;
}

/* Of an elastic run, an earlier rank 0 that leaves, or was stopped, may still hold the lock: ranks
 * that know it go on, and others wait for it. */
static int await_lock(const struct dt_training *t, struct dt_error *err)
{
    const double until =
        dt_clock_now() + (t->members ? (double)t->settings.distributed.join_timeout : 0);
    while (flock(t->lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        if (dt_training_goes_on(t))
            break;
        if (dt_clock_now() >= until)
            return dt_fail(err, DT_EINVALID, "another program is training into '%s'", t->run);
        if (t->stop && *t->stop)
            return dt_fail(err, DT_ESTOP, "told to stop before '%s' was free", t->run);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return 0; /* without a lock on file systems that have none */
}

/* Two programs in one run directory would remove each other's hidden directories. The lock ends
 * with the process. */
static int lock_run(struct dt_training *t, struct dt_error *err)
{
    DT_TRY(dt_file_make_directories(t->run, err));
    t->lock = open(t->run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->lock < 0)
        return dt_fail_errno(err, "cannot open '%s'", t->run);
    return await_lock(t, err);
}

static int hold_run(struct dt_training *t, struct dt_error *err)
{
    return t->lock >= 0 ? 0 : lock_run(t, err);
}

void dt_training_unlock_run(struct dt_training *t)
{
    if (t->lock >= 0)
        close(t->lock);
    t->lock = -1;
}

/* A checkpoint, or a run, of which it is the newest; owned by the caller. */
static int find_named(const char *name, char **found, struct dt_error *err)
{
    char *state = dt_path_join(name, DT_TRAINER_DIR);
    int is_checkpoint = dt_file_probe(state, err);
    free(state);
    *found = NULL;
    DT_TRY(is_checkpoint);
    if (!is_checkpoint)
        DT_TRY(dt_checkpoint_find(name, found, err));
    if (*found == NULL)
        *found = dt_strdup(name);
    return 0;
}

/* --- branches --------------------------------------------------------------------------------- */

/* Samples of this run that have as many tokens, rounded down. */
static long own_samples(const struct dt_training *t, const struct dt_settings *then,
                        uint64_t samples)
{
    return (long)(samples * (uint64_t)dt_settings_sample_tokens(then) /
                  (uint64_t)dt_settings_sample_tokens(&t->settings));
}

/* What the branch changes, for lineage and metrics. */
static struct json_object *describe(const struct dt_training *t, const struct dt_settings *then,
                                    uint64_t parameters, bool other_data)
{
    char hex[DT_HASH_HEX];
    struct json_object *o = dt_json_new_object();
    dt_json_object_add(o, "step", dt_json_new_int(t->settings.branch.step));
    dt_json_object_add(o, "parameters", dt_json_new_string(dt_hash_hex(parameters, hex)));
    dt_json_object_add(o, "other_data", dt_json_new_boolean(other_data));
    dt_json_object_add(o, "changes", dt_checkpoint_changes(then, &t->settings));
    return o;
}

static int read_parent(struct dt_training *t, const char *checkpoint, struct dt_error *err)
{
    struct dt_settings then;
    struct dt_progress_state progress = {.step = 0};
    uint64_t data, parameters;
    char *state = dt_path_join(checkpoint, "trainer/state.json");
    int rc = dt_checkpoint_read_settings(checkpoint, &then, err);
    rc = rc < 0 ? rc : dt_checkpoint_read_progress(checkpoint, &progress, &data, err);
    rc = rc < 0 ? rc : dt_progress_state_hash(state, &parameters, err);
    free(state);
    DT_TRY(rc);
    const bool other_data = data != t->identity.data;
    t->parent_is_scaled = then.training.precision == DT_DTYPE_F16;
    t->settings.branch.step = progress.step;
    t->settings.branch.samples = own_samples(t, &then, progress.samples);
    t->settings.branch.data_start = other_data
                                        ? t->settings.branch.samples
                                        : own_samples(t, &then, (uint64_t)then.branch.data_start);
    json_object_put(t->branch);
    t->branch = describe(t, &then, parameters, other_data);
    return 0;
}

int dt_training_begin_branch(struct dt_training *t, struct dt_error *err)
{
    if (t->options.branch_from == NULL)
        return 0;
    free(t->parent);
    DT_TRY(find_named(t->options.branch_from, &t->parent, err));
    return read_parent(t, t->parent, err) < 0 ? dt_fail_context(err, "--branch-from") : 0;
}

/* That of the parent, if it has one and this run has one. What compression has not sent yet is
 * scaled, too. */
static void take_loss_scale(struct dt_training *t)
{
    struct dt_loss_scale *scale = &t->progress.loss_scale;
    const double before = scale->factor;
    if (t->settings.training.precision != DT_DTYPE_F16)
        *scale = (struct dt_loss_scale){.factor = 1};
    else if (!t->parent_is_scaled)
        *scale = dt_loss_scale_first();
    if (scale->factor != before)
        dt_compression_rescale(&t->state.compression, scale->factor / before);
}

/* After the parent's state was loaded. Its validation losses may be of other data. */
static void take_branch(struct dt_training *t)
{
    struct dt_progress_state *p = &t->progress;
    const bool other_data = t->settings.branch.data_start == t->settings.branch.samples;
    p->samples = (uint64_t)t->settings.branch.samples;
    p->best_count = 0;
    p->validations_since_best = 0;
    p->logged_lines = 0;
    if (other_data)
        p->losses = (struct dt_loss_statistics){0};
    take_loss_scale(t);
}

/* --- checkpoints ------------------------------------------------------------------------------ */

/* What --resume names. */
static int find_resumed(const struct dt_training *t, const char *name, char **found,
                        struct dt_error *err)
{
    int there = dt_file_probe(name, err);
    if (there == 0)
        return dt_fail(err, DT_EMISSING,
                       "--resume '%s': no such checkpoint or run: give its path, "
                       "such as %s/latest",
                       name, t->run);
    return there < 0 ? there : find_named(name, found, err);
}

/* The checkpoint to resume from; NULL: none; owned by the caller. */
static int find_checkpoint(const struct dt_training *t, const char *resume, char **found,
                           struct dt_error *err)
{
    char *newest;
    *found = NULL;
    DT_TRY(dt_checkpoint_check_links(t->run, err));
    DT_TRY(dt_checkpoint_find(t->run, &newest, err));
    if (strcmp(resume, "auto") == 0 || (newest && dt_training_goes_on(t))) {
        *found = newest;
        return 0;
    }
    bool exists = newest != NULL;
    free(newest);
    if (strcmp(resume, "none") == 0 && exists)
        return dt_fail(err, DT_EINVALID,
                       "'%s' already holds a run: resume it with --resume auto, or "
                       "choose another directory",
                       t->run);
    if (strcmp(resume, "none") == 0)
        return 0;
    return find_resumed(t, resume, found, err);
}

int dt_training_check_settings(const struct dt_training *t, struct dt_error *err)
{
    struct dt_error ignored;
    char *found;
    if (t->run == NULL || t->options.branch_from ||
        find_checkpoint(t, t->options.resume, &found, &ignored) < 0)
        return 0;
    int rc = found ? dt_checkpoint_check_resume(found, &t->settings, err) : 0;
    free(found);
    return rc;
}

/* A run resumed without --tokenizer keeps the checkpoint's. */
static int keep_tokenizer(struct dt_training *t, const char *checkpoint, struct dt_error *err)
{
    if (t->tokenizer_path)
        return 0;
    char *path = dt_path_join(checkpoint, DT_TOKENIZER_FILE);
    int there = dt_file_probe(path, err);
    if (there > 0)
        t->identity.tokenizer_path = t->tokenizer_path = path;
    else
        free(path);
    return there < 0 ? there : 0;
}

#define PATH_BYTES 4096

/* Rank 0 of an elastic run that goes on. *saved: the step of a checkpoint of the current step; -1:
 * there is none. */
static int take_over_run(struct dt_training *t, long *saved, struct dt_error *err)
{
    char *newest = NULL;
    *saved = -1;
    DT_TRY(hold_run(t, err));
    DT_TRY(dt_checkpoint_clean(t->run, err));
    DT_TRY(dt_checkpoint_find(t->run, &newest, err));
    int rc = newest ? keep_tokenizer(t, newest, err) : 0;
    if (rc == 0 && t->options.lineage && t->identity.records == NULL) { /* it joined the run */
        rc = newest ? dt_lineage_continue(t->options.lineage, newest, err) : 0;
        t->identity.records = dt_lineage_records(t->options.lineage);
    }
    free(newest);
    char *own = dt_checkpoint_of_step(t->run, t->progress.step);
    int there = rc == 0 ? dt_file_probe(own, err) : rc;
    free(own);
    *saved = there > 0 ? t->progress.step : -1;
    return there < 0 ? there : 0;
}

/* Whether the checkpoint is in the directory of the run. */
static bool is_of_run(const char *checkpoint, const char *run)
{
    char *parent = dt_path_join(checkpoint, ".."), *of = dt_path_real(parent),
         *real = dt_path_real(run);
    bool same = strcmp(of, real) == 0;
    free(real);
    free(of);
    free(parent);
    return same;
}

/* Locks and cleans the run directory. path: of the checkpoint to resume from; empty: none. *own: it
 * is in that directory. */
static int prepare_run(struct dt_training *t, const char *resume, char path[PATH_BYTES], char *own,
                       struct dt_error *err)
{
    char *found;
    DT_TRY(hold_run(t, err));
    DT_TRY(dt_checkpoint_clean(t->run, err));
    DT_TRY(find_checkpoint(t, resume, &found, err));
    snprintf(path, PATH_BYTES, "%s", found ? found : "");
    *own = found && is_of_run(found, t->run);
    free(found);
    return 0;
}

static int agree_on_checkpoint(struct dt_training *t, const char *resume, char path[PATH_BYTES],
                               char *own, struct dt_error *err)
{
    *own = false;
    int rc = t->leads && t->run ? prepare_run(t, resume, path, own, err) : 0;
    if (t->run == NULL)
        snprintf(path, PATH_BYTES, "%s", strcmp(resume, "none") == 0 ? "" : resume);
    DT_TRY(dt_comm_agree(t->comm, rc, err));
    DT_TRY(dt_comm_wait(t->comm, dt_comm_broadcast(t->comm, own, sizeof *own, 0), err));
    return dt_comm_wait(t->comm, dt_comm_broadcast(t->comm, path, PATH_BYTES, 0), err);
}

/* The state is of other ranks, or of this one. */
int dt_training_go_on(struct dt_training *t, struct dt_error *err)
{
    long saved = -1;
    int rc = t->leads && t->run ? take_over_run(t, &saved, err) : 0;
    DT_TRY(dt_comm_agree(t->comm, rc, err));
    DT_TRY(dt_comm_wait(t->comm, dt_comm_broadcast(t->comm, &saved, sizeof saved, 0), err));
    t->writer = dt_checkpoint_writer_new(t->run, t->mesh.world, &t->snapshot, &t->identity, saved);
    return 0;
}

static bool is_damage(const struct dt_error *err)
{
    return err->agreed &&
           (err->code == DT_EFORMAT || err->code == DT_EIO || err->code == DT_EMISSING);
}

/* Rank 0 finds the checkpoint before a damaged one; path becomes empty if there is none. */
static int go_back(struct dt_training *t, char path[PATH_BYTES], struct dt_error *err)
{
    char *earlier = NULL;
    int rc = t->leads ? dt_checkpoint_find_before(t->run, path, &earlier, err) : 0;
    snprintf(path, PATH_BYTES, "%s", earlier ? earlier : "");
    free(earlier);
    DT_TRY(dt_comm_agree(t->comm, rc, err));
    return dt_comm_wait(t->comm, dt_comm_broadcast(t->comm, path, PATH_BYTES, 0), err);
}

/* With --resume auto a damaged checkpoint is passed over for the one before. */
static int check_or_go_back(struct dt_training *t, bool automatic, char path[PATH_BYTES],
                            struct dt_error *err)
{
    dt_buffer_clear(&t->damaged);
    for (;;) {
        struct dt_error reason, failure;
        int rc = dt_checkpoint_check(path, &t->state, &t->identity, DT_CHECKPOINT_RESUME, &reason);
        if (rc == 0)
            return 0;
        *err = reason;
        if (!automatic || t->run == NULL || !is_damage(&reason))
            return rc;
        dt_buffer_printf(&t->damaged, "%s%s", t->damaged.size ? "\n" : "", reason.text);
        if (go_back(t, path, &failure) < 0) {
            *err = failure;
            return err->code;
        }
        if (*path == '\0')
            return dt_fail_context(err, "no checkpoint of '%s' is undamaged; the oldest", t->run);
    }
}

static int resume_from(struct dt_training *t, char path[PATH_BYTES], struct dt_error *err)
{
    const struct dt_training_options *o = &t->options;
    const bool automatic = strcmp(o->resume, "auto") == 0 || dt_training_goes_on(t);
    DT_TRY(check_or_go_back(t, automatic, path, err));
    DT_TRY(
        dt_checkpoint_load(path, &t->state, &t->progress, &t->identity, DT_CHECKPOINT_RESUME, err));
    DT_TRY(keep_tokenizer(t, path, err));
    if (t->identity.records == NULL) /* not yet begun to train */
        DT_TRY(dt_lineage_continue(o->lineage, path, err));
    return 0;
}

static int begin_new(struct dt_training *t, struct dt_error *err)
{
    const struct dt_training_options *o = &t->options;
    if (t->parent) {
        DT_TRY(dt_checkpoint_check(t->parent, &t->state, &t->identity, DT_CHECKPOINT_BRANCH, err));
        DT_TRY(dt_checkpoint_load(t->parent, &t->state, &t->progress, &t->identity,
                                  DT_CHECKPOINT_BRANCH, err));
        take_branch(t);
        return keep_tokenizer(t, t->parent, err);
    }
    if (t->settings.branch.step > 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: branch.step is %ld, but a new run begins at step 0: give --branch-from "
                       "or leave section branch out",
                       o->settings_path, t->settings.branch.step);
    if (t->settings.training.precision == DT_DTYPE_F16)
        t->progress.loss_scale = dt_loss_scale_first();
    if (o->init_from && t->model->adapter == NULL)
        DT_TRY(take_parameters(&t->state, o->init_from, o->adapter,
                               (uint64_t)t->settings.training.seed, &t->origin, err));
    else
        dt_train_state_initialize(&t->state, (uint64_t)t->settings.training.seed);
    dt_train_state_begin_ema(&t->state);
    return 0;
}

int dt_training_take_base(struct dt_training *t, struct dt_error *err)
{
    const struct dt_training_options *o = &t->options;
    if (t->model->adapter == NULL)
        return 0;
    if (o->init_from == NULL)
        return dt_fail(err, DT_EINVALID,
                       "%s: lora.rank above 0 needs --init-from, the model that the adapter is of",
                       o->settings_path);
    int adapter = dt_adapter_probe(o->init_from, err);
    if (adapter != 0)
        return adapter < 0 ? adapter
                           : dt_fail(err, DT_EINVALID,
                                     "%s: is an adapter itself: merge it with dt-export first",
                                     o->init_from);
    DT_TRY(take_parameters(&t->state, o->init_from, NULL, 0, &t->origin, err));
    t->identity.base = o->init_from;
    t->identity.base_hash = t->origin;
    return 0;
}

/* A run that is further than its settings say would end with parameters of another step. */
static int check_step(const struct dt_training *t, struct dt_error *err)
{
    const long last = t->settings.training.max_steps;
    if (t->run == NULL || t->progress.step <= last)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s: the run is at step %ld, beyond %ld, the last step by training.max_steps, "
                   "max_tokens and max_epochs",
                   t->run, t->progress.step, last);
}

int dt_training_start(struct dt_training *t, struct dt_error *err)
{
    const struct dt_training_options *o = &t->options;
    char checkpoint[PATH_BYTES], own;
    DT_TRY(agree_on_checkpoint(t, o->resume, checkpoint, &own, err));
    /* Ranks of an elastic run that lost the state were further than a checkpoint, or a new rank. */
    t->progress = (struct dt_progress_state){.loss_scale.factor = 1};
    t->report = (struct dt_step_report){0};
    if (t->branch && o->lineage && t->identity.records == NULL)
        dt_lineage_set(o->lineage, "branch", json_object_get(t->branch));
    int rc = *checkpoint ? resume_from(t, checkpoint, err) : begin_new(t, err);
    free(t->resumed);
    t->resumed = *checkpoint ? dt_path_real(checkpoint) : NULL; /* not: latest */
    rc = rc < 0 ? rc : check_step(t, err);
    t->identity.records = o->lineage ? dt_lineage_records(o->lineage) : NULL;
    t->writer = dt_checkpoint_writer_new(t->run, t->mesh.world, &t->snapshot, &t->identity,
                                         own ? t->progress.step : -1);
    dt_local_sgd_begin(&t->local);
    bool residuals = dt_snapshot_has(&t->state, DT_SNAPSHOT_ERROR_FEEDBACK);
    t->progress.residual_ranks = residuals ? dt_comm_size(t->mesh.data.all) : 0;
    t->first_step = t->progress.step;
    t->logged_seconds = t->progress.seconds;
    t->logged_waited = dt_comm_waited(t->comm);
    t->logged_tokens = t->progress.samples * (uint64_t)dt_settings_sample_tokens(&t->settings);
    return rc;
}
