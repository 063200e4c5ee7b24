/* SPDX-License-Identifier: MIT */
#include "train/training.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/progress.h"
#include "model/directory.h"
#include "model/pass.h"
#include "shard/dataset.h"
#include "train/checkpoint.h"
#include "train/metrics.h"
#include "train/schedule.h"

struct dt_training {
    struct dt_settings settings;
    struct dt_run_identity identity;
    char *run, *lineage, *tokenizer_path;
    int lock; /* of the run directory */
    struct dt_device *device;
    double peak;
    struct dt_dataset *train, *val; /* val NULL: no validation */
    struct dt_loader *loader;
    struct dt_model *model;
    struct dt_store store;
    struct dt_workspace *work;
    struct dt_batch batch;
    struct dt_metrics metrics;
    struct dt_progress_state state;
    long first_step, saved_step;
    double logged_seconds; /* state.seconds and tokens at the last logged step */
    uint64_t logged_tokens;
    uint32_t *val_ids; /* batch x (T + 1), and the losses they give */
    float *val_losses;
};

/* --- opening -----------------------------------------------------------------------------------
 */

/* A split must give one sample at least. */
static int check_length(const struct dt_training *t, const struct dt_dataset *split,
                        const char *name, const char *data, struct dt_error *err)
{
    uint64_t tokens = dt_dataset_info(split)->tokens;
    uint64_t needed = (uint64_t)t->settings.training.sequence_length + 1;
    if (tokens >= needed)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s: split '%s' has %llu tokens, a sequence needs %llu", data,
                   name, (unsigned long long)tokens, (unsigned long long)needed);
}

#define PROBES       64
#define PROBE_TOKENS 64

/* What tells one data set from another, however it is cut into shards: its
 * size, its tokenizer, and tokens from places all over it. */
static int fingerprint(struct dt_dataset *data, uint64_t *hash, struct dt_error *err)
{
    const struct dt_shard_info *info = dt_dataset_info(data);
    uint64_t facts[2] = {info->tokens, info->tokenizer};
    uint64_t count = info->tokens < PROBE_TOKENS ? info->tokens : PROBE_TOKENS;
    *hash = dt_hash(facts, sizeof facts);
    for (uint64_t i = 0; i < PROBES; i++) {
        uint32_t ids[PROBE_TOKENS];
        DT_TRY(dt_dataset_tokens(data, (info->tokens - count) * i / (PROBES - 1), count, ids, err));
        *hash = dt_hash_seeded(ids, count * sizeof *ids, *hash);
    }
    return 0;
}

static int open_data(struct dt_training *t, const struct dt_training_options *o,
                     struct dt_error *err)
{
    DT_TRY(dt_dataset_open(&t->train, o->data, t->settings.data.train_split, err));
    const struct dt_shard_info *info = dt_dataset_info(t->train);
    if (o->tokenizer_path && o->tokenizer != info->tokenizer)
        return dt_fail(err, DT_EINVALID, "%s: is not the tokenizer that made %s", o->tokenizer_path,
                       o->data);
    DT_TRY(dt_settings_resolve(&t->settings, info->vocab_size, o->settings_path, err));
    DT_TRY(check_length(t, t->train, t->settings.data.train_split, o->data, err));
    uint64_t samples = (info->tokens - 1) / (uint64_t)t->settings.training.sequence_length;
    DT_TRY(dt_settings_limit_steps(&t->settings, samples, o->settings_path, err));
    t->identity = (struct dt_run_identity){
        .settings = &t->settings, .eot = info->eot, .tokenizer_path = t->tokenizer_path};
    DT_TRY(fingerprint(t->train, &t->identity.data, err));
    t->lineage = dt_format("%s%s\n", info->provenance ? info->provenance : "", o->command_line);
    t->identity.lineage = t->lineage;
    return 0;
}

static int open_validation(struct dt_training *t, const struct dt_training_options *o,
                           struct dt_error *err)
{
    int rc = DT_EMISSING;
    if (t->settings.training.eval_interval > 0 && dt_is_directory(o->data))
        rc = dt_dataset_open(&t->val, o->data, t->settings.data.val_split, err);
    if (rc != DT_EMISSING)
        return rc < 0 ? rc : check_length(t, t->val, t->settings.data.val_split, o->data, err);
    if (t->settings.training.patience > 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: training.patience needs validation, and there is none",
                       o->settings_path);
    return 0; /* data without that split is trained on without validation */
}

static int open_model(struct dt_training *t, struct dt_error *err)
{
    long batch = t->settings.training.batch_size, length = t->settings.training.sequence_length;
    DT_TRY(dt_model_new(&t->model, t->device, &t->settings.model, DT_F32, err));
    DT_TRY(dt_store_init(&t->store, t->model, err));
    DT_TRY(dt_workspace_new(&t->work, t->model, &(struct dt_workspace_shape){batch, length, true},
                            err));
    dt_batch_init(&t->batch, batch, length);
    t->val_ids = dt_alloc((size_t)(batch * (length + 1)), sizeof *t->val_ids);
    t->val_losses = dt_alloc((size_t)(batch * length), sizeof *t->val_losses);
    return 0;
}

/* Two programs that train into one directory would remove each other's checkpoints
 * in the making. The lock ends with the program, however it ends. */
static int lock_run(struct dt_training *t, struct dt_error *err)
{
    DT_TRY(dt_make_directories(t->run, err));
    t->lock = open(t->run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->lock < 0)
        return dt_fail_errno(err, "cannot open '%s'", t->run);
    if (flock(t->lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return dt_fail(err, DT_EINVALID, "another program is training into '%s'", t->run);
    return 0; /* file systems without locks are used without one */
}

/* The checkpoint to go on from, or NULL; owned by the caller. */
static int find_checkpoint(const struct dt_training *t, const char *resume, char **found,
                           struct dt_error *err)
{
    char *latest = dt_path_join(t->run, "latest");
    struct stat st;
    bool exists = lstat(latest, &st) == 0; /* a link to nothing is a damaged run, not a new one */
    *found = NULL;
    int rc = 0;
    if (strcmp(resume, "auto") == 0)
        *found = exists ? dt_strdup(latest) : NULL;
    else if (strcmp(resume, "none") == 0 && exists)
        rc = dt_fail(err, DT_EINVALID,
                     "'%s' already holds a run: go on with --resume auto, or "
                     "choose another directory",
                     t->run);
    else if (strcmp(resume, "none") != 0)
        *found = dt_strdup(resume);
    free(latest);
    return rc;
}

/* A run that is resumed without a tokenizer keeps the one it has. */
static void keep_tokenizer(struct dt_training *t, const char *checkpoint)
{
    char *path = dt_path_join(checkpoint, DT_TOKENIZER_FILE);
    if (t->tokenizer_path == NULL && dt_file_exists(path)) {
        t->tokenizer_path = path;
        t->identity.tokenizer_path = path;
    } else {
        free(path);
    }
}

static int start_or_resume(struct dt_training *t, const char *resume, struct dt_error *err)
{
    char *checkpoint;
    DT_TRY(lock_run(t, err));
    DT_TRY(dt_checkpoint_clean(t->run, err));
    DT_TRY(find_checkpoint(t, resume, &checkpoint, err));
    int rc = 0;
    t->saved_step = -1;
    if (checkpoint) {
        rc = dt_checkpoint_load(checkpoint, &t->store, &t->state, &t->identity, err);
        t->saved_step = t->state.step;
        keep_tokenizer(t, checkpoint);
    } else {
        dt_model_initialize(t->model, (uint64_t)t->settings.training.seed);
    }
    free(checkpoint);
    t->first_step = t->state.step;
    t->logged_seconds = t->state.seconds;
    t->logged_tokens = t->state.samples * (uint64_t)t->settings.training.sequence_length;
    return rc;
}

static int open_streams(struct dt_training *t, struct dt_error *err)
{
    char *path = dt_path_join(t->run, "metrics.jsonl");
    int rc = dt_metrics_open(&t->metrics, path, t->state.step, err);
    free(path);
    DT_TRY(rc);
    return dt_loader_new(&t->loader, t->train, (uint32_t)t->settings.training.sequence_length,
                         (uint32_t)t->settings.training.batch_size,
                         (uint64_t)t->settings.training.seed, t->settings.data.shuffle,
                         t->state.samples, err);
}

int dt_training_new(struct dt_training **result, const struct dt_training_options *o,
                    struct dt_error *err)
{
    struct dt_training *t = dt_alloc(1, sizeof *t);
    *result = NULL;
    t->settings = *o->settings;
    t->device = o->device;
    t->peak = o->peak;
    t->run = dt_strdup(o->run);
    t->lock = -1;
    t->tokenizer_path = o->tokenizer_path ? dt_strdup(o->tokenizer_path) : NULL;
    int rc = open_data(t, o, err);
    rc = rc < 0 ? rc : open_validation(t, o, err);
    rc = rc < 0 ? rc : open_model(t, err);
    rc = rc < 0 ? rc : start_or_resume(t, o->resume, err);
    rc = rc < 0 ? rc : open_streams(t, err);
    if (rc < 0) {
        dt_training_free(t);
        return rc;
    }
    *result = t;
    return 0;
}

void dt_training_free(struct dt_training *t)
{
    if (t == NULL)
        return;
    dt_loader_free(t->loader);
    dt_dataset_close(t->train);
    dt_dataset_close(t->val);
    dt_workspace_free(t->work);
    dt_batch_release(&t->batch);
    dt_store_release(&t->store);
    dt_model_free(t->model);
    dt_metrics_close(&t->metrics);
    free(t->val_ids);
    free(t->val_losses);
    if (t->lock >= 0)
        close(t->lock);
    free(t->run);
    free(t->lineage);
    free(t->tokenizer_path);
    free(t);
}

static int64_t tokens_per_step(const struct dt_training *t)
{
    return t->settings.training.batch_size * t->settings.training.gradient_accumulation_steps *
           t->settings.training.sequence_length;
}

void dt_training_facts(const struct dt_training *t, struct dt_training_facts *facts)
{
    *facts = (struct dt_training_facts){
        .parameters = t->model->table.parameters,
        .memory = dt_model_bytes(t->model) + t->store.arena.size + dt_workspace_bytes(t->work),
        .train_tokens = dt_dataset_info(t->train)->tokens,
        .val_tokens = t->val ? dt_dataset_info(t->val)->tokens : 0,
        .samples = dt_loader_samples(t->loader),
        .tokens_per_step = tokens_per_step(t),
        .first_step = t->first_step,
        .max_steps = t->settings.training.max_steps,
    };
}

uint64_t dt_training_hash(const struct dt_training *t)
{
    return dt_model_hash(t->model);
}

/* --- a step ------------------------------------------------------------------------------------
 */

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

static int update(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    long batch = t->settings.training.batch_size, length = t->settings.training.sequence_length;
    long passes = t->settings.training.gradient_accumulation_steps;
    double tokens = (double)tokens_per_step(t), sum = 0;
    dt_store_zero_gradients(&t->store);
    for (long i = 0; i < passes; i++) {
        const uint32_t *ids;
        DT_TRY(dt_loader_next(t->loader, &ids, err));
        dt_batch_next_token(&t->batch, ids, batch, length);
        sum += dt_model_backward(t->model, t->work, &t->batch, t->store.gradients,
                                 &(struct dt_pass){.scale = (float)(1 / tokens)});
    }
    r->loss = sum / tokens;
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

/* Mean loss over a fixed, random choice of the validation split's sequences. */
static int validate(struct dt_training *t, double *loss, struct dt_error *err)
{
    uint64_t length = (uint64_t)t->settings.training.sequence_length, seed = 0;
    uint64_t batch = (uint64_t)t->settings.training.batch_size;
    uint64_t samples = (dt_dataset_info(t->val)->tokens - 1) / length;
    uint64_t wanted = batch * (uint64_t)t->settings.training.eval_batches;
    uint64_t count = wanted < samples ? wanted : samples;
    double sum = 0;
    for (uint64_t from = 0; from < count; from += batch) {
        uint64_t rows = count - from < batch ? count - from : batch;
        for (uint64_t i = 0; i < rows; i++)
            DT_TRY(dt_dataset_tokens(t->val, dt_sample_at(seed, samples, from + i) * length,
                                     length + 1, t->val_ids + i * (length + 1), err));
        dt_batch_next_token(&t->batch, t->val_ids, (int64_t)rows, (int64_t)length);
        dt_model_score(t->model, t->work, &t->batch, t->val_losses, NULL);
        for (uint64_t i = 0; i < rows * length; i++)
            sum += (double)t->val_losses[i];
    }
    *loss = sum / (double)(count * length);
    return 0;
}

static void measure(struct dt_training *t, struct dt_step_report *r)
{
    double seconds = r->seconds - t->logged_seconds;
    double flops =
        dt_model_flops_per_token(&t->settings.model, t->settings.training.sequence_length);
    r->tokens_per_second = (double)(r->tokens - t->logged_tokens) / (seconds > 0 ? seconds : 1e-9);
    r->mfu = t->peak > 0 ? r->tokens_per_second * flops / t->peak : 0;
}

#define REAL_TEXT 32

/* As JSON, which has no word for what is not finite. */
static const char *real_text(double x, char text[REAL_TEXT])
{
    snprintf(text, REAL_TEXT, isfinite(x) ? "%.9g" : "null", x);
    return text;
}

static int log_step(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    char loss[REAL_TEXT], norm[REAL_TEXT], skipped[REAL_TEXT + 16] = "";
    if (r->skipped > 0)
        snprintf(skipped, sizeof skipped, ",\"skipped\":%ld", r->skipped);
    t->logged_seconds = r->seconds;
    t->logged_tokens = r->tokens;
    r->logged = true;
    return dt_metrics_write(
        &t->metrics, err,
        "{\"step\":%ld,\"tokens\":%llu,\"time\":%.3f,\"loss\":%s,"
        "\"lr\":%.9g,\"grad_norm\":%s,\"tokens_per_second\":%.1f,"
        "\"mfu\":%.4f%s}",
        r->step, (unsigned long long)r->tokens, r->seconds, real_text(r->loss, loss),
        r->learning_rate, real_text(r->gradient_norm, norm), r->tokens_per_second, r->mfu, skipped);
}

static bool stopped_early(const struct dt_training *t)
{
    long patience = t->settings.training.patience;
    return patience > 0 && t->state.validations_since_best >= patience;
}

static bool is_done(const struct dt_training *t)
{
    return t->state.step >= t->settings.training.max_steps || stopped_early(t);
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

static bool due(const struct dt_training *t, long interval)
{
    return t->state.step == t->settings.training.max_steps ||
           (interval > 0 && t->state.step % interval == 0);
}

static int validate_if_due(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    if (t->val == NULL || !due(t, t->settings.training.eval_interval))
        return 0;
    char text[REAL_TEXT];
    DT_TRY(validate(t, &r->val_loss, err));
    if (t->settings.training.patience > 0 && isfinite(r->val_loss))
        note_best(t, r->val_loss);
    r->stopped_early = stopped_early(t);
    return dt_metrics_write(
        &t->metrics, err, "{\"step\":%ld,\"tokens\":%llu,\"time\":%.3f,\"val_loss\":%s}", r->step,
        (unsigned long long)r->tokens, r->seconds, real_text(r->val_loss, text));
}

/* A checkpoint after skipped updates waits for one that succeeds: the model may
 * be beyond help, and the checkpoint before it is what to go back to. */
static int save_if_due(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    bool best = t->state.best_step == t->state.step;
    bool regular = due(t, t->settings.training.save_interval) && t->state.skipped_in_row == 0;
    if (!best && !is_done(t) && !regular)
        return 0;
    int rc = dt_training_save(t, err);
    r->saved = rc == 0;
    if (rc == 0 || is_done(t))
        return rc;
    r->save_error = *err;
    return 0;
}

int dt_training_step(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    double start = dt_now();
    *r = (struct dt_step_report){.val_loss = NAN};
    if (is_done(t))
        return 0;
    DT_TRY(update(t, r, err));
    t->state.seconds += dt_now() - start;
    r->step = t->state.step;
    r->seconds = t->state.seconds;
    r->tokens = t->state.samples * (uint64_t)t->settings.training.sequence_length;
    measure(t, r);
    if (due(t, t->settings.training.log_interval) || r->step == 1 || r->skipped > 0)
        DT_TRY(log_step(t, r, err));
    DT_TRY(validate_if_due(t, r, err));
    DT_TRY(save_if_due(t, r, err));
    return 1;
}

int dt_training_save(struct dt_training *t, struct dt_error *err)
{
    if (t->saved_step == t->state.step)
        return 0;
    DT_TRY(dt_checkpoint_save(t->run, &t->store, &t->state, &t->identity, err));
    t->saved_step = t->state.step;
    if (t->state.skipped_in_row > 0)
        return 0; /* the older ones may be all that is good */
    return dt_checkpoint_prune(t->run, t->state.step, t->settings.checkpoint.keep_last,
                               t->settings.checkpoint.keep_every, err);
}
