/* SPDX-License-Identifier: MIT */
/* Point-to-point messages, concurrent with the queue of operations. */
#include <assert.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "comm/comm-internal.h"

static struct dt_message *take_free(struct dt_job *job)
{
    struct dt_message *m = job->free_messages;
    if (m) {
        job->free_messages = m->next;
        return m;
    }
    m = dt_alloc(1, sizeof *m);
    m->made_before = job->made;
    return job->made = m;
}

/* before: the piece before, or NULL. Call it with the lock. */
static struct dt_message *post_piece(const struct dt_operation *op, struct dt_transfer transfer,
                                     struct dt_message *before)
{
    struct dt_job *job = op->comm->job;
    struct dt_message *m = take_free(job);
    *m = (struct dt_message){.next = job->posted,
                             .made_before = m->made_before,
                             .piece = before,
                             .op = *op,
                             .transfer = transfer};
    return job->posted = m;
}

static struct dt_message *post(struct dt_comm *comm, const char *name, int channel,
                               struct dt_transfer whole)
{
    const struct dt_operation op = {.name = name,
                                    .total = whole.bytes,
                                    .comm = comm,
                                    .number = (uint64_t)channel,
                                    .is_message = true};
    struct dt_job *job = comm->job;
    struct dt_message *m = NULL;
    assert(job->transport);
    pthread_mutex_lock(&job->lock);
    for (size_t at = 0; at < whole.bytes || m == NULL; at += job->most) {
        struct dt_transfer t = whole;
        t.data = whole.bytes > 0 ? (char *)whole.data + at : NULL;
        t.bytes = whole.bytes - at < job->most ? whole.bytes - at : job->most;
        m = post_piece(&op, t, m);
    }
    pthread_cond_signal(&job->submitted_one);
    pthread_mutex_unlock(&job->lock);
    return m;
}

static bool is_over(const struct dt_message *m)
{
    while (m && m->over)
        m = m->piece;
    return m == NULL;
}

/* Call it with the lock. */
static void free_message(struct dt_job *job, struct dt_message *m)
{
    for (struct dt_message *before; m; m = before) {
        before = m->piece;
        m->next = job->free_messages;
        job->free_messages = m;
    }
}

static int run_message(const struct dt_operation *op, struct dt_error *err)
{
    bool sends = op->channel == DT_LINK_TO_NEXT || op->channel == DT_LINK_TO_BEFORE;
    const struct dt_transfer t = {sends, 0, op->data, op->bytes, NULL};
    return dt_link_exchange(op, &t, 1, err);
}

/* A message on linked devices, enqueued at once. */
static struct dt_message *put(struct dt_comm *comm, enum dt_link_channel channel, void *data,
                              size_t bytes)
{
    static const char *const names[DT_LINK_LANES] = {
        [DT_LINK_TO_NEXT] = "send to the next rank",
        [DT_LINK_FROM_BEFORE] = "receive from the rank before",
        [DT_LINK_TO_BEFORE] = "send to the rank before",
        [DT_LINK_FROM_NEXT] = "receive from the next rank",
    };
    const struct dt_operation op = {.name = names[channel],
                                    .total = bytes,
                                    .run = run_message,
                                    .channel = channel,
                                    .data = data,
                                    .bytes = bytes};
    pthread_mutex_lock(&comm->job->lock);
    struct dt_message *m = take_free(comm->job);
    *m = (struct dt_message){.made_before = m->made_before, .op = op, .over = true};
    pthread_mutex_unlock(&comm->job->lock);
    m->request = dt_link_submit(comm, op);
    return m;
}

struct dt_message *dt_comm_send(struct dt_comm *comm, int to, int channel, const void *data,
                                size_t bytes)
{
    if (comm->is_on_device)
        return put(comm, (enum dt_link_channel)channel, (void *)(uintptr_t)data, bytes);
    return post(comm, "send", channel,
                (struct dt_transfer){true, to, (void *)(uintptr_t)data, bytes, NULL});
}

struct dt_message *dt_comm_receive(struct dt_comm *comm, int from, int channel, void *data,
                                   size_t bytes)
{
    if (comm->is_on_device)
        return put(comm, (enum dt_link_channel)channel, data, bytes);
    return post(comm, "receive", channel, (struct dt_transfer){false, from, data, bytes, NULL});
}

int dt_comm_await(struct dt_comm *comm, struct dt_message *m, struct dt_error *err)
{
    struct dt_job *job = comm->job;
    if (m == NULL)
        return 0;
    if (comm->is_on_device)
        DT_TRY(dt_link_wait(comm, m->op.channel, m->request, err));
    pthread_mutex_lock(&job->lock);
    if (!is_over(m)) {
        dt_job_begin_wait(job);
        while (!is_over(m) && job->failed == 0)
            pthread_cond_wait(&job->finished_one, &job->lock);
        dt_job_end_wait(job);
    }
    int rc = job->failed;
    if (rc < 0)
        *err = job->error; /* dt_messages_release frees the message */
    else
        free_message(job, m);
    pthread_mutex_unlock(&job->lock);
    return rc;
}

static int find_over(struct dt_message *const *messages, int count)
{
    for (int i = 0; i < count; i++)
        if (messages[i] && is_over(messages[i]))
            return i;
    return -1;
}

int dt_comm_await_any(struct dt_comm *comm, struct dt_message *const *messages, int count,
                      int *which, struct dt_error *err)
{
    struct dt_job *job = comm->job;
    assert(!comm->is_on_device);
    pthread_mutex_lock(&job->lock);
    *which = find_over(messages, count);
    if (*which < 0) {
        dt_job_begin_wait(job);
        while (*which < 0 && job->failed == 0) {
            pthread_cond_wait(&job->finished_one, &job->lock);
            *which = find_over(messages, count);
        }
        dt_job_end_wait(job);
    }
    int rc = job->failed;
    if (rc < 0)
        *err = job->error;
    pthread_mutex_unlock(&job->lock);
    return rc;
}

/* --- exchanges with one rank ------------------------------------------------------------------ */

static int run_swap(const struct dt_operation *op, struct dt_error *err)
{
    const struct dt_transfer both[] = {
        {true, op->peer, op->sends->data, op->sends->bytes, NULL},
        {false, op->peer, op->receives->data, op->receives->bytes, NULL}};
    return dt_link_exchange(op, both, 2, err);
}

struct dt_passing dt_comm_swap(struct dt_comm *c, int other, int channel, struct dt_piece sent,
                               struct dt_piece received)
{
    const struct dt_operation op = {.name = "swap",
                                    .total = sent.bytes + received.bytes,
                                    .run = run_swap,
                                    .peer = other,
                                    .sends = &sent,
                                    .receives = &received};
    if (c->is_on_device)
        return (struct dt_passing){.on_links = true, .request = dt_link_submit(c, op)};
    return (struct dt_passing){
        .received = dt_comm_receive(c, other, channel, received.data, received.bytes),
        .sent = dt_comm_send(c, other, channel, sent.data, sent.bytes)};
}

int dt_comm_end_passing(struct dt_comm *c, const struct dt_passing *p, struct dt_error *err)
{
    if (p->on_links)
        return dt_link_wait(c, DT_LINK_ALL, p->request, err);
    DT_TRY(dt_comm_await(c, p->sent, err));
    return dt_comm_await(c, p->received, err);
}

/* --- on the communication thread -------------------------------------------------------------- */

/* Posted messages, the oldest first. */
static struct dt_message *take_posted(struct dt_job *job)
{
    struct dt_message *oldest = NULL;
    while (job->posted) {
        struct dt_message *m = job->posted;
        job->posted = m->next;
        m->next = oldest;
        oldest = m;
    }
    return oldest;
}

/* Starts messages and appends them to those in flight. */
static int start(struct dt_job *job, struct dt_message *oldest, struct dt_error *err)
{
    struct dt_message **end = &job->in_flight;
    while (*end)
        end = &(*end)->next;
    *end = oldest;
    for (struct dt_message *m = oldest; m; m = m->next) {
        m->since = dt_clock_now();
        m->moved = dt_transfer_moved(&m->op, &m->transfer);
        DT_TRY(dt_transfer_start(&m->op, &m->transfer, err));
    }
    return 0;
}

/* 1: it has completed; 0: not yet. */
static int test(struct dt_message *m, struct dt_error *err)
{
    int rc = m->transfer.request ? dt_transfer_test(&m->op, &m->transfer, err) : 1;
    const uint64_t moved = dt_transfer_moved(&m->op, &m->transfer);
    if (moved != m->moved)
        m->since = dt_clock_now();
    m->moved = moved;
    return rc == 0 && dt_clock_now() - m->since > m->op.comm->job->patience
               ? dt_transfer_stalled(&m->op, &m->transfer, err)
               : rc;
}

/* Moves completed messages to the list over. */
static int test_all(struct dt_job *job, struct dt_message **over, struct dt_error *err)
{
    for (struct dt_message **place = &job->in_flight; *place;) {
        struct dt_message *m = *place;
        int rc = test(m, err);
        if (rc < 0)
            return rc;
        if (rc > 0) {
            *place = m->next;
            m->next = *over;
            *over = m;
        } else {
            place = &m->next;
        }
    }
    return 0;
}

int dt_messages_advance(struct dt_job *job, bool *completed, struct dt_error *err)
{
    struct dt_message *over = NULL;
    *completed = false;
    if (job->failed < 0) { /* their waits have failed */
        job->posted = job->in_flight = NULL;
        return 0;
    }
    struct dt_message *oldest = take_posted(job);
    pthread_mutex_unlock(&job->lock);
    int rc = start(job, oldest, err);
    rc = rc < 0 ? rc : test_all(job, &over, err);
    pthread_mutex_lock(&job->lock);
    for (struct dt_message *m = over; m; m = m->next)
        m->over = *completed = true;
    return rc;
}

void dt_messages_release(struct dt_job *job)
{
    /* After a failure some are in this list only. */
    for (struct dt_message *m = job->made, *before; m; m = before) {
        before = m->made_before;
        free(m);
    }
}
