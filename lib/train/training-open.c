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
    DT_TRY(dt_training_check_settings(t, err)); /* the length may differ from that of the run */
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
    const uint32_t wanted = (uint32_t)(length > 0 ? length : s->model.max_seq_len);
    if (*s->data.stages)
        return dt_dataset_open_stages(&t->train, s->data.stages, s->data.train_split, wanted, err);
    if (!text)
        return dt_dataset_open(&t->train, o->data, s->data.train_split, err);
    return dt_text_samples_open(
        &t->train, o->data,
        &(struct dt_text_samples_options){.tokenizer_path = o->tokenizer_path,
                                          .layout = (enum dt_text_layout)s->data.layout,
                                          .labels = s->model.num_labels > 0 ? &t->labels : NULL,
                                          .length = wanted,
                                          .seed = (uint64_t)s->training.seed,
                                          .shuffle = s->data.shuffle},
        err);
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
    if (o->tokenizer_path)
        DT_TRY(dt_shard_check_tokenizer(info, o->data, o->tokenizer, o->tokenizer_path, err));
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
    t->identity = (struct dt_run_identity){
        .settings = &t->settings,
        .eot = info->eot,
        .data_name = *t->settings.data.stages ? t->settings.data.stages : o->data,
        .tokenizer_path = t->tokenizer_path};
    DT_TRY(fingerprint(t->train, &t->identity.data, err));
    DT_TRY(dt_training_begin_branch(t, err));
    DT_TRY(dt_settings_limit_steps(&t->settings, t->samples, o->settings_path, err));
    t->lineage = dt_asprintf("%s%s\n", info->provenance ? info->provenance : "", o->command_line);
    t->identity.lineage = t->lineage;
    return 0;
}

static int open_validation(struct dt_training *t, const struct dt_training_options *o,
                           struct dt_error *err)
{
    const bool wanted = t->settings.training.eval_interval.count > 0;
    const bool named = strcmp(t->settings.data.val_split, DT_VAL_SPLIT) != 0;
    int rc = DT_EMISSING, splits = wanted ? dt_dataset_has_splits(o->data, err) : 0;
    if (splits < 0)
        return splits;
    if (splits)
        rc = dt_dataset_open(&t->val, o->data, t->settings.data.val_split, err);
    else if (wanted && named)
        rc = dt_fail(err, DT_EINVALID,
                     "%s: data.val_split names '%s', but %s is not divided into splits",
                     o->settings_path, t->settings.data.val_split, o->data);
    if (rc == 0 && dt_training_has_pairs(t))
        rc = dt_pairs_open(&t->val, o->data, (uint32_t)t->settings.training.sequence_length, err);
    if (rc != DT_EMISSING || (wanted && named))
        return rc < 0 ? rc : check_length(t, t->val, t->settings.data.val_split, o->data, err);
    if (t->settings.training.patience > 0 || t->settings.checkpoint.keep_best > 0)
        return dt_fail(
            err, DT_EINVALID, "%s: %s needs validation, and there is none", o->settings_path,
            t->settings.training.patience > 0 ? "training.patience" : "checkpoint.keep_best");
    return 0; /* no validation split: no validation */
}

/* Plans all memory; allocates none. */
static int lay_out(struct dt_training *t, struct dt_error *err)
{
    const int own = dt_comm_rank(t->comm);
    dt_async_plan(t);
    DT_TRY(dt_mesh_open(&t->mesh,
                        t->async.active ? dt_comm_group(t->comm, "this rank", &own, 1) : t->comm,
                        &t->settings, err));
    t->model = dt_model_plan(t->device, &t->settings.model,
                             (enum dt_dtype)t->settings.training.precision, &t->mesh.part);
    DT_TRY(dt_pipeline_executor_plan(&t->executor, t->model, &t->mesh, &t->settings, err));
    DT_TRY(dt_train_state_plan(&t->state, t->model, &t->settings, &t->mesh, err));
    dt_snapshot_plan(&t->snapshot, &t->state, t->settings.checkpoint.background);
    dt_local_sgd_plan(&t->local, &t->state, &t->settings);
    t->memory = dt_memory_plan(
        t->model, &t->state, dt_pipeline_executor_bytes(&t->executor),
        dt_training_has_prompts(t) ? dt_groups_bytes(t->model, &t->settings) : 0, &t->snapshot);
    dt_memory_plan_add_copies(&t->memory, dt_async_bytes(t));
    if (*t->settings.distributed.elastic) /* while ranks meet */
        dt_memory_plan_add_copies(&t->memory, dt_state_copy_bytes(&t->state));
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
    size_t copies;
    DT_TRY(dt_comm_neighbours(t->comm, &neighbours, err));
    t->crowded = neighbours > sysconf(_SC_NPROCESSORS_ONLN);
    DT_TRY(dt_shard_copies_plan(t, &copies, err));
    dt_memory_plan_add_copies(&t->memory, copies);
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
    if (t->settings.distributed.collectives != DT_COLLECTIVES_ORDERED)
        DT_TRY(dt_comm_open_collectives(t->mesh.data.all, err));
    return dt_comm_open_channels(t->mesh.pp_group, t->mesh.part.chunks > 1, err);
}

/* Lines are fsync'ed before their checkpoint, so a run resumed in its own directory finds all lines
 * up to it. In another directory it starts a new file. */
static int open_metrics(struct dt_training *t, const char *resume, struct dt_error *err)
{
    if (!t->leads || t->run == NULL)
        return 0;
    char *path = dt_path_join(t->run, "metrics.jsonl");
    int rc = dt_training_goes_on(t) && !t->has_led ? dt_metrics_take_over(path, err) : 0;
    rc = rc < 0 ? rc : dt_metrics_open(&t->metrics, path, t->progress.step - t->unfinished, err);
    free(path);
    if (strcmp(resume, "auto") == 0 && !t->has_state && t->metrics.lines < t->progress.logged_lines)
        t->lost_lines = t->progress.logged_lines - t->metrics.lines;
    t->progress.logged_lines = t->metrics.lines;
    rc = rc < 0 ? rc : dt_training_log_run(t, err);
    rc = rc < 0 ? rc : dt_training_log_lost(t, err);
    rc = rc < 0 ? rc : dt_training_log_damaged(t, err);
    return rc < 0 || !t->members ? rc : dt_training_log_ranks(t, err);
}

/* A file of rank 0 that has lines as metrics do. If it is not wanted, an earlier one loses the
 * lines of steps that are done again. */
static int open_lines(struct dt_training *t, struct dt_metrics *lines, const char *name,
                      bool wanted, struct dt_error *err)
{
    if (!t->leads || t->run == NULL)
        return 0;
    char *path = dt_path_join(t->run, name);
    int rc = wanted ? 1 : dt_file_probe(path, err);
    rc = rc > 0 ? dt_metrics_open(lines, path, t->progress.step, err) : rc;
    if (!wanted)
        dt_metrics_close(lines);
    free(path);
    return rc;
}

static int open_layers(struct dt_training *t, struct dt_error *err)
{
    const struct dt_settings *s = &t->settings;
    unsigned wanted = 0;
    for (int i = 0; dt_layer_metric_names[i]; i++)
        wanted |= (unsigned)dt_settings_measures(s, (enum dt_layer_metric)i) << i;
    return dt_layer_metrics_init(
        &t->layers, wanted, t->model, dt_settings_sequences(s), s->training.sequence_length,
        s->training.gradient_accumulation_steps, &t->state.dp.padding, err);
}

/* Hashes of traced steps, norms of tensors, and metrics of layers. */
static int open_trace(struct dt_training *t, const struct dt_trace_sink *sink, struct dt_error *err)
{
    const struct dt_trace_sink file = {t, dt_training_log_hash};
    DT_TRY(dt_step_trace_init(&t->trace, &t->settings, &t->state, t->mesh.world,
                              sink ? sink : &file, err));
    if (t->settings.training.tensor_metrics)
        dt_tensor_norms_init(&t->norms, &t->trace.parameters);
    DT_TRY(open_layers(t, err));
    const bool measures = t->settings.training.tensor_metrics || t->layers.wanted;
    DT_TRY(open_lines(t, &t->tensors, "tensors.jsonl", measures, err));
    return open_lines(t, &t->hashes, "hashes.jsonl", t->trace.last > 0, err);
}

static int open_streams(struct dt_training *t, const char *resume, struct dt_error *err)
{
    DT_TRY(open_metrics(t, resume, err));
    const uint64_t data_start = (uint64_t)t->settings.branch.data_start;
    dt_batch_order_begin(&t->order, &t->settings, &t->state.dp, t->progress.samples);
    const struct dt_loader_options loader = {
        .length = dt_training_row(t),
        .batch = (uint32_t)t->settings.training.batch_size,
        .order = dt_sample_order_get(&t->settings),
        .first = t->progress.samples - data_start,
        .next_position = dt_batch_order_next,
        .context = &t->order,
        .workers = t->async.active ? 0 : (int)t->settings.data.num_workers,
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
    dt_thread_choice_init(&t->threads, o->device->most_threads);
    return 0;
}

/* The hash of what validation reads. */
static int note_validation(struct dt_training *t, struct dt_error *err)
{
    uint64_t hash = 0;
    if (t->val)
        DT_TRY(fingerprint(t->val, &hash, err));
    t->validation = hash;
    for (int i = 0; i < t->set_count; i++) {
        const char *name = t->sets[i].name;
        DT_TRY(fingerprint(t->sets[i].data, &hash, err));
        t->validation = dt_hash_seeded(&hash, sizeof hash, t->validation);
        t->validation = dt_hash_seeded(name, strlen(name), t->validation);
    }
    return 0;
}

/* The part of opening that each rank does alone. */
static int open_inputs(struct dt_training *t, const struct dt_training_options *o,
                       struct dt_error *err)
{
    DT_TRY(open_data(t, o, err));
    if (t->settings.training.eval_interval.count > 0)
        DT_TRY(dt_validation_sets_open(t, err));
    DT_TRY(open_validation(t, o, err));
    return note_validation(t, err);
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
    DT_TRY(dt_comm_agree(t->comm, dt_training_take_base(t, err), err));
    if (t->members)
        DT_TRY(dt_elastic_take_state(t, &found, err));
    if (found) {
        DT_TRY(dt_training_go_on(t, err));
    } else {
        DT_TRY(dt_comm_agree(t->comm, dt_training_start(t, err), err));
        DT_TRY(dt_comm_agree(t->comm, compare_origins(t, err), err));
    }
    DT_TRY(dt_objective_open(&t->objective, &t->settings, t->tokenizer_path, err));
    DT_TRY(dt_comm_agree(t->comm, open_preferences(t, o, err), err));
    DT_TRY(open_trace(t, o->sink, err));
    DT_TRY(
        dt_step_timeline_init(&t->timeline, t->settings.training.timeline_steps, t->device, err));
    DT_TRY(dt_shard_copies_open(t, err));
    DT_TRY(dt_comm_agree(t->comm, dt_async_open(t, err), err));
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
    dt_step_timeline_release(&t->timeline);
    dt_tensor_norms_release(&t->norms);
    dt_layer_metrics_release(&t->layers);
    dt_step_trace_release(&t->trace);
    dt_local_sgd_release(&t->local);
    dt_async_close(t);
    dt_train_state_release(&t->state);
    dt_model_free(t->model);
    dt_metrics_close(&t->metrics);
    dt_metrics_close(&t->hashes);
    dt_metrics_close(&t->tensors);
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
    if (!dt_membership_leads(t->members))
        dt_training_unlock_run(t);
    t->saves |= t->writer && dt_checkpoint_writer_is_busy(t->writer);
    dt_training_disassemble(t);
    dt_comm_close(t->self);
    t->comm = t->self = NULL;
}

#define ATTEMPTS 20 /* generations in a row that come to nothing */

/* Meets the others. *retry: a rank has left meanwhile. */
static int join(struct dt_training *t, bool *retry, struct dt_error *err)
{
    bool found;
    *retry = false;
    disband(t);
    DT_TRY(dt_membership_meet(t->members, err));
    t->returned |= dt_membership_seat(t->members)->returned;
    int rc = dt_elastic_open_world(t, err);
    if (rc < 0) {
        *retry = rc != DT_ESTOP && rc != DT_ENOMEM; /* which is this rank's own */
        return rc;
    }
    rc = dt_elastic_is_spare(t) ? dt_elastic_take_state(t, &found, err) : assemble(t, err);
    *retry = rc < 0 && dt_elastic_can_go_on(t);
    return rc;
}

int dt_training_regroup(struct dt_training *t, struct dt_error *err)
{
    int rc = DT_EIO;
    bool retry = true;
    t->regroups = false;
    for (int i = 0; retry && i < ATTEMPTS; i++) {
        rc = join(t, &retry, err);
        if (rc == 0 && dt_elastic_is_spare(t)) {
            retry = true;
            i = 0;
        }
    }
    DT_TRY(rc);
    t->loaded = t->has_state = true;
    t->is_whole = !dt_elastic_is_sharded(t);
    dt_state_copy_release(&t->copy);
    return 0;
}

int dt_training_open(struct dt_training *t, const struct dt_training_options *o,
                     struct dt_error *err)
{
    t->settings = *o->settings;
    t->options = *o;
    if (*t->settings.data.stages)
        t->options.data = t->first_stage = dt_dataset_first_stage(t->settings.data.stages);
    o = &t->options;
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
