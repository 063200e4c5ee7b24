/* SPDX-License-Identifier: MIT */
/*
 * How ranks meet at a path.
 *
 * The first leaves a notice there, with its address and a key (rendezvous-file.h); the others call
 * it. When all have come it tells each where the others are; each calls those before it, and says
 * when it has met all; and when all have, the first says so. Until then whoever is lost
 * ends the meeting of all, and so does a second job at that path.
 *
 * Each connection begins with proofs of both sides (handshake.h), and all that follows is
 * authenticated (channel.h). A stranger, who cannot prove anything, costs a socket and little
 * memory, and nobody waits for it: of too many, some are turned away at random, and a rank that is
 * one of these calls again. A rank listens on one address, until all have met.
 */
#ifndef DT_COMM_RENDEZVOUS_H
#define DT_COMM_RENDEZVOUS_H

#include "comm/channel.h"
#include "comm/transport.h"

/* channels[r] becomes the connection to rank r of size; NULL: this rank's own. The caller closes
 * them. On failure there are none: DT_ESTALLED if not all have met in time, DT_ESTOP if told to
 * stop, and what the first rank says to all. */
int dt_rendezvous_join(const struct dt_opening *how, int rank, int size,
                       struct dt_channel **channels, struct dt_error *err) DT_MUST_CHECK;

#endif
