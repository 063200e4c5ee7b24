/* SPDX-License-Identifier: MIT */
#include "elastic/membership.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/system.h"
#include "elastic/meeting.h"
#include "hash/hash.h"

int dt_membership_meet(struct dt_membership *m, struct dt_error *err)
{
    int rc = 0;
    m->begun = m->arrived = m->heard = dt_clock_now();
    m->connected = false;
    m->seat.returned = false;
    dt_identities_set(&m->lost, NULL, 0);
    while (rc == 0)
        rc = m->leads ? dt_membership_lead(m, err) : dt_membership_follow(m, err);
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
    dt_membership_attend(m, false);
    int free_places = m->how.most - m->roster.count, heard = dt_membership_count_heard(m);
    const int joining = heard < free_places ? heard : free_places;
    return joining - joining % m->how.group;
}

void dt_membership_suspect(struct dt_membership *m, int rank)
{
    m->suspect = rank >= 0 && rank < m->roster.count ? m->roster.ids[rank] : 0;
}

void dt_membership_keep(struct dt_membership *m, int count)
{
    m->roster.count = count < m->roster.count ? count : m->roster.count;
    if (m->seat.rank < count)
        return;
    m->roster.count = 0;
    m->generation = 0;
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
    dt_reception_allow(2 * o->most); /* in the meeting, and as ranks */
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
    dt_membership_stop_leading(m);
    dt_meeting_place_release(&m->place);
    dt_meeting_place_release(&m->seat.place);
    explicit_bzero(m->secret.key, sizeof m->secret.key);
    explicit_bzero(m->notice.key, sizeof m->notice.key);
    free(m->roster.ids);
    free(m->lost.ids);
    free(m->guests);
    free(m);
}
