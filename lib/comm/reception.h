/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets, and the connections to them whose handshake (handshake.h) is not complete.
 *
 * A connection without a handshake costs a socket and little memory, and nothing waits for it. If
 * there are too many, random ones are closed: a rank that is hit connects again at once and
 * succeeds sooner or later; if the oldest were closed, a flood could always hit it.
 */
#ifndef DT_COMM_RECEPTION_H
#define DT_COMM_RECEPTION_H

#include "comm/handshake.h"

#define DT_RECEPTION_MOST 256 /* connections without a handshake; one more closes a random one */

struct dt_reception {
    int listener; /* TCP socket; -1: none */
    int local;    /* Unix socket; -1: none */
    struct dt_rank_address endpoint;
    int error; /* errno, if a connection waits that could not be accepted; or 0 */
    int count;
    struct {
        int socket;
        size_t got; /* bytes received of its call */
        struct dt_handshake handshake;
    } pending[DT_RECEPTION_MOST];
};

/* Raises the process' limit of open files, as far as the system allows, to what a number of
 * connections to other ranks needs, besides those above. poll(2) takes no more sockets than it. */
void dt_reception_allow(int connections);

/* Nothing listens yet. */
void dt_reception_init(struct dt_reception *r);

/* A socket that does not block and sends at once; -1 on failure. */
int dt_reception_socket(void);
/* Closes the socket, if there is one, and sets it to -1. */
void dt_reception_close_socket(int *socket);

/* Listens on the address (network byte order) and port (0: any) instead of the earlier ones.
 * Returns -1 with errno. */
int dt_reception_listen(struct dt_reception *r, uint32_t address, int port);
/* Listens for ranks of this machine, too, at a name made from the job's key, this rank and its port
 * (network byte order). Where the system refuses that, they connect over TCP. */
void dt_reception_listen_locally(struct dt_reception *r, const struct dt_secret *secret, int rank,
                                 uint32_t port);
/* A connection to that name; -1: no such rank listens on this machine. */
int dt_reception_call_locally(const struct dt_secret *secret, int rank, uint32_t port);
/* Accepts connections and sends their challenges. At most half of the capacity at a time, so that
 * calls are read in between. */
void dt_reception_accept(struct dt_reception *r);
/* Receives a pending connection's call. 1: its proof is valid, and it calls rank called; 0: not
 * received yet; -1: the connection was closed, and the last one is now at its index. */
int dt_reception_read(struct dt_reception *r, int index, const struct dt_secret *secret,
                      int called);
/* Sends the answer and opens the channel, which is NULL on failure; the last connection is then at
 * the index. */
struct dt_channel *dt_reception_answer(struct dt_reception *r, int index,
                                       const struct dt_secret *secret,
                                       const struct dt_introduction *own);
void dt_reception_refuse(struct dt_reception *r, int index);
/* Closes all sockets. */
void dt_reception_close(struct dt_reception *r);

#endif
