/* SPDX-License-Identifier: MIT */
/*
 * How ranks meet at a path.
 *
 * The first leaves a notice there, with its addresses and a key (notice.h); the others call it.
 * When all have come it tells each where the others are; each calls those before it, and says
 * when it has met all; and when all have, the first says so. Until then whoever is lost
 * ends the meeting of all, and so does a second job at that path.
 *
 * Each side of a connection begins with the key. A stranger, who does not know it, costs a socket,
 * and nobody waits for it.
 */
#ifndef DT_COMM_MEETING_H
#define DT_COMM_MEETING_H

#include "comm/transport.h"

/* sockets[r] becomes the connection to rank r of size, which does not block; -1: this rank's own.
 * The caller closes them. On failure there are none: DT_ESTALLED if not all have met in time,
 * DT_ESTOP if told to stop, and what the first rank says to all. */
int dt_meet(const struct dt_opening *how, int rank, int size, int *sockets,
            struct dt_error *err) DT_MUST_CHECK;

#endif
