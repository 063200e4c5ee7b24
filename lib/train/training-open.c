/* SPDX-License-Identifier: MIT */
/* Opens a run: data, model, memory, run directory, and the checkpoint to resume from. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "formats/adapter.h"
#include "formats/model-directory.h"
#include "hash/hash.h"
#include "io/directory-manifest.h"
#include "tokenizer-files/tokenizer-files.h"
#include "train/sample-order.h"
#include "train/text-samples.h"
#include "train/training-internal.h"

/* A split needs at least one sample. */
static int check_length(const struct dt_training *t, const struct dt_dataset *split,
                        const char *name, const char *data, struct dt_error *err)
{
    uint64_t tokens = dt_dataset_info(split)->tokens, samples;
    uint64_t needed = (uint64_t)dt_training_row(t) + 1;
    if (tokens >= needed || dt_training_has_pairs(t) || dt_training_has_prompts(t))
        return dt_dataset_samples(split, (uint32_t)needed - 1, &samples, err);
    return dt_fail(err, DT_EINVALID, "%s: split '%s' has %llu tokens, a sequence needs %llu", data,
                   name, (unsigned long long)tokens, (unsigned long long)needed);
}

#define PROBES       64
#define PROBE_TOKENS 64

/* Fingerprint of a data set, independent of how it is cut into shards: its size, its tokenizer, and
 * tokens from 64 evenly spaced positions. */
static int fingerprint(struct dt_dataset *data, uint64_t *hash, struct dt_error *err)
{
    const struct dt_shard_info *info = dt_dataset_info(data);
    uint64_t facts[2] = {info->tokens, info->tokenizer};
    uint64_t count = info->tokens < PROBE_TOKENS ? info->tokens : PROBE_TOKENS;
    *hash = dt_hash(facts, sizeof facts);
    if (!dt_dataset_has_tokens(data)) {
        *hash = info->hash;
        return 0;
    }
    for (uint64_t i = 0; i < PROBES; i++) {
        uint32_t ids[PROBE_TOKENS];
        DT_TRY(dt_dataset_tokens(data, (info->tokens - count) * i / (PROBES - 1), count, ids, err));
        *hash = dt_hash_seeded(ids, count * sizeof *ids, *hash);
    }
    uint64_t weights = dt_dataset_weights(data);
    if (weights != 0)
        *hash = dt_hash_seeded(&weights, sizeof weights, *hash);
    return 0;
}

/* Prompts of a file, which completions follow. */
static int open_prompts(struct dt_training *t, const struct dt_training_options *o,
                        struct dt_error *err)
{
    const struct dt_settings *s = &t->settings;
    long length =
        s->training.sequence_length > 0 ? s->training.sequence_length : s->model.max_seq_len;
    if (!dt_text_samples_has_name(o->data))
        return dt_fail(err, DT_EINVALID,
                       "%s: training.objective grpo needs prompts, a file FILE.jsonl: %s is not",
                       o->settings_path, o->data);
    if (o->tokenizer_path == NULL)
        return dt_fail(err, DT_EINVALID,
                       "%s: training.objective grpo needs --tokenizer, or a tokenizer in the "
                       "directory of --init-from",
                       o->settings_path);
    DT_TRY(dt_tokenizer_load(&t->tokenizer, o->tokenizer_path, err));
    DT_TRY(dt_chat_open(&t->chat, o->tokenizer_path, NULL, t->tokenizer, err));
    DT_TRY(dt_prompts_read(&t->prompts, o->data, t->chat, t->tokenizer,
                           length + 1 - s->grpo.max_new_tokens, err));
    const struct dt_shard_info info = {.vocab_size = dt_tokenizer_size(t->tokenizer),
                                       .eot = dt_tokenizer_eot(t->tokenizer),
                                       .tokenizer = dt_tokenizer_fingerprint(t->tokenizer)};
    uint64_t tokens = t->prompts.count * (uint64_t)(length * s->grpo.group);
    t->train = dt_prompts_dataset(&t->prompts, &info, (uint32_t)length, tokens);
    return 0;
}

/* Shards, or text that is tokenized during training. */
static int open_train_split(struct dt_training *t, const struct dt_training_options *o,
                            struct dt_error *err)
{
    const struct dt_settings *s = &t->settings;
    long length = s->training.sequence_length;
    if (strcmp(s->data.train_split, DT_TRAIN_SPLIT) != 0 && !dt_dataset_names_splits(o->data))
        return dt_fail(err, DT_EINVALID,
                       "%s: data.train_split names '%s', but %s is not divided into splits",
                       o->settings_path, s->data.train_split, o->data);
    if (dt_training_has_prompts(t))
        return open_prompts(t, o, err);
    bool text = dt_text_samples_has_name(o->data);
    if (s->model.num_labels > 0 && !text)
        return dt_fail(err, DT_EINVALID,
                       "%s: data.labels needs documents with labels, a file FILE.jsonl: %s is not",
                       o->settings_path, o->data);
    if (!text)
        return dt_dataset_open(&t->train, o->data, s->data.train_split, err);
    return dt_text_samples_open(
        &t->train, o->data,
        &(struct dt_text_samples_options){
            .tokenizer_path = o->tokenizer_path,
            .layout = (enum dt_text_layout)s->data.layout,
            .labels = s->model.num_labels > 0 ? &t->labels : NULL,
            .length = (uint32_t)(length > 0 ? length : s->model.max_seq_len),
            .seed = (uint64_t)s->training.seed,
            .shuffle = s->data.shuffle},
        err);
}

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

/* A causal model needs no mask for padding: it is after all other tokens. */
static int choose_scope(struct dt_training *t, const struct dt_training_options *o,
                        struct dt_error *err)
{
    const struct dt_shard_info *info = dt_dataset_info(t->train);
    if (t->settings.data.document_mask && info->eot == UINT32_MAX)
        return dt_fail(err, DT_EINVALID,
                       "%s: data.document_mask needs an end-of-text token between documents, "
                       "and %s has none",
                       o->settings_path, o->data);
    if (t->settings.data.document_mask)
        t->scope = DT_SCOPE_DOCUMENT;
    else if (info->row > 0 && dt_model_is_masked(&t->settings.model))
        t->scope = DT_SCOPE_CONTENT;
    return 0;
}

/* dt-shard determines the layout of shards. */
static int check_layout(const struct dt_training *t, const struct dt_training_options *o,
                        struct dt_error *err)
{
    if (t->settings.data.layout != DT_TEXT_LAYOUT_PADDED || dt_dataset_info(t->train)->row > 0)
        return 0;
    return dt_fail(
        err, DT_EINVALID,
        "%s: data.layout padded needs text that is tokenized during training, or shards of "
        "dt-shard --layout padded: %s is neither",
        o->settings_path, o->data);
}

static int open_data(struct dt_training *t, const struct dt_training_options *o,
                     struct dt_error *err)
{
    DT_TRY(dt_labels_of_names(&t->labels, t->settings.data.labels, err));
    DT_TRY(open_train_split(t, o, err));
    const struct dt_shard_info *info = dt_dataset_info(t->train);
    if (o->tokenizer_path && o->tokenizer != info->tokenizer)
        return dt_fail(err, DT_EINVALID, "%s: is not the tokenizer that made %s", o->tokenizer_path,
                       o->data);
    DT_TRY(dt_settings_resolve(&t->settings, info->vocab_size, o->settings_path, err));
    DT_TRY(dt_optimizer_check(&t->settings, o->settings_path, err));
    DT_TRY(check_layout(t, o, err));
    DT_TRY(choose_scope(t, o, err));
    if (dt_training_has_pairs(t))
        DT_TRY(
            dt_pairs_open(&t->train, o->data, (uint32_t)t->settings.training.sequence_length, err));
    info = dt_dataset_info(t->train);
    DT_TRY(check_length(t, t->train, t->settings.data.train_split, o->data, err));
    DT_TRY(dt_dataset_samples(t->train, dt_training_row(t), &t->samples, err));
    DT_TRY(dt_settings_limit_steps(&t->settings, t->samples, o->settings_path, err));
    t->identity = (struct dt_run_identity){
        .settings = &t->settings, .eot = info->eot, .tokenizer_path = t->tokenizer_path};
    DT_TRY(fingerprint(t->train, &t->identity.data, err));
    t->lineage = dt_asprintf("%s%s\n", info->provenance ? info->provenance : "", o->command_line);
    t->identity.lineage = t->lineage;
    return 0;
}

static int open_validation(struct dt_training *t, const struct dt_training_options *o,
                           struct dt_error *err)
{
    const bool wanted = t->settings.training.eval_interval.count > 0;
    const bool named = strcmp(t->settings.data.val_split, DT_VAL_SPLIT) != 0;
    int rc = DT_EMISSING;
    if (wanted && dt_dataset_has_splits(o->data))
        rc = dt_dataset_open(&t->val, o->data, t->settings.data.val_split, err);
    else if (wanted && named)
        rc = dt_fail(err, DT_EINVALID,
                     "%s: data.val_split names '%s', but %s is not divided into splits",
                     o->settings_path, t->settings.data.val_split, o->data);
    if (rc == 0 && dt_training_has_pairs(t))
        rc = dt_pairs_open(&t->val, o->data, (uint32_t)t->settings.training.sequence_length, err);
    if (rc != DT_EMISSING || (wanted && named))
        return rc < 0 ? rc : check_length(t, t->val, t->settings.data.val_split, o->data, err);
    if (t->settings.training.patience > 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: training.patience needs validation, and there is none",
                       o->settings_path);
    return 0; /* no validation split: no validation */
}

/* Plans all memory; allocates none. */
static int lay_out(struct dt_training *t, struct dt_error *err)
{
    DT_TRY(dt_mesh_open(&t->mesh, t->comm, &t->settings, err));
    t->model = dt_model_plan(t->device, &t->settings.model,
                             (enum dt_dtype)t->settings.training.precision, &t->mesh.part);
    DT_TRY(dt_pipeline_executor_plan(&t->executor, t->model, &t->mesh, &t->settings, err));
    DT_TRY(dt_train_state_plan(&t->state, t->model, &t->settings, &t->mesh, err));
    dt_snapshot_plan(&t->snapshot, &t->state, t->settings.checkpoint.background);
    dt_local_sgd_plan(&t->local, &t->state, &t->settings);
    t->memory =
        dt_memory_plan(t->model, &t->state, dt_pipeline_executor_bytes(&t->executor), &t->snapshot);
    return 0;
}

static int plan_memory(struct dt_training *t, const struct dt_training_options *o,
                       struct dt_error *err)
{
    return lay_out(t, err) < 0 ? dt_fail_context(err, "%s", o->settings_path) : 0;
}

/* All ranks of a machine look at its free memory before any allocates. */
static int check_memory(struct dt_training *t, struct dt_error *err)
{
    int neighbours;
    DT_TRY(dt_comm_neighbours(t->comm, &neighbours, err));
    int rc = dt_memory_plan_check(&t->memory, t->model, neighbours, err);
    return dt_comm_agree(t->comm, rc, err);
}

static int take_memory(struct dt_training *t, struct dt_error *err)
{
    long batch = dt_settings_sequences(&t->settings), length = t->settings.training.sequence_length;
    DT_TRY(dt_model_allocate(t->model, err));
    DT_TRY(dt_train_state_allocate(&t->state, err));
    DT_TRY(dt_pipeline_executor_allocate(&t->executor, err));
    dt_snapshot_allocate(&t->snapshot);
    dt_batch_init(&t->batch, batch, length);
    t->val_ids = dt_alloc((size_t)(batch * (length + 1)), sizeof *t->val_ids);
    if (t->scope != DT_SCOPE_ROW) {
        t->val_span_begins = dt_alloc((size_t)(batch * length), sizeof *t->val_span_begins);
        t->val_span_ends = dt_alloc((size_t)(batch * length), sizeof *t->val_span_ends);
    }
    t->val_losses = dt_alloc((size_t)(batch * length), sizeof *t->val_losses);
    t->val_hits = dt_alloc((size_t)(batch * length), sizeof *t->val_hits);
    return 0;
}

/* With several model chunks a stage, stages form a ring. */
static int open_channels(struct dt_training *t, struct dt_error *err)
{
    return dt_comm_open_channels(t->mesh.pp_group, t->mesh.part.chunks > 1, err);
}

/* Two programs in one run directory would remove each other's hidden directories. The lock ends
 * with the process. */
static int lock_run(struct dt_training *t, struct dt_error *err)
{
    DT_TRY(dt_file_make_directories(t->run, err));
    t->lock = open(t->run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->lock < 0)
        return dt_fail_errno(err, "cannot open '%s'", t->run);
    if (flock(t->lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return dt_fail(err, DT_EINVALID, "another program is training into '%s'", t->run);
    return 0; /* without a lock on file systems that have none */
}

static bool goes_on(const struct dt_training *t)
{
    return t->members && dt_membership_seat(t->members)->generation > 1;
}

/* In an elastic run that goes on, an earlier rank 0 that was stopped may still hold the lock. */
static int hold_run(struct dt_training *t, struct dt_error *err)
{
    if (t->lock >= 0)
        return 0;
    int rc = lock_run(t, err);
    return goes_on(t) && t->lock >= 0 ? 0 : rc;
}

/* The checkpoint to resume from; NULL: none; owned by the caller. */
static int find_checkpoint(const struct dt_training *t, const char *resume, char **found,
                           struct dt_error *err)
{
    char *newest;
    *found = NULL;
    DT_TRY(dt_checkpoint_find(t->run, &newest, err));
    if (strcmp(resume, "auto") == 0 || (newest && goes_on(t))) {
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
    /* A run directory means its newest checkpoint. */
    char *state = dt_path_join(resume, DT_TRAINER_DIR);
    int is_checkpoint = dt_file_probe(state, err);
    free(state);
    DT_TRY(is_checkpoint);
    if (!is_checkpoint)
        DT_TRY(dt_checkpoint_find(resume, found, err));
    if (*found == NULL)
        *found = dt_strdup(resume);
    return 0;
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

/* Locks and cleans the run directory. path: of the checkpoint to resume from; empty: none. */
static int prepare_run(struct dt_training *t, const char *resume, char path[PATH_BYTES],
                       struct dt_error *err)
{
    char *found;
    DT_TRY(hold_run(t, err));
    DT_TRY(dt_checkpoint_clean(t->run, err));
    DT_TRY(find_checkpoint(t, resume, &found, err));
    snprintf(path, PATH_BYTES, "%s", found ? found : "");
    free(found);
    return 0;
}

static int agree_on_checkpoint(struct dt_training *t, const char *resume, char path[PATH_BYTES],
                               struct dt_error *err)
{
    int rc = t->leads && t->run ? prepare_run(t, resume, path, err) : 0;
    if (t->run == NULL)
        snprintf(path, PATH_BYTES, "%s", strcmp(resume, "none") == 0 ? "" : resume);
    DT_TRY(dt_comm_agree(t->comm, rc, err));
    return dt_comm_wait(t->comm, dt_comm_broadcast(t->comm, path, PATH_BYTES, 0), err);
}

/* The state is of other ranks, or of this one. */
static int go_on(struct dt_training *t, struct dt_error *err)
{
    long saved = -1;
    int rc = t->leads && t->run ? take_over_run(t, &saved, err) : 0;
    DT_TRY(dt_comm_agree(t->comm, rc, err));
    DT_TRY(dt_comm_wait(t->comm, dt_comm_broadcast(t->comm, &saved, sizeof saved, 0), err));
    t->writer = dt_checkpoint_writer_new(t->run, t->comm, &t->snapshot, &t->identity, saved);
    return 0;
}

/* The base model of an adapter. */
static int take_base(struct dt_training *t, const struct dt_training_options *o,
                     struct dt_error *err)
{
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

static int start_or_resume(struct dt_training *t, const struct dt_training_options *o,
                           struct dt_error *err)
{
    char checkpoint[PATH_BYTES];
    DT_TRY(agree_on_checkpoint(t, o->resume, checkpoint, err));
    int rc = 0;
    t->progress.loss_scale.factor = 1;
    if (t->settings.training.precision == DT_DTYPE_F16)
        t->progress.loss_scale = dt_loss_scale_first();
    if (*checkpoint) {
        rc = dt_checkpoint_load(checkpoint, &t->state, &t->progress, &t->identity, err);
        rc = rc < 0 ? rc : keep_tokenizer(t, checkpoint, err);
        if (rc == 0 && t->identity.records == NULL) /* not yet begun to train */
            rc = dt_lineage_continue(o->lineage, checkpoint, err);
    } else {
        if (o->init_from && t->model->adapter == NULL)
            rc = take_parameters(&t->state, o->init_from, o->adapter,
                                 (uint64_t)t->settings.training.seed, &t->origin, err);
        else
            dt_train_state_initialize(&t->state, (uint64_t)t->settings.training.seed);
        dt_train_state_begin_ema(&t->state);
    }
    t->identity.records = o->lineage ? dt_lineage_records(o->lineage) : NULL;
    t->writer = dt_checkpoint_writer_new(t->run, t->comm, &t->snapshot, &t->identity,
                                         *checkpoint ? t->progress.step : -1);
    dt_local_sgd_begin(&t->local);
    bool residuals = dt_snapshot_has(&t->state, DT_SNAPSHOT_ERROR_FEEDBACK);
    t->progress.residual_ranks = residuals ? dt_comm_size(t->mesh.data.all) : 0;
    t->first_step = t->progress.step;
    t->logged_seconds = t->progress.seconds;
    t->logged_waited = dt_comm_waited(t->comm);
    t->logged_tokens = t->progress.samples * (uint64_t)dt_settings_sample_tokens(&t->settings);
    return rc;
}

/* Lines are fsync'ed before their checkpoint, so a run resumed in its own directory finds all lines
 * up to it. In another directory it starts a new file. */
static int open_metrics(struct dt_training *t, const char *resume, struct dt_error *err)
{
    if (!t->leads || t->run == NULL)
        return 0;
    char *path = dt_path_join(t->run, "metrics.jsonl");
    int rc = goes_on(t) && !t->has_led ? dt_metrics_take_over(path, err) : 0;
    rc = rc < 0 ? rc : dt_metrics_open(&t->metrics, path, t->progress.step - t->unfinished, err);
    free(path);
    if (strcmp(resume, "auto") == 0 && !t->has_state && t->metrics.lines < t->progress.logged_lines)
        t->lost_lines = t->progress.logged_lines - t->metrics.lines;
    t->progress.logged_lines = t->metrics.lines;
    rc = rc < 0 ? rc : dt_training_log_run(t, err);
    rc = rc < 0 ? rc : dt_training_log_lost(t, err);
    return rc < 0 || !t->members ? rc : dt_training_log_ranks(t, err);
}

/* Hashes of traced steps, which have lines as metrics do. */
static int open_trace(struct dt_training *t, const struct dt_trace_sink *sink, struct dt_error *err)
{
    const struct dt_trace_sink file = {t, dt_training_log_hash};
    DT_TRY(
        dt_step_trace_init(&t->trace, &t->settings, &t->state, t->comm, sink ? sink : &file, err));
    if (!t->leads || t->run == NULL || t->trace.last == 0)
        return 0;
    char *path = dt_path_join(t->run, "hashes.jsonl");
    int rc = dt_metrics_open(&t->hashes, path, t->progress.step, err);
    free(path);
    return rc;
}

static int open_streams(struct dt_training *t, const char *resume, struct dt_error *err)
{
    DT_TRY(open_metrics(t, resume, err));
    dt_batch_order_begin(&t->order, &t->settings, &t->state.dp, t->progress.samples);
    const struct dt_loader_options loader = {
        .length = dt_training_row(t),
        .batch = (uint32_t)t->settings.training.batch_size,
        .order = dt_sample_order_get(&t->settings),
        .first = t->progress.samples,
        .next_position = dt_batch_order_next,
        .context = &t->order,
        .workers = (int)t->settings.data.num_workers,
        .scope = t->scope,
    };
    return dt_loader_open(&t->loader, t->train, &loader, err);
}

static int join_ranks(struct dt_training *t, const struct dt_training_options *o,
                      struct dt_error *err)
{
    if (o->comm == NULL)
        DT_TRY(dt_comm_open(&t->self, "self", NULL, err));
    t->comm = o->comm ? o->comm : t->self;
    t->leads = dt_comm_rank(t->comm) == 0;
    t->peak = o->peak * dt_comm_size(t->comm);
    return 0;
}

/* The part of opening that each rank does alone. */
static int open_inputs(struct dt_training *t, const struct dt_training_options *o,
                       struct dt_error *err)
{
    DT_TRY(open_data(t, o, err));
    return open_validation(t, o, err);
}

static int compare_with_rank_0(const struct dt_training *t, struct dt_error *err)
{
    struct dt_training_profile first;
    dt_training_profile(t, &first);
    dt_comm_request request = dt_comm_broadcast(t->comm, &first, sizeof first, 0);
    DT_TRY(dt_comm_wait(t->comm, request, err));
    return dt_training_compare_profiles(t, &first, "rank 0", err);
}

/* Checkpoint and seed are the same for all ranks; --init-from may be another model on each. */
static int compare_origins(const struct dt_training *t, struct dt_error *err)
{
    uint64_t first = t->origin;
    DT_TRY(dt_comm_wait(t->comm, dt_comm_broadcast(t->comm, &first, sizeof first, 0), err));
    return first == t->origin ? 0
                              : dt_fail(err, DT_EINVALID,
                                        "its initial parameters (--init-from) differ from those of "
                                        "rank 0");
}

static int open_groups(struct dt_training *t, const struct dt_training_options *o,
                       struct dt_error *err)
{
    const struct dt_groups_source source = {
        .model = t->model,
        .prompts = &t->prompts,
        .tokenizer = t->tokenizer,
        .ends = {dt_tokenizer_eot(t->tokenizer), dt_chat_end(t->chat, t->tokenizer)},
        .reward = o->reward,
        .reference = o->reference ? o->reference : o->init_from,
    };
    DT_TRY(dt_groups_open(&t->groups, &t->settings, &source, err));
    t->groups.padding = &t->state.dp.padding;
    return 0;
}

static int open_preferences(struct dt_training *t, const struct dt_training_options *o,
                            struct dt_error *err)
{
    const struct dt_reference_source source = {
        .model = o->reference ? o->reference : o->init_from,
        .run = t->run,
        .device = t->device,
        .compute = (enum dt_dtype)t->settings.training.precision,
        .comm = t->comm,
        .data = {t->train, t->val},
        .length = (uint32_t)t->settings.training.sequence_length,
        .config = &t->settings.model,
    };
    if (o->adapter && !o->reference && t->settings.training.objective != DT_TRAINING_OBJECTIVE_AUTO)
        return dt_fail(err, DT_EINVALID,
                       "--adapter with training.objective %s needs --reference, a model in which "
                       "the adapter is merged (dt-export)",
                       dt_training_objective_names[t->settings.training.objective]);
    if (dt_training_has_prompts(t))
        return open_groups(t, o, err);
    if (o->reward)
        return dt_fail(err, DT_EINVALID, "--reward needs training.objective grpo");
    if (!dt_training_has_pairs(t))
        return o->reference == NULL
                   ? 0
                   : dt_fail(err, DT_EINVALID,
                             "--reference %s needs training.objective dpo or grpo", o->reference);
    DT_TRY(dt_preferences_open(&t->preferences, &t->settings, &source, err));
    t->preferences.order = dt_sample_order_get(&t->settings);
    t->preferences.padding = &t->state.dp.padding;
    return 0;
}

static int begin(struct dt_training *t, const struct dt_training_options *o, struct dt_error *err)
{
    bool found = false;
    DT_TRY(dt_comm_agree(t->comm, take_base(t, o, err), err));
    if (t->members)
        DT_TRY(dt_elastic_take_state(t, &found, err));
    if (found) {
        DT_TRY(go_on(t, err));
    } else {
        DT_TRY(dt_comm_agree(t->comm, start_or_resume(t, o, err), err));
        DT_TRY(dt_comm_agree(t->comm, compare_origins(t, err), err));
    }
    DT_TRY(dt_objective_open(&t->objective, &t->settings, t->tokenizer_path, err));
    DT_TRY(dt_comm_agree(t->comm, open_preferences(t, o, err), err));
    DT_TRY(open_trace(t, o->sink, err));
    t->trace.batch = t->report.batch_hash;
    t->trace.is_summed = t->unfinished;
    DT_TRY(dt_shard_copies_open(t, err));
    return open_streams(t, o->resume, err);
}

/* Opens what depends on the ranks, and starts, resumes or continues the run. */
static int assemble(struct dt_training *t, struct dt_error *err)
{
    const struct dt_training_options *o = &t->options;
    DT_TRY(dt_comm_agree(t->comm, plan_memory(t, o, err), err));
    DT_TRY(dt_comm_agree(t->comm, compare_with_rank_0(t, err), err));
    if (o->plan_only)
        return 0;
    DT_TRY(check_memory(t, err));
    DT_TRY(dt_comm_agree(t->comm, take_memory(t, err), err));
    DT_TRY(dt_comm_agree(t->comm, open_channels(t, err), err));
    DT_TRY(dt_comm_agree(t->comm, begin(t, o, err), err));
    t->has_led = t->leads;
    return 0;
}

/* Releases what assemble has opened. */
void dt_training_disassemble(struct dt_training *t)
{
    dt_loader_free(t->loader);
    dt_pipeline_executor_release(&t->executor);
    dt_objective_release(&t->objective);
    dt_preferences_release(&t->preferences);
    dt_groups_release(&t->groups);
    dt_batch_release(&t->batch);
    dt_checkpoint_writer_free(t->writer);
    dt_snapshot_release(&t->snapshot);
    dt_step_trace_release(&t->trace);
    dt_local_sgd_release(&t->local);
    dt_train_state_release(&t->state);
    dt_model_free(t->model);
    dt_metrics_close(&t->metrics);
    dt_metrics_close(&t->hashes);
    free(t->val_ids);
    free(t->val_span_begins);
    free(t->val_span_ends);
    free(t->val_losses);
    free(t->val_hits);
    dt_mesh_release(&t->mesh);
    t->loader = NULL;
    t->writer = NULL;
    t->model = NULL;
    t->val_ids = NULL;
    t->val_span_begins = t->val_span_ends = NULL;
    t->val_losses = t->val_hits = NULL;
}

/* Releases what depends on the ranks, after copying the state. */
static void disband(struct dt_training *t)
{
    if (t->is_whole && t->loaded)
        dt_state_copy_take(&t->copy, &t->state);
    t->loaded = false;
    t->saves |= t->writer && dt_checkpoint_writer_is_busy(t->writer);
    dt_training_disassemble(t);
    dt_comm_close(t->self);
    t->comm = t->self = NULL;
}

#define ATTEMPTS 20 /* generations in a row that come to nothing */

int dt_training_regroup(struct dt_training *t, struct dt_error *err)
{
    int rc = DT_EIO;
    t->regroups = false;
    for (int i = 0; i < ATTEMPTS && rc < 0; i++) {
        disband(t);
        DT_TRY(dt_membership_meet(t->members, err));
        t->returned |= dt_membership_seat(t->members)->returned;
        rc = dt_elastic_open_world(t, err);
        if (rc == DT_ESTOP)
            return rc;
        if (rc < 0)
            continue; /* a rank has left meanwhile */
        rc = assemble(t, err);
        if (rc < 0 && !dt_elastic_can_go_on(t))
            return rc;
    }
    DT_TRY(rc);
    t->loaded = t->has_state = true;
    t->is_whole = t->state.dp.zero_stage == 0;
    dt_state_copy_release(&t->copy);
    return 0;
}

int dt_training_open(struct dt_training *t, const struct dt_training_options *o,
                     struct dt_error *err)
{
    t->settings = *o->settings;
    t->options = *o;
    t->device = o->device;
    t->run = o->run ? dt_strdup(o->run) : NULL;
    t->lock = -1;
    t->stop = o->stop;
    t->tokenizer_path = o->tokenizer_path ? dt_strdup(o->tokenizer_path) : NULL;
    if (o->elastic) {
        DT_TRY(open_inputs(t, o, err));
        DT_TRY(dt_elastic_open(t, err));
        return dt_training_regroup(t, err);
    }
    DT_TRY(join_ranks(t, o, err));
    DT_TRY(dt_comm_agree(t->comm, open_inputs(t, o, err), err));
    return assemble(t, err);
}
