/* SPDX-License-Identifier: MIT */
#include "comm/bulk.h"

#include <stdlib.h>

#include "base/buffer.h"

static void post(struct dt_bulk *b, struct dt_comm *comm, int other, int channel, bool sends,
                 char *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += DT_TRANSFER_MOST) {
        const size_t n = bytes - at < DT_TRANSFER_MOST ? bytes - at : DT_TRANSFER_MOST;
        DT_GROW(b->messages, b->count, b->capacity);
        b->messages[b->count++] = sends ? dt_comm_send(comm, other, channel, data + at, n)
                                        : dt_comm_receive(comm, other, channel, data + at, n);
    }
}

void dt_bulk_send(struct dt_bulk *b, struct dt_comm *comm, int to, int channel, const void *data,
                  size_t bytes)
{
    post(b, comm, to, channel, true, (char *)(uintptr_t)data, bytes);
}

void dt_bulk_receive(struct dt_bulk *b, struct dt_comm *comm, int from, int channel, void *data,
                     size_t bytes)
{
    post(b, comm, from, channel, false, data, bytes);
}

int dt_bulk_await(struct dt_bulk *b, struct dt_comm *comm, struct dt_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < b->count; i++) {
        struct dt_error later;
        int next = dt_comm_await(comm, b->messages[i], rc < 0 ? &later : err);
        rc = rc < 0 ? rc : next;
    }
    b->count = 0;
    return rc;
}

struct dt_message *dt_bulk_last(const struct dt_bulk *b)
{
    return b->count > 0 ? b->messages[b->count - 1] : NULL;
}

void dt_bulk_release(struct dt_bulk *b)
{
    free(b->messages);
    *b = (struct dt_bulk){0};
}
