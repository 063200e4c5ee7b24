/* SPDX-License-Identifier: MIT */
/*
 * Where ranks that no MPI has started meet: a path that all of them reach, or the address of rank
 * 0. At a path rank 0 leaves its address and the key of the job (rendezvous-file.h); by address,
 * the key is that of the environment's DT_KEY, which is never sent.
 *
 *     given                     environment                                     place
 *     PATH                                                                      the path
 *     tcp://HOST:PORT           DT_KEY                                          the address
 *     env://, or nothing        ranks of one machine: MASTER_PORT or            a file in $TMPDIR
 *                               SLURM_JOB_ID
 *                               DT_KEY, MASTER_ADDR, MASTER_PORT                the address
 *                               DT_KEY, SLURM_STEP_NODELIST, SLURM_JOB_ID       the first node
 *
 * The agent of torchrun listens at MASTER_PORT itself: rank 0 then listens at the next port.
 */
#ifndef DT_COMM_MEETING_PLACE_H
#define DT_COMM_MEETING_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "comm/crypto.h"
#include "comm/launch.h"

struct dt_meeting_place {
    char *name; /* the path, or tcp://HOST:PORT */
    char *host; /* NULL: at a path */
    int port;
    uint8_t key[DT_KEY]; /* by address */
    bool listens;        /* rank 0 listens there already, on these sockets, which the rendezvous */
    int listener, local; /* takes over: of TCP, and for ranks of this machine or -1 */
};

/* A rank of a generation of an elastic job (elastic/membership.h): dt_opening.seat. */
#define DT_SEAT_STOP_S 2.0 /* for which a rank that is told to stop still meets the others */
struct dt_seat {
    int rank, size;
    long generation; /* from 1 */
    int left;        /* members of the last generation that are not in this one */
    bool returned;   /* this process was left out of a generation */
    double waited;   /* seconds that the meeting took */
    struct dt_meeting_place place;
};

/* Whether the environment announces several ranks without MPI, and where they meet. */
bool dt_meeting_place_is_announced(void);

/* given: a path, tcp://HOST:PORT, env:// or NULL. Fails if the environment lacks what is needed, or
 * DT_KEY is too short. Release *place also after a failure. */
int dt_meeting_place_find(struct dt_meeting_place *place, const char *given,
                          const struct dt_launch *launch, struct dt_error *err) DT_MUST_CHECK;
void dt_meeting_place_release(struct dt_meeting_place *place);

#endif
