/* SPDX-License-Identifier: MIT */
#include "plan/sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "model/block.h"
#include "model/tensor-partition.h"
#include "parallel/chunk-codes.h"
#include "parallel/gradient-compression.h"
#include "parallel/pipeline-executor.h"
#include "train/groups.h"
#include "train/memory-plan.h"

static double *part_of(struct dt_part_sizes *p, enum dt_role role)
{
    if (role <= DT_ROLE_TYPE_EMBEDDING)
        return &p->embedding;
    if (role == DT_ROLE_NORM1_WEIGHT || role == DT_ROLE_NORM1_BIAS ||
        role == DT_ROLE_NORM2_WEIGHT || role == DT_ROLE_NORM2_BIAS ||
        role == DT_ROLE_NORM1_OUTPUT_WEIGHT || role == DT_ROLE_NORM2_OUTPUT_WEIGHT ||
        role == DT_ROLE_FINAL_NORM_WEIGHT || role == DT_ROLE_FINAL_NORM_BIAS)
        return &p->norm;
    if (role <= DT_ROLE_PROJECTION_BIAS)
        return &p->attention;
    return role <= DT_ROLE_DOWN_BIAS ? &p->mlp : &p->head;
}

static double padded(const struct dt_table *t, int i)
{
    int64_t end = i + 1 < t->count ? t->params[i + 1].offset : t->elements;
    return (double)(end - t->params[i].offset);
}

static void count_parts(struct dt_base *b, const struct dt_settings *s)
{
    struct dt_table table;
    dt_table_init(&table, &s->model, NULL);
    for (int i = 0; i < table.count; i++)
        *part_of(&b->parts, table.params[i].role) += (double)table.params[i].count;
    b->parts.total = (double)table.parameters;
    dt_table_release(&table);
}

/* Index of the model chunk that a layer belongs to. */
static long chunk_of(const struct dt_plan_layout *l, const struct dt_table *t, int layer)
{
    long chunks = dt_layout_chunks(l), chunk = 0;
    const struct dt_model_part part = dt_layout_part(l, 0);
    if (layer >= t->layers)
        return chunks - 1;
    while (layer >= dt_model_part_run(&part, t->layers, (int)chunk).end)
        chunk++;
    return chunk;
}

/* Elements that PowerSGD sends: two factors of a matrix, vectors uncompressed. */
static double factors_of(const struct dt_param *p, long rank)
{
    const struct dt_compression c = {.kind = DT_COMPRESS_POWERSGD, .rank = rank};
    int64_t thin = dt_compression_q_elements(&c, p);
    return (double)(thin > 0 ? thin + p->shape[0] * rank : p->count);
}

static void count_elements(struct dt_base *b, struct dt_stage_base *stage,
                           const struct dt_settings *s, const struct dt_plan_layout *l,
                           const struct dt_table *t, const struct dt_table *base)
{
    stage->elements = (double)t->elements;
    if (stage == b->stages)
        b->tied = (double)(t->buckets[DT_TOKEN_BUCKET + 1] - t->buckets[DT_TOKEN_BUCKET]);
    for (int layer = 0; layer < t->layers; layer++)
        stage->layers += dt_table_find(base, DT_ROLE_PROJECTION_WEIGHT, layer) != NULL;
    for (int i = 0; i < t->count; i++) {
        stage->factors += factors_of(&t->params[i], s->distributed.compress_rank);
        b->chunk_elements[chunk_of(l, t, t->params[i].layer)] += padded(t, i);
    }
}

/* One of ranks that do not exist. */
static struct dt_comm *imagine(long size, long rank, bool linked)
{
    return dt_comm_imagine((int)size, (int)rank, linked);
}

static struct dt_data_group plan_data_group(const struct dt_plan_layout *l, long dp, long rank,
                                            bool linked)
{
    long copies = dp * l->cp, groups = dp == l->dp ? dt_layout_shard_groups(l) : 1;
    long owners = copies / groups;
    struct dt_data_group r = {.all = imagine(copies, rank, linked), .cp_size = (int)l->cp};
    r.group = groups > 1 ? imagine(owners, rank % owners, linked) : r.all;
    r.across = groups > 1 ? imagine(groups, rank / owners, linked) : NULL;
    return r;
}

/* The mesh of a data-parallel rank, with communicators that only have sizes. */
static struct dt_mesh plan_mesh(const struct dt_settings *s, const struct dt_plan_layout *l,
                                long stage, long dp, long rank)
{
    bool linked = strcmp(dt_comm_backend_names[s->distributed.backend], "nccl") == 0;
    struct dt_mesh mesh = {.world = imagine(l->pp * dp * l->cp * l->tp, 0, linked),
                           .data = plan_data_group(l, dp, rank, linked),
                           .tp_group = imagine(l->tp, 0, linked),
                           .cp_group = imagine(l->cp, 0, linked),
                           .pp_group = imagine(l->pp, 0, linked),
                           .part = dt_layout_part(l, stage)};
    mesh.part.tied_apart |= s->distributed.invariant;
    mesh.part.sequence = s->distributed.sequence_parallel;
    mesh.part.sequence_parts = (int)s->distributed.sequence_parts;
    mesh.part.invariant = s->distributed.invariant;
    return mesh;
}

static void release_mesh(struct dt_mesh *mesh)
{
    dt_comm_close(mesh->world);
    if (mesh->data.group != mesh->data.all)
        dt_comm_close(mesh->data.group);
    dt_comm_close(mesh->data.across);
    dt_comm_close(mesh->data.all);
    dt_comm_close(mesh->tp_group);
    dt_comm_close(mesh->cp_group);
    dt_comm_close(mesh->pp_group);
}

/* The rank's part of the model; planning allocates no parameters and needs no device. */
static struct dt_model *plan_model(const struct dt_settings *s, const struct dt_mesh *mesh)
{
    return dt_model_plan(NULL, &s->model, (enum dt_dtype)s->training.precision, &mesh->part);
}

/* Activations of all micro-batches in flight, planned by the code that training runs. */
static int plan_activations(struct dt_stage_base *b, struct dt_model *model,
                            const struct dt_settings *s, const struct dt_plan_layout *l,
                            const struct dt_mesh *mesh, struct dt_error *err)
{
    struct dt_pipeline_executor passes;
    struct dt_settings one = *s;
    one.training.gradient_accumulation_steps = l->batches;
    int rc = dt_pipeline_executor_plan(&passes, model, mesh, &one, err);
    if (rc == 0)
        b->activations = (double)dt_pipeline_executor_bytes(&passes);
    dt_pipeline_executor_release(&passes);
    return rc;
}

static int plan_stage(struct dt_base *b, const struct dt_settings *s,
                      const struct dt_plan_layout *l, long stage, struct dt_error *err)
{
    struct dt_mesh mesh = plan_mesh(s, l, stage, 1, 0);
    struct dt_model *model = plan_model(s, &mesh);
    int rc = plan_activations(&b->stages[stage], model, s, l, &mesh, err);
    if (rc == 0)
        count_elements(b, &b->stages[stage], s, l, &model->table, model->base);
    dt_model_free(model);
    release_mesh(&mesh);
    return rc;
}

/* State of the whole model on one rank. */
static int count_state(struct dt_base *b, const struct dt_settings *s, struct dt_error *err)
{
    struct dt_rank_sizes whole;
    const struct dt_plan_layout one = {
        .pp = 1, .dp = 1, .cp = 1, .tp = 1, .pipeline = {DT_PIPELINE_SCHEDULE_1F1B, 1, 1}};
    struct dt_stage_base none = {0};
    const struct dt_base base = {.stages = &none};
    struct dt_settings full = *s;
    full.checkpoint.background = true; /* its snapshot is what a checkpoint holds, in fp32 */
    DT_TRY(dt_sizes_stage(&whole, &base, &full, &one, 0, 0, err));
    b->moments = whole.moments / (whole.parameters / sizeof(float));
    b->state = whole.snapshot;
    return 0;
}

int dt_base_init(struct dt_base *b, const struct dt_settings *s, const struct dt_plan_layout *l,
                 struct dt_error *err)
{
    *b = (struct dt_base){
        .element = (double)dt_dtype_size((enum dt_dtype)s->training.precision),
        .chunk_elements = dt_alloc((size_t)dt_layout_chunks(l), sizeof *b->chunk_elements),
        .stages = dt_alloc((size_t)l->pp, sizeof *b->stages),
    };
    count_parts(b, s);
    int rc = count_state(b, s, err);
    for (long stage = 0; stage < l->pp && rc == 0; stage++)
        rc = plan_stage(b, s, l, stage, err);
    if (rc < 0)
        dt_base_release(b);
    return rc;
}

void dt_base_release(struct dt_base *b)
{
    free(b->stages);
    free(b->chunk_elements);
    b->stages = NULL;
    b->chunk_elements = NULL;
}

long dt_sizes_reductions(const struct dt_settings *s, const struct dt_plan_layout *l)
{
    return (l->zero_stage >= 2 || l->cp > 1) && s->distributed.invariant ? l->batches : 1;
}

/* Bytes of a micro-batch's residual stream. */
static double hidden_bytes(const struct dt_base *b, const struct dt_settings *s,
                           const struct dt_plan_layout *l)
{
    return dt_layout_tokens(l, s) * (double)s->model.hidden_size * b->element;
}

/* From training's own memory plan. */
static struct dt_rank_sizes sizes_of(struct dt_train_state *store, size_t activations,
                                     const struct dt_settings *s)
{
    struct dt_snapshot snapshot;
    dt_snapshot_plan(&snapshot, store, s->checkpoint.background);
    const struct dt_memory_plan p = dt_memory_plan(
        store->model, store, activations,
        s->training.objective == DT_TRAINING_OBJECTIVE_GRPO ? dt_groups_bytes(store->model, s) : 0,
        &snapshot);
    return (struct dt_rank_sizes){
        .parameters = (double)p.parameters,
        .weights = (double)p.weights,
        .gradients = (double)p.gradients,
        .moments = (double)p.moments,
        .average = (double)p.average,
        .scratch = (double)p.scratch,
        .activations = (double)p.activations,
        .sampler = (double)p.sampler,
        .total = (double)p.device,
        .snapshot = (double)p.snapshot,
    };
}

int dt_sizes_stage(struct dt_rank_sizes *sizes, const struct dt_base *b,
                   const struct dt_settings *s, const struct dt_plan_layout *l, long stage,
                   long rank, struct dt_error *err)
{
    struct dt_train_state store;
    struct dt_mesh mesh = plan_mesh(s, l, stage, l->dp, rank);
    struct dt_model *model = plan_model(s, &mesh);
    int rc = dt_train_state_plan(&store, model, s, &mesh, err);
    if (rc == 0)
        *sizes = sizes_of(&store, (size_t)b->stages[stage].activations, s);
    dt_train_state_release(&store);
    dt_model_free(model);
    release_mesh(&mesh);
    return rc;
}

/* Activations and gradients of a micro-batch that a stage sends to its neighbours; it receives the
 * same number. */
static long stage_messages(const struct dt_plan_layout *l, long stage)
{
    return 2 * l->pipeline.chunks - (stage == 0) - (stage == l->pp - 1);
}

/* Tensor parallelism's collectives, as dt-architecture(7) lists them: of the residual stream in
 * each layer, embedding and head, of the loss, and all-gathers between stages. Products are fp32
 * until they are summed. Gradients of norms, which are small, are ignored. */
static double tensor_bytes(const struct dt_base *b, const struct dt_settings *s,
                           const struct dt_plan_layout *l, long stage)
{
    static const double each[2][3] = {{8, 8, 10}, {8, 10, 11}};
    bool sequence = s->distributed.sequence_parallel, masked = dt_model_is_masked(&s->model);
    double t = (double)l->tp, rows = dt_layout_tokens(l, s);
    double targets = masked ? s->data.mask_rate * rows : rows, floats = 0;
    double streams = each[sequence][l->recompute] * rows * (double)b->stages[stage].layers;
    if (!sequence) /* all-gathers between stages */
        streams += (double)stage_messages(l, stage) * rows;
    if (stage == 0)
        streams += 2 * rows;
    bool late = sequence && !masked && b->element == sizeof(float);
    double sums =
        (double)b->stages[stage].layers * rows * (l->recompute == DT_RECOMPUTE_FULL ? 5 : 4);
    if (stage == l->pp - 1) {
        streams += (sequence ? rows : 0) + (late ? rows : 2 * targets);
        sums += late ? rows : targets;
        floats = DT_LOGIT_SUMS * (DT_LOGIT_PARTS % l->tp == 0 ? DT_LOGIT_PARTS : t) * targets;
    }
    floats += sums * (double)s->model.hidden_size;
    return (t - 1) / t * (double)l->batches *
           ((streams - sums) * (double)s->model.hidden_size * b->element + floats * sizeof(float));
}

double dt_sizes_context_bytes(const struct dt_base *b, const struct dt_settings *s,
                              const struct dt_plan_layout *l, bool backward)
{
    const struct dt_tensor_partition partition =
        dt_tensor_partition_of(&s->model, (int)l->tp_rank, (int)l->tp);
    double columns = (double)(dt_model_head_dim(&s->model) * dt_range_count(partition.kv_heads));
    double passes = backward && l->recompute == DT_RECOMPUTE_FULL ? 2 : 1;
    return (double)(l->cp - 1) * dt_layout_tokens(l, s) * 2 * columns *
           (passes * b->element + (backward ? sizeof(float) : 0));
}

/* Gradients of tied embeddings, which the first and the last stage exchange. */
static double tied_bytes(const struct dt_base *b, const struct dt_settings *s,
                         const struct dt_plan_layout *l, long stage)
{
    bool ends = stage == 0 || stage == l->pp - 1;
    if (l->pp == 1 || !ends || !s->model.tie_word_embeddings)
        return 0;
    return b->tied * sizeof(float) / (l->zero_stage > 0 ? (double)dt_layout_shard_size(l) : 1);
}

double dt_sizes_sent_gradient(const struct dt_settings *s)
{
    return s->distributed.collectives == DT_COLLECTIVES_NCCL_BF16 ? sizeof(uint16_t)
                                                                  : sizeof(float);
}

/* Bytes per parameter: reduce-scatter and all-gather in a ZeRO group, all-reduce across groups. */
static double data_bytes(const struct dt_base *b, const struct dt_settings *s,
                         const struct dt_plan_layout *l)
{
    const double gradient = dt_sizes_sent_gradient(s), owners = (double)dt_layout_shard_size(l);
    double groups = (double)dt_layout_shard_groups(l), copies = (double)dt_layout_dp_cp_size(l);
    double reduced = gradient * (double)dt_sizes_reductions(s, l);
    double gathered = l->zero_stage == 0   ? gradient
                      : l->zero_stage == 3 ? 2 * (double)l->batches * b->element
                                           : b->element;
    return (owners - 1) / owners * (reduced + gathered) + 2 * (groups - 1) / copies * gradient;
}

/* Bytes between data-parallel ranks per step. Local SGD averages parameters and optimizer state
 * every local_steps; a parameter server sends weights and receives gradients: the larger counts. */
static double data_parallel_bytes(const struct dt_base *b, const struct dt_settings *s,
                                  const struct dt_plan_layout *l, const struct dt_stage_base *stage)
{
    const double others = (double)dt_layout_dp_cp_size(l) - 1, sum = 2 * others / (others + 1);
    const double average = s->training.ema_decay > 0 ? sizeof(float) : 0, n = stage->elements;
    if (s->distributed.sync == DT_SYNC_STREAMING_DILOCO)
        return sum * n / DT_CHUNK_CODES_SIZE *
               (double)dt_chunk_codes_bytes(
                   (enum dt_outer_precision)s->distributed.outer_precision) /
               (double)s->distributed.local_steps;
    if (dt_settings_sync_is_local(s))
        return sum * n * (sizeof(float) + b->moments + average) /
               (double)s->distributed.local_steps;
    if (s->distributed.sync == DT_SYNC_PARAMETER_SERVER)
        return others > 0 ? n * fmax(others * b->element, sizeof(float)) : 0;
    switch ((enum dt_compress)s->distributed.compress) {
    case DT_COMPRESS_BF16:
        return sum * n * sizeof(uint16_t);
    case DT_COMPRESS_TOPK:
        return others * n * s->distributed.compress_share * 2 * sizeof(float);
    case DT_COMPRESS_POWERSGD:
        return sum * stage->factors * sizeof(float);
    case DT_COMPRESS_NONE:
        break;
    }
    return n * data_bytes(b, s, l);
}

struct dt_traffic dt_sizes_stage_traffic(const struct dt_base *b, const struct dt_settings *s,
                                         const struct dt_plan_layout *l, long stage)
{
    const double batches = (double)l->batches, layers = (double)b->stages[stage].layers;
    double ranks = (double)l->tp, hidden = hidden_bytes(b, s, l);
    struct dt_traffic t = {
        .data = data_parallel_bytes(b, s, l, &b->stages[stage]),
        .context = batches * layers *
                   (dt_sizes_context_bytes(b, s, l, false) + dt_sizes_context_bytes(b, s, l, true)),
        .tensor = tensor_bytes(b, s, l, stage),
        .pipeline = l->pp > 1 ? (double)stage_messages(l, stage) * hidden / ranks * batches : 0,
    };
    t.pipeline += tied_bytes(b, s, l, stage);
    t.total = t.data + t.context + t.tensor + t.pipeline;
    return t;
}
