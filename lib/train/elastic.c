/* SPDX-License-Identifier: MIT */
/* An elastic run: its ranks change between steps, and the process goes on. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/path.h"
#include "train/training-internal.h"

/* What each rank tells the others about its state. */
struct standing {
    long step; /* that it has done; -1: it is new */
    bool is_whole, unfinished, saves, has_led;
    long updated; /* step of its last update; 0: none, its state is from disk */
    struct dt_shard_standing shards;
};

/* The state with which a generation begins. */
struct position {
    struct dt_progress_state progress;
    struct dt_step_report report;
};

/* How ranks come to it. */
struct choice {
    long step;       /* -1: no rank has a state */
    bool gathers;    /* from shards */
    bool unfinished; /* what follows the update is done again */
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
            .group = (int)dt_settings_group(s),
            .timeout = (double)s->distributed.timeout,
            .patience = (double)s->distributed.join_timeout,
            .encrypt = s->distributed.encrypt,
            .stop = t->stop,
            .profile = &t->profile,
            .profile_bytes = sizeof t->profile,
            .check = check_profile,
            .context = t},
        err);
}

/* As many ranks train as fill whole groups. */
static void open_training_ranks(struct dt_training *t)
{
    const int size = dt_comm_size(t->self);
    t->trains = size - size % (int)dt_settings_group(&t->settings);
    t->comm = t->self;
    dt_membership_keep(t->members, t->trains);
    if (t->trains == size || dt_elastic_is_spare(t))
        return;
    int *ranks = dt_alloc((size_t)t->trains, sizeof *ranks);
    for (int r = 0; r < t->trains; r++)
        ranks[r] = r;
    t->comm = dt_comm_group(t->self, "training", ranks, t->trains);
    free(ranks);
}

int dt_elastic_open_world(struct dt_training *t, struct dt_error *err)
{
    const struct dt_settings *s = &t->settings;
    DT_TRY(
        dt_comm_open(&t->self, "tcp",
                     &(struct dt_opening){
                         .interface = *s->distributed.interface ? s->distributed.interface : NULL,
                         /* whose key is of this generation; members may be of several jobs */
                         .seat = dt_membership_seat(t->members),
                         .patience = (double)s->distributed.timeout,
                         .encrypt = s->distributed.encrypt,
                         .stop = t->stop},
                     err));
    open_training_ranks(t);
    t->leads = dt_comm_rank(t->comm) == 0;
    t->logged_waited = 0;
    t->peak = t->options.peak * dt_comm_size(t->comm);
    return 0;
}

/* --- the state -------------------------------------------------------------------------------- */

static int transfer(struct dt_training *t, int other, bool sends, struct dt_error *err)
{
    const size_t bytes = (size_t)t->copy.count * sizeof *t->copy.values;
    struct dt_bulk bulk = {0};
    if (sends)
        dt_bulk_send(&bulk, t->self, other, 0, t->copy.values, bytes);
    else
        dt_bulk_receive(&bulk, t->self, other, 0, t->copy.values, bytes);
    int rc = dt_bulk_await(&bulk, t->self, err);
    dt_bulk_release(&bulk);
    return rc;
}

static bool has_whole(const struct standing *s, long step)
{
    return s->is_whole && s->step == step;
}

/* Ranks without the state, except spares, receive it from those with it, which take turns. */
static int pass_on(struct dt_training *t, const struct standing *all, long step,
                   struct dt_error *err)
{
    const int size = dt_comm_size(t->self), own = dt_comm_rank(t->self);
    int *holders = dt_alloc((size_t)size, sizeof *holders), count = 0, served = 0, rc = 0;
    if (!dt_elastic_is_spare(t))
        dt_state_copy_allocate(&t->copy, &t->state);
    for (int r = 0; r < size; r++)
        if (has_whole(&all[r], step))
            holders[count++] = r;
    for (int r = 0; rc == 0 && r < t->trains; r++) {
        if (has_whole(&all[r], step))
            continue;
        int holder = holders[served++ % count];
        if (own == r || own == holder)
            rc = transfer(t, own == r ? holder : r, own == holder, err);
    }
    free(holders);
    return rc;
}

static int share_standings(struct dt_training *t, struct standing *all, struct dt_error *err)
{
    all[dt_comm_rank(t->self)] = (struct standing){
        .step = t->has_state ? t->progress.step : -1,
        .is_whole = t->has_state && t->is_whole,
        .unfinished = t->unfinished,
        .saves = t->saves,
        .has_led = t->has_led,
        .updated = t->report.step,
        .shards = dt_shard_copies_standing(&t->copies),
    };
    DT_TRY(dt_comm_share(t->self, all, sizeof *all, err));
    for (int r = 0; r < dt_comm_size(t->self); r++)
        t->saves |= all[r].saves;
    return 0;
}

static struct dt_shard_standing *shards_of(const struct standing *all, int size)
{
    struct dt_shard_standing *shards = dt_alloc((size_t)size, sizeof *shards);
    for (int r = 0; r < size; r++)
        shards[r] = all[r].shards;
    return shards;
}

/* The newest state. What follows its update is done again if a rank has not finished it, if a rank
 * was already further, and if the leader has left, which may not have written what the others
 * waited for. */
static struct choice choose(const struct standing *all, int size)
{
    struct dt_shard_standing *shards = shards_of(all, size);
    long generation;
    int count;
    struct choice c = {.step = dt_shard_copies_newest(shards, size, &generation, &count)};
    c.gathers = c.step >= 0;
    for (int r = 0; r < size; r++)
        if (all[r].is_whole && all[r].step >= c.step) {
            c.step = all[r].step;
            c.gathers = false;
        }
    bool leader_left = true, updated = false;
    for (int r = 0; r < size; r++) {
        const bool there = all[r].step == c.step;
        c.unfinished |= all[r].step > c.step || (there && all[r].unfinished);
        leader_left &= !(there && all[r].has_led);
        updated |= there && all[r].updated == c.step;
        for (int i = 0; i < 2 && c.gathers; i++)
            updated |= all[r].shards.own[i] == c.step && all[r].shards.updated[i];
    }
    c.unfinished |= leader_left;
    c.unfinished &= updated && c.step > 0;
    free(shards);
    return c;
}

/* Whether the rank knows the position. */
static bool knows(const struct standing *s, const struct choice *c)
{
    const long *own = s->shards.own;
    if (c->gathers && c->unfinished)
        return s->shards.generation > 0 && (own[0] == c->step || own[1] == c->step);
    return c->gathers ? s->step == c->step : has_whole(s, c->step);
}

static int take_position(struct dt_training *t, const struct standing *all, const struct choice *c,
                         struct dt_error *err)
{
    const struct dt_shard_copy *copy = &t->copies.own[c->step % 2];
    struct position p = {c->unfinished ? t->updated : t->progress, t->report};
    int root = 0;
    if (c->gathers && c->unfinished)
        p = (struct position){copy->progress, copy->report};
    while (!knows(&all[root], c))
        root++;
    DT_TRY(dt_comm_wait(t->self, dt_comm_broadcast(t->self, &p, sizeof p, root), err));
    t->progress = t->updated = p.progress;
    t->report = p.report;
    t->unfinished = c->unfinished;
    if (!t->has_state) {
        t->first_step = t->progress.step;
        t->logged_seconds = t->progress.seconds;
        t->logged_tokens = t->report.tokens;
    }
    t->has_state = t->is_whole = true;
    return 0;
}

static int take_state(struct dt_training *t, const struct standing *all, const struct choice *c,
                      struct dt_error *err)
{
    struct dt_shard_standing *shards = shards_of(all, dt_comm_size(t->self));
    t->is_whole &= t->progress.step == c->step; /* or what it has is written over */
    int rc = c->gathers ? dt_shard_copies_gather(t, shards, c->step, err)
                        : pass_on(t, all, c->step, err);
    free(shards);
    rc = rc < 0 ? rc : take_position(t, all, c, err);
    if (rc == 0 && t->trains < dt_comm_size(t->self))
        rc = dt_comm_barrier(t->self, err); /* spares may forget what they have */
    if (rc == 0 && !dt_elastic_is_spare(t))
        dt_state_copy_restore(&t->copy, &t->state);
    return rc;
}

static void forget_state(struct dt_training *t)
{
    dt_state_copy_release(&t->copy);
    dt_shard_copies_release(&t->copies);
    t->has_state = t->is_whole = t->unfinished = t->saves = false;
}

int dt_elastic_take_state(struct dt_training *t, bool *found, struct dt_error *err)
{
    const int size = dt_comm_size(t->self);
    struct standing *all = dt_alloc((size_t)size, sizeof *all);
    struct choice c = {.step = -1};
    int rc = share_standings(t, all, err);
    if (rc == 0)
        c = choose(all, size);
    *found = c.step >= 0;
    if (rc == 0 && *found)
        rc = take_state(t, all, &c, err);
    if (rc == 0 && !*found)
        t->has_state = t->is_whole = t->unfinished = false;
    if (rc == 0 && dt_elastic_is_spare(t))
        forget_state(t);
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
    for (int r = 0; t->members && r < size; r++) /* else flags may be of fewer ranks */
        stopping += (flags[r] & stops) != 0;
    if (stopping == 0 || !dt_settings_elastic(&t->settings, &least, &most) ||
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
    dt_shard_copies_release(&t->copies);
    free(t->run_path);
}
