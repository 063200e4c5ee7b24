/* SPDX-License-Identifier: MIT */
#include "comm/rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/system.h"
#include "comm/comm.h"
#include "comm/handshake.h"
#include "comm/interface.h"
#include "comm/reception.h"
#include "hash/hash.h"

#define TICK_MS  20 /* interval of checks of the file, the clock and signals */
#define LOOKUP_S 1  /* interval of lookups of the host of rank 0 */
#define CALL_S   2  /* timeout of the first connection attempt; it doubles with each attempt */
#define ACCEPT_S 5  /* for an error of accept4 to pass */
#define GRACE_S  2  /* extra time for rank 0 to report which ranks are missing */

/* Tags of messages after the handshake. */
enum message {
    MESSAGE_ADDRESSES, /* from rank 0, after all ranks have connected to it */
    MESSAGE_CONNECTED, /* to rank 0, from a rank that is connected to all */
    MESSAGE_FINISHED,  /* from rank 0, after all ranks have sent CONNECTED */
    MESSAGE_FAILURE    /* from rank 0, at any time */
};

struct failure {
    int64_t code;
    char text[DT_ERROR_TEXT];
};

struct peer {
    int socket;                 /* during the handshake; -1: none */
    struct dt_channel *channel; /* NULL: not connected */
    bool called, done;          /* called: the call is sent; done: CONNECTED is sent or received */
    struct dt_rank_address endpoint;
    bool found_here;    /* a rank of this machine had its name; call it only once by that */
    double patience;    /* timeout of a connection attempt in seconds */
    double until, next; /* deadline of this attempt; earliest time of the next one */
    struct dt_handshake handshake;
    size_t moved;                  /* bytes received of the next handshake message */
    struct dt_channel_frame frame; /* from rank 0 to the peer, or from this rank to rank 0 */
    bool sending;                  /* frame is being sent */
    int sent;                      /* messages that rank 0 has sent to the peer */
};

struct meeting {
    const struct dt_meeting_place *place;
    const struct dt_opening *how;
    struct dt_introduction own;
    int rank, size;
    bool leads;    /* rank 0: it owns the file, or listens at the address */
    int file;      /* of rank 0 at a path; -1: none */
    bool complete; /* all ranks have connected to rank 0; addresses are known */
    bool over;     /* all ranks are connected to all */
    double begun, until;
    double deaf_since; /* when the first of the calls came that this rank cannot accept */
    struct dt_secret secret;
    struct dt_notice notice; /* last content of the file */
    double lookup;           /* by address: time of the next lookup of the host */
    struct peer *peers;
    struct dt_reception reception;
    struct pollfd *polled;             /* peers, listeners, pending */
    struct dt_rank_address *addresses; /* of all ranks */
    int due;                           /* messages that rank 0 sends to each rank so far */
    struct failure failure;            /* received from rank 0 */
    struct dt_channel *refused;        /* a rejected rank, which gets FAILURE too; or NULL */
};

/* --- sockets ---------------------------------------------------------------------------------- */

static bool send_whole(int s, const void *what, size_t bytes)
{
    return send(s, what, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

/* 1: all bytes are received; 0: not yet; -1: the connection is closed. */
static int receive_whole(int s, void *what, size_t bytes, size_t *got)
{
    ssize_t n = recv(s, (char *)what + *got, bytes - *got, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return -1;
    *got += n > 0 ? (size_t)n : 0;
    return *got == bytes;
}

/* Listens on the address, unless the listener is there already; port 0: any. The last rank needs no
 * listener. */
static int listen_at(struct meeting *m, uint32_t address, int port, struct dt_error *err)
{
    struct dt_reception *r = &m->reception;
    if (m->rank == m->size - 1 || (r->listener >= 0 && r->endpoint.address == address))
        return 0;
    if (dt_reception_listen(r, address, port) < 0)
        return dt_fail_errno(err, "rank %d cannot listen for other ranks at '%s'", m->rank,
                             m->place->name);
    m->own.endpoint = r->endpoint;
    return 0;
}

/* Listens on the chosen interface; without one, on the address from which it reaches rank 0, and
 * rank 0 on the default interface. */
static int listen_for_others(struct meeting *m, struct dt_error *err)
{
    uint32_t address;
    if (m->how->interface)
        DT_TRY(dt_interface_find(m->how->interface, &address, err));
    else if (m->leads)
        address = dt_interface_default();
    else if ((address = dt_interface_towards(m->peers[0].endpoint.address)) == 0)
        return dt_fail_errno(err, "cannot find this machine's address on the way to rank 0");
    return listen_at(m, address, 0, err);
}

/* Ranks of this machine then need no MACs (handshake.h). Call it with the key and the port. */
static void listen_locally(struct meeting *m)
{
    if (!m->how->encrypt && m->rank < m->size - 1)
        dt_reception_listen_locally(&m->reception, &m->secret, m->rank, m->own.endpoint.port);
}

/* --- the rendezvous file ---------------------------------------------------------------------- */

/* Rank 0 writes the file. If another process owns it, this one connects there, and that one fails
 * with the error of two ranks 0. */
static int publish_notice(struct meeting *m, struct dt_error *err)
{
    DT_TRY(dt_notice_take(m->place->name, &m->file, err));
    if (m->file < 0)
        return 0;
    m->leads = true;
    dt_reception_close_socket(&m->peers[0].socket); /* to the earlier owner */
    DT_TRY(listen_for_others(m, err));
    struct dt_notice notice = {.endpoint = m->own.endpoint};
    if (!dt_system_draw(notice.key, sizeof notice.key))
        return dt_fail_errno(err, "cannot draw the key of the job");
    memcpy(m->secret.key, notice.key, sizeof notice.key);
    listen_locally(m);
    return dt_notice_write(m->place->name, m->file, &notice, err);
}

/* Reads the file; a new content belongs to another rendezvous. If the file is gone, a connection in
 * progress may still bring the reason. */
static int find_first(struct meeting *m, struct dt_error *err)
{
    struct peer *first = &m->peers[0];
    struct dt_notice notice;
    DT_TRY(dt_notice_read(m->place->name, &notice, err));
    if (memcmp(&notice, &m->notice, sizeof notice) == 0 ||
        (notice.endpoint.port == 0 && first->socket >= 0))
        return 0;
    m->notice = notice;
    memcpy(m->secret.key, notice.key, sizeof notice.key);
    dt_reception_close_socket(&first->socket);
    first->patience = CALL_S;
    first->found_here = false;
    first->endpoint = notice.endpoint;
    return 0;
}

/* --- the address of rank 0 -------------------------------------------------------------------- */

/* Rank 0 listens on the chosen interface, or on the address if it is given in figures and is one of
 * this machine's; otherwise on all, since a name may have another address for other machines. */
static int listen_at_place(struct meeting *m, struct dt_error *err)
{
    const char *host = m->place->host;
    uint32_t address = INADDR_ANY;
    struct dt_error ignored;
    m->leads = true;
    memcpy(m->secret.key, m->place->key, sizeof m->secret.key);
    if (m->place->listens) {
        m->reception.listener = m->place->listener;
        m->reception.local = m->place->local;
        m->own.endpoint.port = htons((uint16_t)m->place->port);
        return 0;
    }
    if (m->how->interface)
        DT_TRY(dt_interface_find(m->how->interface, &address, err));
    else if (strcmp(host, "localhost") == 0)
        address = htonl(INADDR_LOOPBACK);
    else if (dt_interface_find(host, &address, &ignored) < 0)
        address = INADDR_ANY;
    DT_TRY(listen_at(m, address, m->place->port, err));
    listen_locally(m);
    return 0;
}

/* The host may get its address late, or another one when its process starts again. */
static void find_at_place(struct meeting *m)
{
    struct peer *first = &m->peers[0];
    if (first->socket >= 0 || dt_clock_now() < m->lookup)
        return;
    m->lookup = dt_clock_now() + LOOKUP_S;
    memcpy(m->secret.key, m->place->key, sizeof m->secret.key);
    first->patience = CALL_S;
    first->endpoint.address = dt_interface_look_up(m->place->host);
    first->endpoint.port = first->endpoint.address ? htons((uint16_t)m->place->port) : 0;
}

static int announce(struct meeting *m, struct dt_error *err)
{
    return m->place->host ? listen_at_place(m, err) : publish_notice(m, err);
}

static int look_for_first(struct meeting *m, struct dt_error *err)
{
    if (m->place->host == NULL)
        return find_first(m, err);
    find_at_place(m);
    return 0;
}

/* --- connecting ------------------------------------------------------------------------------- */

static bool is_connected(const struct peer *p)
{
    return p->channel != NULL;
}

/* The number of ranks to which this one connects: rank 0 only, until the addresses are known. */
static int callable(const struct meeting *m)
{
    return m->leads ? 0 : m->complete ? m->rank : 1;
}

static void call(const struct meeting *m, int rank)
{
    struct peer *p = &m->peers[rank];
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = (in_port_t)p->endpoint.port,
                             .sin_addr.s_addr = p->endpoint.address};
    p->until = dt_clock_now() + p->patience;
    p->next = dt_clock_now() + TICK_MS * 1e-3;
    p->moved = 0;
    p->called = false;
    p->socket = m->how->encrypt || p->found_here
                    ? -1
                    : dt_reception_call_locally(&m->secret, rank, p->endpoint.port);
    p->found_here |= p->socket >= 0;
    if (p->socket >= 0)
        return;
    p->socket = dt_reception_socket();
    if (p->socket >= 0 && connect(p->socket, (struct sockaddr *)&to, sizeof to) < 0 &&
        errno != EINPROGRESS)
        dt_reception_close_socket(&p->socket);
}

static int call_others(struct meeting *m, struct dt_error *err)
{
    const bool asked = m->peers[0].socket >= 0 && m->peers[0].called; /* an answer may follow */
    if (m->rank == 0 && !m->leads && !is_connected(&m->peers[0]) && !asked)
        DT_TRY(announce(m, err));
    if (!m->leads && !is_connected(&m->peers[0]))
        DT_TRY(look_for_first(m, err));
    for (int r = 0; r < callable(m); r++) {
        struct peer *p = &m->peers[r];
        if (is_connected(p))
            continue;
        if (p->socket >= 0 && dt_clock_now() > p->until) {
            dt_reception_close_socket(&p->socket);
            p->patience *= 2;
        }
        if (p->socket < 0 && p->endpoint.port && dt_clock_now() >= p->next)
            call(m, r);
    }
    return 0;
}

/* Sends the call with this rank's proof. */
static int answer_challenge(struct meeting *m, int rank, struct dt_error *err)
{
    struct peer *p = &m->peers[rank];
    struct dt_call *own = &p->handshake.call;
    if (rank == 0) {
        DT_TRY(listen_for_others(m, err));
        listen_locally(m);
    }
    own->caller = m->own;
    own->caller.patience = m->until - dt_clock_now();
    own->called = rank;
    p->called = true;
    p->moved = 0;
    if (!dt_handshake_call(&p->handshake, &m->secret) || !send_whole(p->socket, own, sizeof *own))
        dt_reception_close_socket(&p->socket);
    return 0;
}

/* Opens the channel if the answer has a valid proof. */
static void take_answer(struct meeting *m, int rank)
{
    struct peer *p = &m->peers[rank];
    if (dt_handshake_check_answer(&p->handshake, &m->secret)) {
        p->channel = dt_handshake_channel(&p->handshake, &m->secret, p->socket, false);
        p->socket = -1;
    }
    dt_reception_close_socket(&p->socket);
}

/* Continues a handshake; call_others repeats one that fails. */
static int advance_call(struct meeting *m, int rank, struct dt_error *err)
{
    struct peer *p = &m->peers[rank];
    int rc = p->called ? receive_whole(p->socket, &p->handshake.answer, sizeof p->handshake.answer,
                                       &p->moved)
                       : receive_whole(p->socket, &p->handshake.challenge,
                                       sizeof p->handshake.challenge, &p->moved);
    if (rc < 0)
        dt_reception_close_socket(&p->socket);
    if (rc > 0 && !p->called)
        return answer_challenge(m, rank, err);
    if (rc > 0)
        take_answer(m, rank);
    return 0;
}

/* --- calls of other ranks ----------------------------------------------------------------------
 */

/* Rank 0 fails if a rank does not belong to this job. */
static int check_rank(const struct meeting *m, const struct dt_introduction *theirs,
                      struct dt_error *err)
{
    if (theirs->job && m->own.job && theirs->job != m->own.job)
        return dt_fail(err, DT_EINVALID,
                       "two jobs meet at '%s': rank 0 is of one, rank %d of another "
                       "(a job is identified by --output and its Slurm job and step)",
                       m->place->name, theirs->rank);
    if (theirs->size != m->size)
        return dt_fail(err, DT_EINVALID,
                       "ranks that meet at '%s' are told different numbers of ranks: rank 0 of "
                       "%d, and rank %d of %d",
                       m->place->name, m->size, theirs->rank, theirs->size);
    if (theirs->rank == 0 || is_connected(&m->peers[theirs->rank]))
        return dt_fail(err, DT_EINVALID,
                       "two processes that meet at '%s' are rank %d of %d: they have the same "
                       "rank, or two jobs the same path",
                       m->place->name, theirs->rank, m->size);
    return 0;
}

/* Turns a pending connection with a valid proof into that of its rank, or closes it. */
static int admit(struct meeting *m, int index, struct dt_error *err)
{
    struct dt_reception *r = &m->reception;
    const struct dt_introduction theirs = r->pending[index].handshake.call.caller;
    struct peer *p = theirs.rank < m->size ? &m->peers[theirs.rank] : NULL;
    int rc = m->leads ? check_rank(m, &theirs, err) : 0;
    if (rc < 0) {
        m->refused = dt_reception_answer(r, index, &m->secret, &m->own);
        return rc;
    }
    if (p == NULL || theirs.rank <= m->rank || is_connected(p)) {
        dt_reception_refuse(r, index);
        return 0;
    }
    *p = (struct peer){.socket = -1,
                       .channel = dt_reception_answer(r, index, &m->secret, &m->own),
                       .endpoint = theirs.endpoint};
    double until = dt_clock_now() + theirs.patience;
    m->until = m->leads && until < m->until ? until : m->until;
    return 0;
}

/* An error may pass, as that of too many open files in the system does. */
static int accept_calls(struct meeting *m, struct dt_error *err)
{
    const double now = dt_clock_now();
    dt_reception_accept(&m->reception);
    if (m->reception.error == 0 || m->deaf_since == 0)
        m->deaf_since = m->reception.error ? now : 0;
    if (m->reception.error == 0)
        return 0;
    if (now - m->deaf_since > ACCEPT_S) {
        errno = m->reception.error;
        return dt_fail_errno(err, "rank %d cannot accept connections of other ranks at '%s'",
                             m->rank, m->place->name);
    }
    nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000L}, NULL);
    return 0;
}

static int read_calls(struct meeting *m, struct dt_error *err)
{
    struct dt_reception *r = &m->reception;
    for (int i = r->count - 1; i >= 0; i--)
        if (m->polled[m->size + 2 + i].revents && dt_reception_read(r, i, &m->secret, m->rank) > 0)
            DT_TRY(admit(m, i, err));
    if (m->polled[m->size].revents || m->polled[m->size + 1].revents)
        DT_TRY(accept_calls(m, err));
    return 0;
}

/* --- messages after the handshake ------------------------------------------------------------- */

/* Rank 0 sends the messages that are due to a peer. Returns 0 or an error of the channel. */
static int send_due(const struct meeting *m, struct peer *p)
{
    while (p->sent < m->due) {
        const size_t bytes = (size_t)m->size * sizeof *m->addresses;
        if (!p->sending)
            p->frame = p->sent == 0 ? dt_channel_frame_of(MESSAGE_ADDRESSES, m->addresses, bytes)
                                    : dt_channel_frame_of(MESSAGE_FINISHED, NULL, 0);
        p->sending = true;
        int rc = dt_channel_send(p->channel, &p->frame);
        if (rc <= 0)
            return rc;
        p->sending = false;
        p->sent++;
    }
    return 0;
}

/* Rank 0 sends an error to all ranks, including a rejected one. */
static void broadcast_failure(struct meeting *m, const struct dt_error *err)
{
    struct failure f = {.code = err->code};
    memcpy(f.text, err->text, sizeof f.text);
    for (int r = 0; r < m->size; r++) {
        struct peer *p = &m->peers[r];
        struct dt_channel *to = r == 0 ? m->refused : p->channel;
        struct dt_channel_frame failure = dt_channel_frame_of(MESSAGE_FAILURE, &f, sizeof f);
        if (to && (!p->sending || dt_channel_send(to, &p->frame) > 0))
            (void)dt_channel_send(to, &failure);
    }
}

static int lost(const struct meeting *m, int rank, struct dt_error *err)
{
    if (rank == 0 && !m->complete) /* it sends errors only to ranks that it has admitted */
        return dt_fail(err, DT_EIO,
                       "rank 0 has ended the meeting at '%s' without this one: it has left, or "
                       "another process is rank %d",
                       m->place->name, m->rank);
    return dt_fail(err, DT_EIO, "rank %d has left before all had met at '%s'", rank,
                   m->place->name);
}

/* Fails with the message for an error of the channel to that rank. */
static int fail(const struct meeting *m, int failure, int rank, struct dt_error *err)
{
    return failure == DT_CHANNEL_LOST ? lost(m, rank, err) : dt_channel_fail(failure, rank, err);
}

/* Whether all other ranks are connected, or done. */
static bool are_all(const struct meeting *m, bool done)
{
    for (int r = 0; r < m->size; r++)
        if (r != m->rank && !(done ? m->peers[r].done : is_connected(&m->peers[r])))
            return false;
    return true;
}

/* Receives CONNECTED, the only message to rank 0. */
static int receive_connected(struct peer *p)
{
    struct dt_frame_header h;
    int rc = dt_channel_receive_header(p->channel, 0, &h);
    if (rc > 0)
        rc = h.tag == MESSAGE_CONNECTED && !p->done ? dt_channel_receive_payload(p->channel, NULL)
                                                    : DT_CHANNEL_ODD;
    p->done |= rc > 0;
    return rc;
}

/* Rank 0: receives CONNECTED, sends what is due. */
static int advance_leader(struct meeting *m, struct dt_error *err)
{
    for (int r = 1; r < m->size; r++) {
        struct peer *p = &m->peers[r];
        int rc = is_connected(p) && m->polled[r].revents & ~POLLOUT ? receive_connected(p) : 0;
        if (rc >= 0 && is_connected(p) && m->polled[r].revents & POLLOUT)
            rc = send_due(m, p);
        if (rc < 0)
            return fail(m, rc, r, err);
    }
    if (!m->complete && are_all(m, false)) {
        m->complete = true;
        m->due = 1;
        for (int r = 0; r < m->size; r++)
            m->addresses[r] = m->peers[r].endpoint;
    } else if (m->complete && !m->over && are_all(m, true)) {
        m->over = true;
        m->due = 2;
    }
    return 0;
}

/* Whether rank 0 may send this message now. */
static bool is_expected(const struct meeting *m, const struct dt_frame_header *h)
{
    switch (h->tag) {
    case MESSAGE_ADDRESSES:
        return !m->complete && h->bytes == (size_t)m->size * sizeof *m->addresses;
    case MESSAGE_FINISHED:
        return m->complete && h->bytes == 0;
    case MESSAGE_FAILURE:
        return h->bytes == sizeof m->failure;
    default:
        return false;
    }
}

/* Stores the addresses of the other ranks. */
static void take_addresses(struct meeting *m)
{
    for (int r = 1; r < m->size; r++) {
        m->peers[r].patience = CALL_S;
        m->peers[r].endpoint = m->addresses[r];
    }
    m->complete = true;
}

/* Other ranks: receive a message of rank 0. */
static int receive_from_first(struct meeting *m, struct dt_error *err)
{
    struct peer *first = &m->peers[0];
    struct dt_frame_header h;
    const struct failure *f = &m->failure;
    int rc = dt_channel_receive_header(first->channel, SIZE_MAX, &h);
    if (rc > 0 && !is_expected(m, &h))
        rc = DT_CHANNEL_ODD;
    if (rc > 0)
        rc = dt_channel_receive_payload(
            first->channel, h.tag == MESSAGE_FAILURE ? (void *)&m->failure : m->addresses);
    if (rc > 0 && h.tag == MESSAGE_FAILURE)
        return dt_fail(err, f->code < 0 && f->code >= DT_ESTALLED ? (enum dt_code)f->code : DT_EIO,
                       "%.*s", DT_ERROR_TEXT - 1, f->text);
    if (rc < 0 && m->rank > 0)
        return fail(m, rc, 0, err);
    if (rc < 0) { /* this is a second rank 0, and the first one has left: try again */
        dt_channel_close(first->channel);
        first->channel = NULL;
    }
    if (rc > 0 && m->complete)
        m->over = true;
    else if (rc > 0)
        take_addresses(m);
    return 0;
}

static void send_connected(struct meeting *m)
{
    struct peer *first = &m->peers[0];
    if (!first->sending)
        first->frame = dt_channel_frame_of(MESSAGE_CONNECTED, NULL, 0);
    first->sending = true;
    first->done = dt_channel_send(first->channel, &first->frame) > 0;
}

static int advance_others(struct meeting *m, struct dt_error *err)
{
    struct peer *first = &m->peers[0];
    for (int r = 0; r < callable(m); r++)
        if (!is_connected(&m->peers[r]) && m->peers[r].socket >= 0 && m->polled[r].revents)
            DT_TRY(advance_call(m, r, err));
        else if (r == 0 && is_connected(first) && m->polled[0].revents)
            DT_TRY(receive_from_first(m, err));
    if (m->complete && !first->done && are_all(m, false))
        send_connected(m);
    return 0;
}

/* --- the rendezvous --------------------------------------------------------------------------- */

/* Whether a rank is missing, as far as this rank knows: rank 0 only, until addresses are known.
 * late: all have connected to rank 0, but some not to all others. */
static bool is_missing(const struct meeting *m, int rank, bool late)
{
    bool known = m->leads || m->complete || rank == 0;
    return known && rank != m->rank &&
           !(late ? m->peers[rank].done : is_connected(&m->peers[rank]));
}

static int fail_missing(const struct meeting *m, struct dt_error *err)
{
    if (m->rank == 0 && !m->leads)
        return dt_fail(err, DT_ESTALLED,
                       "ranks cannot meet at '%s': another program has had the file for %.0f s",
                       m->place->name, m->how->patience);
    const bool late = m->leads && m->complete;
    int *missing = dt_alloc((size_t)m->size, sizeof *missing), count = 0;
    char names[DT_RANKS] = "0";
    for (int r = 0; r < m->size; r++)
        if (is_missing(m, r, late))
            missing[count++] = r;
    if (count > 0)
        dt_comm_name_ranks(missing, count, names);
    free(missing);
    if (!m->leads && m->place->host && m->peers[0].endpoint.port == 0)
        return dt_fail(err, DT_ESTALLED,
                       "ranks cannot meet at '%s': the host has had no IPv4 address for %.0f s",
                       m->place->name, m->how->patience);
    return dt_fail(err, DT_ESTALLED, "ranks have not met at '%s' within %.0f s: %s %s of %d %s%s",
                   m->place->name, m->how->patience, count > 1 ? "ranks" : "rank", names, m->size,
                   late         ? "did not reach all others"
                   : count == 0 ? "hangs"
                   : count == 1 ? "is missing"
                                : "are missing",
                   m->place->host ? ", or has another DT_KEY" : "");
}

static int check_time(const struct meeting *m, struct dt_error *err)
{
    double grace = !m->leads && is_connected(&m->peers[0]) ? GRACE_S : 0;
    const bool meets_first = m->how->seat && dt_clock_now() < m->begun + DT_SEAT_STOP_S;
    if (m->how->stop && *m->how->stop && !meets_first)
        return dt_fail(err, DT_ESTOP, "told to stop before ranks had met");
    return dt_clock_now() > m->until + grace ? fail_missing(m, err) : 0;
}

static bool is_over(const struct meeting *m)
{
    for (int r = 1; m->leads && r < m->size; r++)
        if (m->peers[r].sent < m->due)
            return false;
    return m->over;
}

/* Events to wait for at a peer's socket. What a peer sends after the end belongs to the transport.
 */
static struct pollfd watch(const struct meeting *m, int rank)
{
    const struct peer *p = &m->peers[rank];
    bool receives = m->leads ? !m->over : !is_connected(p) || rank == 0;
    bool sends = m->leads && is_connected(p) && p->sent < m->due;
    return (struct pollfd){.fd = !receives && !sends ? -1
                                 : is_connected(p)   ? p->channel->socket
                                                     : p->socket,
                           .events = (short)((receives ? POLLIN : 0) | (sends ? POLLOUT : 0))};
}

static int wait_for_events(struct meeting *m, struct dt_error *err)
{
    for (int r = 0; r < m->size; r++)
        m->polled[r] = watch(m, r);
    const struct dt_reception *own = &m->reception;
    m->polled[m->size] = (struct pollfd){.fd = own->listener, .events = POLLIN};
    m->polled[m->size + 1] = (struct pollfd){.fd = own->local, .events = POLLIN};
    for (int i = 0; i < own->count; i++)
        m->polled[m->size + 2 + i] =
            (struct pollfd){.fd = own->pending[i].socket, .events = POLLIN};
    return dt_channel_poll(m->polled, m->size + 2 + own->count, TICK_MS, err);
}

static int run(struct meeting *m, struct dt_error *err)
{
    DT_TRY(dt_crypto_load(&m->secret.crypto, err));
    while (!is_over(m)) {
        DT_TRY(check_time(m, err));
        DT_TRY(call_others(m, err));
        DT_TRY(wait_for_events(m, err));
        DT_TRY(m->leads ? advance_leader(m, err) : advance_others(m, err));
        DT_TRY(read_calls(m, err));
    }
    return 0;
}

/* Frees everything and removes the file. */
static void leave(struct meeting *m, bool met, struct dt_channel **channels)
{
    for (int r = 0; r < m->size; r++) {
        dt_reception_close_socket(&m->peers[r].socket);
        if (!met)
            dt_channel_close(m->peers[r].channel);
        channels[r] = met ? m->peers[r].channel : NULL;
    }
    dt_reception_close(&m->reception);
    dt_channel_close(m->refused);
    if (m->file >= 0)
        dt_notice_remove(m->place->name, m->file);
    explicit_bzero(m->secret.key, sizeof m->secret.key);
    explicit_bzero(m->notice.key, sizeof m->notice.key);
    free(m->peers);
    free(m->polled);
    free(m->addresses);
    free(m);
}

/* Identifies the job, by the given text and the Slurm job and step. */
static uint64_t identify(const char *job)
{
    const char *slurm = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    char *all = dt_asprintf("%s %s %s", job ? job : "", slurm ? slurm : "", step ? step : "");
    uint64_t hash = job ? dt_hash(all, strlen(all)) : 0;
    free(all);
    return hash;
}

int dt_rendezvous_join(const struct dt_meeting_place *place, const struct dt_opening *how, int rank,
                       int size, struct dt_channel **channels, struct dt_error *err)
{
    channels[0] = NULL;
    if (size == 1)
        return 0;
    struct meeting *m = dt_alloc(1, sizeof *m);
    *m = (struct meeting){
        .place = place,
        .how = how,
        .own = {.job = identify(how->job), .rank = rank, .size = size, .encrypts = how->encrypt},
        .rank = rank,
        .size = size,
        .file = -1,
        .begun = dt_clock_now(),
        .until = dt_clock_now() + how->patience};
    dt_reception_allow(size);
    dt_reception_init(&m->reception);
    m->peers = dt_alloc((size_t)size, sizeof *m->peers);
    m->polled = dt_alloc((size_t)(size + 2 + DT_RECEPTION_MOST), sizeof *m->polled);
    m->addresses = dt_alloc((size_t)size, sizeof *m->addresses);
    for (int r = 0; r < size; r++)
        m->peers[r].socket = -1;
    int rc = run(m, err);
    if (rc < 0 && m->leads && rc != DT_ESTOP)
        broadcast_failure(m, err);
    leave(m, rc == 0, channels);
    return rc;
}
