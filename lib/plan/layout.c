/* SPDX-License-Identifier: MIT */
#include "plan/layout.h"

#include <math.h>

#include "model/tensor-partition.h"
#include "optim/optimizer.h"
#include "parallel/data-parallel.h"
#include "parallel/gradient-compression.h"
#include "parallel/mesh.h"

long dt_layout_ranks(const struct dt_plan_layout *l)
{
    return l->pp * dt_layout_dp_cp_size(l) * l->tp;
}

long dt_layout_dp_cp_size(const struct dt_plan_layout *l)
{
    return l->dp * l->cp;
}

long dt_layout_chunks(const struct dt_plan_layout *l)
{
    return l->pp * l->pipeline.chunks;
}

long dt_layout_shard_size(const struct dt_plan_layout *l)
{
    return l->shard > 0 ? l->shard : dt_layout_dp_cp_size(l);
}

long dt_layout_shard_groups(const struct dt_plan_layout *l)
{
    return dt_layout_dp_cp_size(l) / dt_layout_shard_size(l);
}

struct dt_model_part dt_layout_part(const struct dt_plan_layout *l, long stage)
{
    return (struct dt_model_part){.stage = (int)stage,
                                  .stages = (int)l->pp,
                                  .chunks = l->pipeline.chunks,
                                  .tp_rank = (int)l->tp_rank,
                                  .tp_size = (int)l->tp,
                                  .cp_size = (int)l->cp,
                                  .tied_apart = l->pp > 1};
}

double dt_layout_tokens(const struct dt_plan_layout *l, const struct dt_settings *s)
{
    return (double)(l->batch * dt_settings_sample_tokens(s)) / (double)l->cp;
}

long dt_layout_layers(const struct dt_plan_layout *l, long layers, long chunk)
{
    const struct dt_model_part part = dt_layout_part(l, 0);
    return dt_range_count(dt_model_part_run(&part, (int)layers, (int)chunk));
}

/* Upper bound of a stage's activations in bytes, so that no sum of sizes overflows. */
static double bound_of_activations(const struct dt_plan_layout *l, const struct dt_settings *s)
{
    const struct dt_model_config *m = &s->model;
    double widest = fmax((double)m->hidden_size, (double)dt_model_query_width(m));
    double width = 32 * widest + 8 * (double)m->intermediate_size;
    double held =
        l->pipeline.schedule == DT_PIPELINE_SCHEDULE_AFAB ? (double)l->batches : (double)l->pp;
    return (double)l->batch * (double)dt_settings_sample_tokens(s) * width * sizeof(float) *
           (double)m->num_layers * held;
}

const char *dt_layout_uneven(const struct dt_plan_layout *l, const struct dt_settings *s)
{
    const struct dt_model_config *m = &s->model;
    if (m->num_heads % l->tp != 0)
        return "tp does not divide the attention heads";
    if (m->num_kv_heads % l->tp != 0 && l->tp % m->num_kv_heads != 0)
        return "neither of tp and the key/value heads divides the other";
    if (m->intermediate_size % l->tp != 0)
        return "tp does not divide the MLP's intermediate size";
    return NULL;
}

/* Whether distributed.invariant, if it is set, is possible. */
static bool keeps_bits(const struct dt_plan_layout *l, const struct dt_settings *s)
{
    struct dt_settings own = *s;
    struct dt_error err;
    own.distributed.tp = l->tp;
    own.distributed.cp = l->cp;
    own.distributed.shard_ranks = l->shard;
    own.training.batch_size = l->batch;
    return dt_mesh_check_invariant(&own, &err) == 0;
}

const char *dt_layout_fault(const struct dt_plan_layout *l, const struct dt_settings *s)
{
    const struct dt_model_config *m = &s->model;
    struct dt_error err;
    if (dt_tensor_partition_check(m, l->tp, "", &err) < 0)
        return "tp leaves a rank without a head, channel or token, or is above 256";
    if (dt_layout_chunks(l) > m->num_layers)
        return "the model has fewer layers than pipeline stages or model chunks";
    if (s->training.gradient_accumulation_steps < l->dp)
        return "training.gradient_accumulation_steps is less than dp";
    if (l->cp > 1 && s->distributed.sequence_parts % (2 * l->cp) != 0)
        return "distributed.sequence_parts is not a multiple of 2 * cp";
    if (l->cp > 1 && s->training.sequence_length % (2 * l->cp) != 0)
        return "the sequence length is not a multiple of 2 * cp";
    if (l->cp > 1 && s->distributed.invariant && s->distributed.sequence_parts == 0)
        return "distributed.invariant with cp above 1 needs distributed.sequence_parts";
    if (!keeps_bits(l, s))
        return "its bits would not be those of one rank, as distributed.invariant requires";
    if (l->cp > 1 && dt_settings_sync_is_local(s))
        return "local SGD does not support cp above 1";
    if (dt_layout_dp_cp_size(l) % dt_layout_shard_size(l) != 0)
        return "shard_ranks does not divide dp * cp";
    if (l->shard > 0 && s->distributed.collectives != DT_COLLECTIVES_ORDERED)
        return "distributed.collectives nccl and nccl_bf16 do not support shard_ranks";
    bool sharded = l->zero_stage > 0 || (l->cp > 1 && s->distributed.invariant);
    if ((sharded || l->tp > 1) && dt_optimizer_needs_matrices(s))
        return "the optimizer needs unsharded matrices: no ZeRO, no tp";
    if (l->zero_stage > 0 && s->distributed.compress != DT_COMPRESS_NONE)
        return "gradient compression does not support ZeRO";
    if (l->zero_stage > 0 && dt_settings_sync_is_local(s))
        return "local SGD does not support ZeRO";
    if (bound_of_activations(l, s) > 0x1p62)
        return "the activations of a micro-batch overflow 64 bits";
    if (dt_pipeline_check(&l->pipeline, l->batches, &err) < 0)
        return "interleaving needs micro-batches in multiples of pp";
    return NULL;
}

int dt_layout_read(struct dt_plan_layout *l, const struct dt_settings *s, long devices,
                   struct dt_error *err)
{
    long accumulation = s->training.gradient_accumulation_steps;
    *l = (struct dt_plan_layout){
        .pp = s->distributed.pp,
        .cp = s->distributed.cp,
        .tp = s->distributed.tp,
        .dp = devices / (s->distributed.pp * s->distributed.cp * s->distributed.tp),
        .zero_stage = s->distributed.zero_stage,
        .shard = s->distributed.shard_ranks,
        .pipeline = {(enum dt_pipeline_schedule)s->distributed.schedule, (int)s->distributed.pp,
                     (int)s->distributed.virtual_stages},
        .batch = s->training.batch_size,
        .recompute = s->training.recompute,
    };
    if (l->dp < 1 || devices % (l->pp * l->cp * l->tp) != 0)
        return dt_fail(err, DT_EINVALID,
                       "the number of devices, %ld, must be a multiple of pp * cp * tp = "
                       "%ld * %ld * %ld",
                       devices, l->pp, l->cp, l->tp);
    l->batches = (accumulation + l->dp - 1) / l->dp;
    DT_TRY(dt_pipeline_check(&l->pipeline, l->batches, err));
    DT_TRY(dt_pipeline_check(&l->pipeline, accumulation / l->dp, err)); /* the fewest of a rank */
    DT_TRY(dt_tensor_partition_check(&s->model, l->tp, "the model", err));
    DT_TRY(dt_mesh_check_invariant(s, err));
    const char *fault = dt_layout_fault(l, s);
    if (fault)
        return dt_fail(err, DT_EINVALID, "pp %ld, dp %ld, cp %ld, tp %ld: %s", l->pp, l->dp, l->cp,
                       l->tp, fault);
    return 0;
}
