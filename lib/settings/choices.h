/* SPDX-License-Identifier: MIT */
/*
 * The choices that settings offer, and their names in configuration files.
 *
 * Each array holds the names of the enum before it, by its values, ended by NULL.
 */
#ifndef DT_SETTINGS_CHOICES_H
#define DT_SETTINGS_CHOICES_H

#include <stdbool.h>

/* training.precision, by enum dt_dtype (device/device.h). */
extern const char *const dt_dtype_names[];

/* training.arithmetic: whether products of 16-bit types may use the machine's fastest instructions,
 * or have the same bits on every machine. */
enum dt_arithmetic { DT_ARITHMETIC_FAST, DT_ARITHMETIC_CANONICAL };
extern const char *const dt_arithmetic_names[];

/* training.objective */
enum dt_training_objective {
    DT_TRAINING_OBJECTIVE_AUTO, /* the next token, masked tokens or labels, as model and data are */
    DT_TRAINING_OBJECTIVE_DPO,  /* of preferences */
    DT_TRAINING_OBJECTIVE_GRPO  /* of rewards */
};
extern const char *const dt_training_objective_names[];

/* dpo.loss (prefer/pair-loss.h). */
enum dt_dpo_loss { DT_DPO_LOSS_SIGMOID, DT_DPO_LOSS_IPO, DT_DPO_LOSS_HINGE };
extern const char *const dt_dpo_loss_names[];

/* grpo.loss (prefer/group-loss.h). */
enum dt_grpo_loss { DT_GRPO_LOSS_DAPO, DT_GRPO_LOSS_GRPO, DT_GRPO_LOSS_DR_GRPO };
extern const char *const dt_grpo_loss_names[];

/* training.recompute: activation checkpointing (Chen et al. 2016), which activations of a block
 * backward recomputes. The bits are the same. */
enum dt_recompute {
    DT_RECOMPUTE_NONE,
    DT_RECOMPUTE_SELECTIVE, /* norms and activation functions, which cost little */
    DT_RECOMPUTE_FULL       /* all but the block's input */
};
extern const char *const dt_recompute_names[];

/* training.layer_metrics (train/layer-metrics.h), of which several may be chosen. */
enum dt_layer_metric {
    DT_LAYER_METRIC_RMS,
    DT_LAYER_METRIC_ENTROPY,
    DT_LAYER_METRIC_DEAD_UNITS,
    DT_LAYER_METRIC_LOGITS,
    DT_LAYER_METRIC_NOISE
};
extern const char *const dt_layer_metric_names[];

/* training.optimizer: enumerator and name. optim/descriptor.c describes each. */
#define DT_OPTIMIZER_KINDS(X)                                                                      \
    X(ADAMW, "adamw")                                                                              \
    X(SGD, "sgd")                                                                                  \
    X(MUON, "muon")                                                                                \
    X(LION, "lion")
#define DT_OPTIMIZER_KIND_ENUMERATOR(NAME, name) DT_OPTIMIZER_KIND_##NAME,
enum dt_optimizer_kind { DT_OPTIMIZER_KINDS(DT_OPTIMIZER_KIND_ENUMERATOR) };
#undef DT_OPTIMIZER_KIND_ENUMERATOR
extern const char *const dt_optimizer_kind_names[];

/* optimizer.moments: the type of the optimizer's state. */
enum dt_moment_type { DT_MOMENT_TYPE_FP32, DT_MOMENT_TYPE_BF16, DT_MOMENT_TYPE_INT8 };
extern const char *const dt_moment_type_names[];

/* optimizer.offload: where that state is. */
enum dt_offload { DT_OFFLOAD_NONE, DT_OFFLOAD_FILE };
extern const char *const dt_offload_names[];

/* training.schedule: the learning rate after the warm-up. */
enum dt_lr_schedule {
    DT_LR_SCHEDULE_CONSTANT,
    DT_LR_SCHEDULE_LINEAR,
    DT_LR_SCHEDULE_COSINE,      /* half a period (Loshchilov and Hutter 2017) */
    DT_LR_SCHEDULE_WSD,         /* warm-up, stable, decay (Hu et al. 2024) */
    DT_LR_SCHEDULE_INVERSE_SQRT /* of the step (Vaswani et al. 2017) */
};
extern const char *const dt_lr_schedule_names[];

/* distributed.backend, as dt_comm_open knows them. */
extern const char *const dt_comm_backend_names[];

/* distributed.schedule */
enum dt_pipeline_schedule {
    DT_PIPELINE_SCHEDULE_1F1B,
    DT_PIPELINE_SCHEDULE_AFAB,
    DT_PIPELINE_SCHEDULE_INTERLEAVED,
    DT_PIPELINE_SCHEDULE_MODEL_PARALLEL
};
extern const char *const dt_pipeline_schedule_names[];

/* distributed.sync: how data-parallel ranks synchronize. */
enum dt_sync {
    DT_SYNC_ALL_REDUCE,
    DT_SYNC_PARAMETER_SERVER, /* the first data-parallel rank updates for all */
    DT_SYNC_ASYNC,            /* and applies gradients in the order of their arrival */
    DT_SYNC_LOCAL_SGD,
    DT_SYNC_DILOCO,
    DT_SYNC_STREAMING_DILOCO
};
extern const char *const dt_sync_names[];

/* distributed.outer_precision: of what streaming DiLoCo sends. */
enum dt_outer_precision {
    DT_OUTER_PRECISION_FP32,
    DT_OUTER_PRECISION_INT8,
    DT_OUTER_PRECISION_INT4
};
extern const char *const dt_outer_precision_names[];

/* distributed.collectives: who sums gradients and gathers weights of data-parallel ranks on GPUs,
 * and in which type. */
enum dt_collectives { DT_COLLECTIVES_ORDERED, DT_COLLECTIVES_NCCL, DT_COLLECTIVES_NCCL_BF16 };
extern const char *const dt_collectives_names[];

/* distributed.compress: compression of gradients. */
enum dt_compress { DT_COMPRESS_NONE, DT_COMPRESS_BF16, DT_COMPRESS_TOPK, DT_COMPRESS_POWERSGD };
extern const char *const dt_compress_names[];
/* Whether it keeps an error feedback residual from step to step. */
bool dt_compress_has_error_feedback(enum dt_compress kind);

/* training.log_interval and the other intervals. */
enum dt_interval_unit {
    DT_INTERVAL_UNIT_STEPS,
    DT_INTERVAL_UNIT_TOKENS,
    DT_INTERVAL_UNIT_SAMPLES,
    DT_INTERVAL_UNIT_EPOCHS,
    DT_INTERVAL_UNIT_MINUTES
};
extern const char *const dt_interval_unit_names[];

/* data.layout: of text that is tokenized during training. */
enum dt_text_layout { DT_TEXT_LAYOUT_LIST, DT_TEXT_LAYOUT_PADDED };
extern const char *const dt_text_layout_names[];

#endif
