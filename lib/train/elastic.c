/* SPDX-License-Identifier: MIT */
/* An elastic run: its ranks change between steps, and the process goes on. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/path.h"
#include "comm/membership.h"
#include "train/training-internal.h"

/* What each rank tells the others about its state. */
struct standing {
    long step; /* of its state; -1: it has none */
    bool unfinished, saves;
    bool updated; /* the state is the result of an update, not read from disk */
    bool has_led;
};

/* What a rank with the newest state tells the others. */
struct position {
    struct dt_progress_state progress;
    struct dt_step_report report;
};

/* --- meeting ---------------------------------------------------------------------------------- */

static int check_profile(void *training, const void *leaders, struct dt_error *err)
{
    const struct dt_training *t = training;
    return dt_training_compare_profiles(t, leaders, "the run", err);
}

int dt_elastic_open(struct dt_training *t, struct dt_error *err)
{
    const struct dt_settings *s = &t->settings;
    long least = 1, most = 1;
    dt_settings_elastic(s, &least, &most);
    t->run_path = t->run ? dt_path_real(t->run) : NULL;
    dt_training_profile(t, &t->profile);
    return dt_membership_new(
        &t->members,
        &(struct dt_membership_options){
            .where = *s->distributed.rendezvous ? s->distributed.rendezvous : NULL,
            .interface = *s->distributed.interface ? s->distributed.interface : NULL,
            .job = t->run_path,
            .least = (int)least,
            .most = (int)most,
            .timeout = (double)s->distributed.timeout,
            .patience = (double)s->distributed.join_timeout,
            .stop = t->stop,
            .profile = &t->profile,
            .profile_bytes = sizeof t->profile,
            .check = check_profile,
            .context = t},
        err);
}

int dt_elastic_open_world(struct dt_training *t, struct dt_error *err)
{
    const struct dt_settings *s = &t->settings;
    DT_TRY(
        dt_comm_open(&t->self, "tcp",
                     &(struct dt_opening){
                         .interface = *s->distributed.interface ? s->distributed.interface : NULL,
                         .job = t->run_path,
                         .seat = dt_membership_seat(t->members),
                         .patience = (double)s->distributed.timeout,
                         .stop = t->stop},
                     err));
    t->comm = t->self;
    t->leads = dt_comm_rank(t->comm) == 0;
    t->peak = t->options.peak * dt_comm_size(t->comm);
    return 0;
}

/* --- the state -------------------------------------------------------------------------------- */

/* Values of at most DT_TRANSFER_MOST bytes at a time. */
static int transfer(struct dt_training *t, int other, bool sends, struct dt_error *err)
{
    const size_t all = (size_t)t->copy.count * sizeof(float);
    char *values = (char *)t->copy.values;
    for (size_t at = 0; at < all; at += DT_TRANSFER_MOST) {
        size_t bytes = all - at < DT_TRANSFER_MOST ? all - at : DT_TRANSFER_MOST;
        struct dt_message *m = sends ? dt_comm_send(t->comm, other, 0, values + at, bytes)
                                     : dt_comm_receive(t->comm, other, 0, values + at, bytes);
        DT_TRY(dt_comm_await(t->comm, m, err));
    }
    return 0;
}

/* Ranks without the newest state receive it from those with it, which take turns. */
static int pass_on(struct dt_training *t, const struct standing *all, long newest,
                   struct dt_error *err)
{
    const int size = dt_comm_size(t->comm), own = dt_comm_rank(t->comm);
    int *holders = dt_alloc((size_t)size, sizeof *holders), count = 0, served = 0, rc = 0;
    for (int r = 0; r < size; r++)
        if (all[r].step == newest)
            holders[count++] = r;
    for (int r = 0; rc == 0 && r < size; r++) {
        if (all[r].step == newest)
            continue;
        int holder = holders[served++ % count];
        if (own == r || own == holder)
            rc = transfer(t, own == r ? holder : r, own == holder, err);
    }
    free(holders);
    return rc;
}

/* *holder: the first rank with the newest state. *unfinished: a rank has not finished that step, or
 * the leader has left, which may not have written what the others waited for. */
static int compare_standings(struct dt_training *t, struct standing **all, int *holder,
                             bool *unfinished, struct dt_error *err)
{
    const int size = dt_comm_size(t->comm);
    *all = dt_alloc((size_t)size, sizeof **all);
    (*all)[dt_comm_rank(t->comm)] =
        (struct standing){.step = t->has_state ? t->progress.step : -1,
                          .unfinished = t->unfinished,
                          .saves = t->saves,
                          .updated = t->report.step > 0 && t->report.step == t->progress.step,
                          .has_led = t->has_led};
    DT_TRY(dt_comm_share(t->comm, *all, sizeof **all, err));
    *holder = 0;
    for (int r = 1; r < size; r++)
        *holder = (*all)[r].step > (*all)[*holder].step ? r : *holder;
    bool leader_left = true;
    *unfinished = false;
    for (int r = 0; r < size; r++) {
        const bool newest = (*all)[r].step == (*all)[*holder].step;
        *unfinished |= newest && (*all)[r].unfinished;
        leader_left &= !(newest && (*all)[r].has_led);
        t->saves |= (*all)[r].saves;
    }
    *unfinished |= leader_left && (*all)[*holder].updated;
    return 0;
}

/* The rest of a step that any rank has not finished is done again by all. */
static int take_position(struct dt_training *t, int holder, bool unfinished, struct dt_error *err)
{
    struct position p = {unfinished ? t->updated : t->progress, t->report};
    DT_TRY(dt_comm_wait(t->comm, dt_comm_broadcast(t->comm, &p, sizeof p, holder), err));
    t->progress = t->updated = p.progress;
    t->report = p.report;
    t->unfinished = unfinished;
    if (!t->has_state) {
        t->first_step = t->progress.step;
        t->logged_seconds = t->progress.seconds;
        t->logged_tokens = t->report.tokens;
    }
    return 0;
}

int dt_elastic_take_state(struct dt_training *t, bool *found, struct dt_error *err)
{
    struct standing *all;
    int holder;
    bool unfinished;
    int rc = compare_standings(t, &all, &holder, &unfinished, err);
    *found = rc == 0 && all[holder].step >= 0;
    if (*found) {
        dt_state_copy_allocate(&t->copy, &t->state);
        rc = pass_on(t, all, all[holder].step, err);
        rc = rc < 0 ? rc : take_position(t, holder, unfinished, err);
    }
    if (rc == 0 && *found)
        dt_state_copy_restore(&t->copy, &t->state);
    free(all);
    return rc;
}

/* --- newcomers -------------------------------------------------------------------------------- */

bool dt_elastic_is_joined(struct dt_training *t)
{
    return t->members && dt_membership_newcomers(t->members) > 0;
}

bool dt_elastic_let_go(struct dt_training *t, const unsigned char *flags, unsigned stops)
{
    const int size = dt_comm_size(t->comm);
    long least = 1, most = 1;
    int stopping = 0;
    for (int r = 0; r < size; r++)
        stopping += (flags[r] & stops) != 0;
    if (t->members == NULL || stopping == 0 || !dt_settings_elastic(&t->settings, &least, &most) ||
        size - stopping < least)
        return false;
    for (int r = 0; r < size; r++)
        if (flags[r] & stops)
            dt_membership_forget(t->members, r);
    t->regroups = t->saves = true;
    return true;
}

bool dt_elastic_can_go_on(struct dt_training *t)
{
    int suspect = -1;
    bool failed = t->members && t->comm && dt_comm_has_failed(t->comm, &suspect);
    if (failed)
        dt_membership_suspect(t->members, suspect);
    return failed;
}

const struct dt_seat *dt_training_seat(const struct dt_training *t)
{
    return t->members ? dt_membership_seat(t->members) : NULL;
}

struct dt_comm *dt_training_comm(const struct dt_training *t)
{
    return t->comm;
}

void dt_elastic_close(struct dt_training *t)
{
    dt_membership_free(t->members);
    dt_state_copy_release(&t->copy);
    free(t->run_path);
}
