/* SPDX-License-Identifier: MIT */
#include "comm/meeting.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/hash.h"
#include "base/progress.h"
#include "comm/comm.h"
#include "comm/notice.h"

#define TICK_MS 20 /* from one look at the file, the clock and the signals to the next */
#define CALL_S  2  /* that the first calls may take; later ones longer */
#define GRACE_S 2  /* for the first rank to say who is missing */
#define GUESTS  64 /* beside the ranks; of more, the oldest goes */

/* What either side says first. */
struct greeting {
    uint64_t key, job; /* job: 0 is any */
    int32_t rank, size;
    double patience; /* seconds */
};

struct introduction {
    struct greeting greeting;
    struct dt_place place; /* said when the other side's greeting has come */
};

/* What the first rank says to all: twice, unless something is wrong. Behind the first are the
 * places of all. */
struct verdict {
    int32_t code;
    char text[DT_ERROR_TEXT];
};

struct guest {
    int socket;
    size_t got; /* bytes of what it says */
    struct introduction said;
};

struct peer {
    int socket; /* -1: none. A call, until met. */
    bool met, called, done;
    struct dt_place place;
    int address;     /* to call next */
    double patience; /* with a call, which is over at until; the next is not before next */
    double until, next;
    size_t moved; /* bytes: of a greeting that answers, then of what the first rank says */
    struct greeting greeting;
};

struct meeting {
    const struct dt_opening *how;
    struct introduction own;
    int rank, size, most; /* most: guests */
    int file;             /* that the first rank has written; -1: none */
    int listener;
    bool closed; /* all have come, and been told where the others are */
    bool over;   /* all have met */
    double until;
    struct dt_notice notice; /* that was found */
    struct peer *peers;
    struct guest *guests;
    int guest_count;
    struct pollfd *polled;  /* peers, listener, guests */
    struct dt_buffer words; /* what the first rank says */
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

/* Own addresses, those of other machines' sight first. */
static void list_addresses(uint32_t addresses[DT_ADDRESSES])
{
    struct ifaddrs *all = NULL;
    int count = 0;
    if (getifaddrs(&all) < 0)
        all = NULL;
    for (struct ifaddrs *i = all; i && count < DT_ADDRESSES - 1; i = i->ifa_next) {
        struct sockaddr_in in;
        if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET)
            continue;
        memcpy(&in, i->ifa_addr, sizeof in);
        if (in.sin_addr.s_addr != htonl(INADDR_LOOPBACK))
            addresses[count++] = in.sin_addr.s_addr;
    }
    addresses[count] = htonl(INADDR_LOOPBACK);
    freeifaddrs(all);
}

static int listen_for_others(struct meeting *m, struct dt_error *err)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t length = sizeof any;
    m->listener = new_socket();
    if (m->listener < 0 || bind(m->listener, (struct sockaddr *)&any, sizeof any) < 0 ||
        listen(m->listener, SOMAXCONN) < 0 ||
        getsockname(m->listener, (struct sockaddr *)&any, &length) < 0)
        return dt_fail_errno(err, "cannot listen for other ranks");
    m->own.place.port = any.sin_port;
    list_addresses(m->own.place.addresses);
    return 0;
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
    if (getrandom(&m->own.greeting.key, sizeof m->own.greeting.key, 0) < 0)
        return dt_fail_errno(err, "no key for other ranks");
    const struct dt_notice notice = {m->own.greeting.key, m->own.place};
    return dt_notice_write(m->how->where, m->file, &notice, err);
}

/* Another notice is another meeting's. */
static int look_for_first(struct meeting *m, struct dt_error *err)
{
    struct peer *first = &m->peers[0];
    struct dt_notice notice;
    DT_TRY(dt_notice_read(m->how->where, &notice, err));
    if (memcmp(&notice, &m->notice, sizeof notice) == 0)
        return 0;
    m->notice = notice;
    m->own.greeting.key = notice.key;
    hang_up(&first->socket);
    first->address = 0;
    first->patience = CALL_S;
    first->place = notice.place;
    return 0;
}

/* --- calls ------------------------------------------------------------------------------------ */

static bool leads(const struct meeting *m)
{
    return m->file >= 0;
}

/* Ranks that this one calls: the first alone, until it has said where the others are. */
static int callable(const struct meeting *m)
{
    return leads(m) ? 0 : m->closed ? m->rank : 1;
}

static void call(struct peer *p)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = (in_port_t)p->place.port};
    if (p->address == DT_ADDRESSES || p->place.addresses[p->address] == 0)
        p->address = 0;
    to.sin_addr.s_addr = p->place.addresses[p->address++];
    p->until = dt_now() + p->patience;
    p->next = dt_now() + TICK_MS * 1e-3;
    p->moved = 0;
    p->called = false;
    p->socket = new_socket();
    if (p->socket >= 0 && connect(p->socket, (struct sockaddr *)&to, sizeof to) < 0 &&
        errno != EINPROGRESS)
        hang_up(&p->socket);
}

static int call_others(struct meeting *m, struct dt_error *err)
{
    if (m->rank == 0 && !leads(m) && !m->peers[0].met)
        DT_TRY(leave_notice(m, err));
    if (!leads(m) && !m->peers[0].met)
        DT_TRY(look_for_first(m, err));
    for (int r = 0; r < callable(m); r++) {
        struct peer *p = &m->peers[r];
        if (p->met)
            continue;
        if (p->socket >= 0 && dt_now() > p->until) {
            hang_up(&p->socket);
            p->patience *= 2;
        }
        if (p->socket < 0 && p->place.port && dt_now() >= p->next)
            call(p);
    }
    return 0;
}

/* A call goes on; where it fails, another follows. */
static void advance_call(struct meeting *m, int rank)
{
    struct peer *p = &m->peers[rank];
    m->own.greeting.patience = m->until - dt_now();
    int rc = p->called ? hear(p->socket, &p->greeting, sizeof p->greeting, &p->moved)
                       : say(p->socket, &m->own.greeting, sizeof m->own.greeting) - 1;
    p->called = true;
    if (rc > 0 && p->greeting.key == m->own.greeting.key && p->greeting.rank == rank &&
        say(p->socket, &m->own.place, sizeof m->own.place)) {
        p->met = true;
        p->moved = 0;
    } else if (rc != 0) {
        hang_up(&p->socket);
    }
}

/* --- guests ----------------------------------------------------------------------------------- */

static void dismiss(struct meeting *m, int guest)
{
    hang_up(&m->guests[guest].socket);
    m->guest_count--;
    memmove(&m->guests[guest], &m->guests[guest + 1],
            (size_t)(m->guest_count - guest) * sizeof *m->guests);
}

static void let_in(struct meeting *m)
{
    for (int i = 0; i < m->most; i++) {
        int s = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (s >= 0 && m->guest_count == m->most)
            dismiss(m, 0);
        if (s >= 0)
            m->guests[m->guest_count++] = (struct guest){.socket = s};
        else if ((errno == EMFILE || errno == ENFILE) && m->guest_count > 0)
            dismiss(m, 0);
        else if (errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

/* 1: it knows the key, and has said where it is; 0: not yet; -1: it is to go. */
static int hear_guest(const struct meeting *m, struct guest *g)
{
    struct greeting *theirs = &g->said.greeting;
    if (g->got < sizeof *theirs) {
        int rc = hear(g->socket, theirs, sizeof *theirs, &g->got);
        if (rc <= 0)
            return rc;
        bool known = theirs->key != 0 && theirs->key == m->own.greeting.key;
        if (!known || theirs->rank < 0 || theirs->rank >= theirs->size ||
            !say(g->socket, &m->own.greeting, sizeof m->own.greeting))
            return -1;
    }
    return hear(g->socket, &g->said, sizeof g->said, &g->got);
}

/* What is wrong with a rank that the first is to know. */
static int check_guest(const struct meeting *m, const struct greeting *theirs, struct dt_error *err)
{
    if (theirs->job && m->own.greeting.job && theirs->job != m->own.greeting.job)
        return dt_fail(err, DT_EINVALID,
                       "two jobs meet at '%s': rank 0 is of one, rank %d of another "
                       "(--output and Slurm's numbers tell them apart)",
                       m->how->where, theirs->rank);
    if (theirs->size != m->size)
        return dt_fail(err, DT_EINVALID,
                       "ranks that meet at '%s' are told different numbers of ranks: rank 0 of "
                       "%d, and rank %d of %d",
                       m->how->where, m->size, theirs->rank, theirs->size);
    if (theirs->rank == 0 || m->peers[theirs->rank].met)
        return dt_fail(err, DT_EINVALID,
                       "two processes that meet at '%s' are rank %d of %d: they have one number, "
                       "or two jobs one path",
                       m->how->where, theirs->rank, m->size);
    return 0;
}

/* The guest becomes the rank that it says it is; or it goes. */
static int admit(struct meeting *m, int guest, struct dt_error *err)
{
    const struct guest *g = &m->guests[guest];
    const struct greeting *theirs = &g->said.greeting;
    if (leads(m))
        DT_TRY(check_guest(m, theirs, err));
    struct peer *p = theirs->rank < m->size ? &m->peers[theirs->rank] : NULL;
    if (p == NULL || theirs->rank <= m->rank || p->met) {
        dismiss(m, guest);
        return 0;
    }
    *p = (struct peer){.socket = g->socket, .met = true, .place = g->said.place};
    double until = dt_now() + theirs->patience;
    m->until = leads(m) && until < m->until ? until : m->until;
    m->guests[guest].socket = -1;
    dismiss(m, guest);
    return 0;
}

static int hear_guests(struct meeting *m, struct dt_error *err)
{
    for (int i = m->guest_count - 1; i >= 0; i--) {
        int rc = m->polled[m->size + 1 + i].revents ? hear_guest(m, &m->guests[i]) : 0;
        if (rc < 0)
            dismiss(m, i);
        if (rc > 0)
            DT_TRY(admit(m, i, err));
    }
    if (m->polled[m->size].revents)
        let_in(m);
    return 0;
}

/* --- what the first rank says ----------------------------------------------------------------- */

static void add_verdict(struct meeting *m, const struct dt_error *err)
{
    struct verdict v = {0};
    if (err) {
        v.code = err->code;
        memcpy(v.text, err->text, sizeof v.text);
    }
    dt_buffer_append(&m->words, &v, sizeof v);
}

static void tell(const struct meeting *m, struct peer *p)
{
    ssize_t n = send(p->socket, m->words.data + p->moved, m->words.size - p->moved,
                     MSG_NOSIGNAL | MSG_DONTWAIT);
    p->moved += n > 0 ? (size_t)n : 0;
}

/* What is wrong for all; those that the meeting has not taken in yet shall know it too. */
static void tell_failure(struct meeting *m, const struct dt_error *err)
{
    size_t at = m->words.size;
    add_verdict(m, err);
    for (int r = 1; r < m->size; r++)
        if (m->peers[r].met)
            tell(m, &m->peers[r]);
    for (int i = 0; i < m->guest_count; i++)
        if (m->guests[i].got >= sizeof m->guests[i].said.greeting) /* it knows the key */
            say(m->guests[i].socket, m->words.data + at, m->words.size - at);
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

/* Whether all others have met, or are done. */
static bool are_all(const struct meeting *m, bool done)
{
    for (int r = 0; r < m->size; r++)
        if (r != m->rank && !(done ? m->peers[r].done : m->peers[r].met))
            return false;
    return true;
}

/* The first rank: hears who has met all, and says what it has to say. */
static int advance_leader(struct meeting *m, struct dt_error *err)
{
    for (int r = 1; r < m->size; r++) {
        struct peer *p = &m->peers[r];
        char sign;
        size_t got = 0;
        if (p->met && m->polled[r].revents & ~POLLOUT) {
            int rc = hear(p->socket, &sign, sizeof sign, &got);
            if (rc < 0)
                return lost(m, r, err);
            p->done |= rc > 0;
        }
        if (p->met && m->polled[r].revents & POLLOUT)
            tell(m, p);
    }
    if (!m->closed && are_all(m, false)) {
        m->closed = true;
        add_verdict(m, NULL);
        for (int r = 0; r < m->size; r++)
            dt_buffer_append(&m->words, &m->peers[r].place, sizeof m->peers[r].place);
    } else if (m->closed && !m->over && are_all(m, true)) {
        m->over = true;
        add_verdict(m, NULL);
    }
    return 0;
}

/* Where the others are. */
static void take_places(struct meeting *m)
{
    const char *places = m->words.data + sizeof(struct verdict);
    for (int r = 1; r < m->size; r++) {
        m->peers[r].patience = CALL_S;
        memcpy(&m->peers[r].place, places + (size_t)r * sizeof(struct dt_place),
               sizeof(struct dt_place));
    }
    m->closed = true;
    m->peers[0].moved = 0;
}

/* Another rank: hears the first. */
static int hear_first(struct meeting *m, struct dt_error *err)
{
    struct peer *first = &m->peers[0];
    size_t places = m->closed ? 0 : (size_t)m->size * sizeof(struct dt_place);
    dt_buffer_reserve(&m->words, sizeof(struct verdict) + places);
    struct verdict *v = (struct verdict *)(void *)m->words.data;
    int rc = hear(first->socket, v, sizeof *v, &first->moved);
    if (rc > 0 && v->code < 0)
        return dt_fail(err, (enum dt_code)v->code, "%.*s", DT_ERROR_TEXT - 1, v->text);
    if (rc > 0)
        rc = hear(first->socket, v, sizeof *v + places, &first->moved);
    if (rc < 0 && m->rank > 0)
        return lost(m, 0, err);
    if (rc < 0) { /* the other first rank, whose job has met: now it is this one's turn */
        first->met = false;
        hang_up(&first->socket);
    }
    if (rc > 0 && m->closed)
        m->over = true;
    else if (rc > 0)
        take_places(m);
    return 0;
}

static int advance_others(struct meeting *m, struct dt_error *err)
{
    struct peer *first = &m->peers[0];
    for (int r = 0; r < callable(m); r++)
        if (!m->peers[r].met && m->peers[r].socket >= 0 && m->polled[r].revents)
            advance_call(m, r);
        else if (r == 0 && first->met && m->polled[0].revents)
            DT_TRY(hear_first(m, err));
    if (m->closed && !first->done && are_all(m, false))
        first->done = say(first->socket, "", 1);
    return 0;
}

/* --- the meeting ------------------------------------------------------------------------------ */

/* Of the ranks that this one knows of: the first alone, until it has said where the others are.
 * late: all have come, but some have not reached all others. */
static bool is_missing(const struct meeting *m, int rank, bool late)
{
    bool known = leads(m) || m->closed || rank == 0;
    return known && rank != m->rank && !(late ? m->peers[rank].done : m->peers[rank].met);
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
        dt_name_ranks(missing, count, names);
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
    double grace = !leads(m) && m->peers[0].met ? GRACE_S : 0;
    if (m->how->stop && *m->how->stop)
        return dt_fail(err, DT_ESTOP, "told to stop before ranks had met");
    return dt_now() > m->until + grace ? say_missing(m, err) : 0;
}

static bool is_over(const struct meeting *m)
{
    for (int r = 1; leads(m) && r < m->size; r++)
        if (m->peers[r].moved < m->words.size)
            return false;
    return m->over;
}

/* What to look for at a rank's socket; what it sends when all have met is not for the meeting. */
static struct pollfd watch(const struct meeting *m, int rank)
{
    const struct peer *p = &m->peers[rank];
    bool heard = leads(m) ? !m->over : !p->met || rank == 0;
    bool told = leads(m) ? p->met && p->moved < m->words.size : !p->met && !p->called;
    return (struct pollfd){.fd = heard || told ? p->socket : -1,
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
    DT_TRY(listen_for_others(m, err));
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
static void leave(struct meeting *m, bool met, int *sockets)
{
    for (int r = 0; r < m->size; r++) {
        if (!met)
            hang_up(&m->peers[r].socket);
        sockets[r] = m->peers[r].socket;
    }
    while (m->guest_count > 0)
        dismiss(m, m->guest_count - 1);
    hang_up(&m->listener);
    if (leads(m))
        dt_notice_remove(m->how->where, m->file);
    free(m->peers);
    free(m->guests);
    free(m->polled);
    dt_buffer_release(&m->words);
}

/* By what ranks of one job are told from others: the words given, and the job of Slurm. */
static uint64_t identify(const char *job)
{
    const char *slurm = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    char *all = dt_format("%s %s %s", job ? job : "", slurm ? slurm : "", step ? step : "");
    uint64_t hash = job ? dt_hash(all, strlen(all)) : 0;
    free(all);
    return hash;
}

int dt_meet(const struct dt_opening *how, int rank, int size, int *sockets, struct dt_error *err)
{
    struct meeting m = {.how = how,
                        .own.greeting = {.job = identify(how->job), .rank = rank, .size = size},
                        .rank = rank,
                        .size = size,
                        .most = size + GUESTS,
                        .file = -1,
                        .listener = -1,
                        .until = dt_now() + how->patience};
    sockets[0] = -1;
    if (size == 1)
        return 0;
    m.peers = dt_alloc((size_t)size, sizeof *m.peers);
    m.guests = dt_alloc((size_t)m.most, sizeof *m.guests);
    m.polled = dt_alloc((size_t)(size + 1 + m.most), sizeof *m.polled);
    for (int r = 0; r < size; r++)
        m.peers[r].socket = -1;
    int rc = run(&m, err);
    if (rc < 0 && leads(&m) && rc != DT_ESTOP)
        tell_failure(&m, err);
    leave(&m, rc == 0, sockets);
    return rc;
}
