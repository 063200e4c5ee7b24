/* SPDX-License-Identifier: MIT */
#include "train/snapshot.h"

#include <stdlib.h>

#include "base/buffer.h"

static const float *device_part(const struct dt_store *s, enum dt_part part)
{
    const float *const parts[] = {s->model->parameters, s->optimizer.first, s->average};
    return parts[part];
}

static size_t part_bytes(const struct dt_store *s, enum dt_part part)
{
    const size_t bytes[] = {(size_t)s->elements * sizeof(float), s->bytes.moments,
                            s->bytes.average};
    return bytes[part];
}

/* Where a part begins in a whole snapshot. */
static size_t part_offset(const struct dt_store *s, enum dt_part part)
{
    size_t offset = 0;
    for (int i = 0; i < (int)part; i++)
        offset += part_bytes(s, (enum dt_part)i);
    return offset;
}

void dt_snapshot_plan(struct dt_snapshot *s, const struct dt_store *store, bool whole)
{
    *s = (struct dt_snapshot){.store = store, .whole = whole};
}

size_t dt_snapshot_bytes(const struct dt_snapshot *s)
{
    size_t largest = 0;
    if (s->whole)
        return part_offset(s->store, DT_PARTS);
    for (int i = 0; i < DT_PARTS; i++) {
        size_t bytes = part_bytes(s->store, (enum dt_part)i);
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

void dt_snapshot_allocate(struct dt_snapshot *s)
{
    s->memory = dt_alloc(1, dt_snapshot_bytes(s));
}

void dt_snapshot_release(struct dt_snapshot *s)
{
    free(s->memory);
    s->memory = NULL;
}

static void fetch(struct dt_snapshot *s, enum dt_part part, char *to)
{
    struct dt_device *dev = s->store->model->device;
    if (part_bytes(s->store, part) > 0)
        dev->ops->download(dev, to, device_part(s->store, part), part_bytes(s->store, part));
}

void dt_snapshot_take(struct dt_snapshot *s, const struct dt_progress_state *state)
{
    s->state = *state;
    for (int i = 0; s->whole && i < DT_PARTS; i++)
        fetch(s, (enum dt_part)i, s->memory + part_offset(s->store, (enum dt_part)i));
}

float *dt_snapshot_part(struct dt_snapshot *s, enum dt_part part)
{
    if (part_bytes(s->store, part) == 0)
        return NULL;
    char *memory = s->whole ? s->memory + part_offset(s->store, part) : s->memory;
    if (!s->whole)
        fetch(s, part, memory);
    return (float *)(void *)memory;
}
