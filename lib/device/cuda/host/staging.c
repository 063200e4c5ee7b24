/* SPDX-License-Identifier: MIT */
#include "device/cuda/host/staging.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS      16
#define SLOT_BYTES ((size_t)1 << 20)

/* A slot of pinned memory, and the event of its last transfer. */
struct slot {
    char *memory;
    cudaEvent_t done;
};

struct dt_cuda_staging {
    char *memory;
    struct slot slots[SLOTS];
    int next;
};

int dt_cuda_staging_open(struct dt_device *dev, struct dt_error *err)
{
    struct dt_cuda_staging *s = calloc(1, sizeof *s);
    dt_cuda_of(dev)->staging = s;
    if (s == NULL || cudaMallocHost((void **)&s->memory, SLOTS * SLOT_BYTES) != cudaSuccess)
        return dt_fail(err, DT_ENOMEM, "no pinned memory for the cuda engine");
    for (int i = 0; i < SLOTS; i++) {
        s->slots[i].memory = s->memory + (size_t)i * SLOT_BYTES;
        cudaError_t error = cudaEventCreateWithFlags(&s->slots[i].done, cudaEventDisableTiming);
        if (error != cudaSuccess)
            return dt_fail(err, DT_EMISSING, "the cuda engine cannot create events: %s",
                           cudaGetErrorString(error));
    }
    return 0;
}

void dt_cuda_staging_close(struct dt_device *dev)
{
    struct dt_cuda_staging *s = dt_cuda_of(dev)->staging;
    if (s == NULL)
        return;
    for (int i = 0; i < SLOTS; i++)
        if (s->slots[i].done)
            cudaEventDestroy(s->slots[i].done);
    cudaFreeHost(s->memory);
    free(s);
}

/* The least recently used slot, after waiting for its transfer. */
static struct slot *take_slot(struct dt_device *dev)
{
    struct dt_cuda_staging *s = dt_cuda_of(dev)->staging;
    struct slot *slot = &s->slots[s->next];
    s->next = (s->next + 1) % SLOTS;
    dt_cuda_note(dev, "transfer", cudaEventSynchronize(slot->done));
    return slot;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

void dt_cuda_upload(struct dt_device *dev, void *to, const void *from, size_t bytes)
{
    cudaStream_t stream = dt_cuda_flush(dev);
    for (size_t at = 0; at < bytes; at += SLOT_BYTES) {
        size_t size = least(bytes - at, SLOT_BYTES);
        struct slot *slot = take_slot(dev);
        memcpy(slot->memory, (const char *)from + at, size);
        dt_cuda_note(
            dev, "upload",
            cudaMemcpyAsync((char *)to + at, slot->memory, size, cudaMemcpyHostToDevice, stream));
        dt_cuda_note(dev, "upload", cudaEventRecord(slot->done, stream));
    }
}

/* Double-buffered: while one part is copied out of its slot, the next is transferred. */
void dt_cuda_download(struct dt_device *dev, void *to, const void *from, size_t bytes)
{
    cudaStream_t stream = dt_cuda_flush(dev);
    struct slot *waiting = NULL;
    for (size_t at = 0; at < bytes + SLOT_BYTES; at += SLOT_BYTES) {
        struct slot *slot = NULL;
        if (at < bytes) {
            slot = take_slot(dev);
            dt_cuda_note(dev, "download",
                         cudaMemcpyAsync(slot->memory, (const char *)from + at,
                                         least(bytes - at, SLOT_BYTES), cudaMemcpyDeviceToHost,
                                         stream));
            dt_cuda_note(dev, "download", cudaEventRecord(slot->done, stream));
        }
        if (waiting) {
            dt_cuda_note(dev, "download", cudaEventSynchronize(waiting->done));
            memcpy((char *)to + at - SLOT_BYTES, waiting->memory,
                   least(bytes - (at - SLOT_BYTES), SLOT_BYTES));
        }
        waiting = slot;
    }
}
