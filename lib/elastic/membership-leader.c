/* SPDX-License-Identifier: MIT */
/* The process that leads meetings: it hears who is here, and names the ranks of a generation. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/system.h"
#include "comm/interface.h"
#include "elastic/meeting.h"

#define SUSPECT_S 0.5 /* for a suspect */
#define PRESENT_S 0.5 /* interval of PRESENT */

/* A process that is connected to the leader. */
struct dt_guest {
    struct dt_channel *channel;
    struct dt_channel_frame frame; /* that is being sent */
    bool sending, heard;           /* heard: hello is received */
    double present;                /* time of the last PRESENT */
    struct dt_hello hello;
    char *received; /* the hello, with the members that it lists; NULL: not yet */
    char *partial;  /* of a message that is being received */
};

static void dismiss(struct dt_membership *m, size_t index)
{
    dt_channel_close(m->guests[index].channel);
    free(m->guests[index].received);
    free(m->guests[index].partial);
    m->guest_count--;
    memmove(m->guests + index, m->guests + index + 1, (m->guest_count - index) * sizeof *m->guests);
}

void dt_membership_stop_leading(struct dt_membership *m)
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

int dt_membership_try_to_lead(struct dt_membership *m, struct dt_error *err)
{
    DT_TRY(m->place.host ? lead_at_address(m, err) : lead_at_path(m, err));
    m->arrived = dt_clock_now();
    return m->leads;
}

/* Receives what a guest sends. Returns false if it has left. */
static bool hear(struct dt_membership *m, struct dt_guest *g)
{
    struct dt_frame_header h;
    int rc = dt_meeting_receive(g->channel, &h, &g->partial);
    if (rc <= 0)
        return rc == 0;
    const struct dt_hello *hello = (const void *)g->partial;
    const size_t bytes = h.bytes;
    bool valid = h.tag == DT_MEETING_HELLO && !g->heard && bytes >= sizeof *hello &&
                 hello->count >= 0 && hello->count <= DT_MEMBERS_MOST &&
                 bytes == sizeof *hello + (size_t)hello->count * sizeof(uint64_t);
    if (!valid)
        return false;
    g->heard = true;
    g->hello = *hello;
    g->received = g->partial;
    g->partial = NULL;
    m->arrived = dt_clock_now();
    return true;
}

static bool attend_guest(struct dt_membership *m, struct dt_guest *g, bool meets)
{
    const double now = dt_clock_now();
    if (!g->sending && meets && g->heard && now - g->present > PRESENT_S) {
        g->frame = dt_channel_frame_of(DT_MEETING_PRESENT, NULL, 0);
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
void dt_membership_attend(struct dt_membership *m, bool meets)
{
    struct dt_reception *r = &m->reception;
    dt_reception_accept(r);
    for (int i = r->count - 1; i >= 0; i--) {
        if (dt_reception_read(r, i, &m->secret, 0) <= 0)
            continue;
        struct dt_guest g = {.channel = dt_reception_answer(r, i, &m->secret, &m->own)};
        if (g.channel == NULL)
            continue;
        g.frame = dt_channel_frame_of(DT_MEETING_WELCOME, m->how.profile, m->how.profile_bytes);
        g.sending = true;
        DT_GROW(m->guests, m->guest_count, m->guest_capacity);
        m->guests[m->guest_count++] = g;
    }
    for (size_t i = m->guest_count; i-- > 0;) {
        if (attend_guest(m, &m->guests[i], meets))
            continue;
        if (m->guests[i].heard)
            dt_identities_add(&m->lost, m->guests[i].hello.id);
        dismiss(m, i);
    }
}

static const uint64_t *known_to(const struct dt_guest *g)
{
    return (const uint64_t *)(const void *)(g->received + sizeof g->hello);
}

/* The members of the last generation of those who are here. */
static void recall(const struct dt_membership *m, struct dt_identities *last, int64_t *generation)
{
    *generation = m->generation;
    dt_identities_set(last, m->roster.ids, m->roster.count);
    for (size_t i = 0; i < m->guest_count; i++) {
        const struct dt_guest *g = &m->guests[i];
        if (g->heard && g->hello.generation > *generation) {
            *generation = g->hello.generation;
            dt_identities_set(last, known_to(g), (int)g->hello.count);
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
    bool suspected = id == m->suspect || dt_identities_find(&m->lost, id) >= 0;
    for (size_t i = 0; i < m->guest_count; i++)
        suspected |= m->guests[i].heard && m->guests[i].hello.suspect == id;
    return suspected;
}

int dt_membership_count_heard(const struct dt_membership *m)
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
static bool is_complete(const struct dt_membership *m, const struct dt_identities *last)
{
    const double now = dt_clock_now();
    const int here = 1 + dt_membership_count_heard(m);
    if (here < m->how.least)
        return false;
    for (int i = 0; i < last->count; i++)
        if (awaits(m, last->ids[i], now))
            return false;
    return last->count > 0 || here >= m->how.most || now - m->arrived > DT_MEETING_SETTLE_S;
}

/* The next members: this process, those of the last generation in their order, and newcomers in the
 * order of their arrival. */
static void choose(const struct dt_membership *m, const struct dt_identities *last,
                   struct dt_identities *next)
{
    dt_identities_add(next, m->id);
    for (int i = 0; i < last->count && next->count < m->how.most; i++)
        if (last->ids[i] != m->id && is_here(m, last->ids[i]))
            dt_identities_add(next, last->ids[i]);
    for (size_t i = 0; i < m->guest_count && next->count < m->how.most; i++)
        if (m->guests[i].heard && dt_identities_find(next, m->guests[i].hello.id) < 0)
            dt_identities_add(next, m->guests[i].hello.id);
}

/* Sends the roster to each member, whose connection ends then. */
static void send_roster(struct dt_membership *m, struct dt_roster *r,
                        const struct dt_identities *next)
{
    const size_t bytes = sizeof *r + (size_t)next->count * sizeof *next->ids;
    char *message = dt_alloc(1, bytes);
    memcpy(message + sizeof *r, next->ids, (size_t)next->count * sizeof *next->ids);
    for (size_t i = m->guest_count; i-- > 0;) {
        struct dt_guest *g = &m->guests[i];
        int rank = g->heard ? dt_identities_find(next, g->hello.id) : -1;
        if (rank < 0)
            continue;
        r->rank = rank;
        memcpy(message, r, sizeof *r);
        if (!g->sending || dt_channel_send(g->channel, &g->frame) > 0)
            dt_meeting_send(g->channel, DT_MEETING_ROSTER, message, bytes);
        dismiss(m, i);
    }
    r->rank = 0;
    free(message);
}

/* Listens for the ranks of the next generation, also for those of this machine: one that comes at
 * once would connect over TCP, whose messages need MACs (comm/handshake.h). */
static int take_seat(struct dt_membership *m, struct dt_roster *r, struct dt_error *err)
{
    struct dt_meeting_place *place = &m->seat.place;
    struct dt_secret secret = {.crypto = m->secret.crypto};
    struct dt_reception door;
    dt_reception_init(&door);
    if (!dt_system_draw(r->nonce, sizeof r->nonce) ||
        (r->size > 1 && dt_reception_listen(&door, m->reception.endpoint.address, 0) < 0))
        return dt_fail_errno(err, "cannot listen for ranks of '%s'", m->place.name);
    r->port = door.endpoint.port;
    DT_TRY(dt_membership_set_seat(m, r, m->reception.endpoint.address, err));
    memcpy(secret.key, place->key, sizeof secret.key);
    if (r->size > 1 && !m->how.encrypt)
        dt_reception_listen_locally(&door, &secret, 0, r->port);
    explicit_bzero(secret.key, sizeof secret.key);
    place->listens = r->size > 1;
    place->listener = door.listener;
    place->local = door.local;
    return 0;
}

/* Ends the meeting: begins the next generation. */
static int convene(struct dt_membership *m, const struct dt_identities *last, int64_t generation,
                   struct dt_error *err)
{
    struct dt_identities next = {0};
    choose(m, last, &next);
    struct dt_roster r = {.generation = generation + 1, .size = next.count};
    for (int i = 0; i < last->count; i++)
        r.left += dt_identities_find(&next, last->ids[i]) < 0;
    int rc = take_seat(m, &r, err);
    if (rc == 0) {
        send_roster(m, &r, &next);
        m->generation = r.generation;
        dt_identities_set(&m->roster, next.ids, next.count);
        rc = write_notice(m, err);
    }
    free(next.ids);
    return rc;
}

/* Fails, and tells those who are here. */
static int fail_meeting(struct dt_membership *m, struct dt_error *err)
{
    const int here = 1 + dt_membership_count_heard(m), missing = m->how.least - here;
    const int refused = m->reception.error;
    struct dt_meeting_failure f;
    dt_fail(err, DT_ESTALLED,
            "%d rank%s met at '%s' within %.0f s, and distributed.elastic needs at least %d: %d %s "
            "missing%s%s",
            here, here == 1 ? " has" : "s have", m->place.name, m->how.patience, m->how.least,
            missing, missing == 1 ? "is" : "are",
            refused ? "; a connection could not be accepted: " : "",
            refused ? strerror(refused) : "");
    f.code = err->code;
    memcpy(f.text, err->text, sizeof f.text);
    for (size_t i = 0; i < m->guest_count; i++)
        if (!m->guests[i].sending)
            dt_meeting_send(m->guests[i].channel, DT_MEETING_FAILURE, &f, sizeof f);
    return err->code;
}

bool dt_membership_leads(const struct dt_membership *m)
{
    return m->leads && (m->file < 0 || dt_notice_is_held(m->place.name, m->file));
}

/* 1: the meeting has ended; 0: another process has replaced the file. */
int dt_membership_lead(struct dt_membership *m, struct dt_error *err)
{
    struct dt_identities last = {0};
    int64_t generation = 0;
    int rc = 0;
    bool complete = false;
    while (rc == 0 && !complete) {
        rc = dt_membership_check_stop(m, err);
        if (rc < 0 || !dt_membership_leads(m))
            break;
        dt_membership_attend(m, true);
        recall(m, &last, &generation);
        complete = is_complete(m, &last);
        if (!complete && dt_clock_now() - m->begun > m->how.patience &&
            1 + dt_membership_count_heard(m) < m->how.least)
            rc = fail_meeting(m, err);
        if (rc == 0 && !complete)
            dt_meeting_nap();
    }
    if (rc == 0 && complete)
        rc = convene(m, &last, generation, err);
    free(last.ids);
    if (rc < 0 || !complete)
        dt_membership_stop_leading(m);
    return rc < 0 ? rc : complete;
}
