/* SPDX-License-Identifier: MIT */
/*
 * What a communicator needs of the network: bytes from one rank to another.
 *
 * A transport is a plug-in (mpi.so) that exports one struct dt_transport under
 * the name "dt_transport", or part of the library (comm/tcp.h). It knows nothing of reductions: dt
 * adds up itself, in an order of its own, so no library's choice of algorithm reaches the result.
 * All calls come from one thread. Messages between two ranks with one tag arrive
 * in the order they were sent, and into receives in the order these were started. What is under
 * way goes on in whatever call, as far as both sides call.
 */
#ifndef DT_COMM_TRANSPORT_H
#define DT_COMM_TRANSPORT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define DT_TRANSPORT_ABI 4

/* How ranks meet. */
struct dt_opening {
    const char *where;                 /* the path at which they do; NULL: as their launcher says */
    const char *interface;             /* that tcp listens on: name or address; NULL: chosen */
    const char *job;                   /* words that all ranks of a job share; NULL: none known */
    const char *remedy;                /* to do with ranks that nobody joins; NULL: start by MPI */
    double patience;                   /* seconds that it may take */
    const volatile sig_atomic_t *stop; /* not 0: it is to end; NULL: nobody will ask for that */
};

struct dt_transport {
    int abi;
    const char *name;
    bool bounded; /* opening heeds patience and stop by itself */
    /* Joins the job that a launcher started; *state is the transport's own. */
    int (*open)(void **state, const struct dt_opening *how, int *rank, int *size,
                struct dt_error *);
    void (*close)(void *state);

    /* Starts a transfer. The memory stays the caller's, untouched until test says
     * that it is over. bytes is at most DT_TRANSFER_MOST. */
    int (*send)(void *state, int to, int tag, const void *data, size_t bytes, void **request,
                struct dt_error *);
    int (*receive)(void *state, int from, int tag, void *data, size_t bytes, void **request,
                   struct dt_error *);
    /* 1 when the transfer is over, and the request gone; 0 while it is not. *bytes: what
     * a receive brought. */
    int (*test)(void *state, void **request, size_t *bytes, struct dt_error *);
    /* Whether a message from that rank waits for a receive, and which. */
    bool (*waiting)(void *state, int from, int *tag, size_t *bytes);
    /* Ends every rank of the job with that exit status; does not return. */
    void (*abort)(void *state, int status);
};

#define DT_TRANSFER_MOST ((size_t)1 << 30)
#define DT_TAG_BITS      23 /* of a tag: those that Open MPI has over UCX */

#endif
