/* SPDX-License-Identifier: MIT */
#include "settings/choices.h"

#include <stddef.h>

const char *const dt_dtype_names[] = {"fp32", "bf16", "fp16", NULL};
const char *const dt_arithmetic_names[] = {"fast", "canonical", NULL};
const char *const dt_training_objective_names[] = {"auto", "dpo", "grpo", NULL};
const char *const dt_dpo_loss_names[] = {"sigmoid", "ipo", "hinge", NULL};
const char *const dt_grpo_loss_names[] = {"dapo", "grpo", "dr_grpo", NULL};
const char *const dt_recompute_names[] = {"none", "selective", "full", NULL};
const char *const dt_layer_metric_names[] = {"activation_rms", "attention_entropy", "dead_units",
                                             "logits",         "gradient_noise",    NULL};
#define NAME_OF(NAME, name) name,
const char *const dt_optimizer_kind_names[] = {DT_OPTIMIZER_KINDS(NAME_OF) NULL};
const char *const dt_moment_type_names[] = {"fp32", "bf16", "int8", NULL};
const char *const dt_offload_names[] = {"none", "file", NULL};
const char *const dt_lr_schedule_names[] = {"constant", "linear",       "cosine",
                                            "wsd",      "inverse_sqrt", NULL};
const char *const dt_comm_backend_names[] = {"auto", "self", "mpi", "nccl", NULL};
const char *const dt_pipeline_schedule_names[] = {"1f1b", "afab", "interleaved", "model_parallel",
                                                  NULL};
const char *const dt_sync_names[] = {"allreduce", "parameter_server", "async", "local_sgd",
                                     "diloco",    "streaming_diloco", NULL};
const char *const dt_outer_precision_names[] = {"fp32", "int8", "int4", NULL};
const char *const dt_collectives_names[] = {"ordered", "nccl", "nccl_bf16", NULL};
const char *const dt_compress_names[] = {"none", "bf16", "topk", "powersgd", NULL};
const char *const dt_interval_unit_names[] = {"steps",  "tokens",  "samples",
                                              "epochs", "minutes", NULL};
const char *const dt_text_layout_names[] = {"list", "padded", NULL};

bool dt_compress_has_error_feedback(enum dt_compress kind)
{
    return kind == DT_COMPRESS_TOPK || kind == DT_COMPRESS_POWERSGD;
}
