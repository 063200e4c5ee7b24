/* SPDX-License-Identifier: MIT */
/*
 * The members of an elastic job: processes that come and go. They meet at a place
 * (meeting-place.h), and each meeting begins a generation, in which they are ranks of a
 * communicator.
 *
 *     DT_TRY(dt_membership_new(&m, &options, err));
 *     DT_TRY(dt_membership_meet(m, err));
 *     dt_comm_open(&world, "tcp", &(struct dt_opening){.seat = dt_membership_seat(m), ...}, err)
 *     ...                                     until an operation fails, or newcomers wait
 *     dt_membership_suspect(m, rank);         of the rank that was lost
 *     dt_comm_close(world);
 *     DT_TRY(dt_membership_meet(m, err));     the next generation
 *
 * The process that holds the lock of the file, or that listens at the address, leads: it is rank 0.
 *
 *     leader -> others   WELCOME   its profile, by which a process sees whether it belongs here
 *     others -> leader   HELLO     identity; the members that it last knew, and whom it suspects
 *     leader -> others   PRESENT   now and then while it waits
 *     leader -> members  ROSTER    rank, members, and where these ranks meet (rendezvous.h)
 *     leader -> others   FAILURE   why the meeting failed
 *
 * The leader waits for all members of the last generation. A suspect that does not come within
 * half a second is left out, any other within the timeout; whose connection ends in the meeting is
 * a suspect. Who is left out may come back as a newcomer. A newcomer is heard at any time and
 * becomes a rank at the next meeting. A member that is told to stop still meets the others, for two
 * seconds.
 *
 * If the leader ends, another takes its place: at a path each can, by address only processes on
 * that host. If it stops (SIGSTOP) and the place is a path, its members replace the file.
 */
#ifndef DT_ELASTIC_MEMBERSHIP_H
#define DT_ELASTIC_MEMBERSHIP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/meeting-place.h"

struct dt_membership_options {
    const char *where, *interface, *job; /* as in struct dt_opening */
    int least, most;                     /* ranks, */
    int group; /* of which as many are needed at once, or a multiple: newcomers wait for others */
    double timeout;                    /* seconds for a member that does not come */
    double patience;                   /* seconds for the least number of ranks, and for a place */
    const volatile sig_atomic_t *stop; /* not 0: a meeting fails with DT_ESTOP; may be NULL */
    bool encrypt;                      /* messages, also of the meeting */
    const void *profile;               /* of this process, in an agreed format; borrowed */
    size_t profile_bytes;
    /* Compares with the leader's profile, of the same size; fails if they exclude each other. */
    int (*check)(void *context, const void *leaders, struct dt_error *err);
    void *context;
};

struct dt_membership;

int dt_membership_new(struct dt_membership **membership,
                      const struct dt_membership_options *options,
                      struct dt_error *err) DT_MUST_CHECK;
/* Fails with DT_ESTALLED if fewer than the least number of processes meet, with DT_ESTOP if
 * stopped, and with the error of check. */
int dt_membership_meet(struct dt_membership *m, struct dt_error *err) DT_MUST_CHECK;
/* Of the last meeting; valid until the next. */
const struct dt_seat *dt_membership_seat(const struct dt_membership *m);
/* The number of newcomers that can become ranks, a multiple of a group; always 0 for ranks above 0.
 * Does not block. */
int dt_membership_newcomers(struct dt_membership *m);
/* Whether this process leads: no other has taken its place, as while it was stopped. */
bool dt_membership_leads(const struct dt_membership *m);
/* That rank of this generation does not answer; -1: none. */
void dt_membership_suspect(struct dt_membership *m, int rank);
/* Ranks from count on leave this generation, and are newcomers if they meet the others again. */
void dt_membership_keep(struct dt_membership *m, int count);
/* That rank leaves after this generation. */
void dt_membership_forget(struct dt_membership *m, int rank);
void dt_membership_free(struct dt_membership *m); /* NULL is fine */

#endif
