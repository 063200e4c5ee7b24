/* SPDX-License-Identifier: MIT */
/* Operations on memory of linked devices. The thread that calls ops enqueues them at once; the
 * communication thread is their watchdog. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "comm/comm-internal.h"
#include "hash/hash.h"

static const struct dt_links *links_of(const struct dt_job *job)
{
    return job->linked->engine->links;
}

/* --- linking ---------------------------------------------------------------------------------- */

/* What a rank reports about its device. */
struct device_report {
    uint64_t machine;
    char links[DT_LINK_NAME], device[DT_LINK_NAME];
    struct dt_error missing;
};

static void describe(struct device_report *report, struct dt_device *dev)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    report->machine = dt_hash(host, strlen(host));
    if (dev->engine->links == NULL)
        (void)dt_fail(&report->missing, DT_EMISSING, "device '%s' does not support NCCL",
                      dev->engine->name);
    else if (dev->engine->links->find(dev, report->links, report->device, &report->missing) == 0)
        report->missing.code = DT_OK;
}

/* Fails if a rank cannot be linked, or if two ranks have the same device. */
static int check(const struct device_report *reports, int size, struct dt_error *err)
{
    for (int r = 0; r < size; r++)
        if (reports[r].missing.code < 0)
            return dt_fail(err, DT_EMISSING, "rank %d: %s", r, reports[r].missing.text);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < r; i++)
            if (reports[i].machine == reports[r].machine &&
                strcmp(reports[i].device, reports[r].device) == 0)
                return dt_fail(err, DT_EMISSING, "ranks %d and %d have one GPU, %s", i, r,
                               reports[r].device);
    return 0;
}

void dt_link_group(struct dt_comm *c)
{
    c->on_device = dt_job_new_group(c->job, c->name, c->members, c->size, c->rank);
    c->on_device->is_on_device = true;
    c->on_device->on_device = c->on_device;
}

static int open_links(struct dt_comm *world, struct dt_device *dev, struct dt_error *err)
{
    const struct dt_links *links = dev->engine->links;
    struct dt_link_end all = {.lane = DT_LINK_ALL, .rank = world->rank, .size = world->size};
    int rc = world->rank == 0 ? links->make_id(dev, &all.id, err) : 0;
    DT_TRY(dt_comm_agree(world, rc, err));
    DT_TRY(dt_comm_wait(world, dt_comm_broadcast(world, &all.id, sizeof all.id, 0), err));
    rc = links->open(dev, &all, 1, world->job->patience, err);
    world->job->linked = dev; /* dt_comm_unlink closes it, also after a failure */
    if (rc == 0)
        dt_link_group(world);
    return dt_comm_agree(world, rc, err);
}

/* Identifiers of the channels on which a rank sends. */
struct channel_ids {
    struct dt_link_id to_next, to_previous;
};

static int make_channel_ids(struct dt_comm *c, struct channel_ids *all, struct dt_error *err)
{
    struct dt_device *dev = c->job->linked;
    struct channel_ids *own = &all[c->rank];
    int rc = links_of(c->job)->make_id(dev, &own->to_next, err);
    rc = rc < 0 ? rc : links_of(c->job)->make_id(dev, &own->to_previous, err);
    DT_TRY(dt_comm_agree(c, rc, err));
    return dt_comm_share(c, all, sizeof *all, err);
}

int dt_comm_open_channels(struct dt_comm *c, bool ring, struct dt_error *err)
{
    if (c->on_device == NULL || c->size == 1)
        return 0;
    struct channel_ids *all = dt_alloc((size_t)c->size, sizeof *all);
    const struct channel_ids *own = &all[c->rank];
    const struct channel_ids *next = &all[(c->rank + 1) % c->size];
    const struct channel_ids *before = &all[(c->rank + c->size - 1) % c->size];
    struct dt_link_end ends[4];
    int count = 0, rc = make_channel_ids(c, all, err);
    if (ring || c->rank < c->size - 1) {
        ends[count++] = (struct dt_link_end){DT_LINK_TO_NEXT, own->to_next, 0, 2};
        ends[count++] = (struct dt_link_end){DT_LINK_FROM_NEXT, next->to_previous, 1, 2};
    }
    if (ring || c->rank > 0) {
        ends[count++] = (struct dt_link_end){DT_LINK_TO_BEFORE, own->to_previous, 0, 2};
        ends[count++] = (struct dt_link_end){DT_LINK_FROM_BEFORE, before->to_next, 1, 2};
    }
    if (rc == 0)
        rc = links_of(c->job)->open(c->job->linked, ends, count, c->job->patience, err);
    free(all);
    return rc;
}

int dt_comm_open_collectives(struct dt_comm *c, struct dt_error *err)
{
    struct dt_link_end end = {.lane = DT_LINK_DATA, .rank = c->rank, .size = c->size};
    if (c->on_device == NULL || c->size == 1)
        return 0;
    struct dt_device *dev = c->job->linked;
    const struct dt_links *links = links_of(c->job);
    int rc = 0;
    if (links->collect == NULL)
        rc = dt_fail(err, DT_EINVALID, "device '%s' has no collectives of a library",
                     dev->engine->name);
    else if (c->rank == 0)
        rc = links->make_id(dev, &end.id, err);
    DT_TRY(dt_comm_agree(c, rc, err));
    DT_TRY(dt_comm_wait(c, dt_comm_broadcast(c, &end.id, sizeof end.id, 0), err));
    c->on_device->channel = DT_LINK_DATA;
    return links->open(dev, &end, 1, c->job->patience, err);
}

int dt_comm_link(struct dt_comm *world, struct dt_device *dev, bool required, struct dt_error *err)
{
    struct dt_job *job = world->job;
    if (world->size == 1)
        return 0;
    if (job->how.encrypt) {
        snprintf(job->links_name, sizeof job->links_name,
                 "distributed.encrypt: messages over NCCL are not encrypted");
        return required ? dt_fail(err, DT_EINVALID, "%s", job->links_name) : 0;
    }
    struct device_report *reports = dt_alloc((size_t)world->size, sizeof *reports);
    describe(&reports[world->rank], dev);
    int rc = dt_comm_share(world, reports, sizeof *reports, err);
    int missing = rc < 0 ? rc : check(reports, world->size, err);
    snprintf(job->links_name, sizeof job->links_name, "%s",
             missing < 0 ? err->text : reports[world->rank].links);
    free(reports);
    if (rc == 0 && missing < 0)
        err->agreed = true;
    if (rc < 0 || (missing < 0 && required))
        return missing;
    return missing < 0 ? 0 : open_links(world, dev, err);
}

void dt_comm_unlink(struct dt_comm *world)
{
    if (world == NULL || world->job->linked == NULL)
        return;
    struct dt_job *job = world->job;
    struct dt_device *dev = job->linked;
    pthread_mutex_lock(&job->lock);
    dt_links_forget(job);
    job->linked = NULL;
    pthread_mutex_unlock(&job->lock);
    dev->engine->links->close(dev);
}

bool dt_comm_is_linked(const struct dt_comm *world)
{
    return world->on_device != NULL;
}

const char *dt_comm_links(const struct dt_comm *world)
{
    return *world->job->links_name ? world->job->links_name : NULL;
}

struct dt_comm *dt_comm_on_device(struct dt_comm *c)
{
    return c && c->on_device ? c->on_device : c;
}

void dt_comm_give_scratch(struct dt_comm *comm, void *memory, size_t bytes)
{
    if (comm->is_on_device)
        comm->job->linked_staging = (struct dt_scratch){memory, bytes};
}

bool dt_comm_is_on_device(const struct dt_comm *c)
{
    return c->is_on_device;
}

int dt_comm_finish_ops(const struct dt_comm *c, struct dt_device *dev, struct dt_error *err)
{
    return c->is_on_device ? 0 : dev->ops->synchronize(dev, err);
}

/* --- operations ------------------------------------------------------------------------------- */

int dt_link_exchange(const struct dt_operation *op, const struct dt_transfer *transfers, int count,
                     struct dt_error *err)
{
    struct dt_job *job = op->comm->job;
    struct dt_link_transfer *list = dt_alloc((size_t)count, sizeof *list);
    int moving = 0;
    for (int i = 0; i < count; i++) {
        const struct dt_transfer *t = &transfers[i];
        if (t->bytes == 0)
            continue;
        /* On a channel of two ranks, rank 0 sends. */
        int peer = op->channel == DT_LINK_ALL ? op->comm->members[t->peer] : t->sends;
        list[moving++] = (struct dt_link_transfer){t->sends, peer, t->data, t->bytes};
        job->bytes_sent += t->sends ? t->bytes : 0;
    }
    int rc = moving > 0 ? links_of(job)->exchange(job->linked, op->channel, list, moving, err) : 0;
    free(list);
    return rc;
}

/* The pieces of op->offsets as the library takes them: of one size, but that the last one may be
 * longer. */
static struct dt_link_collective pieces_of(const struct dt_operation *op)
{
    const size_t *at = op->offsets, last = (size_t)op->comm->size - 1;
    size_t count = at[1] - at[0];
    for (size_t r = 0; r < last; r++)
        assert(at[r + 1] - at[r] == count && at[last + 1] - at[last] >= count);
    return (struct dt_link_collective){.elements = (enum dt_link_elements)op->peer,
                                       .data = op->data,
                                       .count = count,
                                       .rest = at[last + 1] - at[last] - count};
}

/* What a rank sends at least: of an all-gather its piece to each other rank, of a sum the others'
 * pieces. */
static size_t least_sent(const struct dt_operation *op)
{
    static const size_t bytes[] = {
        [DT_LINK_BYTES] = 1, [DT_LINK_F32_SUMS] = 4, [DT_LINK_BF16_SUMS] = 2};
    const struct dt_comm *c = op->comm;
    size_t own = op->offsets[c->rank + 1] - op->offsets[c->rank];
    if (op->peer == DT_LINK_BYTES)
        return own * ((size_t)c->size - 1);
    return (op->offsets[c->size] - own) * bytes[op->peer];
}

int dt_link_collect(const struct dt_operation *op, struct dt_error *err)
{
    struct dt_job *job = op->comm->job;
    const struct dt_link_collective pieces = pieces_of(op);
    job->bytes_sent += least_sent(op);
    return links_of(job)->collect(job->linked, &pieces, err);
}

static int name_operation(const struct dt_operation *op, struct dt_error *err)
{
    char name[DT_OPERATION_NAME];
    return dt_fail_context(err, "%s", dt_name_operation(op, name));
}

bool dt_links_busy(const struct dt_job *job)
{
    for (int i = 0; i < DT_LINK_LANES; i++)
        if (job->watched[i].first < job->watched[i].end)
            return true;
    return false;
}

void dt_links_forget(struct dt_job *job)
{
    for (int i = 0; i < DT_LINK_LANES; i++)
        job->watched[i].first = job->watched[i].end;
}

/* Adds an operation for the watchdog. If the ring buffer is full, it replaces the newest one:
 * operations of a channel complete in order. Call it with the lock. */
static void watch(struct dt_job *job, const struct dt_operation *op, uint64_t request)
{
    struct dt_watched *w = &job->watched[op->channel];
    if (w->first == w->end)
        w->since = dt_clock_now();
    if (w->end - w->first == DT_QUEUE)
        w->end--;
    w->all[w->end++ % DT_QUEUE] = (struct dt_linked){*op, request};
    pthread_cond_signal(&job->submitted_one);
}

dt_comm_request dt_link_submit(struct dt_comm *comm, struct dt_operation op)
{
    struct dt_job *job = comm->job;
    struct dt_error err;
    op.comm = comm;
    op.number = comm->number++;
    links_of(job)->begin(job->linked, op.channel);
    int rc = op.run(&op, &err);
    dt_comm_request request = links_of(job)->end(job->linked, op.channel);
    if (rc < 0)
        name_operation(&op, &err);
    pthread_mutex_lock(&job->lock);
    if (rc < 0)
        dt_job_fail(job, rc, &err);
    else
        watch(job, &op, request);
    pthread_mutex_unlock(&job->lock);
    return request;
}

int dt_link_wait(struct dt_comm *comm, enum dt_link_channel channel, dt_comm_request request,
                 struct dt_error *err)
{
    struct dt_job *job = comm->job;
    links_of(job)->join(job->linked, channel, request);
    pthread_mutex_lock(&job->lock);
    int rc = job->failed;
    if (rc < 0)
        *err = job->error;
    pthread_mutex_unlock(&job->lock);
    return rc;
}

/* Removes completed operations of a channel; fails if the oldest has timed out. */
static int watch_channel(struct dt_job *job, enum dt_link_channel channel, double now,
                         struct dt_error *err)
{
    struct dt_watched *w = &job->watched[channel];
    while (w->first < w->end) {
        const struct dt_linked *oldest = &w->all[w->first % DT_QUEUE];
        int rc = links_of(job)->test(job->linked, channel, oldest->request, err);
        if (rc == 0 && now - w->since > job->patience)
            rc = dt_fail(err, DT_ESTALLED, "has not ended on the device for %.0f seconds",
                         job->patience);
        if (rc <= 0)
            return rc < 0 ? name_operation(&oldest->op, err) : 0;
        w->first++;
        w->since = now;
    }
    return 0;
}

int dt_links_watch(struct dt_job *job, struct dt_error *err)
{
    double now = dt_clock_now();
    if (now - job->watched_at < DT_WATCH_SECONDS)
        return 0;
    job->watched_at = now;
    for (int i = 0; i < DT_LINK_LANES; i++)
        DT_TRY(watch_channel(job, (enum dt_link_channel)i, now, err));
    return 0;
}
