/* SPDX-License-Identifier: MIT */
#include "model/batch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

void dt_batch_init(struct dt_batch *b, int64_t count, int64_t length)
{
    *b = (struct dt_batch){.capacity = count * length};
    b->inputs = dt_alloc((size_t)b->capacity, sizeof *b->inputs);
    b->targets = dt_alloc((size_t)b->capacity, sizeof *b->targets);
}

void dt_batch_release(struct dt_batch *b)
{
    free(b->inputs);
    free(b->targets);
    *b = (struct dt_batch){0};
}

void dt_batch_next_token(struct dt_batch *b, const uint32_t *ids, int64_t count, int64_t length)
{
    assert(count * length <= b->capacity);
    b->count = count;
    b->length = length;
    for (int64_t i = 0; i < count; i++, ids += length + 1)
        for (int64_t t = 0; t < length; t++) {
            b->inputs[i * length + t] = (int32_t)(ids[t] & ~DT_NOT_PREDICTED);
            b->targets[i * length + t] =
                ids[t + 1] & DT_NOT_PREDICTED ? DT_NO_TARGET : (int32_t)ids[t + 1];
        }
}

void dt_batch_classify(struct dt_batch *b, const uint32_t *ids, int64_t count, int64_t length,
                       bool last)
{
    assert(count * length <= b->capacity);
    b->count = count;
    b->length = length;
    for (int64_t i = 0; i < count; i++, ids += length + 1) {
        int64_t at = 0;
        for (int64_t t = 0; t < length; t++) {
            b->inputs[i * length + t] = (int32_t)(ids[t] & ~DT_NOT_PREDICTED);
            b->targets[i * length + t] = DT_NO_TARGET;
            at = last && !(ids[t] & DT_NOT_PREDICTED) ? t : at;
        }
        b->targets[i * length + at] = (int32_t)ids[length];
    }
}

void dt_batch_copy(struct dt_batch *batch, const struct dt_batch *from)
{
    size_t bytes = (size_t)(from->count * from->length) * sizeof *from->inputs;
    memcpy(batch->inputs, from->inputs, bytes);
    memcpy(batch->targets, from->targets, bytes);
    batch->count = from->count;
    batch->length = from->length;
    batch->begins = from->begins;
    batch->ends = from->ends;
    batch->first_sample = from->first_sample;
}
