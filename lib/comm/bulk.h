/* SPDX-License-Identifier: MIT */
/*
 * Transfers of any size, as messages of at most DT_TRANSFER_MOST bytes.
 *
 *     struct dt_bulk bulk = {0};
 *     dt_bulk_receive(&bulk, comm, before, CHANNEL, theirs, their_bytes);
 *     dt_bulk_send(&bulk, comm, next, CHANNEL, own, bytes);
 *     ...
 *     DT_TRY(dt_bulk_await(&bulk, comm, err));
 *     dt_bulk_release(&bulk);
 *
 * Memory belongs to the transfer until dt_bulk_await, after which the object can be used again.
 */
#ifndef DT_COMM_BULK_H
#define DT_COMM_BULK_H

#include "comm/comm.h"

struct dt_bulk {
    struct dt_message **messages; /* in flight */
    size_t count, capacity;
};

/* Channels as for dt_comm_send. A transfer of 0 bytes sends nothing. */
void dt_bulk_send(struct dt_bulk *bulk, struct dt_comm *comm, int to, int channel, const void *data,
                  size_t bytes);
void dt_bulk_receive(struct dt_bulk *bulk, struct dt_comm *comm, int from, int channel, void *data,
                     size_t bytes);
/* Waits for all; returns the first failure. */
int dt_bulk_await(struct dt_bulk *bulk, struct dt_comm *comm, struct dt_error *err) DT_MUST_CHECK;
/* The message posted last; NULL: none is in flight. */
struct dt_message *dt_bulk_last(const struct dt_bulk *bulk);
void dt_bulk_release(struct dt_bulk *bulk);

#endif
