/* SPDX-License-Identifier: MIT */
/*
 * The tcp transport, for ranks started without MPI: rank and size are in the environment
 * (comm/launch.h), and ranks meet at a path on a shared file system or at an address
 * (comm/meeting-place.h). Every message is authenticated, and on demand encrypted (comm/channel.h).
 */
#ifndef DT_COMM_TCP_H
#define DT_COMM_TCP_H

#include "comm/channel.h"
#include "comm/transport.h"

extern const struct dt_transport dt_tcp_transport;

/* The transport's state over open channels, which it owns: one per rank, NULL for this rank. */
void *dt_tcp_over(struct dt_channel *const *channels, int size);

#endif
