/* SPDX-License-Identifier: MIT */
#include "device/cuda/links.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/progress.h"
#include "device/cuda/nccl.h"

#define TICKETS  256   /* behind so many others, a ticket stands for the newest of its event */
#define PAUSE_NS 20000 /* between questions whether NCCL has finished a call */

/* Calls of NCCL return before they are over, so that each can be waited for with an end. */
struct dt_cuda_links {
    struct dt_nccl nccl;
    pthread_mutex_t lock; /* of calls that name comm */
    ncclComm_t comm;      /* NULL: none yet, or aborted */
    cudaStream_t stream;
    cudaEvent_t ready; /* what ops had put into their stream */
    cudaEvent_t ended[TICKETS];
    uint64_t tickets;
    void *scratch;
    size_t scratch_bytes;
    double patience;
};

static struct dt_cuda_links *links_of(struct dt_device *dev)
{
    return dt_cuda_of(dev)->links;
}

/* --- the library ------------------------------------------------------------------------------ */

/* Functions are pointers of one size: what dlsym gives is copied as such. */
static int find_functions(struct dt_nccl *nccl, void *library, struct dt_error *err)
{
#define NAME(result, name, parameters) "nccl" #name,
    static const char *const names[] = {DT_NCCL_FUNCTIONS(NAME)};
#undef NAME
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *function = dlsym(library, names[i]);
        if (function == NULL)
            return dt_fail(err, DT_EMISSING, "%s has no %s: NCCL 2.14 or later is needed",
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
        return dt_fail(err, DT_ENOMEM, "no memory for links");
    DT_TRY(load(cuda->links, err));
    cuda->links->nccl.GetVersion(&version);
    snprintf(name, DT_LINK_NAME, "NCCL %d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    if (cudaDeviceGetPCIBusId(device, DT_LINK_NAME, cuda->device) != cudaSuccess)
        return dt_fail(err, DT_EMISSING, "the GPU does not say where it is");
    return 0;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* With the lock. */
static int check(struct dt_cuda_links *l, ncclResult_t result, const char *what,
                 struct dt_error *err)
{
    const char *more = l->comm ? l->nccl.GetLastError(l->comm) : NULL;
    if (result == ncclSuccess || result == ncclInProgress)
        return 0;
    return dt_fail(err, DT_EIO, "NCCL: %s: %s%s%s", what, l->nccl.GetErrorString(result),
                   more && *more ? ": " : "", more ? more : "");
}

/* What has become of the last call, and of what was put into the stream. */
static ncclResult_t ask(struct dt_cuda_links *l, const char *what, int *rc, struct dt_error *err)
{
    ncclResult_t result = ncclInternalError;
    pthread_mutex_lock(&l->lock);
    if (l->comm == NULL)
        *rc = dt_fail(err, DT_EIO, "NCCL: %s: the links were given up", what);
    else if ((*rc = check(l, l->nccl.CommGetAsyncError(l->comm, &result), what, err)) == 0)
        *rc = check(l, result, what, err);
    pthread_mutex_unlock(&l->lock);
    return result;
}

/* Until a call is over. */
static int await(struct dt_cuda_links *l, const char *what, struct dt_error *err)
{
    const struct timespec pause = {0, PAUSE_NS};
    double since = dt_now();
    int rc;
    while (ask(l, what, &rc, err) == ncclInProgress && rc == 0) {
        if (dt_now() - since > l->patience)
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
    DT_TRY(check(l, l->nccl.GetUniqueId(&unique), "an id for the ranks", err));
    memcpy(id->bytes, unique.internal, sizeof id->bytes);
    return 0;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static int open_stream(struct dt_cuda_links *l, struct dt_error *err)
{
    int least, greatest; /* so that messages do not wait until ops leave room */
    cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithPriority(&l->stream, cudaStreamNonBlocking, greatest);
    if (error == cudaSuccess)
        error = cudaEventCreateWithFlags(&l->ready, cudaEventDisableTiming);
    for (int i = 0; i < TICKETS && error == cudaSuccess; i++)
        error = cudaEventCreateWithFlags(&l->ended[i], cudaEventDisableTiming);
    if (error == cudaSuccess)
        return 0;
    return dt_fail(err, DT_EIO, "no stream for links between GPUs: %s", cudaGetErrorString(error));
}

static void close_stream(struct dt_cuda_links *l)
{
    for (int i = 0; i < TICKETS; i++)
        if (l->ended[i])
            cudaEventDestroy(l->ended[i]);
    if (l->ready)
        cudaEventDestroy(l->ready);
    if (l->stream)
        cudaStreamDestroy(l->stream);
    cudaFree(l->scratch);
}

static void abort_links(struct dt_device *dev)
{
    struct dt_cuda_links *l = links_of(dev);
    cudaSetDevice(dt_cuda_of(dev)->device);
    pthread_mutex_lock(&l->lock);
    if (l->comm)
        l->nccl.CommAbort(l->comm);
    l->comm = NULL;
    pthread_mutex_unlock(&l->lock);
}

static void close_links(struct dt_device *dev)
{
    struct dt_cuda_links *l = links_of(dev);
    struct dt_error ignored;
    if (l->comm) {
        cudaStreamSynchronize(l->stream);
        l->nccl.CommFinalize(l->comm);
        if (await(l, "leaving", &ignored) == 0)
            l->nccl.CommDestroy(l->comm);
        else
            abort_links(dev);
    }
    close_stream(l);
    pthread_mutex_destroy(&l->lock);
    free(l);
    dt_cuda_of(dev)->links = NULL;
}

static int open_links(struct dt_device *dev, const struct dt_link_id *id, int rank, int size,
                      double patience, struct dt_error *err)
{
    struct dt_cuda_links *l = links_of(dev);
    ncclConfig_t config = {.size = sizeof config,
                           .magic = DT_NCCL_CONFIG_MAGIC,
                           .version = DT_NCCL_CONFIG_VERSION,
                           .blocking = 0};
    ncclUniqueId unique;
    memcpy(unique.internal, id->bytes, sizeof id->bytes);
    pthread_mutex_init(&l->lock, NULL);
    l->patience = patience;
    int rc = open_stream(l, err);
    if (rc == 0)
        rc = check(l, l->nccl.CommInitRankConfig(&l->comm, size, unique, rank, &config),
                   "meeting the other ranks", err);
    rc = rc < 0 ? rc : await(l, "meeting the other ranks", err);
    if (rc < 0) {
        abort_links(dev);
        close_links(dev);
    }
    return rc;
}

/* --- work ------------------------------------------------------------------------------------- */

static void begin(struct dt_device *dev)
{
    struct dt_cuda_links *l = links_of(dev);
    dt_cuda_note(dev, "links", cudaEventRecord(l->ready, dt_cuda_of(dev)->stream));
    dt_cuda_note(dev, "links", cudaStreamWaitEvent(l->stream, l->ready, 0));
}

/* With the lock. */
static ncclResult_t put_transfer(struct dt_cuda_links *l, const struct dt_link_transfer *t)
{
    if (t->sends)
        return l->nccl.Send(t->data, t->bytes, ncclUint8, t->peer, l->comm, l->stream);
    return l->nccl.Recv(t->data, t->bytes, ncclUint8, t->peer, l->comm, l->stream);
}

static int exchange(struct dt_device *dev, const struct dt_link_transfer *transfers, int count,
                    struct dt_error *err)
{
    struct dt_cuda_links *l = links_of(dev);
    pthread_mutex_lock(&l->lock);
    int rc = l->comm ? 0 : dt_fail(err, DT_EIO, "NCCL: the links were given up");
    if (rc == 0) {
        rc = check(l, l->nccl.GroupStart(), "transfers", err);
        for (int i = 0; i < count && rc == 0; i++)
            rc = check(l, put_transfer(l, &transfers[i]), transfers[i].sends ? "send" : "receive",
                       err);
        ncclResult_t ended = l->nccl.GroupEnd();
        rc = rc < 0 ? rc : check(l, ended, "transfers", err);
    }
    pthread_mutex_unlock(&l->lock);
    return rc < 0 ? rc : await(l, "transfers", err);
}

static void add(struct dt_device *dev, float *sum, const float *x, size_t n)
{
    dt_cuda_add_floats(links_of(dev)->stream, sum, x, n);
}

static void copy(struct dt_device *dev, void *to, const void *from, size_t bytes)
{
    dt_cuda_note(dev, "links",
                 cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, links_of(dev)->stream));
}

static void *scratch(struct dt_device *dev, size_t bytes)
{
    struct dt_cuda_links *l = links_of(dev);
    if (bytes <= l->scratch_bytes)
        return l->scratch;
    dt_cuda_note(dev, "links", cudaStreamSynchronize(l->stream));
    cudaFree(l->scratch);
    l->scratch = NULL;
    l->scratch_bytes = cudaMalloc(&l->scratch, bytes) == cudaSuccess ? bytes : 0;
    return l->scratch;
}

static uint64_t end(struct dt_device *dev)
{
    struct dt_cuda_links *l = links_of(dev);
    dt_cuda_note(dev, "links", cudaEventRecord(l->ended[l->tickets % TICKETS], l->stream));
    return l->tickets++;
}

static void join(struct dt_device *dev, uint64_t ticket)
{
    struct dt_cuda_links *l = links_of(dev);
    dt_cuda_note(dev, "links",
                 cudaStreamWaitEvent(dt_cuda_of(dev)->stream, l->ended[ticket % TICKETS], 0));
}

static int test(struct dt_device *dev, uint64_t ticket, struct dt_error *err)
{
    struct dt_cuda_links *l = links_of(dev);
    int rc;
    cudaSetDevice(dt_cuda_of(dev)->device);
    (void)ask(l, "messages", &rc, err);
    cudaError_t error = rc < 0 ? cudaSuccess : cudaEventQuery(l->ended[ticket % TICKETS]);
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
                                       .add = add,
                                       .copy = copy,
                                       .scratch = scratch,
                                       .end = end,
                                       .join = join,
                                       .test = test,
                                       .abort = abort_links};
