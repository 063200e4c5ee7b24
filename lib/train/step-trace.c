/* SPDX-License-Identifier: MIT */
#include "train/step-trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define NAME_BYTES 64

/* --- where ------------------------------------------------------------------------------------ */

int dt_step_trace_read_range(const char *text, const char *name, long *first, long *last,
                             struct dt_error *err)
{
    char rest;
    *first = *last = 0;
    if (*text == '\0')
        return 0;
    int count = sscanf(text, "%ld:%ld%c", first, last, &rest);
    if (count == 1 && sscanf(text, "%ld%c", first, &rest) == 1)
        *last = *first;
    else if (count != 2)
        *first = 0;
    if (*first >= 1 && *last >= *first)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s must be a step from 1 on, or two as 5:7, not '%s'", name,
                   text);
}

static bool is_traced(const struct dt_step_trace *t)
{
    return t->points && t->first <= t->step && t->step <= t->last;
}

/* Ranks that hold equal hidden states: one of them counts. */
static bool counts_states(const struct dt_step_trace *t)
{
    const struct dt_model_part *part = &t->state->model->part;
    return part->tp_rank == 0 || part->sequence;
}

static bool counts_batches(const struct dt_step_trace *t)
{
    const struct dt_model_part *part = &t->state->model->part;
    return part->tp_rank == 0 && part->cp_rank == 0 && part->stage == 0;
}

static size_t point_count(const struct dt_step_trace *t)
{
    return (size_t)(t->state->model->table.layers + 1) * DT_TRACE_POINTS;
}

static size_t batch_count(const struct dt_step_trace *t)
{
    return (size_t)t->settings->training.gradient_accumulation_steps;
}

/* "layer.3.middle"; of the layer after the last, "final.output" and "final.input". */
static const char *name_point(const struct dt_step_trace *t, int layer, enum dt_trace_point point,
                              char name[NAME_BYTES])
{
    static const char *const names[] = {[DT_TRACE_POINT_INPUT] = "input",
                                        [DT_TRACE_POINT_MIDDLE] = "middle",
                                        [DT_TRACE_POINT_OUTPUT] = "output",
                                        [DT_TRACE_POINT_GRADIENT] = "input"};
    if (layer == t->state->model->table.layers)
        snprintf(name, NAME_BYTES, "final.%s", names[point]);
    else
        snprintf(name, NAME_BYTES, "layer.%d.%s", layer, names[point]);
    return name;
}

/* --- hidden states ---------------------------------------------------------------------------- */

/* Adds rows in host memory. */
static void add_rows(const struct dt_workspace *work, struct dt_sum_hash *hash, uint64_t seed,
                     const struct dt_tensor *x, const char *host)
{
    size_t bytes = (size_t)x->columns * dt_dtype_size(x->dtype);
    for (int64_t i = 0; i < x->rows; i++) {
        uint64_t first = dt_pass_token(work, i) * (uint64_t)x->columns;
        const void *row = host + (size_t)i * bytes;
        if (x->dtype == DT_DTYPE_F32)
            dt_sum_hash_add(hash, seed, first, row, (size_t)x->columns);
        else
            dt_sum_hash_add_narrow(hash, seed, first, row, (size_t)x->columns);
    }
}

static void see(void *context, const struct dt_workspace *work, enum dt_trace_point point,
                int layer, const struct dt_tensor *x)
{
    struct dt_step_trace *t = context;
    char name[NAME_BYTES];
    struct dt_device *dev = t->state->model->device;
    size_t which = (size_t)layer * DT_TRACE_POINTS + (size_t)point;
    if (point == DT_TRACE_POINT_LOGITS)
        return;
    uint64_t length = (uint64_t)t->settings->training.sequence_length;
    uint64_t sample = dt_pass_token(work, 0) / length - t->samples;
    bool *seen =
        &t->seen[which * batch_count(t) + sample / (uint64_t)dt_settings_sequences(t->settings)];
    if (*seen || !counts_states(t))
        return;
    *seen = true;
    size_t bytes = (size_t)(x->rows * x->columns) * dt_dtype_size(x->dtype);
    char *host = dt_alloc(1, bytes + 1);
    dev->ops->download(dev, host, x->data, bytes);
    add_rows(work, &t->points[which], dt_sum_hash_seed(name_point(t, layer, point, name)), x, host);
    free(host);
}

/* What each rank tells the others in every step. */
struct dt_step_notice {
    struct dt_sum_hash batch;
    uint64_t flags;
};

/* --- a step ----------------------------------------------------------------------------------- */

int dt_step_trace_init(struct dt_step_trace *t, const struct dt_settings *settings,
                       struct dt_train_state *state, struct dt_comm *comm,
                       const struct dt_trace_sink *sink, struct dt_error *err)
{
    *t = (struct dt_step_trace){
        .settings = settings, .state = state, .comm = comm, .sink = *sink, .hook = {t, see}};
    t->flags = dt_alloc((size_t)dt_comm_size(comm), 1);
    t->notices = dt_alloc((size_t)dt_comm_size(comm), sizeof *t->notices);
    dt_state_hash_init(&t->parameters, state, DT_SNAPSHOT_PARAMETERS);
    DT_TRY(dt_step_trace_read_range(settings->training.trace_steps, "training.trace_steps",
                                    &t->first, &t->last, err));
    if (t->last == 0)
        return 0;
    dt_state_hash_init(&t->optimizer, state, DT_SNAPSHOT_MOMENTS);
    t->points = dt_alloc(point_count(t), sizeof *t->points);
    t->seen = dt_alloc(point_count(t) * batch_count(t), sizeof *t->seen);
    return 0;
}

void dt_step_trace_release(struct dt_step_trace *t)
{
    dt_state_hash_release(&t->parameters);
    dt_state_hash_release(&t->optimizer);
    free(t->flags);
    free(t->notices);
    free(t->points);
    free(t->seen);
    *t = (struct dt_step_trace){0};
}

void dt_step_trace_begin(struct dt_step_trace *t, long step, uint64_t samples)
{
    t->step = step;
    t->samples = samples;
    t->batch = (struct dt_sum_hash){{0}};
    if (!is_traced(t))
        return;
    memset(t->points, 0, point_count(t) * sizeof *t->points);
    memset(t->seen, 0, point_count(t) * batch_count(t) * sizeof *t->seen);
    t->state->model->trace = &t->hook;
}

void dt_step_trace_add_batch(struct dt_step_trace *t, int64_t i, const struct dt_batch *batch)
{
    uint64_t places = (uint64_t)(batch->count * batch->length), first = (uint64_t)i * places;
    if (!counts_batches(t))
        return;
    dt_sum_hash_add(&t->batch, dt_sum_hash_seed("inputs"), first, (const uint32_t *)batch->inputs,
                    places);
    dt_sum_hash_add(&t->batch, dt_sum_hash_seed("targets"), first, (const uint32_t *)batch->targets,
                    places);
}

static int write_line(const struct dt_step_trace *t, const char *operation, const char *tensor,
                      struct dt_sum_hash hash, struct dt_error *err)
{
    const struct dt_trace_line line = {t->step, operation, tensor, hash};
    return t->sink.write(t->sink.context, &line, err);
}

static int write_point(const struct dt_step_trace *t, const char *operation, int layer,
                       enum dt_trace_point point, struct dt_error *err)
{
    char name[NAME_BYTES];
    return write_line(t, operation, name_point(t, layer, point, name),
                      t->points[layer * DT_TRACE_POINTS + (int)point], err);
}

static int write_tensors(const struct dt_step_trace *t, const struct dt_state_hash *hashes,
                         const char *operation, struct dt_error *err)
{
    for (int i = 0; i < hashes->count; i++)
        DT_TRY(write_line(t, operation, hashes->tensors[i].name, hashes->hashes[i], err));
    return 0;
}

/* In the order of computation. */
static int write_passes(const struct dt_step_trace *t, const struct dt_sum_hash *batch,
                        struct dt_error *err)
{
    int layers = t->state->model->table.layers;
    DT_TRY(write_line(t, "batch", "inputs and targets", *batch, err));
    for (int layer = 0; layer < layers; layer++) {
        DT_TRY(write_point(t, "forward", layer, DT_TRACE_POINT_INPUT, err));
        DT_TRY(write_point(t, "forward", layer, DT_TRACE_POINT_MIDDLE, err));
    }
    DT_TRY(write_point(t, "forward", layers, DT_TRACE_POINT_OUTPUT, err));
    for (int layer = layers; layer >= 0; layer--)
        DT_TRY(write_point(t, "backward", layer, DT_TRACE_POINT_GRADIENT, err));
    return write_tensors(t, &t->parameters, "gradient", err);
}

int dt_step_trace_share(struct dt_step_trace *t, unsigned char own, struct dt_error *err)
{
    const int size = dt_comm_size(t->comm);
    struct dt_step_notice *all = t->notices;
    all[dt_comm_rank(t->comm)] = (struct dt_step_notice){t->batch, own};
    int rc = dt_comm_share(t->comm, all, sizeof *all, err);
    t->batch = (struct dt_sum_hash){{0}};
    for (int r = 0; r < size; r++) {
        dt_sum_hash_merge(&t->batch, &all[r].batch);
        t->flags[r] = (unsigned char)all[r].flags;
    }
    return rc;
}

int dt_step_trace_passes(struct dt_step_trace *t, struct dt_error *err)
{
    t->state->model->trace = NULL;
    if (!is_traced(t))
        return 0;
    DT_TRY(dt_state_hash_sum(t->comm, t->points, point_count(t), err));
    DT_TRY(dt_state_hash_tensors(&t->parameters, t->comm, true, err));
    return write_passes(t, &t->batch, err);
}

int dt_step_trace_update(struct dt_step_trace *t, struct dt_error *err)
{
    if (!is_traced(t))
        return 0;
    DT_TRY(dt_state_hash_tensors(&t->parameters, t->comm, false, err));
    DT_TRY(write_tensors(t, &t->parameters, "parameter", err));
    DT_TRY(dt_state_hash_tensors(&t->optimizer, t->comm, false, err));
    return write_tensors(t, &t->optimizer, "optimizer", err);
}
