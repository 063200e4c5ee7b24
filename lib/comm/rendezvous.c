/* SPDX-License-Identifier: MIT */
#include "comm/rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/hash.h"
#include "comm/comm.h"
#include "comm/handshake.h"
#include "comm/interface.h"

#define TICK_MS 20  /* from one look at the file, the clock and the signals to the next */
#define CALL_S  2   /* that the first calls may take; later ones longer */
#define GRACE_S 2   /* for the first rank to say who is missing */
#define GUESTS  256 /* connections that have proved nothing; of more, one goes at random */

/* What ranks say when they have proved who they are: tags of messages. */
enum saying {
    SAYING_PLACES, /* the first, when all have come: where each listens */
    SAYING_DONE,   /* another, when it has met all */
    SAYING_OVER,   /* the first, when all have */
    SAYING_FAILURE /* the first, instead of the next of these: what is wrong for all */
};

struct failure {
    int64_t code;
    char text[DT_ERROR_TEXT];
};

struct guest {
    int socket;
    size_t got; /* bytes of its call */
    struct dt_handshake talk;
};

struct peer {
    int socket;                 /* of a call, until met; -1: none */
    struct dt_channel *channel; /* met; NULL: not yet */
    bool called, done;          /* called: its challenge has been met */
    struct dt_rank_address place;
    double patience; /* with a call, which is over at until; the next is not before next */
    double until, next;
    struct dt_handshake talk;
    size_t moved;                   /* bytes of what the other side says next */
    struct dt_channel_frame saying; /* that the first rank says to it, or it says to the first */
    bool telling;                   /* it is on its way */
    int told;                       /* sayings of the first rank that it has been told whole */
};

struct meeting {
    const struct dt_opening *how;
    struct dt_introduction own;
    int rank, size;
    int file;         /* that the first rank has written; -1: none */
    int listener;     /* -1: none */
    uint32_t address; /* that it listens on */
    bool closed;      /* all have come, and been told where the others are */
    bool over;        /* all have met */
    double until;
    struct dt_secret secret;
    struct dt_notice notice; /* that was found */
    struct peer *peers;
    struct guest guests[GUESTS];
    int guest_count;
    struct pollfd *polled;          /* peers, listener, guests */
    struct dt_rank_address *places; /* of all, as the first rank says */
    int said;                       /* sayings of the first rank: places, then that all have met */
    struct failure failure;         /* or what is wrong, as it says */
    struct dt_channel *refused;     /* a rank that is to hear why; NULL: none */
};

/* --- sockets ---------------------------------------------------------------------------------- */

static void hang_up(int *s)
{
    if (*s >= 0)
        close(*s);
    *s = -1;
}

static bool say(int s, const void *what, size_t bytes)
{
    return send(s, what, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

/* 1: all that is expected has come; 0: not yet; -1: it never will. */
static int hear(int s, void *what, size_t bytes, size_t *got)
{
    if (*got >= bytes)
        return 1;
    ssize_t n = recv(s, (char *)what + *got, bytes - *got, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return -1;
    *got += n > 0 ? (size_t)n : 0;
    return *got == bytes;
}

static int new_socket(void)
{
    const int yes = 1;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s >= 0)
        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* those accepted inherit it */
    return s;
}

/* The address where other ranks connect to this one; the last rank needs none. The listener stays.
 */
static int listen_at(struct meeting *m, uint32_t address, struct dt_error *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = address};
    socklen_t length = sizeof at;
    if (m->rank == m->size - 1 || (m->listener >= 0 && m->address == address))
        return 0;
    hang_up(&m->listener);
    m->listener = new_socket();
    if (m->listener < 0 || bind(m->listener, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(m->listener, SOMAXCONN) < 0 ||
        getsockname(m->listener, (struct sockaddr *)&at, &length) < 0)
        return dt_fail_errno(err, "cannot listen for other ranks");
    m->address = address;
    m->own.place = (struct dt_rank_address){at.sin_port, address};
    return 0;
}

/* At the interface that was chosen; or at the address by which the first rank is reached, through
 * that connection; for the first, socket -1, where other machines reach this one. */
static int listen_for_others(struct meeting *m, int socket, struct dt_error *err)
{
    struct sockaddr_in own = {0};
    socklen_t length = sizeof own;
    uint32_t address;
    if (m->how->interface)
        DT_TRY(dt_interface_find(m->how->interface, &address, err));
    else if (socket < 0)
        address = dt_interface_default();
    else if (getsockname(socket, (struct sockaddr *)&own, &length) == 0)
        address = own.sin_addr.s_addr;
    else
        return dt_fail_errno(err, "cannot tell the address by which rank 0 is reached");
    return listen_at(m, address, err);
}

/* --- the notice ------------------------------------------------------------------------------- */

/* The first rank's. Where another has the file, that one is called, and will find that there are
 * two. */
static int leave_notice(struct meeting *m, struct dt_error *err)
{
    DT_TRY(dt_notice_take(m->how->where, &m->file, err));
    if (m->file < 0)
        return 0;
    hang_up(&m->peers[0].socket); /* of the one before */
    DT_TRY(listen_for_others(m, -1, err));
    struct dt_notice notice = {.place = m->own.place};
    if (getrandom(notice.key, sizeof notice.key, 0) != sizeof notice.key)
        return dt_fail_errno(err, "no key for other ranks");
    memcpy(m->secret.key, notice.key, sizeof notice.key);
    return dt_notice_write(m->how->where, m->file, &notice, err);
}

/* Another notice is another meeting's. One that is gone may be of a first rank that has just said
 * why, in the call that goes on. */
static int look_for_first(struct meeting *m, struct dt_error *err)
{
    struct peer *first = &m->peers[0];
    struct dt_notice notice;
    DT_TRY(dt_notice_read(m->how->where, &notice, err));
    if (memcmp(&notice, &m->notice, sizeof notice) == 0 ||
        (notice.place.port == 0 && first->socket >= 0))
        return 0;
    m->notice = notice;
    memcpy(m->secret.key, notice.key, sizeof notice.key);
    hang_up(&first->socket);
    first->patience = CALL_S;
    first->place = notice.place;
    return 0;
}

/* --- calls ------------------------------------------------------------------------------------ */

static bool leads(const struct meeting *m)
{
    return m->file >= 0;
}

static bool is_met(const struct peer *p)
{
    return p->channel != NULL;
}

/* Ranks that this one calls: the first alone, until it has said where the others are. */
static int callable(const struct meeting *m)
{
    return leads(m) ? 0 : m->closed ? m->rank : 1;
}

static void call(struct peer *p)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = (in_port_t)p->place.port,
                             .sin_addr.s_addr = p->place.address};
    p->until = dt_clock_now() + p->patience;
    p->next = dt_clock_now() + TICK_MS * 1e-3;
    p->moved = 0;
    p->called = false;
    p->socket = new_socket();
    if (p->socket >= 0 && connect(p->socket, (struct sockaddr *)&to, sizeof to) < 0 &&
        errno != EINPROGRESS)
        hang_up(&p->socket);
}

static int call_others(struct meeting *m, struct dt_error *err)
{
    const bool asked = m->peers[0].socket >= 0 && m->peers[0].called; /* and may be answered */
    if (m->rank == 0 && !leads(m) && !is_met(&m->peers[0]) && !asked)
        DT_TRY(leave_notice(m, err));
    if (!leads(m) && !is_met(&m->peers[0]))
        DT_TRY(look_for_first(m, err));
    for (int r = 0; r < callable(m); r++) {
        struct peer *p = &m->peers[r];
        if (is_met(p))
            continue;
        if (p->socket >= 0 && dt_clock_now() > p->until) {
            hang_up(&p->socket);
            p->patience *= 2;
        }
        if (p->socket < 0 && p->place.port && dt_clock_now() >= p->next)
            call(p);
    }
    return 0;
}

/* A challenge has come: says who this rank is, with a proof. */
static int meet_challenge(struct meeting *m, int rank, struct dt_error *err)
{
    struct peer *p = &m->peers[rank];
    struct dt_call *own = &p->talk.call;
    if (rank == 0)
        DT_TRY(listen_for_others(m, p->socket, err));
    own->caller = m->own;
    own->caller.patience = m->until - dt_clock_now();
    own->called = rank;
    p->called = true;
    p->moved = 0;
    if (!dt_handshake_call(&p->talk, &m->secret) || !say(p->socket, own, sizeof *own))
        hang_up(&p->socket);
    return 0;
}

/* An answer has come: with a proof it is the rank that was called. */
static void take_answer(struct meeting *m, int rank)
{
    struct peer *p = &m->peers[rank];
    if (dt_handshake_check_answer(&p->talk, &m->secret)) {
        p->channel = dt_handshake_channel(&p->talk, &m->secret, p->socket, false);
        p->socket = -1;
    }
    hang_up(&p->socket);
}

/* A call goes on; where it fails, another follows. */
static int advance_call(struct meeting *m, int rank, struct dt_error *err)
{
    struct peer *p = &m->peers[rank];
    int rc = p->called ? hear(p->socket, &p->talk.answer, sizeof p->talk.answer, &p->moved)
                       : hear(p->socket, &p->talk.challenge, sizeof p->talk.challenge, &p->moved);
    if (rc < 0)
        hang_up(&p->socket);
    if (rc > 0 && !p->called)
        return meet_challenge(m, rank, err);
    if (rc > 0)
        take_answer(m, rank);
    return 0;
}

/* --- guests ----------------------------------------------------------------------------------- */

static void dismiss(struct meeting *m, int guest)
{
    hang_up(&m->guests[guest].socket);
    m->guests[guest] = m->guests[--m->guest_count];
}

/* Makes room for one more. A rank that has to go calls again at once; however many strangers call,
 * it stays for long enough sooner or later, as it would not if the oldest had to go. */
static void dismiss_any(struct meeting *m)
{
    unsigned drawn = 0;
    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
        drawn = 0;
    dismiss(m, (int)(drawn % (unsigned)m->guest_count));
}

static void challenge(struct meeting *m, int socket)
{
    if (m->guest_count == GUESTS)
        dismiss_any(m);
    struct guest *g = &m->guests[m->guest_count++];
    *g = (struct guest){.socket = socket};
    if (!dt_handshake_challenge(&g->talk) ||
        !say(socket, &g->talk.challenge, sizeof g->talk.challenge))
        dismiss(m, m->guest_count - 1);
}

/* No more at a time than are kept: then those are heard. */
static void let_in(struct meeting *m)
{
    for (int i = 0; i < GUESTS / 2; i++) {
        int s = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (s >= 0)
            challenge(m, s);
        else if ((errno == EMFILE || errno == ENFILE) && m->guest_count > 0)
            dismiss_any(m);
        else if (errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

/* What is wrong with a rank that the first is to know. */
static int check_rank(const struct meeting *m, const struct dt_introduction *theirs,
                      struct dt_error *err)
{
    if (theirs->job && m->own.job && theirs->job != m->own.job)
        return dt_fail(err, DT_EINVALID,
                       "two jobs meet at '%s': rank 0 is of one, rank %d of another "
                       "(--output and Slurm's numbers tell them apart)",
                       m->how->where, theirs->rank);
    if (theirs->size != m->size)
        return dt_fail(err, DT_EINVALID,
                       "ranks that meet at '%s' are told different numbers of ranks: rank 0 of "
                       "%d, and rank %d of %d",
                       m->how->where, m->size, theirs->rank, theirs->size);
    if (theirs->rank == 0 || is_met(&m->peers[theirs->rank]))
        return dt_fail(err, DT_EINVALID,
                       "two processes that meet at '%s' are rank %d of %d: they have one number, "
                       "or two jobs one path",
                       m->how->where, theirs->rank, m->size);
    return 0;
}

/* Answers a guest that has proved who it is, which then is none any more. */
static struct dt_channel *answer(struct meeting *m, int guest)
{
    struct guest *g = &m->guests[guest];
    struct dt_channel *channel = NULL;
    g->talk.answer.listener = m->own;
    if (dt_handshake_answer(&g->talk, &m->secret) &&
        say(g->socket, &g->talk.answer, sizeof g->talk.answer)) {
        channel = dt_handshake_channel(&g->talk, &m->secret, g->socket, true);
        g->socket = -1;
    }
    dismiss(m, guest);
    return channel;
}

/* The guest becomes the rank that it has proved to be; or it goes. */
static int admit(struct meeting *m, int guest, struct dt_error *err)
{
    const struct dt_introduction theirs = m->guests[guest].talk.call.caller;
    struct peer *p = theirs.rank < m->size ? &m->peers[theirs.rank] : NULL;
    int rc = leads(m) ? check_rank(m, &theirs, err) : 0;
    if (rc < 0) {
        m->refused = answer(m, guest);
        return rc;
    }
    if (p == NULL || theirs.rank <= m->rank || is_met(p)) {
        dismiss(m, guest);
        return 0;
    }
    *p = (struct peer){.socket = -1, .channel = answer(m, guest), .place = theirs.place};
    double until = dt_clock_now() + theirs.patience;
    m->until = leads(m) && until < m->until ? until : m->until;
    return 0;
}

static int hear_guest(struct meeting *m, int guest, struct dt_error *err)
{
    struct guest *g = &m->guests[guest];
    int rc = hear(g->socket, &g->talk.call, sizeof g->talk.call, &g->got);
    if (rc > 0 && dt_handshake_check_call(&g->talk, &m->secret, m->rank))
        return admit(m, guest, err);
    if (rc != 0)
        dismiss(m, guest);
    return 0;
}

static int hear_guests(struct meeting *m, struct dt_error *err)
{
    for (int i = m->guest_count - 1; i >= 0; i--)
        if (m->polled[m->size + 1 + i].revents)
            DT_TRY(hear_guest(m, i, err));
    if (m->polled[m->size].revents)
        let_in(m);
    return 0;
}

/* --- what the first rank says ----------------------------------------------------------------- */

/* A negative result is a failure of the channel. */
static int tell(const struct meeting *m, struct peer *p)
{
    while (p->told < m->said) {
        const size_t bytes = (size_t)m->size * sizeof *m->places;
        if (!p->telling)
            p->saying = p->told == 0 ? dt_channel_frame_of(SAYING_PLACES, m->places, bytes)
                                     : dt_channel_frame_of(SAYING_OVER, NULL, 0);
        p->telling = true;
        int rc = dt_channel_send(p->channel, &p->saying);
        if (rc <= 0)
            return rc;
        p->telling = false;
        p->told++;
    }
    return 0;
}

/* What is wrong for all, also to a rank that for this reason is none of them. */
static void tell_failure(struct meeting *m, const struct dt_error *err)
{
    struct failure f = {.code = err->code};
    memcpy(f.text, err->text, sizeof f.text);
    for (int r = 0; r < m->size; r++) {
        struct peer *p = &m->peers[r];
        struct dt_channel *to = r == 0 ? m->refused : p->channel;
        struct dt_channel_frame frame = dt_channel_frame_of(SAYING_FAILURE, &f, sizeof f);
        if (to && (!p->telling || dt_channel_send(to, &p->saying) > 0))
            (void)dt_channel_send(to, &frame);
    }
}

static int lost(const struct meeting *m, int rank, struct dt_error *err)
{
    if (rank == 0 && !m->closed) /* it does not say why to one whom it has not taken in */
        return dt_fail(err, DT_EIO,
                       "rank 0 has ended the meeting at '%s' without this one: it has left, or "
                       "another process is rank %d",
                       m->how->where, m->rank);
    return dt_fail(err, DT_EIO, "rank %d has left before all had met at '%s'", rank, m->how->where);
}

/* What a failure of the channel to that rank means for the meeting. */
static int fail(const struct meeting *m, int failure, int rank, struct dt_error *err)
{
    return failure == DT_CHANNEL_LOST ? lost(m, rank, err) : dt_channel_fail(failure, rank, err);
}

/* Whether all others have met, or are done. */
static bool are_all(const struct meeting *m, bool done)
{
    for (int r = 0; r < m->size; r++)
        if (r != m->rank && !(done ? m->peers[r].done : is_met(&m->peers[r])))
            return false;
    return true;
}

/* Whether it has met all; it has nothing else to say. */
static int hear_done(struct peer *p)
{
    struct dt_frame_header h;
    int rc = dt_channel_receive_header(p->channel, 0, &h);
    if (rc > 0)
        rc = h.tag == SAYING_DONE && !p->done ? dt_channel_receive_payload(p->channel, NULL)
                                              : DT_CHANNEL_ODD;
    p->done |= rc > 0;
    return rc;
}

/* The first rank: hears who has met all, and says what it has to say. */
static int advance_leader(struct meeting *m, struct dt_error *err)
{
    for (int r = 1; r < m->size; r++) {
        struct peer *p = &m->peers[r];
        int rc = is_met(p) && m->polled[r].revents & ~POLLOUT ? hear_done(p) : 0;
        if (rc >= 0 && is_met(p) && m->polled[r].revents & POLLOUT)
            rc = tell(m, p);
        if (rc < 0)
            return fail(m, rc, r, err);
    }
    if (!m->closed && are_all(m, false)) {
        m->closed = true;
        m->said = 1;
        for (int r = 0; r < m->size; r++)
            m->places[r] = m->peers[r].place;
    } else if (m->closed && !m->over && are_all(m, true)) {
        m->over = true;
        m->said = 2;
    }
    return 0;
}

/* Whether the first rank may say this now. */
static bool is_due(const struct meeting *m, const struct dt_frame_header *h)
{
    switch (h->tag) {
    case SAYING_PLACES:
        return !m->closed && h->bytes == (size_t)m->size * sizeof *m->places;
    case SAYING_OVER:
        return m->closed && h->bytes == 0;
    case SAYING_FAILURE:
        return h->bytes == sizeof m->failure;
    default:
        return false;
    }
}

/* Where the others are. */
static void take_places(struct meeting *m)
{
    for (int r = 1; r < m->size; r++) {
        m->peers[r].patience = CALL_S;
        m->peers[r].place = m->places[r];
    }
    m->closed = true;
}

/* Another rank: hears the first. */
static int hear_first(struct meeting *m, struct dt_error *err)
{
    struct peer *first = &m->peers[0];
    struct dt_frame_header h;
    const struct failure *f = &m->failure;
    int rc = dt_channel_receive_header(first->channel, SIZE_MAX, &h);
    if (rc > 0 && !is_due(m, &h))
        rc = DT_CHANNEL_ODD;
    if (rc > 0)
        rc = dt_channel_receive_payload(first->channel,
                                        h.tag == SAYING_FAILURE ? (void *)&m->failure : m->places);
    if (rc > 0 && h.tag == SAYING_FAILURE)
        return dt_fail(err, f->code < 0 && f->code >= DT_ESTALLED ? (enum dt_code)f->code : DT_EIO,
                       "%.*s", DT_ERROR_TEXT - 1, f->text);
    if (rc < 0 && m->rank > 0)
        return fail(m, rc, 0, err);
    if (rc < 0) { /* the other first rank, whose job has met: now it is this one's turn */
        dt_channel_close(first->channel);
        first->channel = NULL;
    }
    if (rc > 0 && m->closed)
        m->over = true;
    else if (rc > 0)
        take_places(m);
    return 0;
}

static void say_done(struct meeting *m)
{
    struct peer *first = &m->peers[0];
    if (!first->telling)
        first->saying = dt_channel_frame_of(SAYING_DONE, NULL, 0);
    first->telling = true;
    first->done = dt_channel_send(first->channel, &first->saying) > 0;
}

static int advance_others(struct meeting *m, struct dt_error *err)
{
    struct peer *first = &m->peers[0];
    for (int r = 0; r < callable(m); r++)
        if (!is_met(&m->peers[r]) && m->peers[r].socket >= 0 && m->polled[r].revents)
            DT_TRY(advance_call(m, r, err));
        else if (r == 0 && is_met(first) && m->polled[0].revents)
            DT_TRY(hear_first(m, err));
    if (m->closed && !first->done && are_all(m, false))
        say_done(m);
    return 0;
}

/* --- the meeting ------------------------------------------------------------------------------ */

/* Of the ranks that this one knows of: the first alone, until it has said where the others are.
 * late: all have come, but some have not reached all others. */
static bool is_missing(const struct meeting *m, int rank, bool late)
{
    bool known = leads(m) || m->closed || rank == 0;
    return known && rank != m->rank && !(late ? m->peers[rank].done : is_met(&m->peers[rank]));
}

static int say_missing(const struct meeting *m, struct dt_error *err)
{
    if (m->rank == 0 && !leads(m))
        return dt_fail(err, DT_ESTALLED,
                       "ranks cannot meet at '%s': another program has had the file for %.0f s",
                       m->how->where, m->how->patience);
    const bool late = leads(m) && m->closed;
    int *missing = dt_alloc((size_t)m->size, sizeof *missing), count = 0;
    char names[DT_RANKS] = "0";
    for (int r = 0; r < m->size; r++)
        if (is_missing(m, r, late))
            missing[count++] = r;
    if (count > 0)
        dt_comm_name_ranks(missing, count, names);
    free(missing);
    return dt_fail(err, DT_ESTALLED, "ranks have not met at '%s' within %.0f s: %s %s of %d %s",
                   m->how->where, m->how->patience, count > 1 ? "ranks" : "rank", names, m->size,
                   late         ? "did not reach all others"
                   : count == 0 ? "stands still"
                   : count == 1 ? "is missing"
                                : "are missing");
}

static int check_time(const struct meeting *m, struct dt_error *err)
{
    double grace = !leads(m) && is_met(&m->peers[0]) ? GRACE_S : 0;
    if (m->how->stop && *m->how->stop)
        return dt_fail(err, DT_ESTOP, "told to stop before ranks had met");
    return dt_clock_now() > m->until + grace ? say_missing(m, err) : 0;
}

static bool is_over(const struct meeting *m)
{
    for (int r = 1; leads(m) && r < m->size; r++)
        if (m->peers[r].told < m->said)
            return false;
    return m->over;
}

/* What to look for at a rank's socket; what it sends when all have met is not for the meeting. */
static struct pollfd watch(const struct meeting *m, int rank)
{
    const struct peer *p = &m->peers[rank];
    bool heard = leads(m) ? !m->over : !is_met(p) || rank == 0;
    bool told = leads(m) && is_met(p) && p->told < m->said;
    return (struct pollfd){.fd = !heard && !told ? -1
                                 : is_met(p)     ? p->channel->socket
                                                 : p->socket,
                           .events = (short)((heard ? POLLIN : 0) | (told ? POLLOUT : 0))};
}

static void wait_for_events(struct meeting *m)
{
    for (int r = 0; r < m->size; r++)
        m->polled[r] = watch(m, r);
    m->polled[m->size] = (struct pollfd){.fd = m->listener, .events = POLLIN};
    for (int i = 0; i < m->guest_count; i++)
        m->polled[m->size + 1 + i] = (struct pollfd){.fd = m->guests[i].socket, .events = POLLIN};
    if (poll(m->polled, (nfds_t)(m->size + 1 + m->guest_count), TICK_MS) < 0)
        memset(m->polled, 0, (size_t)(m->size + 1 + m->guest_count) * sizeof *m->polled);
}

static int run(struct meeting *m, struct dt_error *err)
{
    DT_TRY(dt_crypto_load(&m->secret.crypto, err));
    while (!is_over(m)) {
        DT_TRY(check_time(m, err));
        DT_TRY(call_others(m, err));
        wait_for_events(m);
        DT_TRY(leads(m) ? advance_leader(m, err) : advance_others(m, err));
        DT_TRY(hear_guests(m, err));
    }
    return 0;
}

/* Its file goes too. */
static void leave(struct meeting *m, bool met, struct dt_channel **channels)
{
    for (int r = 0; r < m->size; r++) {
        hang_up(&m->peers[r].socket);
        if (!met)
            dt_channel_close(m->peers[r].channel);
        channels[r] = met ? m->peers[r].channel : NULL;
    }
    while (m->guest_count > 0)
        dismiss(m, m->guest_count - 1);
    hang_up(&m->listener);
    dt_channel_close(m->refused);
    if (leads(m))
        dt_notice_remove(m->how->where, m->file);
    explicit_bzero(m->secret.key, sizeof m->secret.key);
    explicit_bzero(m->notice.key, sizeof m->notice.key);
    free(m->peers);
    free(m->polled);
    free(m->places);
    free(m);
}

/* By what ranks of one job are told from others: the words given, and the job of Slurm. */
static uint64_t identify(const char *job)
{
    const char *slurm = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    char *all = dt_asprintf("%s %s %s", job ? job : "", slurm ? slurm : "", step ? step : "");
    uint64_t hash = job ? dt_hash(all, strlen(all)) : 0;
    free(all);
    return hash;
}

int dt_rendezvous_join(const struct dt_opening *how, int rank, int size,
                       struct dt_channel **channels, struct dt_error *err)
{
    channels[0] = NULL;
    if (size == 1)
        return 0;
    struct meeting *m = dt_alloc(1, sizeof *m);
    *m = (struct meeting){.how = how,
                          .own = {.job = identify(how->job), .rank = rank, .size = size},
                          .rank = rank,
                          .size = size,
                          .file = -1,
                          .listener = -1,
                          .until = dt_clock_now() + how->patience};
    m->peers = dt_alloc((size_t)size, sizeof *m->peers);
    m->polled = dt_alloc((size_t)(size + 1 + GUESTS), sizeof *m->polled);
    m->places = dt_alloc((size_t)size, sizeof *m->places);
    for (int r = 0; r < size; r++)
        m->peers[r].socket = -1;
    int rc = run(m, err);
    if (rc < 0 && leads(m) && rc != DT_ESTOP)
        tell_failure(m, err);
    leave(m, rc == 0, channels);
    return rc;
}
