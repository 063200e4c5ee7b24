/* SPDX-License-Identifier: MIT */
#include "checkpoint/state-copy.h"

#include <stdlib.h>

#include "base/buffer.h"

/* Where each tensor of a part begins, and as the last entry where the part ends; the caller frees
 * it. */
static int64_t *offsets_of(const struct dt_train_state *s, enum dt_snapshot_part part,
                           int64_t first, int *count)
{
    struct dt_named_tensor *tensors = dt_snapshot_tensors(s, part, 1, count);
    int64_t *offsets = dt_alloc((size_t)*count + 1, sizeof *offsets);
    offsets[0] = first;
    for (int i = 0; i < *count; i++)
        offsets[i + 1] =
            offsets[i] + tensors[i].shape[0] * (tensors[i].rank == 2 ? tensors[i].shape[1] : 1);
    free(tensors);
    return offsets;
}

/* Calls visit, unless it is NULL, for each piece that this rank holds. Returns the number of
 * values. */
static int64_t visit_pieces(const struct dt_train_state *s, float *values,
                            void (*visit)(struct dt_device *, float *host, float *device,
                                          size_t bytes))
{
    int64_t end = 0;
    for (int part = 0; part < DT_SNAPSHOT_PARTS; part++) {
        int tensors;
        size_t count = 0;
        if (!dt_snapshot_has(s, (enum dt_snapshot_part)part))
            continue;
        int64_t *offsets = offsets_of(s, (enum dt_snapshot_part)part, end, &tensors);
        struct dt_snapshot_piece *pieces =
            visit ? dt_snapshot_pieces(s, (enum dt_snapshot_part)part, true, 1, &count) : NULL;
        for (size_t i = 0; i < count; i++)
            visit(s->model->device, values + offsets[pieces[i].tensor] + pieces[i].first,
                  pieces[i].device, (size_t)pieces[i].count * sizeof *values);
        end = offsets[tensors];
        free(pieces);
        free(offsets);
    }
    return end;
}

void dt_state_copy_allocate(struct dt_state_copy *c, const struct dt_train_state *s)
{
    if (c->values)
        return;
    c->count = visit_pieces(s, NULL, NULL);
    c->values = dt_alloc((size_t)c->count, sizeof *c->values);
}

static void download(struct dt_device *dev, float *host, float *device, size_t bytes)
{
    dev->ops->download(dev, host, device, bytes);
}

static void upload(struct dt_device *dev, float *host, float *device, size_t bytes)
{
    dev->ops->upload(dev, device, host, bytes);
}

void dt_state_copy_take(struct dt_state_copy *c, const struct dt_train_state *s)
{
    dt_state_copy_allocate(c, s);
    visit_pieces(s, c->values, download);
}

void dt_state_copy_restore(const struct dt_state_copy *c, struct dt_train_state *s)
{
    visit_pieces(s, c->values, upload);
    dt_train_state_refresh_weights(s);
}

void dt_state_copy_release(struct dt_state_copy *c)
{
    free(c->values);
    *c = (struct dt_state_copy){0};
}
