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

/* Names of nanoGPT, transformers and torchtitan, each followed by dt's for an error to suggest;
 * not aliases, since units and defaults differ. */
/* clang-format off */
static const char *const names_elsewhere[] = {
    /* the model */
    "model_type", "model.name",
    "n_layer", "model.num_layers",
    "n_layers", "model.num_layers",
    "num_hidden_layers", "model.num_layers",
    "n_head", "model.num_heads",
    "n_heads", "model.num_heads",
    "num_attention_heads", "model.num_heads",
    "n_kv_heads", "model.num_kv_heads",
    "num_key_value_heads", "model.num_kv_heads",
    "n_embd", "model.hidden_size",
    "d_model", "model.hidden_size",
    "dim", "model.hidden_size",
    "ffn", "model.intermediate_size",
    "ffn_dim", "model.intermediate_size",
    "d_ff", "model.intermediate_size",
    "n_inner", "model.intermediate_size",
    "training.block_size", "training.sequence_length",
    "seq_len", "training.sequence_length",
    "block_size", "model.max_seq_len",
    "n_ctx", "model.max_seq_len",
    "n_positions", "model.max_seq_len",
    "max_position_embeddings", "model.max_seq_len",
    "rms_norm_eps", "model.layer_norm_epsilon",
    "layer_norm_eps", "model.layer_norm_epsilon",
    "norm_eps", "model.layer_norm_epsilon",
    "resid_pdrop", "model.dropout",
    "embd_pdrop", "model.dropout",
    "hidden_dropout", "model.dropout",
    "hidden_dropout_prob", "model.dropout",
    "attn_pdrop", "model.attention_dropout",
    "attention_probs_dropout_prob", "model.attention_dropout",
    "enable_weight_tying", "model.tie_word_embeddings",
    /* steps and batches */
    "batch", "training.batch_size",
    "per_device_train_batch_size", "training.batch_size",
    "local_batch_size", "training.batch_size",
    "micro_batch_size", "training.batch_size",
    "max_iters", "training.max_steps",
    "training.steps", "training.max_steps",
    "lr_decay_iters", "training.max_steps",
    "num_train_epochs", "training.max_epochs",
    "num_epochs", "training.max_epochs",
    "epochs", "training.max_epochs",
    "logging_steps", "training.log_interval",
    "log_freq", "training.log_interval",
    "eval_steps", "training.eval_interval",
    "eval_iters", "training.eval_batches",
    "save_steps", "training.save_interval",
    "checkpoint.interval", "training.save_interval",
    "save_total_limit", "checkpoint.keep_last",
    "keep_latest_k", "checkpoint.keep_last",
    "resume_from_checkpoint", "checkpoint.resume_from",
    "dataloader_num_workers", "data.num_workers",
    /* the optimizer */
    "optim", "training.optimizer",
    "optimizer.name", "training.optimizer",
    "lr", "training.learning_rate",
    "min_lr", "training.min_learning_rate_ratio",
    "min_lr_factor", "training.min_learning_rate_ratio",
    "decay_lr", "training.schedule",
    "lr_scheduler_type", "training.schedule",
    "warmup_iters", "training.warmup_steps",
    "warmup_ratio", "training.warmup_steps",
    "decay_ratio", "training.decay_fraction",
    "betas", "training.beta1",
    "adam_beta1", "training.beta1",
    "adam_beta2", "training.beta2",
    "adam_epsilon", "training.epsilon",
    "eps", "training.epsilon",
    "max_grad_norm", "training.grad_clip",
    "max_norm", "training.grad_clip",
    "label_smoothing_factor", "training.label_smoothing",
    /* precision and ranks */
    "dtype", "training.precision",
    "torch_dtype", "training.precision",
    "bf16", "training.precision",
    "fp16", "training.precision",
    "mixed_precision_param", "training.precision",
    "training.mixed_precision", "training.precision",
    "tensor_parallel_degree", "distributed.tp",
    "pipeline_parallel_degree", "distributed.pp",
    "context_parallel_degree", "distributed.cp",
    "wandb_project", "tracking.project",
    "wandb_run_name", "tracking.run_name",
    NULL};
/* clang-format on */

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
    {NULL, .elsewhere = names_elsewhere},
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

int dt_settings_limit_steps(struct dt_settings *s, uint64_t samples, const char *path,
                            struct dt_error *err)
{
    double most = INFINITY;
    if (s->training.max_tokens > 0)
        most = (double)s->training.max_tokens / (double)dt_settings_sample_tokens(s);
    if (s->training.max_epochs > 0)
        most = fmin(most, (double)s->branch.data_start + s->training.max_epochs * (double)samples);
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
            err, DT_EINVALID,
            "%s: training.warmup_steps %ld is beyond the last step, %ld; set it, which is 100 "
            "otherwise, to at most %ld",
            path, s->training.schedule_start + s->training.warmup_steps, s->training.max_steps,
            s->training.max_steps - s->training.schedule_start);
    return 0;
}

void dt_settings_add_words(struct dt_buffer *words)
{
    dt_config_add_words(dt_settings_schema, words);
}
