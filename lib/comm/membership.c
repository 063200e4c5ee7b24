/* SPDX-License-Identifier: MIT */
#include "comm/membership.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/system.h"
#include "comm/interface.h"
#include "comm/reception.h"
#include "hash/hash.h"

#define TICK_MS      20  /* interval of checks of the place, the clock and signals */
#define SUSPECT_S    0.5 /* for a suspect */
#define SETTLE_S     1.0 /* for more newcomers, at the first meeting */
#define PRESENT_S    0.5 /* interval of PRESENT */
#define LOOK_S       0.1 /* interval of looks at the file */
#define STUCK_S      2.0 /* for a suspected leader */
#define FRAME_MOST   ((size_t)1 << 20)
#define MEMBERS_MOST 4096

enum message { MESSAGE_WELCOME, MESSAGE_HELLO, MESSAGE_PRESENT, MESSAGE_ROSTER, MESSAGE_FAILURE };

struct hello {
    uint64_t id;
    int64_t generation; /* the last of this process; 0: none */
    uint64_t suspect;   /* a member of it; 0: none */
    int64_t count;      /* of its members, whose identities follow */
};

struct roster {
    int64_t generation;
    int32_t rank, size;
    int32_t left;
    uint32_t port; /* of rank 0, in network byte order */
    uint8_t nonce[DT_KEY];
    /* identities of the members follow */
};

struct failure {
    int64_t code;
    char text[DT_ERROR_TEXT];
};

/* A process that is connected to the leader. */
struct guest {
    struct dt_channel *channel;
    struct dt_channel_frame frame; /* that is being sent */
    bool sending, heard;           /* heard: hello is received */
    double present;                /* time of the last PRESENT */
    struct hello hello;
    char *received;
};

struct identities {
    uint64_t *ids;
    int count;
};

struct dt_membership {
    struct dt_membership_options how;
    struct dt_meeting_place place;
    struct dt_secret secret;
    struct dt_introduction own;
    uint64_t id, suspect;
    int64_t generation;
    struct identities roster; /* of the generation, without ranks that left */
    bool leads;
    int file; /* of the leader at a path; -1: none */
    struct dt_notice notice;
    struct dt_reception reception;
    struct guest *guests; /* in order of arrival */
    size_t guest_count, guest_capacity;
    double begun, arrived; /* times: of the meeting's begin, and of the last arrival */
    double looked, heard;  /* of the last look at the file, and of the leader's last message */
    bool connected;        /* to a leader */
    uint32_t address;      /* of the leader, in network byte order */
    struct dt_seat seat;
};

/* --- identities ------------------------------------------------------------------------------- */

static int find(const struct identities *all, uint64_t id)
{
    for (int i = 0; i < all->count; i++)
        if (all->ids[i] == id)
            return i;
    return -1;
}

static void add(struct identities *all, uint64_t id)
{
    uint64_t *ids = dt_alloc((size_t)all->count + 1, sizeof *ids);
    if (all->count > 0)
        memcpy(ids, all->ids, (size_t)all->count * sizeof *ids);
    ids[all->count++] = id;
    free(all->ids);
    all->ids = ids;
}

static void set(struct identities *all, const uint64_t *ids, int count)
{
    free(all->ids);
    *all = (struct identities){0};
    for (int i = 0; i < count; i++)
        add(all, ids[i]);
}

/* --- sending and receiving -------------------------------------------------------------------- */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000L}, NULL);
}

/* Sends a small frame within a second; whether it was sent. */
static bool send_frame(struct dt_channel *c, int tag, const void *data, size_t bytes)
{
    struct dt_channel_frame f = dt_channel_frame_of(tag, data, bytes);
    const double until = dt_clock_now() + 1;
    int rc;
    while ((rc = dt_channel_send(c, &f)) == 0 && dt_clock_now() < until) {
        struct pollfd p = {.fd = c->socket, .events = POLLOUT};
        poll(&p, 1, TICK_MS);
    }
    return rc > 0;
}

/* 1: a frame is received, *data is owned by the caller and ends with a 0; 0: not yet; or an enum
 * dt_channel_failure. *partial: of a frame that is being received. */
static int receive_frame(struct dt_channel *c, struct dt_frame_header *header, char **partial)
{
    int rc = dt_channel_receive_header(c, FRAME_MOST, header);
    if (rc <= 0)
        return rc;
    if (*partial == NULL)
        *partial = dt_alloc(1, header->bytes + 1);
    return dt_channel_receive_payload(c, *partial);
}

/* --- the leader ------------------------------------------------------------------------------- */

static void dismiss(struct dt_membership *m, size_t index)
{
    dt_channel_close(m->guests[index].channel);
    free(m->guests[index].received);
    m->guest_count--;
    memmove(m->guests + index, m->guests + index + 1, (m->guest_count - index) * sizeof *m->guests);
}

static void stop_leading(struct dt_membership *m)
{
    while (m->guest_count > 0)
        dismiss(m, m->guest_count - 1);
    dt_reception_close(&m->reception);
    if (m->file >= 0)
        dt_notice_remove(m->place.name, m->file);
    m->file = -1;
    m->leads = false;
}

/* At a path: whoever locks the file. The notice tells the generation that the leader last began, by
 * which a process sees that it was left out. */
static int write_notice(struct dt_membership *m, struct dt_error *err)
{
    if (m->file < 0)
        return 0;
    m->notice.endpoint = m->reception.endpoint;
    m->notice.generation = (uint64_t)m->generation;
    return dt_notice_write(m->place.name, m->file, &m->notice, err);
}

static int lead_at_path(struct dt_membership *m, struct dt_error *err)
{
    uint32_t address = dt_interface_default();
    DT_TRY(dt_notice_take(m->place.name, &m->file, err));
    if (m->file < 0)
        return 0;
    m->leads = true;
    if (m->how.interface)
        DT_TRY(dt_interface_find(m->how.interface, &address, err));
    if (dt_reception_listen(&m->reception, address, 0) < 0)
        return dt_fail_errno(err, "cannot listen for ranks of '%s'", m->place.name);
    m->notice = (struct dt_notice){0};
    if (!dt_system_draw(m->notice.key, sizeof m->notice.key))
        return dt_fail_errno(err, "cannot draw the key of the job");
    memcpy(m->secret.key, m->notice.key, sizeof m->secret.key);
    return write_notice(m, err);
}

/* By address: whoever can listen there. */
static int lead_at_address(struct dt_membership *m, struct dt_error *err)
{
    uint32_t address = dt_interface_look_up(m->place.host);
    struct in_addr numbers;
    if (address == 0 || dt_reception_listen(&m->reception, address, m->place.port) < 0) {
        const int why = address == 0 ? EADDRNOTAVAIL : errno;
        dt_reception_close(&m->reception);
        errno = why;
        return why == EADDRINUSE || why == EADDRNOTAVAIL
                   ? 0
                   : dt_fail_errno(err, "cannot listen for ranks at '%s'", m->place.name);
    }
    const bool named = inet_pton(AF_INET, m->place.host, &numbers) != 1;
    if (named && address != htonl(INADDR_LOOPBACK) &&
        dt_reception_listen(&m->reception, INADDR_ANY, m->place.port) < 0)
        return dt_fail_errno(err, "cannot listen for ranks at '%s'", m->place.name);
    memcpy(m->secret.key, m->place.key, sizeof m->secret.key);
    m->leads = true;
    return 0;
}

static int try_to_lead(struct dt_membership *m, struct dt_error *err)
{
    DT_TRY(m->place.host ? lead_at_address(m, err) : lead_at_path(m, err));
    m->arrived = dt_clock_now();
    return m->leads;
}

/* Receives what a guest sends. Returns false if it has left. */
static bool hear(struct dt_membership *m, struct guest *g)
{
    struct dt_frame_header h;
    int rc = receive_frame(g->channel, &h, &g->received);
    if (rc <= 0)
        return rc == 0;
    const struct hello *hello = (const void *)g->received;
    const size_t bytes = h.bytes;
    bool valid = h.tag == MESSAGE_HELLO && !g->heard && bytes >= sizeof *hello &&
                 hello->count >= 0 && hello->count <= MEMBERS_MOST &&
                 bytes == sizeof *hello + (size_t)hello->count * sizeof(uint64_t);
    if (!valid)
        return false;
    g->heard = true;
    g->hello = *hello;
    m->arrived = dt_clock_now();
    return true;
}

static bool attend_guest(struct dt_membership *m, struct guest *g, bool meets)
{
    const double now = dt_clock_now();
    if (!g->sending && meets && g->heard && now - g->present > PRESENT_S) {
        g->frame = dt_channel_frame_of(MESSAGE_PRESENT, NULL, 0);
        g->sending = true;
        g->present = now;
    }
    if (g->sending) {
        int rc = dt_channel_send(g->channel, &g->frame);
        if (rc < 0)
            return false;
        g->sending = rc == 0;
    }
    return hear(m, g);
}

/* Admits processes, and receives what they send. meets: in a meeting, not during a generation. */
static void attend(struct dt_membership *m, bool meets)
{
    struct dt_reception *r = &m->reception;
    dt_reception_accept(r);
    for (int i = r->count - 1; i >= 0; i--) {
        if (dt_reception_read(r, i, &m->secret, 0) <= 0)
            continue;
        struct guest g = {.channel = dt_reception_answer(r, i, &m->secret, &m->own)};
        if (g.channel == NULL)
            continue;
        g.frame = dt_channel_frame_of(MESSAGE_WELCOME, m->how.profile, m->how.profile_bytes);
        g.sending = true;
        DT_GROW(m->guests, m->guest_count, m->guest_capacity);
        m->guests[m->guest_count++] = g;
    }
    for (size_t i = m->guest_count; i-- > 0;)
        if (!attend_guest(m, &m->guests[i], meets))
            dismiss(m, i);
}

static const uint64_t *known_to(const struct guest *g)
{
    return (const uint64_t *)(const void *)(g->received + sizeof g->hello);
}

/* The members of the last generation of those who are here. */
static void recall(const struct dt_membership *m, struct identities *last, int64_t *generation)
{
    *generation = m->generation;
    set(last, m->roster.ids, m->roster.count);
    for (size_t i = 0; i < m->guest_count; i++) {
        const struct guest *g = &m->guests[i];
        if (g->heard && g->hello.generation > *generation) {
            *generation = g->hello.generation;
            set(last, known_to(g), (int)g->hello.count);
        }
    }
}

static bool is_here(const struct dt_membership *m, uint64_t id)
{
    bool here = id == m->id;
    for (size_t i = 0; i < m->guest_count; i++)
        here |= m->guests[i].heard && m->guests[i].hello.id == id;
    return here;
}

static bool is_suspected(const struct dt_membership *m, uint64_t id)
{
    bool suspected = id == m->suspect;
    for (size_t i = 0; i < m->guest_count; i++)
        suspected |= m->guests[i].heard && m->guests[i].hello.suspect == id;
    return suspected;
}

static int count_heard(const struct dt_membership *m)
{
    int count = 0;
    for (size_t i = 0; i < m->guest_count; i++)
        count += m->guests[i].heard;
    return count;
}

/* Whether to wait for a member of the last generation. */
static bool awaits(const struct dt_membership *m, uint64_t id, double now)
{
    if (id == 0 || is_here(m, id)) /* 0: it has left */
        return false;
    return is_suspected(m, id) ? now - m->arrived < SUSPECT_S : now - m->begun < m->how.timeout;
}

/* Whether the meeting can end. */
static bool is_complete(const struct dt_membership *m, const struct identities *last)
{
    const double now = dt_clock_now();
    const int here = 1 + count_heard(m);
    if (here < m->how.least)
        return false;
    for (int i = 0; i < last->count; i++)
        if (awaits(m, last->ids[i], now))
            return false;
    return last->count > 0 || here >= m->how.most || now - m->arrived > SETTLE_S;
}

/* The next members: this process, those of the last generation in their order, and newcomers in the
 * order of their arrival. */
static void choose(const struct dt_membership *m, const struct identities *last,
                   struct identities *next)
{
    add(next, m->id);
    for (int i = 0; i < last->count && next->count < m->how.most; i++)
        if (last->ids[i] != m->id && is_here(m, last->ids[i]))
            add(next, last->ids[i]);
    for (size_t i = 0; i < m->guest_count && next->count < m->how.most; i++)
        if (m->guests[i].heard && find(next, m->guests[i].hello.id) < 0)
            add(next, m->guests[i].hello.id);
}

/* Where the ranks of a generation meet: rank 0 listens there already. The key is of this generation
 * alone. */
static int set_seat(struct dt_membership *m, const struct roster *r, uint32_t address, int listener,
                    struct dt_error *err)
{
    struct dt_meeting_place *place = &m->seat.place;
    char host[INET_ADDRSTRLEN] = "";
    uint8_t input[DT_KEY + 8];
    inet_ntop(AF_INET, &address, host, sizeof host);
    dt_meeting_place_release(place);
    m->seat.rank = r->rank;
    m->seat.size = r->size;
    m->seat.generation = (long)r->generation;
    m->seat.left = r->left;
    m->seat.waited = dt_clock_now() - m->begun;
    *place = (struct dt_meeting_place){.name = dt_strdup(m->place.name),
                                       .host = dt_strdup(host),
                                       .port = ntohs((uint16_t)r->port),
                                       .listens = listener >= 0,
                                       .listener = listener};
    memcpy(input, r->nonce, DT_KEY);
    memcpy(input + DT_KEY, &r->generation, sizeof r->generation);
    return m->secret.crypto->hmac(m->secret.key, input, sizeof input, place->key)
               ? 0
               : dt_fail(err, DT_EIO, "OpenSSL cannot derive a key");
}

/* Sends the roster to each member, whose connection ends then. */
static void send_roster(struct dt_membership *m, struct roster *r, const struct identities *next)
{
    const size_t bytes = sizeof *r + (size_t)next->count * sizeof *next->ids;
    char *message = dt_alloc(1, bytes);
    memcpy(message + sizeof *r, next->ids, (size_t)next->count * sizeof *next->ids);
    for (size_t i = m->guest_count; i-- > 0;) {
        struct guest *g = &m->guests[i];
        int rank = g->heard ? find(next, g->hello.id) : -1;
        if (rank < 0)
            continue;
        r->rank = rank;
        memcpy(message, r, sizeof *r);
        if (!g->sending || dt_channel_send(g->channel, &g->frame) > 0)
            send_frame(g->channel, MESSAGE_ROSTER, message, bytes);
        dismiss(m, i);
    }
    r->rank = 0;
    free(message);
}

/* Ends the meeting: begins the next generation. */
static int convene(struct dt_membership *m, const struct identities *last, int64_t generation,
                   struct dt_error *err)
{
    struct identities next = {0};
    struct dt_reception door;
    dt_reception_init(&door);
    choose(m, last, &next);
    struct roster r = {.generation = generation + 1, .size = next.count};
    for (int i = 0; i < last->count; i++)
        r.left += find(&next, last->ids[i]) < 0;
    int rc = 0;
    if (!dt_system_draw(r.nonce, sizeof r.nonce) ||
        (next.count > 1 && dt_reception_listen(&door, m->reception.endpoint.address, 0) < 0))
        rc = dt_fail_errno(err, "cannot listen for ranks of '%s'", m->place.name);
    if (rc == 0) {
        r.port = door.endpoint.port;
        send_roster(m, &r, &next);
        m->generation = r.generation;
        set(&m->roster, next.ids, next.count);
        rc = write_notice(m, err);
    }
    rc = rc < 0 ? rc : set_seat(m, &r, m->reception.endpoint.address, door.listener, err);
    free(next.ids);
    return rc;
}

/* Fails, and tells those who are here. */
static int fail_meeting(struct dt_membership *m, struct dt_error *err)
{
    const int here = 1 + count_heard(m), missing = m->how.least - here;
    struct failure f;
    dt_fail(err, DT_ESTALLED,
            "%d rank%s met at '%s' within %.0f s, and distributed.elastic needs at least %d: %d %s "
            "missing",
            here, here == 1 ? " has" : "s have", m->place.name, m->how.patience, m->how.least,
            missing, missing == 1 ? "is" : "are");
    f.code = err->code;
    memcpy(f.text, err->text, sizeof f.text);
    for (size_t i = 0; i < m->guest_count; i++)
        if (!m->guests[i].sending)
            send_frame(m->guests[i].channel, MESSAGE_FAILURE, &f, sizeof f);
    return err->code;
}

static int check_stop(const struct dt_membership *m, struct dt_error *err)
{
    if (m->how.stop && *m->how.stop)
        return dt_fail(err, DT_ESTOP, "told to stop before ranks had met");
    return 0;
}

/* 1: the meeting has ended; 0: another process has replaced the file. */
static int lead(struct dt_membership *m, struct dt_error *err)
{
    struct identities last = {0};
    int64_t generation = 0;
    int rc = 0;
    bool complete = false;
    while (rc == 0 && !complete) {
        attend(m, true);
        recall(m, &last, &generation);
        complete = is_complete(m, &last);
        rc = check_stop(m, err);
        if (rc == 0 && m->file >= 0 && !dt_notice_is_held(m->place.name, m->file))
            break;
        if (rc == 0 && !complete && dt_clock_now() - m->begun > m->how.patience &&
            1 + count_heard(m) < m->how.least)
            rc = fail_meeting(m, err);
        if (rc == 0 && !complete)
            nap();
    }
    if (rc == 0 && complete)
        rc = convene(m, &last, generation, err);
    free(last.ids);
    if (rc < 0 || !complete)
        stop_leading(m);
    return rc < 0 ? rc : complete;
}

/* --- the others ------------------------------------------------------------------------------- */

/* Whether the leader has stopped, as far as a member of its generation can tell. */
static bool is_stuck(const struct dt_membership *m)
{
    const bool in_time = m->generation > 0 && m->notice.generation <= (uint64_t)m->generation;
    const bool suspected = m->roster.count > 0 && m->suspect == m->roster.ids[0];
    return m->place.host == NULL && in_time &&
           dt_clock_now() - m->heard > (suspected ? STUCK_S : m->how.timeout);
}

static int give_up(const struct dt_membership *m, struct dt_error *err)
{
    if (!m->connected)
        return dt_fail(err, DT_ESTALLED, "no rank has answered at '%s' within %.0f s%s",
                       m->place.name, m->how.patience,
                       m->place.host ? ": it is not reachable, or has another DT_KEY" : "");
    return dt_fail(
        err, DT_ESTALLED,
        "the run at '%s' has had no place for this rank for %.0f s: it has its %d ranks, "
        "or none of its steps ends",
        m->place.name, m->how.patience, m->how.most);
}

/* 1: this process may wait for the leader; 0: it looks for another one. */
static int may_wait(struct dt_membership *m, struct dt_error *err)
{
    const double now = dt_clock_now();
    struct dt_notice notice;
    DT_TRY(check_stop(m, err));
    if (now - m->begun > m->how.patience + SETTLE_S)
        return give_up(m, err);
    if (m->place.host || now - m->looked < LOOK_S)
        return 1;
    m->looked = now;
    DT_TRY(dt_notice_read(m->place.name, &notice, err));
    if (memcmp(&notice, &m->notice, sizeof notice) != 0)
        return 0;
    if (is_stuck(m)) {
        dt_notice_discard(m->place.name, &m->notice);
        return 0;
    }
    return 1;
}

/* Receives bytes of the handshake. 1: all; 0: the connection is closed, or useless. */
static int receive_all(struct dt_membership *m, int socket, void *to, size_t bytes,
                       struct dt_error *err)
{
    for (size_t got = 0; got < bytes;) {
        struct pollfd p = {.fd = socket, .events = POLLIN};
        int rc = may_wait(m, err);
        if (rc <= 0)
            return rc;
        if (poll(&p, 1, TICK_MS) <= 0)
            continue;
        ssize_t n = recv(socket, (char *)to + got, bytes - got, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return 0;
        got += n > 0 ? (size_t)n : 0;
    }
    return 1;
}

/* The channel to the leader, or NULL. */
static int shake_hands(struct dt_membership *m, int *socket, struct dt_channel **channel,
                       struct dt_error *err)
{
    struct dt_handshake h = {.call = {.caller = m->own}};
    h.call.caller.rank = 1;
    int rc = receive_all(m, *socket, &h.challenge, sizeof h.challenge, err);
    if (rc <= 0 || !dt_handshake_call(&h, &m->secret) ||
        send(*socket, &h.call, sizeof h.call, MSG_NOSIGNAL) != (ssize_t)sizeof h.call)
        return rc < 0 ? rc : 0;
    rc = receive_all(m, *socket, &h.answer, sizeof h.answer, err);
    if (rc <= 0 || !dt_handshake_check_answer(&h, &m->secret))
        return rc < 0 ? rc : 0;
    if (h.answer.listener.job != m->own.job)
        return dt_fail(err, DT_EINVALID,
                       "another job meets at '%s' (a job is identified by --output)",
                       m->place.name);
    *channel = dt_handshake_channel(&h, &m->secret, *socket, false);
    *socket = -1;
    return 0;
}

static int call_leader(struct dt_membership *m, struct dt_rank_address endpoint,
                       struct dt_channel **channel, struct dt_error *err)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = (in_port_t)endpoint.port,
                             .sin_addr.s_addr = endpoint.address};
    int socket = dt_reception_socket(), rc = 0;
    *channel = NULL;
    m->address = endpoint.address;
    m->heard = dt_clock_now();
    if (socket >= 0 &&
        (connect(socket, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS))
        rc = shake_hands(m, &socket, channel, err);
    dt_reception_close_socket(&socket);
    return rc;
}

/* The leader's address; port 0: there is none. */
static int find_leader(struct dt_membership *m, struct dt_rank_address *endpoint,
                       struct dt_error *err)
{
    *endpoint = (struct dt_rank_address){0};
    if (m->place.host) {
        endpoint->address = dt_interface_look_up(m->place.host);
        endpoint->port = endpoint->address ? htons((uint16_t)m->place.port) : 0;
        memcpy(m->secret.key, m->place.key, sizeof m->secret.key);
        return 0;
    }
    DT_TRY(dt_notice_read(m->place.name, &m->notice, err));
    memcpy(m->secret.key, m->notice.key, sizeof m->secret.key);
    *endpoint = m->notice.endpoint;
    return 0;
}

static bool say_hello(const struct dt_membership *m, struct dt_channel *channel)
{
    const struct hello hello = {m->id, m->generation, m->suspect, m->roster.count};
    const size_t listed = (size_t)m->roster.count * sizeof *m->roster.ids;
    char *message = dt_alloc(1, sizeof hello + listed);
    memcpy(message, &hello, sizeof hello);
    if (listed > 0)
        memcpy(message + sizeof hello, m->roster.ids, listed);
    bool sent = send_frame(channel, MESSAGE_HELLO, message, sizeof hello + listed);
    free(message);
    return sent;
}

static int take_roster(struct dt_membership *m, const char *data, size_t bytes,
                       struct dt_error *err)
{
    struct roster r;
    if (bytes < sizeof r)
        return 0;
    memcpy(&r, data, sizeof r);
    if (r.size < 1 || r.size > MEMBERS_MOST || r.rank < 1 || r.rank >= r.size ||
        bytes != sizeof r + (size_t)r.size * sizeof(uint64_t))
        return 0;
    uint64_t *ids = dt_alloc((size_t)r.size, sizeof *ids);
    memcpy(ids, data + sizeof r, (size_t)r.size * sizeof *ids);
    m->seat.returned = m->generation > 0 && r.generation > m->generation + 1;
    m->generation = r.generation;
    set(&m->roster, ids, r.size);
    free(ids);
    DT_TRY(set_seat(m, &r, m->address, -1, err));
    return 1;
}

/* A message of the leader. 1: the roster; 0: another; -1 without an error: not valid. */
static int take_message(struct dt_membership *m, struct dt_channel *channel,
                        const struct dt_frame_header *h, const char *data, bool *valid,
                        struct dt_error *err)
{
    const struct failure *f = (const void *)data;
    *valid = true;
    if (h->tag == MESSAGE_FAILURE && h->bytes == sizeof *f)
        return dt_fail(err, DT_ESTALLED, "%.*s", DT_ERROR_TEXT - 1, f->text);
    if (h->tag == MESSAGE_PRESENT)
        return 0;
    if (h->tag == MESSAGE_WELCOME && h->bytes == m->how.profile_bytes) {
        DT_TRY(m->how.check ? m->how.check(m->how.context, data, err) : 0);
        *valid = say_hello(m, channel);
        return 0;
    }
    if (h->tag == MESSAGE_ROSTER)
        return take_roster(m, data, h->bytes, err);
    if (h->tag == MESSAGE_WELCOME)
        return dt_fail(err, DT_EINVALID,
                       "the run at '%s' is of another version of dt than this rank", m->place.name);
    *valid = false;
    return 0;
}

/* 1: this process is a rank; 0: the leader has left. */
static int attend_leader(struct dt_membership *m, struct dt_channel *channel, struct dt_error *err)
{
    char *received = NULL;
    bool valid = true;
    int rc = 0;
    m->connected = true;
    while (rc == 0 && valid) {
        struct dt_frame_header h;
        struct pollfd p = {.fd = channel->socket, .events = POLLIN};
        int waits = may_wait(m, err);
        rc = waits < 0 ? waits : 0;
        if (waits <= 0)
            break;
        poll(&p, 1, TICK_MS);
        int got = receive_frame(channel, &h, &received);
        valid = got >= 0;
        if (got <= 0)
            continue;
        m->heard = dt_clock_now();
        rc = take_message(m, channel, &h, received, &valid, err);
        free(received);
        received = NULL;
    }
    free(received);
    return rc;
}

/* 1: the meeting has ended. */
static int follow(struct dt_membership *m, struct dt_error *err)
{
    struct dt_rank_address endpoint;
    struct dt_channel *channel = NULL;
    DT_TRY(find_leader(m, &endpoint, err));
    bool known = endpoint.port != 0;
    DT_TRY(may_wait(m, err));
    int rc = known ? call_leader(m, endpoint, &channel, err) : 0;
    if (rc == 0 && channel) {
        rc = attend_leader(m, channel, err);
        dt_channel_close(channel);
        return rc;
    }
    if (rc < 0)
        return rc;
    bool waits =
        known && m->generation == 0 && !m->place.host && dt_clock_now() - m->begun < SETTLE_S;
    if (!waits)
        DT_TRY(try_to_lead(m, err));
    if (!m->leads)
        nap();
    return 0;
}

/* --- membership ------------------------------------------------------------------------------- */

int dt_membership_meet(struct dt_membership *m, struct dt_error *err)
{
    int rc = 0;
    m->begun = m->arrived = dt_clock_now();
    m->connected = false;
    m->seat.returned = false;
    while (rc == 0)
        rc = m->leads ? lead(m, err) : follow(m, err);
    m->suspect = 0;
    return rc < 0 ? rc : 0;
}

const struct dt_seat *dt_membership_seat(const struct dt_membership *m)
{
    return &m->seat;
}

int dt_membership_newcomers(struct dt_membership *m)
{
    if (!m->leads)
        return 0;
    attend(m, false);
    int free_places = m->how.most - m->roster.count, heard = count_heard(m);
    return heard < free_places ? heard : free_places;
}

void dt_membership_suspect(struct dt_membership *m, int rank)
{
    m->suspect = rank >= 0 && rank < m->roster.count ? m->roster.ids[rank] : 0;
}

void dt_membership_forget(struct dt_membership *m, int rank)
{
    if (rank >= 0 && rank < m->roster.count)
        m->roster.ids[rank] = 0;
}

int dt_membership_new(struct dt_membership **result, const struct dt_membership_options *o,
                      struct dt_error *err)
{
    struct dt_membership *m = dt_alloc(1, sizeof *m);
    struct dt_launch launch;
    struct dt_error unnumbered;
    *result = m;
    m->how = *o;
    m->file = -1;
    dt_reception_init(&m->reception);
    m->own = (struct dt_introduction){
        .size = 2, .job = o->job ? dt_hash(o->job, strlen(o->job)) : 0, .encrypts = o->encrypt};
    if (dt_launch_find(&launch, &unnumbered) < 0) /* members need no numbers */
        launch = (struct dt_launch){.size = o->most};
    int rc = dt_meeting_place_find(&m->place, o->where, &launch, err);
    rc = rc < 0 ? rc : dt_crypto_load(&m->secret.crypto, err);
    while (rc == 0 && m->id == 0)
        if (!dt_system_draw(&m->id, sizeof m->id))
            rc = dt_fail_errno(err, "cannot draw the identity of the rank");
    if (rc < 0) {
        dt_membership_free(m);
        *result = NULL;
    }
    return rc;
}

void dt_membership_free(struct dt_membership *m)
{
    if (m == NULL)
        return;
    stop_leading(m);
    dt_meeting_place_release(&m->place);
    dt_meeting_place_release(&m->seat.place);
    explicit_bzero(m->secret.key, sizeof m->secret.key);
    explicit_bzero(m->notice.key, sizeof m->notice.key);
    free(m->roster.ids);
    free(m->guests);
    free(m);
}
