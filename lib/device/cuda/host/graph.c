/* SPDX-License-Identifier: MIT */
#include "device/cuda/host/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "device/cuda/cuda.h"

#define MOST_ENTRIES 2048
#define MOST_BYTES   ((size_t)1 << 20) /* of arguments and contexts */
#define MOST_GRAPHS  64                /* cached; the least recently used is replaced */
#define FEWEST       16                /* launches: shorter sequences are not captured */
#define ALIGNMENT    16                /* of entries' bytes */

/* A launch, or work. Its bytes, arguments or context, are at an offset in those of the sequence. */
struct entry {
    struct dt_cuda_kernel kernel;
    dt_cuda_work *work; /* NULL: a launch */
    size_t at, bytes;
};

struct sequence {
    struct entry *entries;
    char *bytes;
    int count;
    size_t used;
};

/* A known sequence, with its most recent contents. */
struct graph {
    struct sequence sequence;
    cudaGraph_t captured;
    cudaGraphExec_t executable; /* NULL: seen once, not captured yet */
    cudaGraphNode_t *nodes;     /* nodes of the launches, by entry */
    uint64_t used;              /* time of the last use; 0: the slot is free */
};

struct dt_cuda_recording {
    struct dt_device *dev;
    struct sequence now;
    struct graph graphs[MOST_GRAPHS];
    uint64_t flushes;
};

/* --- deferred work
 * ------------------------------------------------------------------------------- */
/* Offsets of arguments of these sizes from the first; returns the total bytes. */
static size_t lay_out(const size_t *sizes, size_t *places)
{
    size_t end = 0;
    for (; *sizes; sizes++) {
        size_t alignment =
            *sizes & -*sizes; /* the largest alignment that a type of this size can have */
        alignment = alignment < ALIGNMENT ? alignment : ALIGNMENT;
        *places = (end + alignment - 1) / alignment * alignment;
        end = *places++ + *sizes;
    }
    return end;
}

/* A new entry with `bytes` zeroed bytes. */
static struct entry *add_entry(struct dt_cuda_recording *r, size_t bytes)
{
    struct sequence *s = &r->now;
    size_t room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (s->count == MOST_ENTRIES || s->used + room > MOST_BYTES)
        dt_cuda_flush(r->dev);
    struct entry *e = &s->entries[s->count++];
    *e = (struct entry){.at = s->used, .bytes = room};
    memset(s->bytes + e->at, 0, room);
    s->used += room;
    return e;
}

void dt_cuda_record(struct dt_cuda_recording *r, const struct dt_cuda_kernel *kernel,
                    void *const *arguments)
{
    size_t places[DT_CUDA_MOST_ARGUMENTS];
    struct entry *e = add_entry(r, lay_out(kernel->sizes, places));
    e->kernel = *kernel;
    for (int i = 0; kernel->sizes[i]; i++)
        memcpy(r->now.bytes + e->at + places[i], arguments[i], kernel->sizes[i]);
}

void dt_cuda_put(struct dt_device *dev, dt_cuda_work *work, const void *context, size_t bytes)
{
    struct dt_cuda_stream *s = dt_cuda_of(dev)->stream;
    if (s->recording == NULL) {
        work(dev, s->stream, context);
        return;
    }
    struct entry *e = add_entry(s->recording, bytes);
    e->work = work;
    memcpy(s->recording->now.bytes + e->at, context, bytes);
}

static void find_arguments(const struct sequence *s, const struct entry *e, void **arguments)
{
    size_t places[DT_CUDA_MOST_ARGUMENTS];
    (void)lay_out(e->kernel.sizes, places);
    for (int i = 0; e->kernel.sizes[i]; i++)
        arguments[i] = s->bytes + e->at + places[i];
}

static void run_entry(struct dt_device *dev, const struct sequence *s, const struct entry *e,
                      cudaStream_t stream)
{
    void *arguments[DT_CUDA_MOST_ARGUMENTS];
    if (e->work) {
        e->work(dev, stream, s->bytes + e->at);
        return;
    }
    find_arguments(s, e, arguments);
    dt_cuda_note_kernel(dev, e->kernel.function,
                        cudaLaunchKernel(e->kernel.function, e->kernel.grid, e->kernel.block,
                                         arguments, e->kernel.shared_bytes, stream));
}

/* --- graphs ----------------------------------------------------------------------------------- */
static bool is_same(const struct sequence *a, const struct sequence *b)
{
    if (a->count != b->count || a->used != b->used)
        return false;
    for (int i = 0; i < a->count; i++) {
        const struct entry *x = &a->entries[i], *y = &b->entries[i];
        if (x->work != y->work || x->kernel.function != y->kernel.function || x->bytes != y->bytes)
            return false;
        if (x->work && memcmp(a->bytes + x->at, b->bytes + y->at, x->bytes) != 0)
            return false;
    }
    return true;
}

/* The graph of the recorded sequence; NULL if the sequence is new. */
static struct graph *find_graph(struct dt_cuda_recording *r)
{
    for (int i = 0; i < MOST_GRAPHS; i++)
        if (is_same(&r->graphs[i].sequence, &r->now))
            return &r->graphs[i];
    return NULL;
}

/* Launches that still run are not affected. */
static void release_graph(struct graph *g)
{
    if (g->executable)
        cudaGraphExecDestroy(g->executable);
    if (g->captured)
        cudaGraphDestroy(g->captured);
    free(g->nodes);
    free(g->sequence.entries);
    free(g->sequence.bytes);
    *g = (struct graph){.used = 0};
}

/* Caches the sequence in place of the least recently used one. */
static struct graph *keep_sequence(struct dt_cuda_recording *r)
{
    struct graph *g = r->graphs;
    for (int i = 1; i < MOST_GRAPHS; i++)
        g = r->graphs[i].used < g->used ? &r->graphs[i] : g;
    release_graph(g);
    g->sequence = r->now;
    g->sequence.entries = dt_alloc((size_t)r->now.count, sizeof *r->now.entries);
    g->sequence.bytes = dt_alloc(r->now.used, 1);
    memcpy(g->sequence.entries, r->now.entries, (size_t)r->now.count * sizeof *r->now.entries);
    memcpy(g->sequence.bytes, r->now.bytes, r->now.used);
    return g;
}

/* Until CUDA 13 the function with edges has the number of its version. */
#if CUDART_VERSION < 13000
#undef cudaStreamGetCaptureInfo
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#endif

/* The node captured last. */
static cudaGraphNode_t last_node(struct dt_device *dev, cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *nodes = NULL;
    const cudaGraphEdgeData *edges;
    size_t count = 0;
    dt_cuda_note(dev, "graph",
                 cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, &nodes, &edges, &count));
    return count == 1 ? nodes[0] : NULL;
}

/* Thread-local mode: the thread that watches links may still call what a capture forbids. */
static void capture(struct dt_device *dev, struct graph *g, const struct sequence *s,
                    cudaStream_t stream)
{
    g->nodes = dt_alloc((size_t)s->count, sizeof *g->nodes);
    dt_cuda_note(dev, "graph", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < s->count; i++) {
        run_entry(dev, s, &s->entries[i], stream);
        g->nodes[i] = s->entries[i].work ? NULL : last_node(dev, stream);
    }
    dt_cuda_note(dev, "graph", cudaStreamEndCapture(stream, &g->captured));
    dt_cuda_note(dev, "graph", cudaGraphInstantiate(&g->executable, g->captured, 0));
}

static void set_node(struct dt_device *dev, struct graph *g, int i)
{
    void *arguments[DT_CUDA_MOST_ARGUMENTS];
    const struct dt_cuda_kernel *k = &g->sequence.entries[i].kernel;
    const struct cudaKernelNodeParams node = {.func = (void *)(uintptr_t)k->function,
                                              .gridDim = k->grid,
                                              .blockDim = k->block,
                                              .sharedMemBytes = (unsigned)k->shared_bytes,
                                              .kernelParams = arguments};
    find_arguments(&g->sequence, &g->sequence.entries[i], arguments);
    dt_cuda_note_kernel(dev, k->function,
                        cudaGraphExecKernelNodeSetParams(g->executable, g->nodes[i], &node));
}

/* Updates the nodes of launches that have changed. Launches of the graph that are running or
 * queued keep their arguments. */
static void update(struct dt_device *dev, struct graph *g, const struct sequence *now)
{
    struct sequence *last = &g->sequence;
    for (int i = 0; i < now->count; i++) {
        const struct entry *e = &now->entries[i];
        if (memcmp(&last->entries[i], e, sizeof *e) == 0 &&
            memcmp(last->bytes + e->at, now->bytes + e->at, e->bytes) == 0)
            continue;
        last->entries[i] = *e;
        memcpy(last->bytes + e->at, now->bytes + e->at, e->bytes);
        set_node(dev, g, i);
    }
}

static void run(struct dt_cuda_recording *r, cudaStream_t stream)
{
    const struct sequence *now = &r->now;
    struct graph *g = now->count < FEWEST ? NULL : find_graph(r);
    if (g == NULL) {
        for (int i = 0; i < now->count; i++)
            run_entry(r->dev, now, &now->entries[i], stream);
        g = now->count < FEWEST ? NULL : keep_sequence(r);
    } else {
        if (g->executable == NULL)
            capture(r->dev, g, &g->sequence, stream);
        update(r->dev, g, now);
        dt_cuda_note(r->dev, "graph", cudaGraphLaunch(g->executable, stream));
    }
    if (g)
        g->used = ++r->flushes;
}

cudaStream_t dt_cuda_flush(struct dt_device *dev)
{
    struct dt_cuda_stream *s = dt_cuda_of(dev)->stream;
    struct dt_cuda_recording *r = s->recording;
    if (r && r->now.count > 0) {
        run(r, s->stream);
        r->now.count = 0;
        r->now.used = 0;
    }
    return s->stream;
}

/* --- opening ---------------------------------------------------------------------------------- */
int dt_cuda_stream_open(struct dt_device *dev, struct dt_error *err)
{
    struct dt_cuda_stream *s = dt_cuda_of(dev)->stream;
    s->dev = dev;
    cudaError_t error = cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return dt_fail(err, DT_EMISSING, "the cuda engine cannot create a stream: %s",
                       cudaGetErrorString(error));
    if (dt_cuda_is_set("DT_CUDA_GRAPH", dt_cuda_of(dev)->record.proven[DT_GPU_GRAPH])) {
        struct dt_cuda_recording *r = s->recording = dt_alloc(1, sizeof *r);
        r->dev = dev;
        r->now.entries = dt_alloc(MOST_ENTRIES, sizeof *r->now.entries);
        r->now.bytes = dt_alloc(MOST_BYTES, 1);
    }
    return 0;
}

void dt_cuda_stream_close(struct dt_device *dev)
{
    struct dt_cuda_stream *s = dt_cuda_of(dev)->stream;
    if (s->stream)
        cudaStreamDestroy(s->stream);
    for (int i = 0; s->recording && i < MOST_GRAPHS; i++)
        release_graph(&s->recording->graphs[i]);
    if (s->recording) {
        free(s->recording->now.entries);
        free(s->recording->now.bytes);
    }
    free(s->recording);
    free(s);
}
