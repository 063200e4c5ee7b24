/* SPDX-License-Identifier: MIT */
/* Transfers of an operation, with a watchdog. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "comm/comm-internal.h"

#define SPIN         5e-5 /* seconds of busy waiting */
#define PAUSE_LEAST  2e-5 /* seconds between tests after it */
#define PAUSE_MOST   1.3e-3
#define CONTEXT_BITS 6
#define NUMBER_BITS  16

_Static_assert(1 + CONTEXT_BITS + NUMBER_BITS == DT_TAG_BITS, "kind, group and number are a tag");

/* Kind, group and number of the operation, so that a message out of order matches no receive. */
static int tag_of(const struct dt_operation *op)
{
    uint64_t number = op->number & ((1u << NUMBER_BITS) - 1);
    uint64_t context = (uint64_t)op->comm->context & ((1u << CONTEXT_BITS) - 1);
    uint64_t kind = op->is_message;
    return (int)(kind << (NUMBER_BITS + CONTEXT_BITS) | context << NUMBER_BITS | number);
}

/* Writes "operation 12 of the tensor-parallel group of ranks 0 and 1" to text. */
static void name_tag(const struct dt_job *job, int tag, char *text, size_t size)
{
    const char *kind = tag >> (NUMBER_BITS + CONTEXT_BITS) ? "channel" : "operation";
    int number = tag & ((1 << NUMBER_BITS) - 1);
    int group = tag >> NUMBER_BITS & ((1 << CONTEXT_BITS) - 1);
    const struct dt_comm *c = job->groups;
    char ranks[DT_RANKS];
    while (c && c->context != group)
        c = c->made_before;
    if (c && c->name)
        snprintf(text, size, "%s %d of the %s group of ranks %s", kind, number, c->name,
                 dt_comm_name_ranks(c->members, c->size, ranks));
    else
        snprintf(text, size, "%s %d of %s", kind, number, c ? "all ranks" : "an unknown group");
}

char *dt_name_operation(const struct dt_operation *op, char text[DT_OPERATION_NAME])
{
    int used = snprintf(text, DT_OPERATION_NAME, "%s of %zu bytes, ", op->name, op->total);
    name_tag(op->comm->job, tag_of(op), text + used, DT_OPERATION_NAME - (size_t)used);
    return text;
}

int dt_transfer_start(const struct dt_operation *op, struct dt_transfer *t, struct dt_error *err)
{
    struct dt_job *job = op->comm->job;
    int peer = op->comm->members[t->peer];
    t->request = NULL;
    if (t->bytes == 0)
        return 0;
    if (!t->sends)
        return job->transport->receive(job->state, peer, tag_of(op), t->data, t->bytes, &t->request,
                                       err);
    job->bytes_sent += t->bytes;
    return job->transport->send(job->state, peer, tag_of(op), t->data, t->bytes, &t->request, err);
}

uint64_t dt_transfer_moved(const struct dt_operation *op, const struct dt_transfer *t)
{
    const struct dt_job *job = op->comm->job;
    return job->transport->moved ? job->transport->moved(job->state, op->comm->members[t->peer])
                                 : 0;
}

int dt_exchange_begin(const struct dt_operation *op, struct dt_transfer *transfers, int count,
                      struct dt_error *err)
{
    for (int i = 0; i < count; i++)
        transfers[i].request = NULL;
    for (int i = 0; i < count; i++)
        if (!transfers[i].sends) /* receives first: then messages need no copy */
            DT_TRY(dt_transfer_start(op, &transfers[i], err));
    for (int i = 0; i < count; i++)
        if (transfers[i].sends)
            DT_TRY(dt_transfer_start(op, &transfers[i], err));
    return 0;
}

int dt_transfer_stalled(const struct dt_operation *op, const struct dt_transfer *t,
                        struct dt_error *err)
{
    const struct dt_comm *comm = op->comm;
    struct dt_job *job = comm->job;
    char name[DT_OPERATION_NAME], theirs[DT_OPERATION_NAME], instead[32] = "nothing";
    size_t bytes;
    int tag;
    job->suspect = comm->members[t->peer];
    *theirs = '\0';
    if (job->transport->waiting(job->state, comm->members[t->peer], &tag, &bytes)) {
        snprintf(instead, sizeof instead, "%zu bytes for ", bytes);
        name_tag(job, tag, theirs, sizeof theirs);
    }
    return dt_fail(err, DT_ESTALLED,
                   "%s: %zu bytes %s rank %d have not moved for %.0f seconds; it has sent %s%s",
                   dt_name_operation(op, name), t->bytes, t->sends ? "to" : "from",
                   comm->members[t->peer], job->patience, instead, theirs);
}

int dt_transfer_test(const struct dt_operation *op, struct dt_transfer *t, struct dt_error *err)
{
    struct dt_job *job = op->comm->job;
    char name[DT_OPERATION_NAME];
    size_t bytes = t->bytes;
    int rc = job->transport->test(job->state, &t->request, &bytes, err);
    if (rc < 0)
        job->suspect = op->comm->members[t->peer];
    if (rc > 0 && bytes != t->bytes)
        return dt_fail(err, DT_EIO, "%s: rank %d sent %zu bytes, not %zu",
                       dt_name_operation(op, name), op->comm->members[t->peer], bytes, t->bytes);
    return rc;
}

/* A waiting thread leaves its processor idle, so tests may be frequent. */
static double pause_after(bool waited_for, double idle)
{
    double pause = waited_for ? idle / 8 : idle;
    if (waited_for && idle < SPIN)
        return 0;
    return fmin(fmax(pause, PAUSE_LEAST), PAUSE_MOST);
}

void dt_job_pause(struct dt_job *job, double since)
{
    double now = dt_clock_now(), last = fmax(since, job->waiting_since);
    double pause = pause_after(job->waiting > 0, now - last);
    const struct timespec end = dt_timespec(now + pause);
    if (pause > 0)
        pthread_cond_timedwait(&job->submitted_one, &job->lock, &end);
}

/* Between two tests of an operation. since: when one of its transfers last completed or moved. */
static int pause_operation(struct dt_job *job, double since, struct dt_error *err)
{
    pthread_mutex_lock(&job->lock);
    if (job->posted || job->in_flight)
        dt_job_advance_messages(job);
    int rc = job->failed;
    if (rc < 0)
        *err = job->error;
    else
        dt_job_pause(job, since);
    pthread_mutex_unlock(&job->lock);
    return rc;
}

/* Waits for one transfer. *since: as for pause_operation. */
static int await_transfer(const struct dt_operation *op, struct dt_transfer *t, double *since,
                          struct dt_error *err)
{
    uint64_t before = dt_transfer_moved(op, t), now;
    int rc;
    while ((rc = dt_transfer_test(op, t, err)) == 0) {
        now = dt_transfer_moved(op, t);
        *since = now != before ? dt_clock_now() : *since;
        before = now;
        DT_TRY(pause_operation(op->comm->job, *since, err));
        if (dt_clock_now() - *since > op->comm->job->patience)
            return dt_transfer_stalled(op, t, err);
    }
    *since = dt_clock_now();
    return rc;
}

int dt_exchange_end(const struct dt_operation *op, struct dt_transfer *transfers, int count,
                    struct dt_error *err)
{
    double since = dt_clock_now();
    for (int i = 0; i < count; i++)
        if (transfers[i].request)
            DT_TRY(await_transfer(op, &transfers[i], &since, err));
    return 0;
}
