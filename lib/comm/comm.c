/* SPDX-License-Identifier: MIT */
#include "comm/comm.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/plugin.h"
#include "base/program.h"
#include "comm/comm-internal.h"
#include "comm/crypto.h"
#include "comm/launch.h"
#include "comm/meeting-place.h"
#include "comm/tcp.h"
#include "device/time-spans.h"

#define REDUCE_CHUNK ((size_t)1 << 16) /* floats reduced at a time: fits into caches */

struct dt_comm *dt_job_new_group(struct dt_job *job, const char *name, const int *members, int size,
                                 int rank)
{
    struct dt_comm *c = dt_alloc(1, sizeof *c), *last = job->groups;
    *c = (struct dt_comm){.job = job,
                          .made_before = last,
                          .name = name,
                          .rank = rank,
                          .size = size,
                          .context = last ? last->context + 1 : 0};
    c->members = dt_alloc((size_t)size, sizeof *c->members);
    memcpy(c->members, members, (size_t)size * sizeof *members);
    job->groups = c;
    return c;
}

static void new_world(struct dt_job *job, int rank, int size)
{
    int *members = dt_alloc((size_t)size, sizeof *members);
    for (int i = 0; i < size; i++)
        members[i] = i;
    dt_job_new_group(job, NULL, members, size, rank);
    free(members);
}

struct dt_comm *dt_comm_group(struct dt_comm *parent, const char *name, const int *ranks, int count)
{
    int *members = dt_alloc((size_t)count, sizeof *members), rank = -1;
    for (int i = 0; i < count; i++) {
        members[i] = parent->members[ranks[i]];
        rank = ranks[i] == parent->rank ? i : rank;
    }
    assert(rank >= 0);
    struct dt_comm *group = dt_job_new_group(parent->job, name, members, count, rank);
    if (parent->job->linked)
        dt_link_group(group);
    free(members);
    return group;
}

/* --- the communication thread ----------------------------------------------------------------- */

void dt_job_fail(struct dt_job *job, int rc, const struct dt_error *err)
{
    if (job->failed < 0)
        return;
    job->failed = rc;
    job->error = *err;
    dt_links_forget(job);
    if (job->linked) /* otherwise the host may wait for a device that waits for a rank */
        job->linked->engine->links->abort(job->linked);
}

static void finish(struct dt_job *job, int rc, const struct dt_error *err)
{
    if (rc < 0)
        dt_job_fail(job, rc, err);
    job->finished++;
    pthread_cond_broadcast(&job->finished_one);
}

static int join(struct dt_job *job, struct dt_error *err)
{
    int rank, size;
    DT_TRY(job->transport->open(&job->state, &job->how, &rank, &size, err));
    new_world(job, rank, size);
    return 0;
}

void dt_job_begin_wait(struct dt_job *job)
{
    job->waiting++;
    job->waiting_since = dt_clock_now();
    job->waited -= job->waiting_since;
    pthread_cond_signal(&job->submitted_one); /* ends a pause of the communication thread */
}

void dt_job_end_wait(struct dt_job *job)
{
    job->waiting--;
    job->waited += dt_clock_now();
}

static bool is_idle(const struct dt_job *job)
{
    return job->finished == job->submitted && job->posted == NULL && job->in_flight == NULL;
}

static void check_links(struct dt_job *job)
{
    struct dt_error err;
    int rc = dt_links_watch(job, &err);
    if (rc < 0) {
        dt_job_fail(job, rc, &err);
        pthread_cond_broadcast(&job->finished_one);
    }
}

static void sleep_until_work(struct dt_job *job)
{
    while (is_idle(job) && !job->closing) {
        const struct timespec end = dt_timespec(dt_clock_now() + DT_WATCH_SECONDS);
        if (!dt_links_busy(job))
            pthread_cond_wait(&job->submitted_one, &job->lock);
        else
            pthread_cond_timedwait(&job->submitted_one, &job->lock, &end);
        check_links(job);
    }
}

static uint64_t moved_bytes(const struct dt_job *job)
{
    uint64_t bytes = 0;
    for (const struct dt_message *m = job->in_flight; m; m = m->next)
        bytes += dt_transfer_moved(&m->op, &m->transfer);
    return bytes;
}

bool dt_job_advance_messages(struct dt_job *job)
{
    struct dt_error err;
    bool completed, begun = job->posted != NULL;
    const uint64_t before = moved_bytes(job);
    int rc = dt_messages_advance(job, &completed, &err);
    if (rc < 0)
        dt_job_fail(job, rc, &err);
    check_links(job);
    if (rc < 0 || completed)
        pthread_cond_broadcast(&job->finished_one);
    return begun || completed || moved_bytes(job) != before;
}

/* With the lock, which a pause releases. since: when a message last started, moved or completed. A
 * long one moves in pieces, as many bytes as the kernel buffers: pauses between them are short. */
static void advance_messages(struct dt_job *job, double *since)
{
    if (dt_job_advance_messages(job))
        *since = dt_clock_now();
    if (job->finished == job->submitted && !is_idle(job))
        dt_job_pause(job, *since);
}

static void free_job(struct dt_job *job)
{
    for (struct dt_comm *c = job->groups, *before; c; c = before) {
        before = c->made_before;
        free(c->members);
        free(c);
    }
    free(job->where);
    free(job->lists.memory);
    free(job->staging.memory);
    free(job->linked_lists.memory);
    dt_messages_release(job);
    pthread_mutex_destroy(&job->lock);
    pthread_cond_destroy(&job->submitted_one);
    pthread_cond_destroy(&job->finished_one);
    free(job);
}

static int run_recorded(const struct dt_operation *op, struct dt_error *err)
{
    dt_time_spans_of_thread = op->spans;
    double begin = dt_time_spans_begin();
    int rc = op->run(op, err);
    dt_time_spans_end_work(DT_TIME_LANE_TRANSFER, op->name, begin, 0, (double)op->total);
    dt_time_spans_of_thread = NULL;
    return rc;
}

/* The transport is opened, used and closed on this thread alone. */
static void *serve(void *argument)
{
    struct dt_job *job = argument;
    struct dt_error err;
    int rc = join(job, &err);
    double since = 0;
    bool joined = rc == 0;
    pthread_mutex_lock(&job->lock);
    if (!joined) {
        job->failed = rc;
        job->error = err;
    }
    job->opened = true;
    pthread_cond_broadcast(&job->finished_one);
    while (joined) {
        sleep_until_work(job);
        if (is_idle(job))
            break;
        advance_messages(job, &since);
        /* Messages go first: the peer may need one before it calls the operation. */
        if (job->finished == job->submitted || job->posted)
            continue;
        const struct dt_operation *op = &job->queue[job->finished % DT_QUEUE];
        int failed = job->failed;
        pthread_mutex_unlock(&job->lock);
        rc = failed ? failed : run_recorded(op, &err);
        pthread_mutex_lock(&job->lock);
        finish(job, rc, &err);
    }
    pthread_mutex_unlock(&job->lock);
    /* After a failure closing MPI could block: other ranks may wait for messages that this rank
     * never sends. The end of the process then closes the transport. */
    if (joined && (job->failed == 0 || job->transport->bounded))
        job->transport->close(job->state);
    if (job->abandoned)
        free_job(job);
    return NULL;
}

static void *keep(struct dt_scratch *scratch, size_t bytes)
{
    if (scratch->bytes < bytes) {
        free(scratch->memory);
        *scratch = (struct dt_scratch){dt_alloc(1, bytes), bytes};
    }
    return scratch->memory;
}

void *dt_operation_lists(const struct dt_operation *op, size_t bytes)
{
    struct dt_job *job = op->comm->job;
    return keep(op->comm->is_on_device ? &job->linked_lists : &job->lists, bytes);
}

/* On linked devices: in the buffer of dt_comm_give_scratch, which has the same size on all ranks of
 * a reduction; a single rank needs none. */
int dt_operation_staging(const struct dt_operation *op, size_t pieces, size_t *chunk,
                         float **staging, struct dt_error *err)
{
    struct dt_job *job = op->comm->job;
    const struct dt_scratch *scratch = &job->linked_staging;
    size_t room = scratch->bytes / sizeof **staging / pieces;
    bool on_device = op->comm->is_on_device && op->comm->size > 1;
    *chunk = !on_device ? REDUCE_CHUNK : room < DT_LINK_CHUNK ? room : DT_LINK_CHUNK;
    *staging =
        on_device ? scratch->memory : keep(&job->staging, pieces * *chunk * sizeof **staging);
    return *chunk > 0 ? 0 : dt_fail(err, DT_ENOMEM, "no device memory to reduce in");
}

dt_comm_request dt_comm_submit(struct dt_comm *comm, struct dt_operation op)
{
    struct dt_job *job = comm->job;
    struct dt_error err;
    if (comm->is_on_device) {
        assert(op.channel == comm->channel);
        return dt_link_submit(comm, op);
    }
    pthread_mutex_lock(&job->lock);
    while (job->submitted - job->finished == DT_QUEUE)
        pthread_cond_wait(&job->finished_one, &job->lock);
    op.comm = comm;
    op.spans = dt_time_spans_of_thread;
    op.number = comm->number++;
    dt_comm_request request = job->submitted++;
    job->queue[request % DT_QUEUE] = op;
    if (job->transport == NULL)
        finish(job, op.run(&op, &err), &err);
    pthread_cond_signal(&job->submitted_one);
    pthread_mutex_unlock(&job->lock);
    return request;
}

int dt_comm_wait(struct dt_comm *comm, dt_comm_request request, struct dt_error *err)
{
    struct dt_job *job = comm->job;
    if (comm->is_on_device)
        return dt_link_wait(comm, comm->channel, request, err);
    pthread_mutex_lock(&job->lock);
    if (job->finished <= request) {
        double begin = dt_time_spans_begin();
        dt_job_begin_wait(job);
        while (job->finished <= request)
            pthread_cond_wait(&job->finished_one, &job->lock);
        dt_job_end_wait(job);
        dt_time_spans_end(DT_TIME_LANE_OPERATION, "wait", -1, begin);
    }
    int rc = job->failed;
    if (rc < 0)
        *err = job->error;
    pthread_mutex_unlock(&job->lock);
    return rc;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static struct dt_job *new_job(const struct dt_transport *transport, const struct dt_opening *how)
{
    struct dt_job *job = dt_alloc(1, sizeof *job);
    job->transport = transport;
    job->most = DT_TRANSFER_MOST;
    job->suspect = -1;
    if (transport) {
        job->how = *how;
        job->patience = how->patience;
        job->how.where = job->where = how->where ? dt_strdup(how->where) : NULL;
    }
    pthread_mutex_init(&job->lock, NULL);
    dt_clock_init_condition(&job->submitted_one);
    dt_clock_init_condition(&job->finished_one);
    return job;
}

bool dt_comm_launched_first(void)
{
    const char *rank = dt_launch_rank();
    return rank == NULL || strcmp(rank, "0") == 0;
}

#define LOOK_S 0.05 /* interval of checks for a signal */

/* Whether opening may go on. A transport that blocks in open cannot be interrupted; a bounded one
 * checks timeout and stop itself. */
static bool may_open(const struct dt_job *job, double until)
{
    const struct dt_opening *how = &job->how;
    return job->transport->bounded || (dt_clock_now() < until && !(how->stop && *how->stop));
}

/* Leaves a blocked open to the communication thread. Call it with the lock. */
static int abandon(struct dt_job *job, struct dt_error *err)
{
    bool stopped = job->how.stop && *job->how.stop;
    int rc = stopped ? dt_fail(err, DT_ESTOP, "told to stop before ranks had met")
                     : dt_fail(err, DT_ESTALLED,
                               "ranks have not met within %.0f s: one has not started, or hangs",
                               job->patience);
    dt_job_fail(job, rc, err);
    job->abandoned = job->closing = true;
    pthread_detach(job->thread);
    return rc;
}

static int await_opening(struct dt_job *job, struct dt_error *err)
{
    const double until = dt_clock_now() + job->patience;
    int rc = 0;
    pthread_mutex_lock(&job->lock);
    while (!job->opened && may_open(job, until)) {
        const struct timespec next = dt_timespec(dt_clock_now() + LOOK_S);
        pthread_cond_timedwait(&job->finished_one, &job->lock, &next);
    }
    if (!job->opened)
        rc = abandon(job, err);
    pthread_mutex_unlock(&job->lock);
    return rc;
}

int dt_comm_open_on(struct dt_comm **world, const struct dt_transport *transport,
                    const struct dt_opening *how, struct dt_error *err)
{
    struct dt_job *job = new_job(transport, how);
    *world = NULL;
    if (pthread_create(&job->thread, NULL, serve, job) != 0) {
        free_job(job);
        return dt_fail(err, DT_ENOMEM, "cannot start the communication thread");
    }
    DT_TRY(await_opening(job, err));
    if (job->failed < 0) {
        int rc = job->failed;
        *err = job->error;
        pthread_join(job->thread, NULL);
        free_job(job);
        return rc;
    }
    *world = job->groups;
    return 0;
}

static struct dt_comm *open_alone(void)
{
    struct dt_job *job = new_job(NULL, NULL);
    new_world(job, 0, 1);
    return job->groups;
}

struct dt_comm *dt_comm_imagine(int size, int rank, bool linked)
{
    struct dt_comm *comm = dt_alloc(1, sizeof *comm);
    comm->size = size;
    comm->rank = rank;
    comm->is_on_device = linked;
    return comm;
}

static int load(const char *name, const struct dt_transport **transport, struct dt_error *err)
{
    DT_PLUGIN(kind, transport, "transport", DT_TRANSPORT_ABI, "");
    return dt_plugin_load(&kind, name, (const void **)transport, err);
}

#define MPI_REMEDY "start ranks with mpirun, or srun --mpi=pmix"

static int open_plugin(struct dt_comm **world, const char *name, const struct dt_opening *how,
                       struct dt_error *err)
{
    const struct dt_transport *transport = NULL;
    if (how && how->encrypt)
        return dt_fail(
            err, DT_EINVALID,
            "distributed.encrypt is for ranks that meet without MPI: messages over %s are "
            "not encrypted",
            name);
    DT_TRY(load(name, &transport, err));
    DT_TRY(dt_comm_open_on(world, transport, how, err));
    int rc = dt_launch_check_joined(dt_comm_size(*world), err);
    if (rc < 0) {
        dt_comm_close(*world);
        *world = NULL;
    }
    return rc;
}

/* In this thread (crypto.h). A rank alone needs none. */
static int load_crypto(struct dt_error *err)
{
    const struct dt_crypto *loaded;
    struct dt_launch launch;
    struct dt_error ignored; /* the transport reports it */
    bool alone = dt_launch_find(&launch, &ignored) < 0 || launch.size == 1;
    return alone ? 0 : dt_crypto_load(&loaded, err);
}

int dt_comm_open(struct dt_comm **world, const char *name, const struct dt_opening *how,
                 struct dt_error *err)
{
    const bool told = strcmp(name, "self") == 0, launched = dt_launch_rank() != NULL;
    *world = NULL;
    const bool chosen = strcmp(name, "auto") == 0 || strcmp(name, "nccl") == 0;
    if (strcmp(name, "tcp") == 0 || (chosen && dt_meeting_place_is_announced())) {
        DT_TRY(load_crypto(err));
        return dt_comm_open_on(world, &dt_tcp_transport, how, err);
    }
    if (!told && !launched)
        DT_TRY(dt_launch_check_alone(how && how->remedy ? how->remedy : MPI_REMEDY, err));
    if (!told)
        DT_TRY(dt_launch_check_numbers(err));
    if (chosen)
        name = launched ? "mpi" : "self";
    if (strcmp(name, "self") != 0)
        return open_plugin(world, name, how, err);
    *world = open_alone();
    return 0;
}

void dt_comm_close(struct dt_comm *world)
{
    if (world == NULL)
        return;
    struct dt_job *job = world->job;
    if (job == NULL) { /* imagined */
        free(world);
        return;
    }
    assert(world->made_before == NULL);
    pthread_mutex_lock(&job->lock);
    job->closing = true;
    pthread_cond_signal(&job->submitted_one);
    pthread_mutex_unlock(&job->lock);
    if (job->transport)
        pthread_join(job->thread, NULL);
    free_job(job);
}

void dt_comm_abort(struct dt_comm *world, int status)
{
    if (world && world->job->transport)
        world->job->transport->abort(world->job->state, status);
}

int dt_comm_fail(struct dt_comm *world, const struct dt_error *err)
{
    struct dt_error ignored;
    if (world->rank == 0)
        dt_program_report(err);
    bool printed = err->agreed && dt_comm_barrier(world, &ignored) == 0;
    if (!printed && world->rank != 0) {
        nanosleep(&(struct timespec){DT_COMM_FIRST_RANK_REPORTS, 0}, NULL);
        dt_program_warn("rank %d: %s", world->rank, err->text);
    }
    dt_comm_abort(world, 1);
    return 1;
}

bool dt_comm_has_failed(struct dt_comm *world, int *rank)
{
    struct dt_job *job = world->job;
    pthread_mutex_lock(&job->lock);
    bool failed = job->failed < 0;
    *rank = job->suspect;
    pthread_mutex_unlock(&job->lock);
    return failed;
}

int dt_comm_rank(const struct dt_comm *comm)
{
    return comm->rank;
}

int dt_comm_size(const struct dt_comm *comm)
{
    return comm->size;
}

double dt_comm_waited(const struct dt_comm *comm)
{
    return comm->job->waited;
}

uint64_t dt_comm_bytes_sent(const struct dt_comm *comm)
{
    return comm->job->bytes_sent;
}
