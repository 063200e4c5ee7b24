/* SPDX-License-Identifier: MIT */
#include "checkpoint/snapshot.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "checkpoint/error-feedback.h"
#include "formats/model-directory.h"

/* --- pieces ----------------------------------------------------------------------------------- */

bool dt_snapshot_has(const struct dt_train_state *s, enum dt_snapshot_part part)
{
    if (part == DT_SNAPSHOT_EMA)
        return s->has_ema;
    if (part == DT_SNAPSHOT_OUTER)
        return s->has_outer;
    return part != DT_SNAPSHOT_ERROR_FEEDBACK ||
           dt_compress_has_error_feedback(s->compression.kind);
}

struct dt_named_tensor *dt_snapshot_tensors(const struct dt_train_state *s,
                                            enum dt_snapshot_part part, long dp_size, int *count)
{
    struct dt_table whole;
    struct dt_named_tensor *list;
    dt_slot_indices *indices;
    if (part == DT_SNAPSHOT_ERROR_FEEDBACK)
        return dt_error_feedback_tensors(s, dp_size, count);
    dt_table_init_trained(&whole, &s->model->config, NULL);
    if (part == DT_SNAPSHOT_MOMENTS) {
        list = dt_optimizer_named_tensors(&whole, s->optimizer.kind, &indices, count);
        free(indices);
    } else {
        list = dt_weights_named_tensors(&whole, NULL,
                                        part == DT_SNAPSHOT_OUTER ? ".outer_momentum" : "");
        *count = whole.count;
    }
    dt_table_release(&whole);
    return list;
}

/* A growing array of pieces. */
struct list {
    struct dt_snapshot_piece *items;
    size_t count, capacity;
};

static void add_piece(struct list *list, int tensor, int64_t first, int64_t count, float *device)
{
    DT_GROW(list->items, list->count, list->capacity);
    list->items[list->count++] = (struct dt_snapshot_piece){
        .tensor = tensor, .first = first, .count = count, .device = device};
}

/* Adds elements from .. end - 1 of this rank's tensor shard, the first of which is at device, with
 * their positions in the whole tensor. Runs that are adjacent in both are one piece. */
static void add_runs(struct list *list, const struct dt_param *p, int tensor, int64_t from,
                     int64_t end, float *device)
{
    const size_t begun = list->count;
    for (int64_t i = 0; i < dt_param_runs(p); i++) {
        struct dt_param_run run = dt_param_run(p, i);
        int64_t first = run.here > from ? run.here : from;
        int64_t end_of_run = run.here + run.count < end ? run.here + run.count : end;
        const int64_t there = run.there + (first - run.here);
        struct dt_snapshot_piece *last = list->count > begun ? &list->items[list->count - 1] : NULL;
        if (first >= end_of_run)
            continue;
        if (last && last->first + last->count == there)
            last->count += end_of_run - first;
        else
            add_piece(list, tensor, there, end_of_run - first,
                      device ? device + (first - from) : NULL);
    }
}

static const struct dt_segment *segment_of(const struct dt_train_state *s, int param)
{
    for (int i = 0; i < s->optimizer.count; i++)
        if (s->optimizer.segments[i].param == param)
            return &s->optimizer.segments[i];
    return NULL;
}

static void add_moments(struct list *list, const struct dt_train_state *s, int param, int64_t from,
                        int64_t end, dt_slot_indices *indices)
{
    const struct dt_optimizer *o = &s->optimizer;
    const struct dt_param *p = &s->model->table.params[param];
    const struct dt_segment *segment = segment_of(s, param);
    for (int i = 0; i < DT_UPDATE_SLOTS_MOST; i++) {
        size_t piece = list->count;
        int64_t next = from;
        if (segment->offsets[i] < 0)
            continue;
        add_runs(list, p, indices[p->number][i], from, end,
                 o->state[i] ? o->state[i] + segment->offsets[i] + (from - segment->first) : NULL);
        for (; o->codes[i] && piece < list->count; piece++) {
            list->items[piece].segment = segment;
            list->items[piece].slot = i;
            list->items[piece].position = segment->position + (next - segment->first);
            next += list->items[piece].count;
        }
    }
}

void dt_snapshot_download(const struct dt_train_state *s, const struct dt_snapshot_piece *p,
                          float *values)
{
    struct dt_device *dev = s->model->device;
    if (p->segment) {
        const struct dt_moments m = dt_optimizer_moments(&s->optimizer, p->segment, p->slot);
        dt_moments_get(&m, p->position, p->count, values);
    } else {
        dev->ops->download(dev, values, p->device, (size_t)p->count * sizeof *values);
    }
}

void dt_snapshot_upload(const struct dt_train_state *s, const struct dt_snapshot_piece *p,
                        const float *values)
{
    struct dt_device *dev = s->model->device;
    if (p->segment) {
        const struct dt_moments m = dt_optimizer_moments(&s->optimizer, p->segment, p->slot);
        dt_moments_set(&m, p->position, p->count, values);
    } else {
        dev->ops->upload(dev, p->device, values, (size_t)p->count * sizeof *values);
    }
}

/* Indices of the state tensors in the list of the moments; the caller frees them. */
static dt_slot_indices *slot_indices(const struct dt_train_state *s)
{
    struct dt_table whole;
    dt_slot_indices *indices;
    int count;
    dt_table_init_trained(&whole, &s->model->config, NULL);
    free(dt_optimizer_named_tensors(&whole, s->optimizer.kind, &indices, &count));
    dt_table_release(&whole);
    return indices;
}

/* A bucket's shard of that part; NULL while nothing is allocated. */
static float *shard_in(const struct dt_train_state *s, enum dt_snapshot_part part, int bucket)
{
    if (part == DT_SNAPSHOT_OUTER)
        return s->outer_momentum ? s->outer_momentum + s->shards[bucket].first : NULL;
    return part == DT_SNAPSHOT_EMA ? s->ema_shards[bucket] : s->parameters[bucket];
}

/* The elements of a tensor that the rank owns, or with replicated holds; false: none. */
static bool local_range(const struct dt_train_state *s, const struct dt_param *p, bool replicated,
                        int64_t *from, int64_t *end)
{
    struct dt_range own =
        replicated ? s->shards[p->bucket] : dt_data_parallel_owned(&s->dp, p->bucket);
    *from = own.first > p->offset ? own.first - p->offset : 0;
    *end = own.end < p->offset + p->count ? own.end - p->offset : p->count;
    return *from < *end && (replicated || (!p->copy && p->leads));
}

struct dt_snapshot_piece *dt_snapshot_pieces(const struct dt_train_state *s,
                                             enum dt_snapshot_part part, bool replicated,
                                             long dp_size, size_t *count)
{
    const struct dt_table *t = &s->model->table;
    *count = 0;
    if (!dt_snapshot_has(s, part))
        return NULL;
    if (part == DT_SNAPSHOT_ERROR_FEEDBACK)
        return dt_error_feedback_pieces(s, replicated, dp_size, count);
    struct list list = {0};
    dt_slot_indices *indices = slot_indices(s);
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        float *shard = shard_in(s, part, p->bucket);
        int64_t from, end;
        if (!local_range(s, p, replicated, &from, &end))
            continue;
        if (part == DT_SNAPSHOT_MOMENTS)
            add_moments(&list, s, i, from, end, indices);
        else
            add_runs(&list, p, p->number, from, end,
                     shard ? shard + (p->offset + from - s->shards[p->bucket].first) : NULL);
    }
    free(indices);
    *count = list.count;
    return list.items;
}

/* --- snapshots -------------------------------------------------------------------------------- */

static struct dt_snapshot_piece *owned_pieces(const struct dt_train_state *s,
                                              enum dt_snapshot_part part, size_t *count)
{
    return dt_snapshot_pieces(s, part, false, dt_comm_size(s->dp.dp_group.all), count);
}

static int slot_count(const struct dt_segment *s)
{
    int count = 0;
    for (int i = 0; i < DT_UPDATE_SLOTS_MOST; i++)
        count += s->offsets[i] >= 0;
    return count;
}

/* The sum over the pieces, of which a tensor-parallel shard has very many. */
static int64_t count_elements(const struct dt_train_state *s, enum dt_snapshot_part part)
{
    const struct dt_table *t = &s->model->table;
    int64_t elements = 0, from, end;
    for (int i = 0; i < t->count && dt_snapshot_has(s, part); i++) {
        if (!local_range(s, &t->params[i], false, &from, &end))
            continue;
        elements += (part == DT_SNAPSHOT_MOMENTS ? slot_count(segment_of(s, i)) : 1) * (end - from);
    }
    return elements;
}

static size_t part_bytes(const struct dt_train_state *s, enum dt_snapshot_part part)
{
    size_t count;
    int64_t elements = 0;
    if (part != DT_SNAPSHOT_ERROR_FEEDBACK)
        return (size_t)count_elements(s, part) * sizeof(float);
    struct dt_snapshot_piece *pieces = owned_pieces(s, part, &count);
    for (size_t i = 0; i < count; i++)
        elements += pieces[i].count;
    free(pieces);
    return (size_t)elements * sizeof(float);
}

/* Offset of a part in a full snapshot. */
static size_t part_offset(const struct dt_train_state *s, enum dt_snapshot_part part)
{
    size_t offset = 0;
    for (int i = 0; i < (int)part; i++)
        offset += part_bytes(s, (enum dt_snapshot_part)i);
    return offset;
}

void dt_snapshot_plan(struct dt_snapshot *s, const struct dt_train_state *state, bool full)
{
    *s = (struct dt_snapshot){.state = state, .full = full};
}

/* At least the elements of the largest piece: a tensor-parallel shard has several of a tensor. */
static int64_t largest_piece(const struct dt_train_state *s)
{
    const struct dt_table *t = &s->model->table;
    int64_t largest = 0, from, end;
    size_t count = 0;
    for (int i = 0; i < t->count; i++)
        if (local_range(s, &t->params[i], false, &from, &end) && end - from > largest)
            largest = end - from;
    struct dt_snapshot_piece *pieces = owned_pieces(s, DT_SNAPSHOT_ERROR_FEEDBACK, &count);
    for (size_t i = 0; i < count; i++)
        largest = pieces[i].count > largest ? pieces[i].count : largest;
    free(pieces);
    return largest;
}

size_t dt_snapshot_bytes(const struct dt_snapshot *s)
{
    return s->full ? part_offset(s->state, DT_SNAPSHOT_PARTS)
                   : (size_t)largest_piece(s->state) * sizeof(float);
}

void dt_snapshot_allocate(struct dt_snapshot *s)
{
    s->memory = dt_alloc(1, dt_snapshot_bytes(s) + 1);
}

void dt_snapshot_release(struct dt_snapshot *s)
{
    free(s->memory);
    s->memory = NULL;
}

static void fetch(struct dt_snapshot *s, enum dt_snapshot_part part, char *to)
{
    size_t count;
    const char *end = to + part_bytes(s->state, part);
    struct dt_snapshot_piece *pieces = owned_pieces(s->state, part, &count);
    for (size_t i = 0; i < count; i++) {
        dt_snapshot_download(s->state, &pieces[i], (float *)(void *)to);
        to += (size_t)pieces[i].count * sizeof(float);
    }
    assert(to == end);
    free(pieces);
}

void dt_snapshot_take(struct dt_snapshot *s, const struct dt_progress_state *progress)
{
    s->progress = *progress;
    for (int i = 0; s->full && i < DT_SNAPSHOT_PARTS; i++)
        fetch(s, (enum dt_snapshot_part)i,
              s->memory + part_offset(s->state, (enum dt_snapshot_part)i));
}

const float *dt_snapshot_host_part(const struct dt_snapshot *s, enum dt_snapshot_part part)
{
    return s->full ? (const float *)(const void *)(s->memory + part_offset(s->state, part)) : NULL;
}

const float *dt_snapshot_host_piece(struct dt_snapshot *s, const struct dt_snapshot_piece *piece)
{
    dt_snapshot_download(s->state, piece, (float *)(void *)s->memory);
    return (const float *)(const void *)s->memory;
}
