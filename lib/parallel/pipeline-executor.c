/* SPDX-License-Identifier: MIT */
#include "parallel/pipeline-executor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "device/links.h"
#include "model/context-parallel.h"
#include "model/tensor-parallel.h"

enum box { BOX_INPUT, BOX_OUTPUT, BOX_GRADIENT_IN, BOX_GRADIENT_OUT, BOXES };

#define CHANNELS 65536 /* of a communicator's messages */

/* --- shape ------------------------------------------------------------------------------------ */

/* Micro-batches that a stage has passed forward through its first run and not yet through its
 * last, which needs them again. */
static int64_t count_held(const struct dt_passes *p)
{
    return p->pipeline.chunks > 1 ? p->pipeline.stages : 1;
}

static int64_t count_slots(const struct dt_passes *p)
{
    int64_t most = 1;
    int stage = p->mesh->part.stage;
    for (int chunk = 0; chunk < p->pipeline.chunks; chunk++) {
        int run = chunk * p->pipeline.stages + stage;
        int64_t slots = dt_pipeline_under_way(&p->pipeline, stage, p->batches, run);
        most = slots > most ? slots : most;
    }
    return most;
}

static struct dt_workspace *plan_workspace(const struct dt_passes *p, int64_t chunk,
                                           struct dt_workspace *lender)
{
    const struct dt_model_part *part = &p->mesh->part;
    const struct dt_workspace_shape shape = {
        .batch = p->batch_size,
        .length = p->length,
        .training = true,
        .recompute = p->recompute,
        .run = dt_model_part_run(part, p->model->table.layers,
                                 (int)chunk * part->stages + part->stage),
        .lender = lender,
    };
    return dt_workspace_plan(p->model, &shape);
}

/* Those of a run are alike, but for the one that lends. */
static size_t count_bytes(const struct dt_passes *p)
{
    struct dt_workspace *lender = plan_workspace(p, 0, NULL);
    size_t bytes = dt_workspace_bytes(lender);
    for (int64_t chunk = 0; chunk < p->pipeline.chunks; chunk++) {
        struct dt_workspace *w = plan_workspace(p, chunk, lender);
        bytes += (size_t)(p->slots - (chunk == 0)) * dt_workspace_bytes(w);
        dt_workspace_free(w);
    }
    dt_workspace_free(lender);
    return bytes;
}

/* Whether this stage has messages of that kind. */
static bool has_box(const struct dt_passes *p, enum box kind)
{
    const struct dt_model_part *part = &p->mesh->part;
    bool before = kind == BOX_INPUT || kind == BOX_GRADIENT_OUT;
    if (part->stages == 1 || part->chunks > 1)
        return part->stages > 1;
    return before ? part->stage > 0 : part->stage < part->stages - 1;
}

static void lay_out_boxes(struct dt_passes *p)
{
    for (int kind = 0; kind < BOXES; kind++)
        for (int i = 0; i < DT_BOXES && has_box(p, (enum box)kind); i++)
            p->boxes[kind].memory[i] = dt_arena_take(&p->box_memory, p->stream_bytes);
}

static bool linked(const struct dt_passes *p)
{
    return p->pipeline.stages > 1 && dt_comm_is_on_device(p->stages);
}

int dt_passes_plan(struct dt_passes *p, struct dt_model *model, const struct dt_mesh *mesh,
                   const struct dt_settings *s, struct dt_error *err)
{
    int stages = mesh->part.stages;
    int dp_size = dt_comm_size(mesh->data.all) / mesh->data.cp_size;
    int64_t most = s->training.gradient_accumulation_steps;
    int64_t all =
        dt_context_parallel_rows(&mesh->part, s->training.batch_size, s->training.sequence_length);
    int64_t rows = dt_range_count(dt_range_part(all, mesh->part.tp_rank, mesh->part.tp_size));
    *p = (struct dt_passes){
        .model = model,
        .mesh = mesh,
        .stages = dt_comm_on_device(mesh->stages),
        .pipeline = {(enum dt_pipeline_schedule)s->distributed.schedule, stages, mesh->part.chunks},
        .batch_size = s->training.batch_size,
        .length = s->training.sequence_length,
        .stream_bytes = (size_t)(rows * s->model.hidden_size) * dt_dtype_size(model->compute),
    };
    if (stages == 1) /* all schedules are one, but for what they would hold */
        p->pipeline.schedule = DT_PIPELINE_SCHEDULE_1F1B;
    p->batches = (most + dp_size - 1) / dp_size;
    DT_TRY(dt_pipeline_check(&p->pipeline, p->batches, err));
    p->slots = count_slots(p);
    p->held = count_held(p);
    p->recompute = (enum dt_recompute)s->training.recompute;
    p->most = p->batches;
    p->bytes = count_bytes(p) + (size_t)p->most * sizeof *p->losses;
    if (linked(p))
        lay_out_boxes(p);
    return 0;
}

int dt_passes_allocate(struct dt_passes *p, struct dt_error *err)
{
    p->work = dt_alloc((size_t)(p->pipeline.chunks * p->slots), sizeof *p->work);
    for (int64_t i = 0; i < p->pipeline.chunks * p->slots; i++) {
        p->work[i] = plan_workspace(p, i / p->slots, i > 0 ? p->work[0] : NULL);
        DT_TRY(dt_workspace_allocate(p->work[i], err));
    }
    p->losses =
        p->model->device->ops->allocate(p->model->device, (size_t)p->most * sizeof *p->losses);
    if (p->losses == NULL)
        return dt_fail(err, DT_ENOMEM, "no memory for the losses of a step");
    p->fetched = dt_alloc((size_t)p->most, sizeof *p->fetched);
    p->batch = dt_alloc((size_t)p->held, sizeof *p->batch);
    p->spans = dt_alloc((size_t)p->held, sizeof *p->spans);
    for (int64_t i = 0; i < p->held; i++) {
        dt_batch_init(&p->batch[i], p->batch_size, p->length);
        p->spans[i] = dt_alloc((size_t)(2 * p->batch_size * p->length), sizeof **p->spans);
    }
    for (int i = 0; !linked(p) && i < BOXES * DT_BOXES; i++)
        if (has_box(p, (enum box)(i / DT_BOXES)))
            p->boxes[i / DT_BOXES].memory[i % DT_BOXES] = dt_alloc(1, p->stream_bytes);
    if (linked(p))
        DT_TRY(dt_arena_allocate(&p->box_memory, p->model->device, err));
    if (linked(p))
        lay_out_boxes(p);
    return 0;
}

size_t dt_passes_bytes(const struct dt_passes *p)
{
    return p->bytes + (p->box_memory.memory ? p->box_memory.size : p->box_memory.used);
}

void dt_passes_release(struct dt_passes *p)
{
    for (int64_t i = p->pipeline.chunks * p->slots - 1; p->work && i >= 0; i--)
        dt_workspace_free(p->work[i]);
    for (int64_t i = 0; p->batch && i < p->held; i++) {
        dt_batch_release(&p->batch[i]);
        free(p->spans[i]);
    }
    for (int i = 0; i < BOXES * DT_BOXES && p->model && !linked(p); i++)
        free(p->boxes[i / DT_BOXES].memory[i % DT_BOXES]);
    if (p->losses)
        p->model->device->ops->release(p->model->device, p->losses,
                                       (size_t)p->most * sizeof *p->losses);
    if (p->box_memory.memory)
        dt_arena_release(&p->box_memory, p->model->device);
    free(p->fetched);
    free(p->work);
    free(p->batch);
    free(p->spans);
    *p = (struct dt_passes){0};
}

/* --- messages --------------------------------------------------------------------------------- */

/* A step's messages between two stages have channels of their own. On links each kind has a lane,
 * in which they meet without a name, since both sides pass micro-batches in one order; why nobody
 * waits for ever there says dt-architecture(7), Stages of a model. */
static int channel(const struct dt_passes *p, enum box kind, int sender, int64_t batch)
{
    static const enum dt_link_channel lanes[BOXES] = {[BOX_INPUT] = DT_LINK_FROM_BEFORE,
                                                      [BOX_OUTPUT] = DT_LINK_TO_NEXT,
                                                      [BOX_GRADIENT_IN] = DT_LINK_FROM_NEXT,
                                                      [BOX_GRADIENT_OUT] = DT_LINK_TO_BEFORE};
    int64_t runs = p->pipeline.stages * p->pipeline.chunks;
    bool gradient = kind == BOX_GRADIENT_IN || kind == BOX_GRADIENT_OUT;
    return linked(p) ? (int)lanes[kind]
                     : (int)(((batch * runs + sender) * 2 + gradient) % CHANNELS);
}

static int stage_of(const struct dt_passes *p, int run)
{
    return run % p->pipeline.stages;
}

static size_t bytes_of(const struct dt_tensor *stream)
{
    return (size_t)(stream->rows * stream->columns) * dt_dtype_size(stream->dtype);
}

/* What of a stream crosses: slices that have all rows send an even part of them each, and what
 * comes they gather. */
static struct dt_tensor crossing(const struct dt_passes *p, const struct dt_tensor *stream)
{
    const struct dt_model_part *part = &p->mesh->part;
    struct dt_range own = dt_range_part(stream->rows, part->tp_rank, part->tp_size);
    return part->sequence ? *stream : dt_tensor_rows(stream, own.first, dt_range_count(own));
}

static void into_box(const struct dt_passes *p, void *memory, const struct dt_tensor *stream)
{
    struct dt_device *dev = p->model->device;
    struct dt_tensor box = dt_matrix_of(stream->dtype, memory, stream->rows, stream->columns);
    if (linked(p))
        dev->ops->copy(dev, &box, stream);
    else
        dev->ops->download(dev, memory, stream->data, bytes_of(stream));
}

static void out_of_box(const struct dt_passes *p, struct dt_tensor *stream, void *memory)
{
    struct dt_device *dev = p->model->device;
    struct dt_tensor box = dt_matrix_of(stream->dtype, memory, stream->rows, stream->columns);
    if (linked(p))
        dev->ops->copy(dev, stream, &box);
    else
        dev->ops->upload(dev, stream->data, memory, bytes_of(stream));
}

/* Sends a stream of a run to the run before or behind it. */
static int send_stream(struct dt_passes *p, enum box kind, int run, int to, int64_t batch,
                       struct dt_tensor stream, struct dt_error *err)
{
    struct dt_message_buffer *box = &p->boxes[kind];
    int64_t i = box->begun++ % DT_BOXES;
    stream = crossing(p, &stream);
    DT_TRY(dt_comm_await(p->stages, box->messages[i], err));
    into_box(p, box->memory[i], &stream);
    box->messages[i] = dt_comm_send(p->stages, stage_of(p, to), channel(p, kind, run, batch),
                                    box->memory[i], bytes_of(&stream));
    return 0;
}

static void receive_stream(struct dt_passes *p, enum box kind, int from, int64_t batch,
                           size_t bytes)
{
    struct dt_message_buffer *box = &p->boxes[kind];
    int64_t i = box->begun++ % DT_BOXES;
    box->messages[i] = dt_comm_receive(p->stages, stage_of(p, from), channel(p, kind, from, batch),
                                       box->memory[i], bytes);
}

/* The oldest message that was begun comes into a stream. */
static int take_stream(struct dt_passes *p, enum box kind, struct dt_tensor stream,
                       struct dt_error *err)
{
    struct dt_message_buffer *box = &p->boxes[kind];
    int64_t i = box->ended++ % DT_BOXES;
    struct dt_tensor own = crossing(p, &stream);
    DT_TRY(dt_comm_await(p->stages, box->messages[i], err));
    box->messages[i] = NULL;
    out_of_box(p, &own, box->memory[i]);
    if (!p->mesh->part.sequence)
        dt_tensor_parallel_all_gather(p->model, &stream);
    return 0;
}

static bool next_action(const struct dt_passes *p, int64_t *place, struct dt_action *a)
{
    return dt_pipeline_next(&p->pipeline, p->mesh->part.stage, p->batches, place, a);
}

/* Begins the next receives of the step, as many as there is room for. */
static void receive_ahead(struct dt_passes *p, enum box kind)
{
    struct dt_message_buffer *box = &p->boxes[kind];
    struct dt_action a;
    bool input = kind == BOX_INPUT;
    while (box->begun - box->ended < DT_BOXES && next_action(p, &box->next, &a))
        if (a.kind == (input ? DT_ACTION_RECEIVE_INPUT : DT_ACTION_RECEIVE_GRADIENT))
            receive_stream(p, kind, a.run + (input ? -1 : 1), a.batch, p->stream_bytes);
}

static int end_sends(struct dt_passes *p, enum box kind, struct dt_error *err)
{
    for (int i = 0; i < DT_BOXES; i++) {
        struct dt_message *message = p->boxes[kind].messages[i];
        p->boxes[kind].messages[i] = NULL;
        DT_TRY(dt_comm_await(p->stages, message, err));
    }
    return 0;
}

/* --- a step ----------------------------------------------------------------------------------- */

/* What the actions of a step are done with. */
struct step {
    struct dt_passes *passes;
    const struct dt_pass_source *source;
    const struct dt_pass *how;
};

static struct dt_workspace *work_of(const struct dt_passes *p, const struct dt_action *a)
{
    return p->work[a->run / p->pipeline.stages * p->slots + a->batch % p->slots];
}

/* The source lends spans until it is asked again. */
static void keep_spans(struct dt_passes *p, int64_t i)
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

/* The micro-batch of an action begins its pass through a run. */
static int begin(const struct step *s, const struct dt_action *a, struct dt_error *err)
{
    struct dt_passes *p = s->passes;
    int64_t i = a->batch % p->held;
    if (a->run < p->pipeline.stages) {
        DT_TRY(s->source->fill(s->source->context, a->batch, &p->batch[i], err));
        keep_spans(p, i);
    }
    dt_pass_begin(work_of(p, a), &p->batch[i], s->how);
    return 0;
}

static int act(const struct step *s, const struct dt_action *a, struct dt_error *err)
{
    struct dt_passes *p = s->passes;
    struct dt_workspace *w = work_of(p, a);
    switch (a->kind) {
    case DT_ACTION_RECEIVE_INPUT:
        DT_TRY(begin(s, a, err));
        DT_TRY(take_stream(p, BOX_INPUT, dt_pass_input(w), err));
        receive_ahead(p, BOX_INPUT);
        return 0;
    case DT_ACTION_FORWARD:
        if (a->run == 0)
            DT_TRY(begin(s, a, err));
        dt_pass_forward(w);
        return 0;
    case DT_ACTION_SEND_OUTPUT:
        return send_stream(p, BOX_OUTPUT, a->run, a->run + 1, a->batch, dt_pass_output(w), err);
    case DT_ACTION_RECEIVE_GRADIENT:
        DT_TRY(take_stream(p, BOX_GRADIENT_IN, dt_pass_gradient(w), err));
        receive_ahead(p, BOX_GRADIENT_IN);
        return 0;
    case DT_ACTION_BACKWARD:
        dt_pass_backward(w, s->source->gradients(s->source->context, a->batch),
                         p->losses + a->batch);
        return 0;
    case DT_ACTION_SEND_GRADIENT:
        return send_stream(p, BOX_GRADIENT_OUT, a->run, a->run - 1, a->batch, dt_pass_gradient(w),
                           err);
    }
    abort();
}

/* The last stage has the losses, and waits for them once. */
static void report_losses(const struct dt_passes *p, int64_t count,
                          const struct dt_pass_source *source)
{
    struct dt_device *dev = p->model->device;
    if (p->mesh->part.stage < p->pipeline.stages - 1)
        return;
    dev->ops->download(dev, p->fetched, p->losses, (size_t)count * sizeof *p->fetched);
    for (int64_t i = 0; i < count; i++)
        source->loss(source->context, i, p->fetched[i]);
}

int dt_passes_run(struct dt_passes *p, int64_t count, const struct dt_pass_source *source,
                  const struct dt_pass *how, struct dt_error *err)
{
    const struct step s = {p, source, how};
    struct dt_action action;
    DT_TRY(dt_pipeline_check(&p->pipeline, count, err));
    assert(count <= p->most);
    p->batches = count;
    p->boxes[BOX_INPUT].next = p->boxes[BOX_GRADIENT_IN].next = 0;
    receive_ahead(p, BOX_INPUT);
    receive_ahead(p, BOX_GRADIENT_IN);
    for (int64_t place = 0; next_action(p, &place, &action);)
        DT_TRY(act(&s, &action, err));
    report_losses(p, count, source);
    DT_TRY(end_sends(p, BOX_OUTPUT, err));
    return end_sends(p, BOX_GRADIENT_OUT, err);
}

int dt_passes_score(struct dt_passes *p, const struct dt_batch *batch, float *losses, float *hits,
                    struct dt_error *err)
{
    int runs = p->pipeline.stages * p->pipeline.chunks;
    for (int chunk = 0; chunk < p->pipeline.chunks; chunk++) {
        int run = chunk * p->pipeline.stages + p->mesh->part.stage;
        struct dt_workspace *w = p->work[chunk * p->slots];
        dt_pass_begin(w, batch, NULL);
        if (run > 0) {
            struct dt_tensor input = dt_pass_input(w), own = crossing(p, &input);
            receive_stream(p, BOX_INPUT, run - 1, 0, bytes_of(&own));
            DT_TRY(take_stream(p, BOX_INPUT, input, err));
        }
        dt_pass_forward(w);
        if (run < runs - 1)
            DT_TRY(send_stream(p, BOX_OUTPUT, run, run + 1, 0, dt_pass_output(w), err));
        else
            dt_pass_score(w, batch, losses, hits);
    }
    return end_sends(p, BOX_OUTPUT, err);
}
