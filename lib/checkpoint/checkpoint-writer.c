/* SPDX-License-Identifier: MIT */
#include "checkpoint/checkpoint-writer.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/file.h"

#define PATH_BYTES 4096

enum phase { IDLE, WRITING, COMPLETING };

struct dt_checkpoint_writer {
    const char *run;
    struct dt_comm *comm;
    struct dt_snapshot *snapshot;
    const struct dt_run_identity *identity;
    long saved_step;
    char directory[PATH_BYTES]; /* the hidden one */
    enum phase phase;
    pthread_t thread;
    bool threaded;     /* a thread was started and not yet joined */
    atomic_bool ended; /* this rank's work of the phase */
    int rc;            /* its result */
    struct dt_error error;
    bool failed; /* since the last dt_checkpoint_writer_failed */
    struct dt_error failure;
};

struct dt_checkpoint_writer *dt_checkpoint_writer_new(const char *run, struct dt_comm *comm,
                                                      struct dt_snapshot *snapshot,
                                                      const struct dt_run_identity *identity,
                                                      long saved_step)
{
    struct dt_checkpoint_writer *s = dt_alloc(1, sizeof *s);
    s->run = run;
    s->comm = comm;
    s->snapshot = snapshot;
    s->identity = identity;
    s->saved_step = saved_step;
    atomic_store(&s->ended, true);
    return s;
}

static bool leads(const struct dt_checkpoint_writer *s)
{
    return dt_comm_rank(s->comm) == 0;
}

static int complete(struct dt_checkpoint_writer *s, struct dt_error *err)
{
    const struct dt_settings *settings = s->identity->settings;
    if (!leads(s))
        return 0;
    DT_TRY(dt_checkpoint_complete(s->run, s->directory, s->snapshot, s->identity, err));
    if (s->snapshot->progress.skipped_in_row > 0)
        return 0; /* an older checkpoint may be the last good one */
    return dt_checkpoint_prune(s->run, &s->snapshot->progress, settings->checkpoint.keep_last,
                               settings->checkpoint.keep_every, err);
}

static void *work(void *argument)
{
    struct dt_checkpoint_writer *s = argument;
    s->rc = s->phase == WRITING ? dt_checkpoint_write(s->directory, s->snapshot, &s->error)
                                : complete(s, &s->error);
    atomic_store(&s->ended, true);
    return NULL;
}

static void begin_phase(struct dt_checkpoint_writer *s, enum phase phase)
{
    bool background = s->snapshot->full && (phase == WRITING || leads(s));
    s->phase = phase;
    atomic_store(&s->ended, false);
    s->threaded = background && pthread_create(&s->thread, NULL, work, s) == 0;
    if (!s->threaded)
        work(s);
}

/* Removes the hidden directory; dt_checkpoint_clean removes what cannot be removed now. */
static void abandon(struct dt_checkpoint_writer *s)
{
    struct dt_error ignored;
    if (leads(s))
        dt_file_remove_tree(s->directory, &ignored);
}

/* Waits for this rank's thread and for all ranks; starts the next phase. */
static void end_phase(struct dt_checkpoint_writer *s)
{
    if (s->threaded)
        pthread_join(s->thread, NULL);
    s->threaded = false;
    s->rc = dt_comm_agree(s->comm, s->rc, &s->error);
    if (s->rc < 0) {
        s->failed = true;
        s->failure = s->error;
        s->phase = IDLE;
        abandon(s);
    } else if (s->phase == WRITING) {
        begin_phase(s, COMPLETING);
    } else {
        s->phase = IDLE;
        s->saved_step = s->snapshot->progress.step;
    }
}

bool dt_checkpoint_writer_idle(const struct dt_checkpoint_writer *s)
{
    return atomic_load(&s->ended);
}

bool dt_checkpoint_writer_is_busy(const struct dt_checkpoint_writer *s)
{
    return s->phase != IDLE;
}

void dt_checkpoint_writer_advance(struct dt_checkpoint_writer *s)
{
    if (s->phase != IDLE)
        end_phase(s);
}

void dt_checkpoint_writer_wait(struct dt_checkpoint_writer *s)
{
    while (s->phase != IDLE)
        end_phase(s);
}

bool dt_checkpoint_writer_failed(struct dt_checkpoint_writer *s, struct dt_error *err)
{
    bool failed = s->failed;
    s->failed = false;
    if (failed)
        *err = s->failure;
    return failed;
}

/* Rank 0 makes the directory and broadcasts its path. */
static int begin(struct dt_checkpoint_writer *s, long step, struct dt_error *err)
{
    int rc = 0;
    if (leads(s)) {
        char *directory = dt_checkpoint_path(s->run, step);
        snprintf(s->directory, sizeof s->directory, "%s", directory);
        free(directory);
        rc = dt_checkpoint_begin(s->directory, s->snapshot->state, s->identity, err);
        if (rc < 0)
            abandon(s);
    }
    DT_TRY(dt_comm_agree(s->comm, rc, err));
    return dt_comm_wait(s->comm, dt_comm_broadcast(s->comm, s->directory, PATH_BYTES, 0), err);
}

int dt_checkpoint_writer_save(struct dt_checkpoint_writer *s,
                              const struct dt_progress_state *progress, struct dt_error *err)
{
    dt_checkpoint_writer_wait(s);
    DT_TRY(begin(s, progress->step, err));
    dt_snapshot_take(s->snapshot, progress);
    begin_phase(s, WRITING);
    if (s->snapshot->full)
        return 0;
    dt_checkpoint_writer_wait(s);
    return dt_checkpoint_writer_failed(s, err) ? err->code : 0;
}

long dt_checkpoint_writer_saved_step(const struct dt_checkpoint_writer *s)
{
    assert(s->phase == IDLE);
    return s->saved_step;
}

void dt_checkpoint_writer_free(struct dt_checkpoint_writer *s)
{
    if (s == NULL)
        return;
    if (s->threaded)
        pthread_join(s->thread, NULL);
    free(s);
}
