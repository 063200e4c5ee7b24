/* SPDX-License-Identifier: MIT */
#include "elastic/meeting.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "base/clock.h"

#define FRAME_MOST ((size_t)1 << 20)

/* --- identities ------------------------------------------------------------------------------- */

int dt_identities_find(const struct dt_identities *all, uint64_t id)
{
    for (int i = 0; i < all->count; i++)
        if (all->ids[i] == id)
            return i;
    return -1;
}

void dt_identities_add(struct dt_identities *all, uint64_t id)
{
    uint64_t *ids = dt_alloc((size_t)all->count + 1, sizeof *ids);
    if (all->count > 0)
        memcpy(ids, all->ids, (size_t)all->count * sizeof *ids);
    ids[all->count++] = id;
    free(all->ids);
    all->ids = ids;
}

void dt_identities_set(struct dt_identities *all, const uint64_t *ids, int count)
{
    free(all->ids);
    *all = (struct dt_identities){0};
    for (int i = 0; i < count; i++)
        dt_identities_add(all, ids[i]);
}

/* --- for the leader and the others ------------------------------------------------------------ */

void dt_meeting_nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = DT_MEETING_TICK_MS * 1000000L}, NULL);
}

/* Sends a small frame within a second; whether it was sent. */
bool dt_meeting_send(struct dt_channel *c, int tag, const void *data, size_t bytes)
{
    struct dt_channel_frame f = dt_channel_frame_of(tag, data, bytes);
    const double until = dt_clock_now() + 1;
    int rc;
    while ((rc = dt_channel_send(c, &f)) == 0 && dt_clock_now() < until) {
        struct pollfd p = {.fd = c->socket, .events = POLLOUT};
        if (poll(&p, 1, DT_MEETING_TICK_MS) < 0)
            dt_meeting_nap();
    }
    return rc > 0;
}

/* 1: a frame is received, *data is owned by the caller and ends with a 0; 0: not yet; or an enum
 * dt_channel_failure. *partial: of a frame that is being received. */
int dt_meeting_receive(struct dt_channel *c, struct dt_frame_header *header, char **partial)
{
    int rc = dt_channel_receive_header(c, FRAME_MOST, header);
    if (rc <= 0)
        return rc;
    if (*partial == NULL)
        *partial = dt_alloc(1, header->bytes + 1);
    return dt_channel_receive_payload(c, *partial);
}

int dt_membership_set_seat(struct dt_membership *m, const struct dt_roster *r, uint32_t address,
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
                                       .port = ntohs((uint16_t)r->port)};
    memcpy(input, r->nonce, DT_KEY);
    memcpy(input + DT_KEY, &r->generation, sizeof r->generation);
    return m->secret.crypto->hmac(m->secret.key, input, sizeof input, place->key)
               ? 0
               : dt_fail(err, DT_EIO, "OpenSSL cannot derive a key");
}

/* A member still meets the others, who would wait for it, and leaves in the generation. */
int dt_membership_check_stop(const struct dt_membership *m, struct dt_error *err)
{
    const bool meets_first = m->generation > 0 && dt_clock_now() < m->begun + DT_SEAT_STOP_S;
    if (m->how.stop && *m->how.stop && !meets_first)
        return dt_fail(err, DT_ESTOP, "told to stop before ranks had met");
    return 0;
}
