/* SPDX-License-Identifier: MIT */
/*
 * Transports: point-to-point messages between ranks.
 *
 * A transport is a plug-in (mpi.so) that exports one struct dt_transport under the name
 * "dt_transport", or part of the library (comm/tcp.h). It does not reduce: dt computes sums in a
 * fixed order (tree.h), so that no library's choice of algorithm changes the result. All calls come
 * from one thread. Messages of one tag between two ranks arrive in the order of sending and match
 * receives in their order. Every call makes progress on all transfers.
 */
#ifndef DT_COMM_TRANSPORT_H
#define DT_COMM_TRANSPORT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define DT_TRANSPORT_ABI 7

struct dt_seat;

/* Options of opening. */
struct dt_opening {
    const char *where;          /* of tcp, as in meeting-place.h; NULL: by the launcher */
    const char *interface;      /* name or address on which tcp listens; NULL: default */
    const char *job;            /* identifies the job, equal on all its ranks; may be NULL */
    const struct dt_seat *seat; /* of an elastic job (meeting-place.h); NULL: by the launcher */
    const char *remedy;         /* advice if ranks run alone; NULL: start them by MPI */
    double patience;            /* timeout in seconds */
    bool encrypt;               /* messages; fails with a transport that does not */
    const volatile sig_atomic_t *stop; /* not 0: opening fails with DT_ESTOP; may be NULL */
};

struct dt_transport {
    int abi;
    const char *name;
    bool bounded; /* open returns after patience or stop */
    /* Joins the job that a launcher started; *state is private to the transport. */
    int (*open)(void **state, const struct dt_opening *how, int *rank, int *size,
                struct dt_error *);
    void (*close)(void *state);

    /* Starts a transfer of at most DT_TRANSFER_MOST bytes. The caller owns the memory and does not
     * touch it until test returns 1. */
    int (*send)(void *state, int to, int tag, const void *data, size_t bytes, void **request,
                struct dt_error *);
    int (*receive)(void *state, int from, int tag, void *data, size_t bytes, void **request,
                   struct dt_error *);
    /* 1: the transfer has completed and the request is freed; 0: not yet. *bytes: size of a
     * received message. */
    int (*test)(void *state, void **request, size_t *bytes, struct dt_error *);
    /* Whether an unmatched message from that rank has arrived; its tag and size. */
    bool (*waiting)(void *state, int from, int *tag, size_t *bytes);
    /* The bytes that all transfers with that rank have sent and received so far; NULL: the
     * transport does not tell. */
    uint64_t (*moved)(void *state, int rank);
    /* Ends every rank of the job with the exit status; does not return. */
    void (*abort)(void *state, int status);
};

#define DT_TRANSFER_MOST ((size_t)1 << 30)
#define DT_TAG_BITS      23 /* of a tag: as in Open MPI over UCX */

#endif
