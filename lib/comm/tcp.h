/* SPDX-License-Identifier: MIT */
/*
 * The tcp transport, for ranks that no MPI has started: their number and how many they are is in
 * the environment (comm/launch.h), and they meet at a path that all can reach (comm/rendezvous.h).
 * Every message is authenticated (comm/channel.h); none is encrypted.
 */
#ifndef DT_COMM_TCP_H
#define DT_COMM_TCP_H

#include "comm/channel.h"
#include "comm/transport.h"

extern const struct dt_transport dt_tcp_transport;

/* Its state over channels that are open, which it owns: of size ranks; NULL at this rank's own. */
void *dt_tcp_over(struct dt_channel *const *channels, int size);

#endif
