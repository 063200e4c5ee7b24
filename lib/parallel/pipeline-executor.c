/* SPDX-License-Identifier: MIT */
#include "parallel/pipeline-executor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "device/links.h"
#include "device/time-spans.h"
#include "model/context-parallel.h"
#include "model/tensor-parallel.h"

enum boundary {
    BOUNDARY_INPUT,
    BOUNDARY_OUTPUT,
    BOUNDARY_GRADIENT_IN,
    BOUNDARY_GRADIENT_OUT,
    BOUNDARIES
};

#define TAGS 65536 /* of a communicator's messages */

/* --- shape ------------------------------------------------------------------------------------ */

/* Micro-batches that have entered the first model chunk and not yet the last one, which needs the
 * batch too. */
static int64_t count_kept_batches(const struct dt_pipeline_executor *p)
{
    return p->pipeline.chunks > 1 ? p->pipeline.stages : 1;
}

static int64_t count_in_flight(const struct dt_pipeline_executor *p)
{
    int64_t most = 1;
    int stage = p->mesh->part.stage;
    for (int chunk = 0; chunk < p->pipeline.chunks; chunk++) {
        int virtual_stage = chunk * p->pipeline.stages + stage;
        int64_t slots = dt_pipeline_in_flight(&p->pipeline, stage, p->batches, virtual_stage);
        most = slots > most ? slots : most;
    }
    return most;
}

static struct dt_workspace *plan_workspace(const struct dt_pipeline_executor *p, int64_t chunk,
                                           struct dt_workspace *scratch_owner)
{
    const struct dt_model_part *part = &p->mesh->part;
    const struct dt_workspace_shape shape = {
        .batch = p->batch_size,
        .length = p->length,
        .training = true,
        .recompute = p->recompute,
        .run = dt_model_part_run(part, p->model->table.layers,
                                 (int)chunk * part->stages + part->stage),
        .scratch_owner = scratch_owner,
    };
    return dt_workspace_plan(p->model, &shape);
}

/* Workspaces of a model chunk have one size; the very first also has the scratch memory that all
 * share. */
static size_t count_bytes(const struct dt_pipeline_executor *p)
{
    struct dt_workspace *scratch_owner = plan_workspace(p, 0, NULL);
    size_t bytes = dt_workspace_bytes(scratch_owner);
    for (int64_t chunk = 0; chunk < p->pipeline.chunks; chunk++) {
        struct dt_workspace *w = plan_workspace(p, chunk, scratch_owner);
        bytes += (size_t)(p->max_in_flight - (chunk == 0)) * dt_workspace_bytes(w);
        dt_workspace_free(w);
    }
    dt_workspace_free(scratch_owner);
    return bytes;
}

/* Whether this stage sends or receives messages of that kind. */
static bool has_channel(const struct dt_pipeline_executor *p, enum boundary kind)
{
    const struct dt_model_part *part = &p->mesh->part;
    bool before = kind == BOUNDARY_INPUT || kind == BOUNDARY_GRADIENT_OUT;
    if (part->stages == 1 || part->chunks > 1)
        return part->stages > 1;
    return before ? part->stage > 0 : part->stage < part->stages - 1;
}

static void lay_out_channels(struct dt_pipeline_executor *p)
{
    for (int kind = 0; kind < BOUNDARIES; kind++)
        for (int i = 0; i < DT_PIPELINE_BUFFERS && has_channel(p, (enum boundary)kind); i++)
            p->channels[kind].memory[i] = dt_arena_take(&p->channel_memory, p->message_bytes);
}

static bool linked(const struct dt_pipeline_executor *p)
{
    return p->pipeline.stages > 1 && dt_comm_is_on_device(p->pp_group);
}

int dt_pipeline_executor_plan(struct dt_pipeline_executor *p, struct dt_model *model,
                              const struct dt_mesh *mesh, const struct dt_settings *s,
                              struct dt_error *err)
{
    int stages = mesh->part.stages;
    int dp_size = dt_comm_size(mesh->data.all) / mesh->data.cp_size;
    int64_t most = s->training.gradient_accumulation_steps;
    int64_t all = dt_context_parallel_rows(&mesh->part, dt_settings_sequences(s),
                                           s->training.sequence_length);
    int64_t rows = dt_range_count(dt_range_part(all, mesh->part.tp_rank, mesh->part.tp_size));
    *p = (struct dt_pipeline_executor){
        .model = model,
        .mesh = mesh,
        .pp_group = dt_comm_on_device(mesh->pp_group),
        .pipeline = {(enum dt_pipeline_schedule)s->distributed.schedule, stages, mesh->part.chunks},
        .batch_size = dt_settings_sequences(s),
        .length = s->training.sequence_length,
        .message_bytes = (size_t)(rows * s->model.hidden_size) * dt_dtype_size(model->compute),
    };
    if (stages == 1) /* 1F1B holds the fewest activations */
        p->pipeline.schedule = DT_PIPELINE_SCHEDULE_1F1B;
    p->batches = (most + dp_size - 1) / dp_size;
    DT_TRY(dt_pipeline_check(&p->pipeline, p->batches, err));
    DT_TRY(dt_pipeline_check(&p->pipeline, most / dp_size, err)); /* the fewest of a rank */
    p->max_in_flight = count_in_flight(p);
    p->kept_batches = count_kept_batches(p);
    p->recompute = (enum dt_recompute)s->training.recompute;
    p->max_batches = p->batches;
    p->bytes = count_bytes(p) + (size_t)p->max_batches * sizeof *p->losses;
    if (linked(p))
        lay_out_channels(p);
    return 0;
}

int dt_pipeline_executor_allocate(struct dt_pipeline_executor *p, struct dt_error *err)
{
    p->workspaces =
        dt_alloc((size_t)(p->pipeline.chunks * p->max_in_flight), sizeof *p->workspaces);
    for (int64_t i = 0; i < p->pipeline.chunks * p->max_in_flight; i++) {
        p->workspaces[i] = plan_workspace(p, i / p->max_in_flight, i > 0 ? p->workspaces[0] : NULL);
        DT_TRY(dt_workspace_allocate(p->workspaces[i], err));
    }
    p->losses = p->model->device->ops->allocate(p->model->device,
                                                (size_t)p->max_batches * sizeof *p->losses);
    if (p->losses == NULL)
        return dt_fail(err, DT_ENOMEM, "no memory for the losses of a step");
    p->host_losses = dt_alloc((size_t)p->max_batches, sizeof *p->host_losses);
    p->batch = dt_alloc((size_t)p->kept_batches, sizeof *p->batch);
    p->spans = dt_alloc((size_t)p->kept_batches, sizeof *p->spans);
    for (int64_t i = 0; i < p->kept_batches; i++) {
        dt_batch_init(&p->batch[i], p->batch_size, p->length);
        p->spans[i] = dt_alloc((size_t)(2 * p->batch_size * p->length), sizeof **p->spans);
    }
    for (int i = 0; !linked(p) && i < BOUNDARIES * DT_PIPELINE_BUFFERS; i++)
        if (has_channel(p, (enum boundary)(i / DT_PIPELINE_BUFFERS)))
            p->channels[i / DT_PIPELINE_BUFFERS].memory[i % DT_PIPELINE_BUFFERS] =
                dt_alloc(1, p->message_bytes);
    if (linked(p))
        DT_TRY(dt_arena_allocate(&p->channel_memory, p->model->device, err));
    if (linked(p))
        lay_out_channels(p);
    return 0;
}

size_t dt_pipeline_executor_bytes(const struct dt_pipeline_executor *p)
{
    return p->bytes + (p->channel_memory.memory ? p->channel_memory.size : p->channel_memory.used);
}

void dt_pipeline_executor_release(struct dt_pipeline_executor *p)
{
    for (int64_t i = p->pipeline.chunks * p->max_in_flight - 1; p->workspaces && i >= 0; i--)
        dt_workspace_free(p->workspaces[i]);
    for (int64_t i = 0; p->batch && i < p->kept_batches; i++) {
        dt_batch_release(&p->batch[i]);
        free(p->spans[i]);
    }
    for (int i = 0; i < BOUNDARIES * DT_PIPELINE_BUFFERS && p->model && !linked(p); i++)
        free(p->channels[i / DT_PIPELINE_BUFFERS].memory[i % DT_PIPELINE_BUFFERS]);
    if (p->losses)
        p->model->device->ops->release(p->model->device, p->losses,
                                       (size_t)p->max_batches * sizeof *p->losses);
    if (p->channel_memory.memory)
        dt_arena_release(&p->channel_memory, p->model->device);
    free(p->host_losses);
    free(p->workspaces);
    free(p->batch);
    free(p->spans);
    *p = (struct dt_pipeline_executor){0};
}

/* --- messages --------------------------------------------------------------------------------- */

/* The tag of a message of a step. A device communicator does not use tags: each kind of message has
 * a channel, and both stages process micro-batches in one order. dt-architecture(7), Stages of a
 * model, shows why this cannot deadlock. */
static int tag_of(const struct dt_pipeline_executor *p, enum boundary kind, int sender,
                  int64_t batch)
{
    static const enum dt_link_channel device_channels[BOUNDARIES] = {
        [BOUNDARY_INPUT] = DT_LINK_FROM_BEFORE,
        [BOUNDARY_OUTPUT] = DT_LINK_TO_NEXT,
        [BOUNDARY_GRADIENT_IN] = DT_LINK_FROM_NEXT,
        [BOUNDARY_GRADIENT_OUT] = DT_LINK_TO_BEFORE};
    int64_t runs = p->pipeline.stages * p->pipeline.chunks;
    bool gradient = kind == BOUNDARY_GRADIENT_IN || kind == BOUNDARY_GRADIENT_OUT;
    return linked(p) ? (int)device_channels[kind]
                     : (int)(((batch * runs + sender) * 2 + gradient) % TAGS);
}

static int stage_of(const struct dt_pipeline_executor *p, int virtual_stage)
{
    return virtual_stage % p->pipeline.stages;
}

static size_t bytes_of(const struct dt_tensor *states)
{
    return (size_t)(states->rows * states->columns) * dt_dtype_size(states->dtype);
}

/* The rows that this tensor-parallel rank sends or receives: its own with sequence parallelism,
 * otherwise an even part, which the receivers all-gather. */
static struct dt_tensor own_rows(const struct dt_pipeline_executor *p,
                                 const struct dt_tensor *states)
{
    const struct dt_model_part *part = &p->mesh->part;
    struct dt_range own = dt_range_part(states->rows, part->tp_rank, part->tp_size);
    return part->sequence ? *states : dt_tensor_rows(states, own.first, dt_range_count(own));
}

static void pack(const struct dt_pipeline_executor *p, void *memory, const struct dt_tensor *states)
{
    struct dt_device *dev = p->model->device;
    struct dt_tensor box = dt_matrix_of(states->dtype, memory, states->rows, states->columns);
    if (linked(p))
        dev->ops->copy(dev, &box, states);
    else
        dev->ops->download(dev, memory, states->data, bytes_of(states));
}

static void unpack(const struct dt_pipeline_executor *p, struct dt_tensor *states, void *memory)
{
    struct dt_device *dev = p->model->device;
    struct dt_tensor box = dt_matrix_of(states->dtype, memory, states->rows, states->columns);
    if (linked(p))
        dev->ops->copy(dev, states, &box);
    else
        dev->ops->upload(dev, states->data, memory, bytes_of(states));
}

/* Sends hidden states, or their gradients, to the next or the previous virtual stage. */
static int send_states(struct dt_pipeline_executor *p, enum boundary kind, int virtual_stage,
                       int to, int64_t batch, struct dt_tensor states, struct dt_error *err)
{
    struct dt_pipeline_channel *channel = &p->channels[kind];
    int64_t i = channel->begun++ % DT_PIPELINE_BUFFERS;
    states = own_rows(p, &states);
    DT_TRY(dt_comm_await(p->pp_group, channel->messages[i], err));
    pack(p, channel->memory[i], &states);
    channel->messages[i] =
        dt_comm_send(p->pp_group, stage_of(p, to), tag_of(p, kind, virtual_stage, batch),
                     channel->memory[i], bytes_of(&states));
    return 0;
}

static void receive_states(struct dt_pipeline_executor *p, enum boundary kind, int from,
                           int64_t batch, size_t bytes)
{
    struct dt_pipeline_channel *channel = &p->channels[kind];
    int64_t i = channel->begun++ % DT_PIPELINE_BUFFERS;
    channel->messages[i] = dt_comm_receive(p->pp_group, stage_of(p, from),
                                           tag_of(p, kind, from, batch), channel->memory[i], bytes);
}

/* Waits for the oldest receive and copies it into states. */
static int await_states(struct dt_pipeline_executor *p, enum boundary kind, struct dt_tensor states,
                        struct dt_error *err)
{
    struct dt_pipeline_channel *channel = &p->channels[kind];
    int64_t i = channel->ended++ % DT_PIPELINE_BUFFERS;
    struct dt_tensor own = own_rows(p, &states);
    DT_TRY(dt_comm_await(p->pp_group, channel->messages[i], err));
    channel->messages[i] = NULL;
    unpack(p, &own, channel->memory[i]);
    if (!p->mesh->part.sequence)
        dt_tensor_parallel_all_gather(p->model, &states);
    return 0;
}

static bool next_action(const struct dt_pipeline_executor *p, int64_t *position,
                        struct dt_action *a)
{
    return dt_pipeline_next(&p->pipeline, p->mesh->part.stage, p->batches, position, a);
}

/* Starts the next receives of the step while buffers are free. */
static void prefetch(struct dt_pipeline_executor *p, enum boundary kind)
{
    struct dt_pipeline_channel *channel = &p->channels[kind];
    struct dt_action a;
    bool input = kind == BOUNDARY_INPUT;
    while (channel->begun - channel->ended < DT_PIPELINE_BUFFERS &&
           next_action(p, &channel->next, &a))
        if (a.kind == (input ? DT_ACTION_RECEIVE_INPUT : DT_ACTION_RECEIVE_GRADIENT))
            receive_states(p, kind, a.virtual_stage + (input ? -1 : 1), a.batch, p->message_bytes);
}

static int await_sends(struct dt_pipeline_executor *p, enum boundary kind, struct dt_error *err)
{
    for (int i = 0; i < DT_PIPELINE_BUFFERS; i++) {
        struct dt_message *message = p->channels[kind].messages[i];
        p->channels[kind].messages[i] = NULL;
        DT_TRY(dt_comm_await(p->pp_group, message, err));
    }
    return 0;
}

/* --- a step ----------------------------------------------------------------------------------- */

/* Context of the actions of a step. */
struct step {
    struct dt_pipeline_executor *passes;
    const struct dt_micro_batch_source *source;
    const struct dt_pass *options;
};

static struct dt_workspace *work_of(const struct dt_pipeline_executor *p, const struct dt_action *a)
{
    return p->workspaces[a->virtual_stage / p->pipeline.stages * p->max_in_flight +
                         a->batch % p->max_in_flight];
}

/* Copies attention spans, which the source overwrites with the next micro-batch. */
static void keep_spans(struct dt_pipeline_executor *p, int64_t i)
{
    struct dt_batch *batch = &p->batch[i];
    int64_t places = batch->count * batch->length;
    size_t bytes = (size_t)places * sizeof **p->spans;
    if (batch->begins == NULL)
        return;
    memcpy(p->spans[i], batch->begins, bytes);
    memcpy(p->spans[i] + places, batch->ends, bytes);
    batch->begins = p->spans[i];
    batch->ends = p->spans[i] + places;
}

/* Begins a micro-batch in a virtual stage; the first model chunk fetches it from the source. */
static int begin(const struct step *s, const struct dt_action *a, struct dt_error *err)
{
    struct dt_pipeline_executor *p = s->passes;
    int64_t i = a->batch % p->kept_batches;
    if (a->virtual_stage < p->pipeline.stages) {
        DT_TRY(s->source->fill(s->source->context, a->batch, &p->batch[i], err));
        keep_spans(p, i);
    }
    dt_pass_begin(work_of(p, a), &p->batch[i], s->options);
    return 0;
}

static int perform(const struct step *s, const struct dt_action *a, struct dt_error *err)
{
    struct dt_pipeline_executor *p = s->passes;
    struct dt_workspace *w = work_of(p, a);
    switch (a->kind) {
    case DT_ACTION_RECEIVE_INPUT:
        DT_TRY(begin(s, a, err));
        DT_TRY(await_states(p, BOUNDARY_INPUT, dt_pass_input(w), err));
        prefetch(p, BOUNDARY_INPUT);
        return 0;
    case DT_ACTION_FORWARD:
        dt_pass_forward(w);
        return 0;
    case DT_ACTION_SEND_OUTPUT:
        return send_states(p, BOUNDARY_OUTPUT, a->virtual_stage, a->virtual_stage + 1, a->batch,
                           dt_pass_output(w), err);
    case DT_ACTION_RECEIVE_GRADIENT:
        DT_TRY(await_states(p, BOUNDARY_GRADIENT_IN, dt_pass_gradient(w), err));
        prefetch(p, BOUNDARY_GRADIENT_IN);
        return 0;
    case DT_ACTION_BACKWARD:
        dt_pass_backward(w, s->source->gradients(s->source->context, a->batch),
                         p->losses + a->batch);
        return 0;
    case DT_ACTION_SEND_GRADIENT:
        return send_states(p, BOUNDARY_GRADIENT_OUT, a->virtual_stage, a->virtual_stage - 1,
                           a->batch, dt_pass_gradient(w), err);
    }
    abort();
}

static int act(const struct step *s, const struct dt_action *a, struct dt_error *err)
{
    static const char *const names[] = {[DT_ACTION_RECEIVE_INPUT] = "receive activations",
                                        [DT_ACTION_FORWARD] = "forward",
                                        [DT_ACTION_SEND_OUTPUT] = "send activations",
                                        [DT_ACTION_RECEIVE_GRADIENT] = "receive gradients",
                                        [DT_ACTION_BACKWARD] = "backward",
                                        [DT_ACTION_SEND_GRADIENT] = "send gradients"};
    double since = dt_time_spans_begin();
    if (a->kind == DT_ACTION_FORWARD && a->virtual_stage == 0) {
        DT_TRY(begin(s, a, err));
        dt_time_spans_end(DT_TIME_LANE_PHASE, "load", a->batch, since);
        since = dt_time_spans_begin();
    }
    int rc = perform(s, a, err);
    dt_time_spans_end(DT_TIME_LANE_PHASE, names[a->kind], a->batch, since);
    return rc;
}

/* The last stage downloads all losses at once. */
static void report_losses(const struct dt_pipeline_executor *p, int64_t count,
                          const struct dt_micro_batch_source *source)
{
    struct dt_device *dev = p->model->device;
    if (p->mesh->part.stage < p->pipeline.stages - 1)
        return;
    dev->ops->download(dev, p->host_losses, p->losses, (size_t)count * sizeof *p->host_losses);
    for (int64_t i = 0; i < count; i++)
        source->loss(source->context, i, &p->host_losses[i]);
}

static void zero_losses(const struct dt_pipeline_executor *p)
{
    struct dt_device *dev = p->model->device;
    int64_t size = (int64_t)(sizeof *p->losses / sizeof(float));
    struct dt_tensor words = dt_matrix(p->losses, p->batches, size);
    dev->ops->zero(dev, &words);
}

int dt_pipeline_executor_run(struct dt_pipeline_executor *p, int64_t count,
                             const struct dt_micro_batch_source *source,
                             const struct dt_pass *options, struct dt_error *err)
{
    const struct step s = {p, source, options};
    struct dt_action action;
    DT_TRY(dt_pipeline_check(&p->pipeline, count, err));
    assert(count <= p->max_batches);
    p->batches = count;
    zero_losses(p);
    p->channels[BOUNDARY_INPUT].next = p->channels[BOUNDARY_GRADIENT_IN].next = 0;
    prefetch(p, BOUNDARY_INPUT);
    prefetch(p, BOUNDARY_GRADIENT_IN);
    for (int64_t position = 0; next_action(p, &position, &action);)
        DT_TRY(act(&s, &action, err));
    double since = dt_time_spans_begin();
    report_losses(p, count, source);
    DT_TRY(await_sends(p, BOUNDARY_OUTPUT, err));
    DT_TRY(await_sends(p, BOUNDARY_GRADIENT_OUT, err));
    dt_time_spans_end(DT_TIME_LANE_PHASE, "wait for stages", -1, since);
    return 0;
}

int dt_pipeline_executor_score(struct dt_pipeline_executor *p, const struct dt_batch *batch,
                               float *losses, float *hits, struct dt_error *err)
{
    int runs = p->pipeline.stages * p->pipeline.chunks;
    for (int chunk = 0; chunk < p->pipeline.chunks; chunk++) {
        int virtual_stage = chunk * p->pipeline.stages + p->mesh->part.stage;
        struct dt_workspace *w = p->workspaces[chunk * p->max_in_flight];
        dt_pass_begin(w, batch, NULL);
        if (virtual_stage > 0) {
            struct dt_tensor input = dt_pass_input(w), own = own_rows(p, &input);
            receive_states(p, BOUNDARY_INPUT, virtual_stage - 1, 0, bytes_of(&own));
            DT_TRY(await_states(p, BOUNDARY_INPUT, input, err));
        }
        dt_pass_forward(w);
        if (virtual_stage < runs - 1)
            DT_TRY(send_states(p, BOUNDARY_OUTPUT, virtual_stage, virtual_stage + 1, 0,
                               dt_pass_output(w), err));
        else
            dt_pass_score(w, batch, losses, hits);
    }
    return await_sends(p, BOUNDARY_OUTPUT, err);
}
