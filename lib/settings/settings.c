/* SPDX-License-Identifier: MIT */
#include "settings/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "settings/batch-ramp.h"

#define AT(field) offsetof(struct dt_settings, field)

/* Values of other programs' configuration files, each followed by dt's. */
static const char *const truth_of_recompute[] = {"true", "full", "false", "none", NULL};
static const char *const other_precisions[] = {"no",      "fp32",    "none", "fp32",     "null",
                                               "fp32",    "float32", "fp32", "bfloat16", "bf16",
                                               "float16", "fp16",    NULL};

static const char *const stages_of_sharding[] = {
    "NO_SHARD", "0", "SHARD_GRAD_OP", "2", "FULL_SHARD", "3", NULL};

const struct dt_setting dt_settings_schema[] = {
    {"model.name", DT_SETTING_CHOICE, AT(model.family), "gpt2", .choices = dt_family_names},
    {"model.vocab_size", DT_SETTING_INT, AT(model.vocab_size), "0", 0, 1 << 24},
    {"model.hidden_size", DT_SETTING_INT, AT(model.hidden_size), "768", 1, 1 << 17},
    {"model.num_layers", DT_SETTING_INT, AT(model.num_layers), "12", 1, 1 << 12},
    {"model.num_heads", DT_SETTING_INT, AT(model.num_heads), "12", 1, 1 << 12},
    {"model.num_kv_heads", DT_SETTING_INT, AT(model.num_kv_heads), "0", 0, 1 << 12},
    {"model.intermediate_size", DT_SETTING_INT, AT(model.intermediate_size), "0", 0, 1 << 20},
    {"model.head_dim", DT_SETTING_INT, AT(model.head_dim), "0", 0, 1 << 14},
    {"model.max_seq_len", DT_SETTING_INT, AT(model.max_seq_len), "1024", 1, 1 << 24},
    {"model.layer_norm_epsilon", DT_SETTING_REAL, AT(model.layer_norm_epsilon), "0", 0, 0.1},
    {"model.rope_theta", DT_SETTING_REAL, AT(model.rope_theta), "10000", 1, 1e12},
    {"model.rope_local_theta", DT_SETTING_REAL, AT(model.rope_local_theta), "0", 0, 1e12},
    {"model.rope_scaling", DT_SETTING_CHOICE, AT(model.rope_scaling), "none",
     .choices = dt_rope_scaling_names},
    {"model.rope_factor", DT_SETTING_REAL, AT(model.rope_factor), "0", 0, 1e12},
    {"model.rope_original_length", DT_SETTING_INT, AT(model.rope_original_length), "0", 0, 1 << 24},
    {"model.rope_low_frequency_factor", DT_SETTING_REAL, AT(model.rope_low_frequency_factor), "0",
     0, 1e12},
    {"model.rope_high_frequency_factor", DT_SETTING_REAL, AT(model.rope_high_frequency_factor), "0",
     0, 1e12},
    {"model.rope_beta_fast", DT_SETTING_REAL, AT(model.rope_beta_fast), "0", 0, 1e12},
    {"model.rope_beta_slow", DT_SETTING_REAL, AT(model.rope_beta_slow), "0", 0, 1e12},
    {"model.rope_attention_factor", DT_SETTING_REAL, AT(model.rope_attention_factor), "0", 0, 1e12},
    {"model.rotary_dim", DT_SETTING_INT, AT(model.rotary_dim), "0", 0, 1 << 14},
    {"model.rope_skip_every", DT_SETTING_INT, AT(model.rope_skip_every), "0", 0, 1 << 12},
    {"model.sliding_window", DT_SETTING_INT, AT(model.sliding_window), "0", 0, 1 << 24},
    {"model.global_every", DT_SETTING_INT, AT(model.global_every), "0", 0, 1 << 12},
    {"model.global_first", DT_SETTING_INT, AT(model.global_first), "0", 0, 1 << 12},
    {"model.qk_norm", DT_SETTING_BOOL, AT(model.qk_norm), "false"},
    {"model.attention_bias", DT_SETTING_CHOICE, AT(model.attention_bias), "none",
     .choices = dt_attention_bias_names},
    {"model.mlp_bias", DT_SETTING_BOOL, AT(model.mlp_bias), "false"},
    {"model.gelu", DT_SETTING_CHOICE, AT(model.gelu), "default", .choices = dt_gelu_names},
    {"model.parallel_residual", DT_SETTING_BOOL, AT(model.parallel_residual), "false"},
    {"model.attention_scale", DT_SETTING_REAL, AT(model.attention_scale), "0", 0, 1e6},
    {"model.attention_softcap", DT_SETTING_REAL, AT(model.attention_softcap), "0", 0, 1e6},
    {"model.logit_softcap", DT_SETTING_REAL, AT(model.logit_softcap), "0", 0, 1e6},
    {"model.embedding_scale", DT_SETTING_REAL, AT(model.embedding_scale), "0", 0, 1e6},
    {"model.residual_scale", DT_SETTING_REAL, AT(model.residual_scale), "0", 0, 1e6},
    {"model.logit_scale", DT_SETTING_REAL, AT(model.logit_scale), "0", 0, 1e6},
    {"model.dropout", DT_SETTING_REAL, AT(model.dropout), "0", 0, 0.99},
    {"model.attention_dropout", DT_SETTING_REAL, AT(model.attention_dropout), "0", 0, 0.99},
    {"model.tie_word_embeddings", DT_SETTING_BOOL, AT(model.tie_word_embeddings), "true"},
    {"model.initializer_range", DT_SETTING_REAL, AT(model.initializer_range), "0.02", 1e-6, 10},
    {"model.gradient_checkpointing", DT_SETTING_ALIAS, .initial = "training.recompute",
     .words = truth_of_recompute},
    {"training.objective", DT_SETTING_CHOICE, AT(training.objective), "auto",
     .choices = dt_training_objective_names},
    {"training.batch_size", DT_SETTING_INT, AT(training.batch_size), "8", 1, 1 << 20},
    {"training.gradient_accumulation_steps", DT_SETTING_INT,
     AT(training.gradient_accumulation_steps), "1", 1, 1 << 20},
    {"training.batch_ramp_tokens", DT_SETTING_INT, AT(training.batch_ramp_tokens), "0", 0, 1e15},
    {"training.batch_ramp_start", DT_SETTING_INT, AT(training.batch_ramp_start), "1", 1, 1 << 20},
    {"training.sequence_length", DT_SETTING_INT, AT(training.sequence_length), "0", 0, 1 << 24},
    {"training.max_steps", DT_SETTING_INT, AT(training.max_steps), "1000", 1, 1e12},
    {"training.max_tokens", DT_SETTING_INT, AT(training.max_tokens), "0", 0, 1e15},
    {"training.max_epochs", DT_SETTING_REAL, AT(training.max_epochs), "0", 0, 1e9},
    {"training.patience", DT_SETTING_INT, AT(training.patience), "0", 0, 1e9},
    {"training.precision", DT_SETTING_CHOICE, AT(training.precision), "fp32",
     .choices = dt_dtype_names},
    {"training.arithmetic", DT_SETTING_CHOICE, AT(training.arithmetic), "fast",
     .choices = dt_arithmetic_names},
    {"training.recompute", DT_SETTING_CHOICE, AT(training.recompute), "none",
     .choices = dt_recompute_names},
    {"training.optimizer", DT_SETTING_CHOICE, AT(training.optimizer), "adamw",
     .choices = dt_optimizer_kind_names},
    {"training.schedule", DT_SETTING_CHOICE, AT(training.schedule), "cosine",
     .choices = dt_lr_schedule_names},
    {"training.warmup_steps", DT_SETTING_INT, AT(training.warmup_steps), "100", 0, 1e12},
    {"training.decay_fraction", DT_SETTING_REAL, AT(training.decay_fraction), "0.1", 0, 1},
    {"training.schedule_start", DT_SETTING_INT, AT(training.schedule_start), "0", 0, 1e12},
    {"training.learning_rate", DT_SETTING_REAL, AT(training.learning_rate), "6e-4", 0, 10},
    {"training.min_learning_rate_ratio", DT_SETTING_REAL, AT(training.min_learning_rate_ratio),
     "0.1", 0, 1},
    {"training.weight_decay", DT_SETTING_REAL, AT(training.weight_decay), "0.1", 0, 10},
    {"training.beta1", DT_SETTING_REAL, AT(training.beta1), "0.9", 0, 0.9999},
    {"training.beta2", DT_SETTING_REAL, AT(training.beta2), "0.95", 0, 0.999999},
    {"training.epsilon", DT_SETTING_REAL, AT(training.epsilon), "1e-8", 1e-20, 1},
    {"training.momentum", DT_SETTING_REAL, AT(training.momentum), "0.95", 0, 0.9999},
    {"training.grad_clip", DT_SETTING_REAL, AT(training.grad_clip), "1", 0, 1e9},
    {"training.label_smoothing", DT_SETTING_REAL, AT(training.label_smoothing), "0", 0, 0.99},
    {"training.z_loss", DT_SETTING_REAL, AT(training.z_loss), "0", 0, 1},
    {"training.ema_decay", DT_SETTING_REAL, AT(training.ema_decay), "0", 0, 0.999999},
    {"training.spike_threshold", DT_SETTING_REAL, AT(training.spike_threshold), "0", 0, 1e6},
    {"training.max_skipped", DT_SETTING_INT, AT(training.max_skipped), "10", 0, 1e9},
    {"training.seed", DT_SETTING_INT, AT(training.seed), "1337", 0, 1e15},
    {"training.log_interval", DT_SETTING_AMOUNT, AT(training.log_interval), "10", 0.001, 1e15,
     .choices = dt_interval_unit_names},
    {"training.eval_interval", DT_SETTING_AMOUNT, AT(training.eval_interval), "250", 0, 1e15,
     .choices = dt_interval_unit_names},
    {"training.eval_batches", DT_SETTING_INT, AT(training.eval_batches), "20", 1, 1e9},
    {"training.eval_accuracy", DT_SETTING_BOOL, AT(training.eval_accuracy), "false"},
    {"training.save_interval", DT_SETTING_AMOUNT, AT(training.save_interval), "1000", 0, 1e15,
     .choices = dt_interval_unit_names},
    {"training.trace_steps", DT_SETTING_STRING, AT(training.trace_steps), ""},
    {"training.tensor_metrics", DT_SETTING_BOOL, AT(training.tensor_metrics), "false"},
    {"training.layer_metrics", DT_SETTING_STRING, AT(training.layer_metrics), ""},
    {"training.timeline_steps", DT_SETTING_STRING, AT(training.timeline_steps), ""},
    {"lora.rank", DT_SETTING_INT, AT(model.lora.rank), "0", 0, 1 << 14},
    {"lora.alpha", DT_SETTING_REAL, AT(model.lora.alpha), "16", 1e-6, 1e6},
    {"lora.targets", DT_SETTING_STRING, AT(model.lora.targets), DT_LORA_ALL},
    {"lora.dropout", DT_SETTING_REAL, AT(model.lora.dropout), "0", 0, 0.99},
    {"lora.rslora", DT_SETTING_BOOL, AT(model.lora.rslora), "false"},
    {"optimizer.moments", DT_SETTING_CHOICE, AT(optimizer.moments), "fp32",
     .choices = dt_moment_type_names},
    {"optimizer.offload", DT_SETTING_CHOICE, AT(optimizer.offload), "none",
     .choices = dt_offload_names},
    {"optimizer.offload_dir", DT_SETTING_STRING, AT(optimizer.offload_dir), ""},
    {"distributed.backend", DT_SETTING_CHOICE, AT(distributed.backend), "auto",
     .choices = dt_comm_backend_names,
     .advice = "ranks that no MPI has started meet at distributed.rendezvous"},
    {"distributed.rendezvous", DT_SETTING_STRING, AT(distributed.rendezvous), ""},
    {"distributed.interface", DT_SETTING_STRING, AT(distributed.interface), ""},
    {"distributed.encrypt", DT_SETTING_BOOL, AT(distributed.encrypt), "false"},
    {"distributed.pp", DT_SETTING_INT, AT(distributed.pp), "1", 1, 4096},
    {"distributed.tp", DT_SETTING_INT, AT(distributed.tp), "1", 1, 4096},
    {"distributed.cp", DT_SETTING_INT, AT(distributed.cp), "1", 1, DT_CONTEXT_PARALLEL_MOST},
    {"distributed.sequence_parts", DT_SETTING_INT, AT(distributed.sequence_parts), "0", 0,
     DT_SEQUENCE_PARTS_MOST},
    {"distributed.sequence_parallel", DT_SETTING_BOOL, AT(distributed.sequence_parallel), "false"},
    {"distributed.schedule", DT_SETTING_CHOICE, AT(distributed.schedule), "1f1b",
     .choices = dt_pipeline_schedule_names},
    {"distributed.virtual_stages", DT_SETTING_INT, AT(distributed.virtual_stages), "1", 1, 4096},
    {"distributed.invariant", DT_SETTING_BOOL, AT(distributed.invariant), "false"},
    {"distributed.overlap", DT_SETTING_BOOL, AT(distributed.overlap), "true"},
    {"distributed.zero_stage", DT_SETTING_INT, AT(distributed.zero_stage), "0", 0, 3},
    {"distributed.shard_ranks", DT_SETTING_INT, AT(distributed.shard_ranks), "0", 0, 1 << 20},
    {"distributed.sync", DT_SETTING_CHOICE, AT(distributed.sync), "allreduce",
     .choices = dt_sync_names},
    {"distributed.staleness", DT_SETTING_INT, AT(distributed.staleness), "16", 0, 4096},
    {"distributed.replay", DT_SETTING_STRING, AT(distributed.replay), ""},
    {"distributed.local_steps", DT_SETTING_INT, AT(distributed.local_steps), "8", 1, 1000000},
    {"distributed.outer_learning_rate", DT_SETTING_REAL, AT(distributed.outer_learning_rate), "0.7",
     0, 10},
    {"distributed.outer_momentum", DT_SETTING_REAL, AT(distributed.outer_momentum), "0.9", 0,
     0.9999},
    {"distributed.fragments", DT_SETTING_INT, AT(distributed.fragments), "4", 1, 4096},
    {"distributed.outer_delay", DT_SETTING_INT, AT(distributed.outer_delay), "1", 0, 1000000},
    {"distributed.outer_precision", DT_SETTING_CHOICE, AT(distributed.outer_precision), "int4",
     .choices = dt_outer_precision_names},
    {"distributed.collectives", DT_SETTING_CHOICE, AT(distributed.collectives), "ordered",
     .choices = dt_collectives_names},
    {"distributed.compress", DT_SETTING_CHOICE, AT(distributed.compress), "none",
     .choices = dt_compress_names},
    {"distributed.compress_share", DT_SETTING_REAL, AT(distributed.compress_share), "0.01", 1e-6,
     1},
    {"distributed.compress_rank", DT_SETTING_INT, AT(distributed.compress_rank), "4", 1, 1024},
    {"distributed.check_interval", DT_SETTING_INT, AT(distributed.check_interval), "0", 0, 1e12},
    {"distributed.elastic", DT_SETTING_STRING, AT(distributed.elastic), ""},
    {"distributed.join_timeout", DT_SETTING_INT, AT(distributed.join_timeout), "600", 1, 1e6},
    {"distributed.timeout", DT_SETTING_INT, AT(distributed.timeout), "600", 1, 1e6},
    {"distributed.mixed_precision", DT_SETTING_ALIAS, .initial = "training.precision",
     .words = other_precisions},
    {"fsdp.sharding_strategy", DT_SETTING_ALIAS, .initial = "distributed.zero_stage",
     .words = stages_of_sharding},
    {"fsdp.cpu_offload", DT_SETTING_FIXED, .initial = "false",
     .advice = "optimizer.offload, optimizer.moments, training.recompute and training.precision "
               "save memory"},
    {"fsdp.activation_checkpointing", DT_SETTING_ALIAS, .initial = "training.recompute",
     .words = truth_of_recompute},
    {"data.dataset", DT_SETTING_STRING, AT(data.dataset), ""},
    {"data.stages", DT_SETTING_STRING, AT(data.stages), ""},
    {"data.validation", DT_SETTING_STRING, AT(data.validation), ""},
    {"data.train_split", DT_SETTING_STRING, AT(data.train_split), DT_TRAIN_SPLIT},
    {"data.val_split", DT_SETTING_STRING, AT(data.val_split), DT_VAL_SPLIT},
    {"data.shuffle", DT_SETTING_BOOL, AT(data.shuffle), "true"},
    {"data.shuffle_block", DT_SETTING_INT, AT(data.shuffle_block), "0", 0, 1e12},
    {"data.shuffle_window", DT_SETTING_INT, AT(data.shuffle_window), "64", 1, 1e9},
    {"data.document_mask", DT_SETTING_BOOL, AT(data.document_mask), "false"},
    {"data.layout", DT_SETTING_CHOICE, AT(data.layout), "list", .choices = dt_text_layout_names},
    {"data.mask_rate", DT_SETTING_REAL, AT(data.mask_rate), "0.15", 0.001, 0.9},
    {"data.mask_whole_words", DT_SETTING_BOOL, AT(data.mask_whole_words), "false"},
    {"data.labels", DT_SETTING_STRING, AT(data.labels), ""},
    {"data.num_workers", DT_SETTING_INT, AT(data.num_workers), "1", 0, 64},
    {"checkpoint.keep_last", DT_SETTING_INT, AT(checkpoint.keep_last), "0", 0, 1e12},
    {"checkpoint.keep_every", DT_SETTING_INT, AT(checkpoint.keep_every), "0", 0, 1e12},
    {"checkpoint.keep_best", DT_SETTING_INT, AT(checkpoint.keep_best), "0", 0, DT_BEST_MOST},
    {"checkpoint.background", DT_SETTING_BOOL, AT(checkpoint.background), "false"},
    {"checkpoint.dir", DT_SETTING_STRING, AT(checkpoint.dir), ""},
    {"checkpoint.resume_from", DT_SETTING_STRING, AT(checkpoint.resume_from), ""},
    {"dpo.loss", DT_SETTING_CHOICE, AT(dpo.loss), "sigmoid", .choices = dt_dpo_loss_names},
    {"dpo.beta", DT_SETTING_REAL, AT(dpo.beta), "0.1", 1e-6, 1e6},
    {"dpo.label_smoothing", DT_SETTING_REAL, AT(dpo.label_smoothing), "0", 0, 0.5},
    {"grpo.group", DT_SETTING_INT, AT(grpo.group), "8", 2, 1 << 12},
    {"grpo.max_new_tokens", DT_SETTING_INT, AT(grpo.max_new_tokens), "64", 1, 1 << 24},
    {"grpo.temperature", DT_SETTING_REAL, AT(grpo.temperature), "1", 0.01, 100},
    {"grpo.loss", DT_SETTING_CHOICE, AT(grpo.loss), "dapo", .choices = dt_grpo_loss_names},
    {"grpo.beta", DT_SETTING_REAL, AT(grpo.beta), "0", 0, 1e6},
    {"grpo.clip_low", DT_SETTING_REAL, AT(grpo.clip_low), "0.2", 0, 1},
    {"grpo.clip_high", DT_SETTING_REAL, AT(grpo.clip_high), "0.2", 0, 1e6},
    {"grpo.scale_rewards", DT_SETTING_BOOL, AT(grpo.scale_rewards), "true"},
    {"grpo.reward_timeout", DT_SETTING_INT, AT(grpo.reward_timeout), "60", 1, 1e6},
    {"tracking.project", DT_SETTING_STRING, AT(tracking.project), ""},
    {"tracking.run_name", DT_SETTING_STRING, AT(tracking.run_name), ""},
    {"tracking.tags", DT_SETTING_STRING, AT(tracking.tags), ""},
    {"branch.step", DT_SETTING_INT, AT(branch.step), "0", 0, 1e12},
    {"branch.samples", DT_SETTING_INT, AT(branch.samples), "0", 0, 1e15},
    {"branch.data_start", DT_SETTING_INT, AT(branch.data_start), "0", 0, 1e15},
    {NULL},
};

#define ENVIRONMENT "DT_SET"

/* Assignments separated by white space. */
static int read_environment(struct dt_settings *s, struct dt_error *err)
{
    const char *value = getenv(ENVIRONMENT);
    char *copy = dt_strdup(value ? value : ""), *rest = copy;
    int rc = 0;
    for (char *assignment; rc == 0 && (assignment = strsep(&rest, " \t\n")) != NULL;)
        if (*assignment)
            rc = dt_config_override(dt_settings_schema, s, assignment, ENVIRONMENT, err);
    free(copy);
    return rc;
}

/* Takes the configuration of a model; settings of training only are kept. */
static void take_shape(struct dt_model_config *config, const struct dt_model_config *given)
{
    struct dt_model_config theirs = *given;
    if (!dt_model_is_rotary(&theirs))
        theirs.rope_theta = config->rope_theta;
    theirs.dropout = config->dropout;
    theirs.attention_dropout = config->attention_dropout;
    theirs.lora = config->lora;
    *config = theirs;
}

static int contradict(const struct dt_setting *s, const struct dt_settings *theirs,
                      const struct dt_settings *given, const char *directory, struct dt_error *err)
{
    struct dt_buffer has = DT_BUFFER_EMPTY, wants = DT_BUFFER_EMPTY;
    dt_config_print_value(s, theirs, &has);
    dt_config_print_value(s, given, &wants);
    int rc = dt_fail(err, DT_EINVALID,
                     "%s is given as %s, but the model in '%s' has %s: leave it out, or begin "
                     "without --init-from",
                     s->name, wants.data, directory, has.data);
    dt_buffer_release(&has);
    dt_buffer_release(&wants);
    return rc;
}

/* theirs: the settings with the model's configuration, before those given were read. */
static int check_shape(struct dt_settings *given, const struct dt_settings *theirs,
                       const char *directory, struct dt_error *err)
{
    const struct dt_model_config *shape = &theirs->model;
    if (given->model.vocab_size == 0) /* the data's, which fit into the model's */
        given->model.vocab_size = shape->vocab_size;
    dt_model_config_derive(&given->model);
    struct dt_settings same = *theirs;
    same.model = given->model;
    same.model.dropout = shape->dropout;
    same.model.attention_dropout = shape->attention_dropout;
    same.model.lora = shape->lora;
    if (dt_model_is_rotary(shape)) {
        same.model.max_seq_len = shape->max_seq_len;
        same.model.rope_theta = shape->rope_theta;
    }
    const struct dt_setting *other = dt_config_difference(dt_settings_schema, theirs, &same);
    return other ? contradict(other, theirs, given, directory, err) : 0;
}

/* The labels of an initial classifier stay; a model of tokens becomes a classifier. */
static int check_labels(const struct dt_settings *given, const struct dt_settings *theirs,
                        const char *directory, struct dt_error *err)
{
    if (!*theirs->data.labels || strcmp(given->data.labels, theirs->data.labels) == 0)
        return 0;
    return dt_fail(
        err, DT_EINVALID,
        "data.labels is given as '%s', but the classifier in '%s' has '%s': leave it out",
        given->data.labels, directory, theirs->data.labels);
}

static long count_labels(const char *names)
{
    long count = *names != '\0';
    for (; *names; names++)
        count += *names == ',';
    return count;
}

static int read_all(struct dt_settings *s, const char *path, const char *const *overrides,
                    int count, struct dt_error *err)
{
    struct dt_error later;
    int rc = path ? dt_config_read(dt_settings_schema, s, path, err) : 0;
    int next = read_environment(s, rc < 0 ? &later : err);
    rc = rc < 0 ? rc : next;
    for (int i = 0; i < count; i++) {
        next =
            dt_config_override(dt_settings_schema, s, overrides[i], "--set", rc < 0 ? &later : err);
        rc = rc < 0 ? rc : next;
    }
    s->model.num_labels = count_labels(s->data.labels);
    return rc;
}

int dt_settings_read(struct dt_settings *s, const struct dt_initial_model *initial,
                     const char *path, const char *const *overrides, int count,
                     struct dt_error *err)
{
    memset(s, 0, sizeof *s);
    dt_config_defaults(dt_settings_schema, s);
    if (initial)
        take_shape(&s->model, &initial->config);
    if (initial && initial->labels)
        snprintf(s->data.labels, sizeof s->data.labels, "%s", initial->labels);
    const struct dt_settings begun = *s;
    DT_TRY(read_all(s, path, overrides, count, err));
    if (initial)
        DT_TRY(check_labels(s, &begun, initial->path, err));
    return initial ? check_shape(s, &begun, initial->path, err) : 0;
}

int dt_settings_read_branch(struct dt_settings *s, const struct dt_settings *parent,
                            const char *path, const char *const *overrides, int count,
                            struct dt_error *err)
{
    struct dt_settings plain;
    dt_config_defaults(dt_settings_schema, &plain);
    *s = *parent;
    memcpy(s->checkpoint.dir, plain.checkpoint.dir, sizeof s->checkpoint.dir);
    memcpy(s->checkpoint.resume_from, plain.checkpoint.resume_from,
           sizeof s->checkpoint.resume_from);
    memcpy(s->tracking.run_name, plain.tracking.run_name, sizeof s->tracking.run_name);
    DT_TRY(read_all(s, path, overrides, count, err));
    if (memcmp(&s->branch, &parent->branch, sizeof s->branch) == 0)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s: section branch is set by --branch-from alone",
                   path ? path : "--set");
}

bool dt_settings_sync_is_local(const struct dt_settings *s)
{
    return s->distributed.sync >= DT_SYNC_LOCAL_SGD;
}

long dt_settings_group(const struct dt_settings *s)
{
    return s->distributed.pp * s->distributed.cp * s->distributed.tp;
}

bool dt_settings_elastic(const struct dt_settings *s, long *least, long *most)
{
    char rest;
    return sscanf(s->distributed.elastic, "%ld:%ld%c", least, most, &rest) == 2 && *least >= 1 &&
           *most >= *least && *most <= DT_ELASTIC_MOST;
}

static int check_elastic(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const long group = dt_settings_group(s);
    long least, most, batches = s->training.gradient_accumulation_steps;
    if (s->training.batch_ramp_tokens > 0)
        batches = s->training.batch_ramp_start;
    if (!*s->distributed.elastic)
        return 0;
    if (!dt_settings_elastic(s, &least, &most))
        return dt_fail(err, DT_EINVALID,
                       "%s: distributed.elastic is the least and the most ranks, as 2:8, up to %d, "
                       "not '%s'",
                       path, DT_ELASTIC_MOST, s->distributed.elastic);
    if (least % group != 0 || most % group != 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: distributed.elastic %s: both have to be multiples of distributed.pp "
                       "times distributed.cp times distributed.tp, which is %ld",
                       path, s->distributed.elastic, group);
    if (most / group > batches)
        return dt_fail(err, DT_EINVALID,
                       "%s: distributed.elastic %s: a step has %ld micro-batch%s, and each of %ld "
                       "%s needs one: raise %s",
                       path, s->distributed.elastic, batches, batches == 1 ? "" : "es",
                       most / group, group > 1 ? "groups of ranks" : "ranks",
                       s->training.batch_ramp_tokens > 0 ? "training.batch_ramp_start"
                                                         : "training.gradient_accumulation_steps");
    return 0;
}

/* A setting with a value that needs another setting. */
struct need {
    bool broken;
    const char *setting, *value, *needs;
};

#define CHECK_NEEDS(needs, path, err)                                                              \
    check_needs_of(needs, sizeof(needs) / sizeof *(needs), path, err)

static int check_needs_of(const struct need *needs, size_t count, const char *path,
                          struct dt_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (needs[i].broken)
            return dt_fail(err, DT_EINVALID, "%s: %s %s needs %s", path, needs[i].setting,
                           needs[i].value, needs[i].needs);
    return 0;
}

static bool has_whole_layers(const struct dt_settings *s)
{
    return s->distributed.pp * s->distributed.tp * s->distributed.cp == 1;
}

/* Whether an interval is due only after multiples of these steps. */
static bool is_multiple(const struct dt_config_amount *interval, long steps)
{
    return interval->count == 0 ||
           (interval->unit == DT_INTERVAL_UNIT_STEPS && fmod(interval->count, (double)steps) == 0);
}

static int check_parallel_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const bool local = dt_settings_sync_is_local(s);
    const bool groups = s->distributed.shard_ranks > 0;
    const enum dt_compress compress = (enum dt_compress)s->distributed.compress;
    const int sync = s->distributed.sync;
    const bool compressed = compress != DT_COMPRESS_NONE, reduced = sync == DT_SYNC_ALL_REDUCE;
    const bool whole = s->distributed.zero_stage == 0, uncut = s->distributed.tp == 1;
    const bool contexts = s->distributed.cp > 1;
    const bool even = s->training.sequence_length % (2 * s->distributed.cp) == 0;
    const long parts = s->distributed.sequence_parts;
    const bool saves = is_multiple(&s->training.save_interval, s->distributed.local_steps);
    const bool scores = is_multiple(&s->training.eval_interval, s->distributed.local_steps);
    const bool streams = sync == DT_SYNC_STREAMING_DILOCO;
    struct dt_settings plain;
    dt_config_defaults(dt_settings_schema, &plain);
    const bool labels = s->model.num_labels > 0, ranks_alike = has_whole_layers(s);
    const char *const which = dt_compress_names[compress], *const how = dt_sync_names[sync];
    const struct need needs[] = {
        {compressed && !reduced, "distributed.compress", which, "distributed.sync allreduce"},
        {compressed && !whole, "distributed.compress", which, "distributed.zero_stage 0"},
        {compressed && s->distributed.invariant, "distributed.compress", which,
         "distributed.invariant false"},
        {dt_compress_has_error_feedback(compress) && !uncut, "distributed.compress", which,
         "distributed.tp 1"},
        {local && !whole, "distributed.sync", how, "distributed.zero_stage 0"},
        {local && s->distributed.invariant, "distributed.sync", how, "distributed.invariant false"},
        {local && contexts, "distributed.sync", how, "distributed.cp 1"},
        {labels && !ranks_alike, "data.labels", "of a classifier",
         "distributed.pp, distributed.tp and distributed.cp 1"},
        {labels && s->data.document_mask, "data.labels", "of a classifier",
         "data.document_mask false"},
        {contexts && parts == 0 && !even, "distributed.cp", "above 1",
         "a training.sequence_length that is a multiple of twice as much"},
        {contexts && parts > 0 && parts % (2 * s->distributed.cp) != 0, "distributed.cp", "above 1",
         "a distributed.sequence_parts that is 0 or a multiple of twice as much"},
        {contexts && parts == 0 && s->distributed.invariant, "distributed.cp", "above 1",
         "with distributed.invariant a distributed.sequence_parts, the same for every layout, that "
         "is a multiple of twice as much"},
        {parts > 0 && (parts & (parts - 1)) != 0, "distributed.sequence_parts", "above 0",
         "a power of two"},
        {parts > 0 && s->training.sequence_length % parts != 0, "distributed.sequence_parts",
         "above 0", "a training.sequence_length that is a multiple of it"},
        {local && !saves, "distributed.sync", how,
         "a training.save_interval of steps that distributed.local_steps divides"},
        {local && !scores, "distributed.sync", how,
         "a training.eval_interval of steps that distributed.local_steps divides"},
        {streams && s->distributed.fragments > s->distributed.local_steps, "distributed.sync", how,
         "a distributed.fragments of at most distributed.local_steps"},
        {streams &&
             s->distributed.outer_delay > s->distributed.local_steps / s->distributed.fragments,
         "distributed.sync", how,
         "a distributed.outer_delay of at most distributed.local_steps / distributed.fragments"},
        {!streams && s->distributed.fragments != plain.distributed.fragments,
         "distributed.fragments", "of one's own", "distributed.sync streaming_diloco"},
        {!streams && s->distributed.outer_delay != plain.distributed.outer_delay,
         "distributed.outer_delay", "of one's own", "distributed.sync streaming_diloco"},
        {!streams && s->distributed.outer_precision != plain.distributed.outer_precision,
         "distributed.outer_precision", "of one's own", "distributed.sync streaming_diloco"},
        {groups && !reduced, "distributed.shard_ranks", "above 0", "distributed.sync allreduce"},
        {groups && compressed, "distributed.shard_ranks", "above 0", "distributed.compress none"},
    };
    return CHECK_NEEDS(needs, path, err);
}

/* Of sums by NCCL. */
static int check_collectives(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const bool library = s->distributed.collectives != DT_COLLECTIVES_ORDERED;
    const bool linked = strcmp(dt_comm_backend_names[s->distributed.backend], "nccl") == 0;
    const bool reduced = s->distributed.sync == DT_SYNC_ALL_REDUCE;
    const char *const which = dt_collectives_names[s->distributed.collectives];
    const struct need needs[] = {
        {library && s->distributed.invariant, "distributed.collectives", which,
         "distributed.invariant false: the order of NCCL's sums depends on the ranks"},
        {library && !linked, "distributed.collectives", which, "distributed.backend nccl"},
        {library && !reduced, "distributed.collectives", which, "distributed.sync allreduce"},
        {library && s->distributed.compress != DT_COMPRESS_NONE, "distributed.collectives", which,
         "distributed.compress none"},
        {library && s->distributed.shard_ranks > 0, "distributed.collectives", which,
         "distributed.shard_ranks 0"},
    };
    return CHECK_NEEDS(needs, path, err);
}

static bool is_in_minutes(const struct dt_config_amount *interval)
{
    return interval->count > 0 && interval->unit == DT_INTERVAL_UNIT_MINUTES;
}

/* Of asynchronous updates. */
static int check_async_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const bool async = s->distributed.sync == DT_SYNC_ASYNC, ranks_alike = has_whole_layers(s);
    const bool objective = s->training.objective != DT_TRAINING_OBJECTIVE_AUTO;
    struct dt_settings plain;
    dt_config_defaults(dt_settings_schema, &plain);
    const struct need needs[] = {
        {!async && s->distributed.staleness != plain.distributed.staleness, "distributed.staleness",
         "of one's own", "distributed.sync async"},
        {!async && *s->distributed.replay, "distributed.replay", s->distributed.replay,
         "distributed.sync async"},
        {async && !ranks_alike, "distributed.sync", "async",
         "distributed.pp, distributed.tp and distributed.cp 1"},
        {async && s->distributed.zero_stage > 0, "distributed.sync", "async",
         "distributed.zero_stage 0"},
        {async && s->distributed.invariant, "distributed.sync", "async",
         "distributed.invariant false: a run is repeated with distributed.replay"},
        {async && s->distributed.check_interval > 0, "distributed.sync", "async",
         "distributed.check_interval 0"},
        {async && strcmp(dt_dtype_names[s->training.precision], "fp16") == 0, "distributed.sync",
         "async", "training.precision fp32 or bf16"},
        {async && objective, "distributed.sync", "async", "training.objective auto"},
        {async && s->training.batch_ramp_tokens > 0, "distributed.sync", "async",
         "training.batch_ramp_tokens 0"},
        {async && is_in_minutes(&s->training.eval_interval), "distributed.sync", "async",
         "a training.eval_interval that is not in minutes"},
        {async && is_in_minutes(&s->training.save_interval), "distributed.sync", "async",
         "a training.save_interval that is not in minutes"},
        {async && *s->training.trace_steps, "distributed.sync", "async",
         "training.trace_steps empty"},
        {async && *s->training.timeline_steps, "distributed.sync", "async",
         "training.timeline_steps empty"},
        {async && *s->training.layer_metrics, "distributed.sync", "async",
         "training.layer_metrics empty"},
    };
    return CHECK_NEEDS(needs, path, err);
}

static int check_elastic_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const char *const elastic = s->distributed.elastic;
    const bool groups = s->distributed.shard_ranks > 0;
    const bool reduced = s->distributed.sync == DT_SYNC_ALL_REDUCE;
    const struct need needs[] = {
        {!s->distributed.invariant, "distributed.elastic", elastic, "distributed.invariant true"},
        {groups, "distributed.elastic", elastic, "distributed.shard_ranks 0"},
        {!reduced, "distributed.elastic", elastic, "distributed.sync allreduce"},
        {s->distributed.backend != 0, "distributed.elastic", elastic, "distributed.backend auto"},
        {*s->training.trace_steps, "distributed.elastic", elastic, "training.trace_steps empty"},
        {*s->training.timeline_steps, "distributed.elastic", elastic,
         "training.timeline_steps empty"},
    };
    return *elastic ? CHECK_NEEDS(needs, path, err) : 0;
}

/* Of an adapter. */
static int check_lora_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const struct dt_lora *l = &s->model.lora;
    const bool trains = l->rank > 0, whole = has_whole_layers(s);
    struct dt_settings plain;
    dt_config_defaults(dt_settings_schema, &plain);
    const struct dt_lora *unset = &plain.model.lora;
    const struct need needs[] = {
        {!trains && l->alpha != unset->alpha, "lora.alpha", "of one's own", "lora.rank above 0"},
        {!trains && l->dropout > 0, "lora.dropout", "above 0", "lora.rank above 0"},
        {!trains && l->rslora, "lora.rslora", "true", "lora.rank above 0"},
        {!trains && strcmp(l->targets, unset->targets) != 0, "lora.targets", l->targets,
         "lora.rank above 0"},
        {trains && !whole, "lora.rank", "above 0",
         "distributed.pp, distributed.tp and distributed.cp 1"},
        {trains && s->distributed.sequence_parts > 0, "lora.rank", "above 0",
         "distributed.sequence_parts 0"},
        {trains && s->model.num_labels > 0, "lora.rank", "above 0",
         "data.labels empty: the head of a new classifier would stay untrained"},
    };
    DT_TRY(CHECK_NEEDS(needs, path, err));
    return trains ? dt_lora_check(&s->model, path, err) : 0;
}

/* Of the data, the masks and the optimizer. */
static int check_training_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const bool masked = dt_model_is_masked(&s->model) && s->model.num_labels == 0;
    const bool sgd = s->training.optimizer == DT_OPTIMIZER_KIND_SGD;
    const bool adamw = s->training.optimizer == DT_OPTIMIZER_KIND_ADAMW;
    const bool lion = s->training.optimizer == DT_OPTIMIZER_KIND_LION;
    const bool muon = s->training.optimizer == DT_OPTIMIZER_KIND_MUON;
    const bool coded = s->optimizer.moments != DT_MOMENT_TYPE_FP32;
    const char *const moments = dt_moment_type_names[s->optimizer.moments];
    struct dt_settings plain;
    dt_config_defaults(dt_settings_schema, &plain);
    const struct need needs[] = {
        {coded && muon, "optimizer.moments", moments, "training.optimizer adamw, lion or sgd"},
        {coded && s->distributed.tp > 1, "optimizer.moments", moments, "distributed.tp 1"},
        {coded && dt_settings_sync_is_local(s), "optimizer.moments", moments,
         "distributed.sync allreduce or parameter_server"},
        {*s->optimizer.offload_dir && s->optimizer.offload == DT_OFFLOAD_NONE,
         "optimizer.offload_dir", s->optimizer.offload_dir, "optimizer.offload file"},
        {s->data.shuffle_block > 0 && !s->data.shuffle, "data.shuffle_block", "above 0",
         "data.shuffle true"},
        {s->data.shuffle_window != plain.data.shuffle_window && s->data.shuffle_block == 0,
         "data.shuffle_window", "of one's own", "data.shuffle_block above 0"},
        {s->data.mask_whole_words && !masked, "data.mask_whole_words", "true",
         "a model that fills in masked tokens: model.name bert or distilbert"},
        {s->data.mask_rate != plain.data.mask_rate && !masked, "data.mask_rate", "of one's own",
         "a model that fills in masked tokens: model.name bert or distilbert"},
        {s->training.beta1 != plain.training.beta1 && sgd, "training.beta1", "of one's own",
         "training.optimizer adamw, lion or muon"},
        {s->training.beta2 != plain.training.beta2 && sgd, "training.beta2", "of one's own",
         "training.optimizer adamw, lion or muon"},
        {s->training.epsilon != plain.training.epsilon && (sgd || lion), "training.epsilon",
         "of one's own", "training.optimizer adamw or muon"},
        {s->training.momentum != plain.training.momentum && (adamw || lion), "training.momentum",
         "of one's own", "training.optimizer sgd or muon"},
        {*s->data.stages && s->training.max_epochs > 0, "data.stages", s->data.stages,
         "training.max_epochs 0: a stage has a number of tokens"},
        {s->training.batch_ramp_start > 1 && s->training.batch_ramp_tokens == 0,
         "training.batch_ramp_start", "above 1", "training.batch_ramp_tokens above 0"},
    };
    return CHECK_NEEDS(needs, path, err);
}

/* Of an objective other than auto. */
static int check_objective_needs(const struct dt_settings *s, const char *path,
                                 struct dt_error *err)
{
    const char *const which = dt_training_objective_names[s->training.objective];
    const bool ranks_alike = has_whole_layers(s), labels = s->model.num_labels > 0;
    const bool plain = s->training.label_smoothing == 0 && s->training.z_loss == 0;
    const struct need needs[] = {
        {dt_model_is_masked(&s->model), "training.objective", which,
         "a model that predicts the next token"},
        {labels, "training.objective", which, "data.labels empty"},
        {!ranks_alike, "training.objective", which,
         "distributed.pp, distributed.tp and distributed.cp 1"},
        {s->distributed.sequence_parts > 1, "training.objective", which,
         "distributed.sequence_parts 0"},
        {*s->distributed.elastic, "training.objective", which, "distributed.elastic empty"},
        {!plain, "training.objective", which,
         "training.label_smoothing and training.z_loss 0: dpo.label_smoothing is another"},
        {s->data.document_mask, "training.objective", which, "data.document_mask false"},
        {s->data.shuffle_block > 0, "training.objective", which, "data.shuffle_block 0"},
        {s->data.layout != DT_TEXT_LAYOUT_LIST, "training.objective", which, "data.layout list"},
        {*s->data.stages, "training.objective", which, "data.stages empty"},
        {*s->data.validation, "training.objective", which, "data.validation empty"},
        {s->training.eval_accuracy, "training.objective", which, "training.eval_accuracy false"},
    };
    return s->training.objective == DT_TRAINING_OBJECTIVE_AUTO ? 0 : CHECK_NEEDS(needs, path, err);
}

static int check_grpo_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const bool grpo = s->training.objective == DT_TRAINING_OBJECTIVE_GRPO;
    const bool maps = s->model.logit_scale != 0 || s->model.logit_softcap != 0;
    const bool warm = s->grpo.temperature != 1;
    struct dt_settings plain, other = *s;
    dt_config_defaults(dt_settings_schema, &plain);
    other.grpo = plain.grpo;
    const struct dt_setting *own = dt_config_difference(dt_settings_schema, s, &other);
    const struct need needs[] = {
        {own && !grpo, own ? own->name : "", "of one's own", "training.objective grpo"},
        {grpo && s->distributed.zero_stage > 0, "training.objective", "grpo",
         "distributed.zero_stage 0"},
        {grpo && dt_settings_sync_is_local(s), "training.objective", "grpo",
         "distributed.sync allreduce"},
        {grpo && s->model.dropout + s->model.attention_dropout > 0, "training.objective", "grpo",
         "model.dropout and model.attention_dropout 0"},
        {grpo && warm && maps, "grpo.temperature", "of one's own",
         "a model without model.logit_scale and model.logit_softcap"},
        {grpo && s->grpo.max_new_tokens > s->training.sequence_length, "grpo.max_new_tokens",
         "of that size", "a training.sequence_length that is at least as high"},
    };
    return CHECK_NEEDS(needs, path, err);
}

static int check_dpo_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const bool dpo = s->training.objective == DT_TRAINING_OBJECTIVE_DPO;
    const bool sigmoid = s->dpo.loss == DT_DPO_LOSS_SIGMOID;
    struct dt_settings plain;
    dt_config_defaults(dt_settings_schema, &plain);
    const struct need needs[] = {
        {!sigmoid && !dpo, "dpo.loss", dt_dpo_loss_names[s->dpo.loss], "training.objective dpo"},
        {s->dpo.beta != plain.dpo.beta && !dpo, "dpo.beta", "of one's own",
         "training.objective dpo"},
        {s->dpo.label_smoothing > 0 && !(dpo && sigmoid), "dpo.label_smoothing", "above 0",
         "training.objective dpo with dpo.loss sigmoid"},
    };
    return CHECK_NEEDS(needs, path, err);
}

static bool is_named(const char *name, const char *at, size_t n)
{
    return strlen(name) == n && memcmp(name, at, n) == 0;
}

bool dt_settings_measures(const struct dt_settings *s, enum dt_layer_metric metric)
{
    const char *at = s->training.layer_metrics;
    while (*at && !is_named(dt_layer_metric_names[metric], at, strcspn(at, ","))) {
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return *at;
}

static bool is_layer_metric(const char *at, size_t n)
{
    int i = 0;
    while (dt_layer_metric_names[i] && !is_named(dt_layer_metric_names[i], at, n))
        i++;
    return dt_layer_metric_names[i];
}

/* Of training.layer_metrics. */
static int check_layer_metrics(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    static const char setting[] = "training.layer_metrics";
    const bool entropy = dt_settings_measures(s, DT_LAYER_METRIC_ENTROPY);
    const bool noise = dt_settings_measures(s, DT_LAYER_METRIC_NOISE);
    const bool apart = s->distributed.pp > 1 || s->distributed.invariant;
    for (const char *at = s->training.layer_metrics; *at;) {
        size_t n = strcspn(at, ",");
        if (!is_layer_metric(at, n))
            return dt_fail(err, DT_EINVALID,
                           "%s: %s: '%.*s' is not one of activation_rms, attention_entropy, "
                           "dead_units, logits and gradient_noise",
                           path, setting, (int)n, at);
        at += n;
        if (*at == ',' && *++at == '\0')
            return dt_fail(err, DT_EINVALID, "%s: %s ends with a comma", path, setting);
    }
    const struct need needs[] = {
        {*s->training.layer_metrics && s->training.log_interval.unit == DT_INTERVAL_UNIT_MINUTES,
         setting, s->training.layer_metrics, "a training.log_interval that is not in minutes"},
        {entropy && s->model.attention_softcap > 0, setting, "attention_entropy",
         "model.attention_softcap 0"},
        {noise && s->training.gradient_accumulation_steps < 2, setting, "gradient_noise",
         "a training.gradient_accumulation_steps of 2 or more"},
        {noise && s->distributed.cp > 1, setting, "gradient_noise", "distributed.cp 1"},
        {noise && apart && s->model.tie_word_embeddings, setting, "gradient_noise",
         "distributed.pp 1 and distributed.invariant false, or model.tie_word_embeddings false"},
        {noise && dt_settings_sync_is_local(s), setting, "gradient_noise",
         "distributed.sync allreduce or parameter_server"},
        {noise && s->distributed.compress != 0, setting, "gradient_noise",
         "distributed.compress none"},
    };
    return CHECK_NEEDS(needs, path, err);
}

/* Settings that need others, for any number of ranks. */
static int check_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    DT_TRY(check_parallel_needs(s, path, err));
    DT_TRY(check_collectives(s, path, err));
    DT_TRY(check_async_needs(s, path, err));
    DT_TRY(check_elastic_needs(s, path, err));
    DT_TRY(check_lora_needs(s, path, err));
    DT_TRY(check_layer_metrics(s, path, err));
    DT_TRY(check_objective_needs(s, path, err));
    DT_TRY(check_dpo_needs(s, path, err));
    DT_TRY(check_grpo_needs(s, path, err));
    return check_training_needs(s, path, err);
}

/* Only epochs and minutes have fractions. */
static int check_intervals(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const struct {
        const char *name;
        const struct dt_config_amount *interval;
    } rows[] = {{"log_interval", &s->training.log_interval},
                {"eval_interval", &s->training.eval_interval},
                {"save_interval", &s->training.save_interval}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].interval->unit < DT_INTERVAL_UNIT_EPOCHS &&
            rows[i].interval->count != floor(rows[i].interval->count))
            return dt_fail(err, DT_EINVALID,
                           "%s: training.%s has to be a whole number of %s, not %g", path,
                           rows[i].name, dt_interval_unit_names[rows[i].interval->unit],
                           rows[i].interval->count);
    return 0;
}

int dt_settings_resolve(struct dt_settings *s, uint32_t vocab_size, const char *path,
                        struct dt_error *err)
{
    if (s->model.vocab_size == 0)
        s->model.vocab_size = vocab_size;
    if (s->training.sequence_length == 0)
        s->training.sequence_length = s->model.max_seq_len;
    if (dt_model_config_check(&s->model, "model", err) < 0)
        return dt_fail_context(err, "%s", path);
    if ((uint32_t)s->model.vocab_size < vocab_size)
        return dt_fail(err, DT_EINVALID,
                       "%s: model.vocab_size is %ld, but the data's tokenizer has %u tokens", path,
                       s->model.vocab_size, vocab_size);
    if (s->training.sequence_length > s->model.max_seq_len)
        return dt_fail(err, DT_EINVALID,
                       "%s: training.sequence_length %ld is beyond model.max_seq_len %ld", path,
                       s->training.sequence_length, s->model.max_seq_len);
    if (s->training.batch_ramp_start > s->training.gradient_accumulation_steps)
        return dt_fail(err, DT_EINVALID,
                       "%s: training.batch_ramp_start %ld is beyond "
                       "training.gradient_accumulation_steps %ld",
                       path, s->training.batch_ramp_start, s->training.gradient_accumulation_steps);
    DT_TRY(check_intervals(s, path, err));
    DT_TRY(check_elastic(s, path, err));
    return check_needs(s, path, err);
}

int dt_settings_limit_steps(struct dt_settings *s, uint64_t samples, const char *path,
                            struct dt_error *err)
{
    double most = INFINITY;
    if (s->training.max_tokens > 0)
        most = (double)s->training.max_tokens / (double)dt_settings_sample_tokens(s);
    if (s->training.max_epochs > 0)
        most = fmin(most, s->training.max_epochs * (double)samples);
    s->training.max_steps = dt_batch_steps(s, most, s->training.max_steps);
    if (s->branch.step > 0 && s->training.max_steps <= s->branch.step)
        return dt_fail(err, DT_EINVALID,
                       "%s: the run branches at step %ld, and ends at step %ld: raise "
                       "training.max_steps, max_tokens or max_epochs",
                       path, s->branch.step, s->training.max_steps);
    if (s->training.schedule_start > s->branch.step)
        return dt_fail(err, DT_EINVALID,
                       "%s: training.schedule_start is %ld, but the run begins at step %ld: the "
                       "learning rate until then is undefined",
                       path, s->training.schedule_start, s->branch.step);
    if (s->training.schedule_start + s->training.warmup_steps > s->training.max_steps)
        return dt_fail(
            err, DT_EINVALID, "%s: training.warmup_steps %ld is beyond the last step, %ld", path,
            s->training.schedule_start + s->training.warmup_steps, s->training.max_steps);
    return 0;
}

void dt_settings_add_words(struct dt_buffer *words)
{
    dt_config_add_words(dt_settings_schema, words);
}
