/* SPDX-License-Identifier: MIT */
/* A process that does not lead: it finds the leader, and waits for a place among the ranks. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "comm/interface.h"
#include "elastic/meeting.h"

#define LOOK_S  0.1 /* interval of looks at the file */
#define STUCK_S 2.0 /* for a suspected leader */

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
    char several[64];
    snprintf(several, sizeof several, "or fewer than %d wait for a place, ", m->how.group);
    if (!m->connected)
        return dt_fail(err, DT_ESTALLED, "no rank has answered at '%s' within %.0f s%s",
                       m->place.name, m->how.patience,
                       m->place.host ? ": it is not reachable, or has another DT_KEY" : "");
    return dt_fail(
        err, DT_ESTALLED,
        "the run at '%s' has had no place for this rank for %.0f s: it has its %d ranks, "
        "%sor none of its steps ends",
        m->place.name, m->how.patience, m->how.most, m->how.group > 1 ? several : "");
}

/* A leader that begins another generation has sent its members the roster before it wrote so, and
 * still hears the others. */
static bool is_of_leader(const struct dt_membership *m, const struct dt_notice *now)
{
    struct dt_notice same = *now;
    same.generation = m->notice.generation;
    return memcmp(&same, &m->notice, sizeof same) == 0;
}

/* 1: this process may wait for the leader; 0: it looks for another one. */
static int may_wait(struct dt_membership *m, struct dt_error *err)
{
    const double now = dt_clock_now();
    struct dt_notice notice;
    DT_TRY(dt_membership_check_stop(m, err));
    if (now - m->begun > m->how.patience + DT_MEETING_SETTLE_S)
        return give_up(m, err);
    if (m->place.host || now - m->looked < LOOK_S)
        return 1;
    m->looked = now;
    DT_TRY(dt_notice_read(m->place.name, &notice, err));
    if (!is_of_leader(m, &notice))
        return 0;
    m->notice.generation = notice.generation;
    if (is_stuck(m)) {
        dt_notice_discard(m->place.name, &m->notice);
        return 0;
    }
    return 1;
}

/* 1: the socket may have bytes; 0: this process looks for another leader. */
static int await_bytes(struct dt_membership *m, int socket, struct dt_error *err)
{
    struct pollfd p = {.fd = socket, .events = POLLIN};
    int rc = may_wait(m, err);
    if (rc > 0)
        DT_TRY(dt_channel_poll(&p, 1, DT_MEETING_TICK_MS, err));
    return rc;
}

/* Receives bytes of the handshake. 1: all; 0: the connection is closed, or useless. */
static int receive_all(struct dt_membership *m, int socket, void *to, size_t bytes,
                       struct dt_error *err)
{
    for (size_t got = 0; got < bytes;) {
        int rc = await_bytes(m, socket, err);
        if (rc <= 0)
            return rc;
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
    const struct dt_hello hello = {m->id, m->generation, m->suspect, m->roster.count};
    const size_t listed = (size_t)m->roster.count * sizeof *m->roster.ids;
    char *message = dt_alloc(1, sizeof hello + listed);
    memcpy(message, &hello, sizeof hello);
    if (listed > 0)
        memcpy(message + sizeof hello, m->roster.ids, listed);
    bool sent = dt_meeting_send(channel, DT_MEETING_HELLO, message, sizeof hello + listed);
    free(message);
    return sent;
}

static int take_roster(struct dt_membership *m, const char *data, size_t bytes,
                       struct dt_error *err)
{
    struct dt_roster r;
    if (bytes < sizeof r)
        return 0;
    memcpy(&r, data, sizeof r);
    if (r.size < 1 || r.size > DT_MEMBERS_MOST || r.rank < 1 || r.rank >= r.size ||
        bytes != sizeof r + (size_t)r.size * sizeof(uint64_t))
        return 0;
    uint64_t *ids = dt_alloc((size_t)r.size, sizeof *ids);
    memcpy(ids, data + sizeof r, (size_t)r.size * sizeof *ids);
    m->seat.returned = m->generation > 0 && r.generation > m->generation + 1;
    m->generation = r.generation;
    dt_identities_set(&m->roster, ids, r.size);
    free(ids);
    DT_TRY(dt_membership_set_seat(m, &r, m->address, err));
    return 1;
}

/* A message of the leader. 1: the roster; 0: another; -1 without an error: not valid. */
static int take_message(struct dt_membership *m, struct dt_channel *channel,
                        const struct dt_frame_header *h, const char *data, bool *valid,
                        struct dt_error *err)
{
    const struct dt_meeting_failure *f = (const void *)data;
    *valid = true;
    if (h->tag == DT_MEETING_FAILURE && h->bytes == sizeof *f)
        return dt_fail(err, DT_ESTALLED, "%.*s", DT_ERROR_TEXT - 1, f->text);
    if (h->tag == DT_MEETING_PRESENT)
        return 0;
    if (h->tag == DT_MEETING_WELCOME && h->bytes == m->how.profile_bytes) {
        DT_TRY(m->how.check ? m->how.check(m->how.context, data, err) : 0);
        *valid = say_hello(m, channel);
        return 0;
    }
    if (h->tag == DT_MEETING_ROSTER)
        return take_roster(m, data, h->bytes, err);
    if (h->tag == DT_MEETING_WELCOME)
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
        int waits = await_bytes(m, channel->socket, err);
        rc = waits < 0 ? waits : 0;
        if (waits <= 0)
            break;
        int got = dt_meeting_receive(channel, &h, &received);
        valid = got >= 0;
        if (got < 0 && m->suspect == 0 && m->roster.count > 0)
            m->suspect = m->roster.ids[0]; /* it led the last generation, and mostly this meeting */
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
int dt_membership_follow(struct dt_membership *m, struct dt_error *err)
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
    bool waits = known && m->generation == 0 && !m->place.host &&
                 dt_clock_now() - m->begun < DT_MEETING_SETTLE_S;
    if (!waits)
        DT_TRY(dt_membership_try_to_lead(m, err));
    if (!m->leads)
        dt_meeting_nap();
    return 0;
}
