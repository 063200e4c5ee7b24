/* SPDX-License-Identifier: MIT */
/*
 * Rendezvous of ranks at a path, or at the address of rank 0 (meeting-place.h).
 *
 *     rank 0 -> file (rendezvous-file.h)   its address and a key; or it listens at the address
 *     other ranks -> rank 0                connect
 *     rank 0 -> other ranks                addresses of all ranks, after all have connected
 *     rank r -> ranks 1 .. r-1             connect
 *     other ranks -> rank 0                connected to all
 *     rank 0 -> other ranks                finished
 *
 * Until then the loss of a rank, or a second job at that place, ends the rendezvous of all ranks.
 *
 * Each connection begins with a handshake (handshake.h), after which every message is authenticated
 * (channel.h). A connection without a handshake costs a socket and little memory, and no rank waits
 * for it. If there are too many, random ones are closed; a rank whose connection was closed
 * connects again. A rank listens on one address until the rendezvous is finished.
 */
#ifndef DT_COMM_RENDEZVOUS_H
#define DT_COMM_RENDEZVOUS_H

#include "comm/channel.h"
#include "comm/meeting-place.h"
#include "comm/transport.h"

/* channels[r] becomes the connection to rank r of size, NULL for this rank; the caller closes them.
 * All are NULL after a failure: DT_ESTALLED after the timeout, DT_ESTOP if stopped, or the error
 * that rank 0 sends to all. */
int dt_rendezvous_join(const struct dt_meeting_place *place, const struct dt_opening *how, int rank,
                       int size, struct dt_channel **channels, struct dt_error *err) DT_MUST_CHECK;

#endif
