/* SPDX-License-Identifier: MIT */
#include "device/cuda/host/links.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "device/cuda/host/nccl.h"

#define REQUESTS 256   /* events are reused: older requests wait for the newest of their event */
#define PAUSE_NS 20000 /* polling interval for asynchronous NCCL calls */

/* Most blocks (CTAs) of a channel between two ranks. The kernels of all channels must be
 * resident together, since each waits for its peer: a channel that does not fit would wait for
 * one that waits for it (deadlock). */
#define LANE_BLOCKS 8

struct lane {
    ncclComm_t comm; /* NULL: none yet, or aborted */
    int rank, size;
    cudaStream_t stream;
    cudaEvent_t ended[REQUESTS];
    uint64_t requests;
};

/* Communicators are non-blocking, so that waiting for a call can have a timeout. */
struct dt_cuda_links {
    struct dt_nccl nccl;
    pthread_mutex_t lock; /* held by calls with a comm */
    struct lane lanes[DT_LINK_LANES];
    bool opened;       /* open was called, successful or not */
    cudaEvent_t ready; /* recorded in the stream of the ops */
    void *greeting;    /* a byte per channel */
    double patience;
};

static struct dt_cuda_links *links_of(struct dt_device *dev)
{
    return dt_cuda_of(dev)->links;
}

/* --- the library ------------------------------------------------------------------------------ */

/* Copies the bytes of the pointer, since ISO C does not define a cast of void * to a function
 * pointer. */
static int find_functions(struct dt_nccl *nccl, void *library, struct dt_error *err)
{
#define NAME(result, name, parameters) "nccl" #name,
    static const char *const names[] = {DT_NCCL_FUNCTIONS(NAME)};
#undef NAME
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *function = dlsym(library, names[i]);
        if (function == NULL)
            return dt_fail(err, DT_EMISSING, "%s lacks %s: NCCL 2.17 or later is required",
                           DT_NCCL_LIBRARY, names[i]);
        memcpy((char *)nccl + i * sizeof function, &function, sizeof function);
    }
    return 0;
}

static int load(struct dt_cuda_links *l, struct dt_error *err)
{
    void *library = dlopen(DT_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return dt_fail(err, DT_EMISSING, "NCCL cannot be loaded: %s", dlerror());
    return find_functions(&l->nccl, library, err);
}

static int find(struct dt_device *dev, char name[DT_LINK_NAME], char device[DT_LINK_NAME],
                struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(dev);
    int version = 0;
    if (cuda->links == NULL && (cuda->links = calloc(1, sizeof *cuda->links)) == NULL)
        return dt_fail(err, DT_ENOMEM, "no memory for NCCL channels");
    DT_TRY(load(cuda->links, err));
    cuda->links->nccl.GetVersion(&version);
    snprintf(name, DT_LINK_NAME, "NCCL %d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    if (version < (int)DT_NCCL_CONFIG_VERSION)
        return dt_fail(err, DT_EMISSING, "found %s: 2.17 or later is required", name);
    if (cudaDeviceGetPCIBusId(device, DT_LINK_NAME, cuda->device) != cudaSuccess)
        return dt_fail(err, DT_EMISSING, "the PCI bus ID of the GPU cannot be read");
    return 0;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* Requires the lock; lane: NULL for calls without a communicator. */
static int check(struct dt_cuda_links *l, const struct lane *lane, ncclResult_t result,
                 const char *what, struct dt_error *err)
{
    const char *more = lane && lane->comm ? l->nccl.GetLastError(lane->comm) : NULL;
    if (result == ncclSuccess || result == ncclInProgress)
        return 0;
    return dt_fail(err, DT_EIO, "NCCL: %s: %s%s%s", what, l->nccl.GetErrorString(result),
                   more && *more ? ": " : "", more ? more : "");
}

/* The asynchronous result of a channel's last call and of its work in the stream. */
static ncclResult_t ask(struct dt_cuda_links *l, struct lane *lane, const char *what, int *rc,
                        struct dt_error *err)
{
    ncclResult_t result = ncclInternalError;
    pthread_mutex_lock(&l->lock);
    if (lane->comm == NULL)
        *rc = dt_fail(err, DT_EIO, "NCCL: %s: the communicator was aborted", what);
    else if ((*rc = check(l, lane, l->nccl.CommGetAsyncError(lane->comm, &result), what, err)) == 0)
        *rc = check(l, lane, result, what, err);
    pthread_mutex_unlock(&l->lock);
    return result;
}

/* Polls until the call is complete; DT_ESTALLED after the timeout. */
static int await(struct dt_cuda_links *l, struct lane *lane, const char *what, struct dt_error *err)
{
    const struct timespec pause = {0, PAUSE_NS};
    double since = dt_clock_now();
    int rc;
    while (ask(l, lane, what, &rc, err) == ncclInProgress && rc == 0) {
        if (dt_clock_now() - since > l->patience)
            return dt_fail(err, DT_ESTALLED,
                           "NCCL: %s: other ranks have not come to it for %.0f seconds", what,
                           l->patience);
        nanosleep(&pause, NULL);
    }
    return rc;
}

static int make_id(struct dt_device *dev, struct dt_link_id *id, struct dt_error *err)
{
    struct dt_cuda_links *l = links_of(dev);
    ncclUniqueId unique;
    DT_TRY(check(l, NULL, l->nccl.GetUniqueId(&unique), "an id for the ranks", err));
    memcpy(id->bytes, unique.internal, sizeof id->bytes);
    return 0;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static int open_stream(struct lane *lane, struct dt_error *err)
{
    int least, greatest; /* highest priority: messages need not wait for blocks of ops */
    cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithPriority(&lane->stream, cudaStreamNonBlocking, greatest);
    for (int i = 0; i < REQUESTS && error == cudaSuccess; i++)
        error = cudaEventCreateWithFlags(&lane->ended[i], cudaEventDisableTiming);
    if (error == cudaSuccess)
        return 0;
    return dt_fail(err, DT_EIO, "cannot create a stream for NCCL: %s", cudaGetErrorString(error));
}

static void close_stream(struct lane *lane)
{
    for (int i = 0; i < REQUESTS; i++)
        if (lane->ended[i])
            cudaEventDestroy(lane->ended[i]);
    if (lane->stream)
        cudaStreamDestroy(lane->stream);
}

static void abort_links(struct dt_device *dev)
{
    struct dt_cuda_links *l = links_of(dev);
    cudaSetDevice(dt_cuda_of(dev)->device);
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < DT_LINK_LANES; i++) {
        if (l->lanes[i].comm)
            l->nccl.CommAbort(l->lanes[i].comm);
        l->lanes[i].comm = NULL;
    }
    pthread_mutex_unlock(&l->lock);
}

/* Finalizes all channels before it waits for any: the other ranks leave in any order. */
static int leave(struct dt_cuda_links *l, struct dt_error *err)
{
    for (int i = 0; i < DT_LINK_LANES; i++)
        if (l->lanes[i].comm) {
            cudaStreamSynchronize(l->lanes[i].stream);
            l->nccl.CommFinalize(l->lanes[i].comm);
        }
    for (int i = 0; i < DT_LINK_LANES; i++) {
        if (l->lanes[i].comm == NULL)
            continue;
        DT_TRY(await(l, &l->lanes[i], "leaving", err));
        l->nccl.CommDestroy(l->lanes[i].comm);
        l->lanes[i].comm = NULL;
    }
    return 0;
}

static void close_links(struct dt_device *dev)
{
    struct dt_cuda_links *l = links_of(dev);
    struct dt_error ignored;
    if (leave(l, &ignored) < 0)
        abort_links(dev);
    for (int i = 0; i < DT_LINK_LANES; i++)
        close_stream(&l->lanes[i]);
    if (l->ready)
        cudaEventDestroy(l->ready);
    cudaFree(l->greeting);
    pthread_mutex_destroy(&l->lock);
    free(l);
    dt_cuda_of(dev)->links = NULL;
}

/* Opens what all channels share. */
static int open_common(struct dt_cuda_links *l, double patience, struct dt_error *err)
{
    if (l->opened)
        return 0;
    pthread_mutex_init(&l->lock, NULL);
    l->patience = patience;
    l->opened = true;
    if (cudaEventCreateWithFlags(&l->ready, cudaEventDisableTiming) == cudaSuccess &&
        cudaMalloc(&l->greeting, DT_LINK_LANES) == cudaSuccess)
        return 0;
    return dt_fail(err, DT_EIO, "the GPU cannot allocate memory or events for NCCL");
}

/* Channels of two ranks carry messages in one direction. */
static bool is_of_two(enum dt_link_channel lane)
{
    return lane != DT_LINK_ALL && lane != DT_LINK_DATA;
}

/* Starts to initialize the communicator of a channel. */
static int enter(struct dt_cuda_links *l, const struct dt_link_end *end, struct dt_error *err)
{
    struct lane *lane = &l->lanes[end->lane];
    ncclConfig_t config = {.size = sizeof config,
                           .magic = DT_NCCL_CONFIG_MAGIC,
                           .version = DT_NCCL_CONFIG_VERSION,
                           .blocking = 0,
                           .cgaClusterSize = DT_NCCL_UNDEFINED,
                           .minCTAs = DT_NCCL_UNDEFINED,
                           .maxCTAs = is_of_two(end->lane) ? LANE_BLOCKS : DT_NCCL_UNDEFINED};
    ncclUniqueId unique;
    memcpy(unique.internal, end->id.bytes, sizeof unique.internal);
    lane->rank = end->rank;
    lane->size = end->size;
    DT_TRY(open_stream(lane, err));
    return check(l, lane,
                 l->nccl.CommInitRankConfig(&lane->comm, end->size, unique, end->rank, &config),
                 "meeting the other ranks", err);
}

/* Requires the lock. */
static ncclResult_t put_transfer(struct dt_cuda_links *l, const struct lane *lane,
                                 const struct dt_link_transfer *t)
{
    if (t->sends)
        return l->nccl.Send(t->data, t->bytes, ncclUint8, t->peer, lane->comm, lane->stream);
    return l->nccl.Recv(t->data, t->bytes, ncclUint8, t->peer, lane->comm, lane->stream);
}

/* Sends a first message on each channel of two ranks, all at once: NCCL connects two ranks at
 * their first message, and the host waits for that. During forward and backward this could
 * deadlock. */
static int greet(struct dt_cuda_links *l, const struct dt_link_end *ends, int count,
                 struct dt_error *err)
{
    int rc = 0;
    pthread_mutex_lock(&l->lock);
    l->nccl.GroupStart();
    for (int i = 0; i < count && rc == 0; i++) {
        const struct lane *lane = &l->lanes[ends[i].lane];
        const struct dt_link_transfer t = {ends[i].rank == 0, 1 - ends[i].rank,
                                           (char *)l->greeting + ends[i].lane, 1};
        if (is_of_two(ends[i].lane))
            rc = check(l, lane, put_transfer(l, lane, &t), "a first message", err);
    }
    ncclResult_t ended = l->nccl.GroupEnd();
    rc = rc < 0 ? rc : check(l, NULL, ended, "first messages", err);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < count && rc == 0; i++)
        rc = await(l, &l->lanes[ends[i].lane], "first messages", err);
    return rc;
}

static int open_links(struct dt_device *dev, const struct dt_link_end *ends, int count,
                      double patience, struct dt_error *err)
{
    struct dt_cuda_links *l = links_of(dev);
    int rc = open_common(l, patience, err);
    for (int i = 0; i < count && rc == 0; i++)
        rc = enter(l, &ends[i], err);
    for (int i = 0; i < count && rc == 0; i++)
        rc = await(l, &l->lanes[ends[i].lane], "meeting the other ranks", err);
    dt_cuda_note(dev, "links", cudaStreamSynchronize(dt_cuda_flush(dev)));
    rc = rc < 0 ? rc : greet(l, ends, count, err);
    if (rc < 0)
        abort_links(dev);
    return rc;
}

/* --- work ------------------------------------------------------------------------------------- */

static void begin(struct dt_device *dev, enum dt_link_channel lane)
{
    struct dt_cuda_links *l = links_of(dev);
    dt_cuda_note(dev, "links", cudaEventRecord(l->ready, dt_cuda_flush(dev)));
    dt_cuda_note(dev, "links", cudaStreamWaitEvent(l->lanes[lane].stream, l->ready, 0));
}

/* Takes the lock and begins a group of calls. */
static int begin_group(struct dt_cuda_links *l, const struct lane *lane, struct dt_error *err)
{
    pthread_mutex_lock(&l->lock);
    if (lane->comm == NULL)
        return dt_fail(err, DT_EIO, "NCCL: the communicator was aborted");
    return check(l, lane, l->nccl.GroupStart(), "a group", err);
}

/* Ends the group and releases the lock; waits until its work is in the stream. rc: of the calls. */
static int end_group(struct dt_cuda_links *l, struct lane *lane, int rc, const char *what,
                     struct dt_error *err)
{
    ncclResult_t ended = lane->comm ? l->nccl.GroupEnd() : ncclSuccess;
    rc = rc < 0 ? rc : check(l, lane, ended, what, err);
    pthread_mutex_unlock(&l->lock);
    return rc < 0 ? rc : await(l, lane, what, err);
}

static int exchange(struct dt_device *dev, enum dt_link_channel which,
                    const struct dt_link_transfer *transfers, int count, struct dt_error *err)
{
    struct dt_cuda_links *l = links_of(dev);
    struct lane *lane = &l->lanes[which];
    int rc = begin_group(l, lane, err);
    for (int i = 0; i < count && rc == 0; i++)
        rc = check(l, lane, put_transfer(l, lane, &transfers[i]),
                   transfers[i].sends ? "send" : "receive", err);
    return end_group(l, lane, rc, "transfers", err);
}

/* --- collectives of NCCL ---------------------------------------------------------------------- */

static const struct {
    ncclDataType_t type;
    size_t bytes;
    const char *name;
} elements_of[] = {[DT_LINK_BYTES] = {ncclUint8, 1, "all-gather"},
                   [DT_LINK_F32_SUMS] = {ncclFloat32, 4, "reduce-scatter"},
                   [DT_LINK_BF16_SUMS] = {ncclBfloat16, 2, "reduce-scatter"}};

/* Requires the lock, as does put_rest. */
static ncclResult_t put_pieces(struct dt_cuda_links *l, const struct lane *lane,
                               const struct dt_link_collective *c)
{
    const ncclDataType_t type = elements_of[c->elements].type;
    char *own = (char *)c->data + (size_t)lane->rank * c->count * elements_of[c->elements].bytes;
    if (c->elements == DT_LINK_BYTES)
        return l->nccl.AllGather(own, c->data, c->count, type, lane->comm, lane->stream);
    return l->nccl.ReduceScatter(c->data, own, c->count, type, ncclSum, lane->comm, lane->stream);
}

static ncclResult_t put_rest(struct dt_cuda_links *l, const struct lane *lane,
                             const struct dt_link_collective *c)
{
    const ncclDataType_t type = elements_of[c->elements].type;
    char *rest = (char *)c->data + (size_t)lane->size * c->count * elements_of[c->elements].bytes;
    int root = lane->size - 1;
    if (c->elements == DT_LINK_BYTES)
        return l->nccl.Broadcast(rest, rest, c->rest, type, root, lane->comm, lane->stream);
    return l->nccl.Reduce(rest, rest, c->rest, type, ncclSum, root, lane->comm, lane->stream);
}

static int collect(struct dt_device *dev, const struct dt_link_collective *c, struct dt_error *err)
{
    struct dt_cuda_links *l = links_of(dev);
    struct lane *lane = &l->lanes[DT_LINK_DATA];
    const char *name = elements_of[c->elements].name;
    int rc = begin_group(l, lane, err);
    if (rc == 0 && c->count > 0)
        rc = check(l, lane, put_pieces(l, lane, c), name, err);
    if (rc == 0 && c->rest > 0)
        rc = check(l, lane, put_rest(l, lane, c), name, err);
    return end_group(l, lane, rc, name, err);
}

/* --- sums and copies of dt -------------------------------------------------------------------- */

static void add(struct dt_device *dev, float *sum, const float *x, size_t n)
{
    dt_cuda_note(dev, "links",
                 dt_cuda_add_floats(links_of(dev)->lanes[DT_LINK_ALL].stream, sum, x, n));
}

static void copy(struct dt_device *dev, void *to, const void *from, size_t bytes)
{
    dt_cuda_note(dev, "links",
                 cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault,
                                 links_of(dev)->lanes[DT_LINK_ALL].stream));
}

static uint64_t end(struct dt_device *dev, enum dt_link_channel which)
{
    struct lane *lane = &links_of(dev)->lanes[which];
    dt_cuda_note(dev, "links",
                 cudaEventRecord(lane->ended[lane->requests % REQUESTS], lane->stream));
    return lane->requests++;
}

static void join(struct dt_device *dev, enum dt_link_channel which, uint64_t request)
{
    const struct lane *lane = &links_of(dev)->lanes[which];
    dt_cuda_note(dev, "links",
                 cudaStreamWaitEvent(dt_cuda_flush(dev), lane->ended[request % REQUESTS], 0));
}

static int test(struct dt_device *dev, enum dt_link_channel which, uint64_t request,
                struct dt_error *err)
{
    struct dt_cuda_links *l = links_of(dev);
    struct lane *lane = &l->lanes[which];
    int rc;
    cudaSetDevice(dt_cuda_of(dev)->device);
    (void)ask(l, lane, "messages", &rc, err);
    cudaError_t error = rc < 0 ? cudaSuccess : cudaEventQuery(lane->ended[request % REQUESTS]);
    if (error == cudaErrorNotReady)
        return 0;
    if (rc == 0 && error != cudaSuccess)
        rc = dt_fail(err, DT_EIO, "the GPU failed (links): %s", cudaGetErrorString(error));
    return rc < 0 ? rc : 1;
}

const struct dt_links dt_cuda_links = {.find = find,
                                       .make_id = make_id,
                                       .open = open_links,
                                       .close = close_links,
                                       .begin = begin,
                                       .exchange = exchange,
                                       .collect = collect,
                                       .add = add,
                                       .copy = copy,
                                       .end = end,
                                       .join = join,
                                       .test = test,
                                       .abort = abort_links};
