/* SPDX-License-Identifier: MIT */
#include "train/saver.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/buffer.h"

struct dt_saver {
    const char *run;
    struct dt_snapshot *snapshot;
    const struct dt_run_identity *identity;
    long saved_step;
    pthread_t thread;
    bool writing;      /* a thread was started and not yet joined */
    atomic_bool ended; /* it has nothing more to do */
    bool failed;       /* the last one, and nobody has asked yet */
    struct dt_error error;
};

struct dt_saver *dt_saver_new(const char *run, struct dt_snapshot *snapshot,
                              const struct dt_run_identity *identity, long saved_step)
{
    struct dt_saver *s = dt_alloc(1, sizeof *s);
    s->run = run;
    s->snapshot = snapshot;
    s->identity = identity;
    s->saved_step = saved_step;
    return s;
}

static int write_and_prune(struct dt_saver *s, struct dt_error *err)
{
    const struct dt_settings *settings = s->identity->settings;
    DT_TRY(dt_checkpoint_save(s->run, s->snapshot, s->identity, err));
    s->saved_step = s->snapshot->state.step;
    if (s->snapshot->state.skipped_in_row > 0)
        return 0; /* the older ones may be all that is good */
    return dt_checkpoint_prune(s->run, s->saved_step, settings->checkpoint.keep_last,
                               settings->checkpoint.keep_every, err);
}

static void *write_in_background(void *argument)
{
    struct dt_saver *s = argument;
    s->failed = write_and_prune(s, &s->error) < 0;
    atomic_store(&s->ended, true);
    return NULL;
}

void dt_saver_wait(struct dt_saver *s)
{
    if (s->writing)
        pthread_join(s->thread, NULL);
    s->writing = false;
}

bool dt_saver_failed(struct dt_saver *s, struct dt_error *err)
{
    if (s->writing && !atomic_load(&s->ended))
        return false;
    dt_saver_wait(s);
    bool failed = s->failed;
    s->failed = false;
    if (failed)
        *err = s->error;
    return failed;
}

int dt_saver_save(struct dt_saver *s, const struct dt_progress_state *state, struct dt_error *err)
{
    dt_saver_wait(s);
    dt_snapshot_take(s->snapshot, state);
    atomic_store(&s->ended, false);
    s->writing =
        s->snapshot->whole && pthread_create(&s->thread, NULL, write_in_background, s) == 0;
    return s->writing ? 0 : write_and_prune(s, err);
}

long dt_saver_saved_step(const struct dt_saver *s)
{
    assert(!s->writing);
    return s->saved_step;
}

void dt_saver_free(struct dt_saver *s)
{
    if (s == NULL)
        return;
    dt_saver_wait(s);
    free(s);
}
