/* SPDX-License-Identifier: MIT */
/* Collective operations: who sends what to whom. Every rank sends straight to
 * every other, so that what it sends in all is what the best rings send. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/hash.h"
#include "base/pool.h"
#include "comm/job.h"

#define GATHER_CHUNK ((size_t)16 << 20) /* bytes of a rank's piece in flight at a time */
#define REDUCE_CHUNK ((size_t)1 << 16)  /* floats, likewise */

static size_t chunk_of(size_t size, size_t chunk, size_t from)
{
    return from >= size ? 0 : size - from < chunk ? size - from : chunk;
}

static int exchange(const struct dt_operation *op, struct dt_transfer *transfers, int count,
                    struct dt_error *err)
{
    DT_TRY(dt_exchange_begin(op, transfers, count, err));
    return dt_exchange_end(op, transfers, count, err);
}

/* --- all-gather --------------------------------------------------------------------------------
 */

static size_t longest_piece(const size_t *offsets, int size)
{
    size_t most = 0;
    for (int r = 0; r < size; r++)
        most = offsets[r + 1] - offsets[r] > most ? offsets[r + 1] - offsets[r] : most;
    return most;
}

static int run_all_gather(const struct dt_operation *op, struct dt_error *err)
{
    const struct dt_comm *c = op->comm;
    const size_t *at = op->offsets;
    char *data = op->data;
    struct dt_transfer *t = dt_job_scratch(c->job, (size_t)(2 * c->size) * sizeof *t);
    size_t mine = at[c->rank + 1] - at[c->rank], most = longest_piece(at, c->size);
    for (size_t from = 0; from < most; from += GATHER_CHUNK) {
        int count = 0;
        for (int i = 1; i < c->size; i++) {
            int to = (c->rank + i) % c->size, source = (c->rank + c->size - i) % c->size;
            size_t theirs = at[source + 1] - at[source];
            t[count++] = (struct dt_transfer){true, to, data + at[c->rank] + from,
                                              chunk_of(mine, GATHER_CHUNK, from), NULL};
            t[count++] = (struct dt_transfer){false, source, data + at[source] + from,
                                              chunk_of(theirs, GATHER_CHUNK, from), NULL};
        }
        DT_TRY(exchange(op, t, count, err));
    }
    return 0;
}

dt_ticket dt_comm_all_gather(struct dt_comm *comm, void *data, const size_t *offsets)
{
    return dt_comm_submit(
        comm, (struct dt_operation){
                  .name = "all-gather", .run = run_all_gather, .data = data, .offsets = offsets});
}

/* --- all-to-all --------------------------------------------------------------------------------
 */

static size_t longest_of(const struct dt_piece *pieces, const struct dt_comm *c)
{
    size_t most = 0;
    for (int r = 0; r < c->size; r++)
        most = r != c->rank && pieces[r].bytes > most ? pieces[r].bytes : most;
    return most;
}

/* A chunk of a piece; nothing behind its end. */
static struct dt_transfer transfer_of(bool sends, int peer, const struct dt_piece *piece,
                                      size_t from)
{
    size_t bytes = chunk_of(piece->bytes, GATHER_CHUNK, from);
    return (struct dt_transfer){sends, peer, bytes ? (char *)piece->data + from : NULL, bytes,
                                NULL};
}

static int run_all_to_all(const struct dt_operation *op, struct dt_error *err)
{
    const struct dt_comm *c = op->comm;
    struct dt_transfer *t = dt_job_scratch(c->job, (size_t)(2 * c->size) * sizeof *t);
    size_t sent = longest_of(op->sends, c), received = longest_of(op->receives, c);
    if (c->job->skipped >= 0 && op->number == (uint64_t)c->job->skipped)
        return 0;
    for (size_t from = 0; from < sent || from < received; from += GATHER_CHUNK) {
        int count = 0;
        for (int i = 1; i < c->size; i++) {
            int to = (c->rank + i) % c->size, source = (c->rank + c->size - i) % c->size;
            t[count++] = transfer_of(true, to, &op->sends[to], from);
            t[count++] = transfer_of(false, source, &op->receives[source], from);
        }
        DT_TRY(exchange(op, t, count, err));
    }
    return 0;
}

dt_ticket dt_comm_all_to_all(struct dt_comm *comm, const struct dt_piece *sends,
                             const struct dt_piece *receives)
{
    return dt_comm_submit(comm, (struct dt_operation){.name = "all-to-all",
                                                      .run = run_all_to_all,
                                                      .sends = sends,
                                                      .receives = receives});
}

/* --- broadcast ----------------------------------------------------------------------------------
 */

static int run_broadcast(const struct dt_operation *op, struct dt_error *err)
{
    const struct dt_comm *c = op->comm;
    struct dt_transfer *t = dt_job_scratch(c->job, (size_t)c->size * sizeof *t);
    bool root = c->rank == op->peer;
    for (size_t from = 0; from < op->bytes; from += GATHER_CHUNK) {
        size_t bytes = chunk_of(op->bytes, GATHER_CHUNK, from);
        int count = 0;
        for (int r = 0; r < c->size; r++)
            if (root ? r != c->rank : r == op->peer)
                t[count++] = (struct dt_transfer){root, r, (char *)op->data + from, bytes, NULL};
        DT_TRY(exchange(op, t, count, err));
    }
    return 0;
}

dt_ticket dt_comm_broadcast(struct dt_comm *comm, void *data, size_t bytes, int root)
{
    return dt_comm_submit(
        comm,
        (struct dt_operation){
            .name = "broadcast", .run = run_broadcast, .data = data, .bytes = bytes, .peer = root});
}

/* --- reduce-scatter ------------------------------------------------------------------------------
 */

/* The parts of every rank's leaves, in the order of the leaves. */
struct parts {
    int *first;               /* rank r's are first[r] .. first[r + 1] - 1 */
    struct dt_tree_part *all; /* their values: this chunk's, of this rank's piece */
    struct dt_transfer *transfers;
    float *staging; /* what the others send: a chunk for each of their parts */
};

static int count_parts(const struct dt_reduction *r, int size)
{
    struct dt_tree_node nodes[DT_TREE_NODES];
    int count = 0;
    for (int rank = 0; rank < size; rank++)
        count += dt_tree_cover(r->firsts[rank], r->firsts[rank + 1], r->firsts[size], nodes);
    return count;
}

static struct parts open_parts(const struct dt_comm *c, const struct dt_reduction *r)
{
    size_t count = (size_t)count_parts(r, c->size), size = (size_t)c->size;
    size_t transfers = count + (size_t)r->count * size;
    struct parts p;
    char *scratch =
        dt_job_scratch(c->job, count * REDUCE_CHUNK * sizeof *p.staging + count * sizeof *p.all +
                                   transfers * sizeof *p.transfers + (size + 1) * sizeof *p.first);
    p.staging = (float *)scratch;
    p.all = (struct dt_tree_part *)(p.staging + count * REDUCE_CHUNK);
    p.transfers = (struct dt_transfer *)(p.all + count);
    p.first = (int *)(p.transfers + transfers);
    p.first[0] = 0;
    for (int rank = 0; rank < c->size; rank++) {
        struct dt_tree_node nodes[DT_TREE_NODES];
        int some = dt_tree_cover(r->firsts[rank], r->firsts[rank + 1], r->firsts[size], nodes);
        assert(rank != c->rank || some == r->count);
        for (int i = 0; i < some; i++)
            p.all[p.first[rank] + i].node = nodes[i];
        p.first[rank + 1] = p.first[rank] + some;
    }
    return p;
}

/* A chunk of every other rank's piece leaves, of this rank's piece comes in. */
static int exchange_chunk(const struct dt_operation *op, struct parts *p, size_t from,
                          struct dt_error *err)
{
    const struct dt_comm *c = op->comm;
    const struct dt_reduction *r = &op->reduction;
    int count = 0;
    for (int i = 1; i < c->size; i++) {
        int to = (c->rank + i) % c->size;
        size_t n = chunk_of(r->offsets[to + 1] - r->offsets[to], REDUCE_CHUNK, from);
        for (int j = 0; j < r->count; j++)
            p->transfers[count++] = (struct dt_transfer){
                true, to, r->parts[j].values + r->offsets[to] + from, n * sizeof(float), NULL};
    }
    size_t n = chunk_of(r->offsets[c->rank + 1] - r->offsets[c->rank], REDUCE_CHUNK, from);
    for (int rank = 0; rank < c->size; rank++)
        for (int j = p->first[rank]; j < p->first[rank + 1]; j++) {
            struct dt_tree_part *part = &p->all[j];
            part->values = p->staging + (size_t)j * REDUCE_CHUNK;
            if (rank == c->rank)
                part->values = r->parts[j - p->first[rank]].values + r->offsets[c->rank] + from;
            else
                p->transfers[count++] =
                    (struct dt_transfer){false, rank, part->values, n * sizeof(float), NULL};
        }
    return exchange(op, p->transfers, count, err);
}

static void put(float *to, const float *from, size_t n)
{
    if (from != to)
        memcpy(to, from, n * sizeof *to);
}

static int run_reduce_scatter(const struct dt_operation *op, struct dt_error *err)
{
    const struct dt_comm *c = op->comm;
    const struct dt_reduction *r = &op->reduction;
    int64_t leaves = r->firsts[c->size];
    if (c->size == 1) {
        put(r->sum, dt_tree_sum(r->parts, r->count, leaves, r->offsets[1]), r->offsets[1]);
        return 0;
    }
    size_t mine = r->offsets[c->rank + 1] - r->offsets[c->rank];
    size_t most = longest_piece(r->offsets, c->size);
    struct parts p = open_parts(c, r);
    for (size_t from = 0; from < most; from += REDUCE_CHUNK) {
        size_t n = chunk_of(mine, REDUCE_CHUNK, from);
        DT_TRY(exchange_chunk(op, &p, from, err));
        if (n > 0)
            put(r->sum + r->offsets[c->rank] + from,
                dt_tree_sum(p.all, p.first[c->size], leaves, n), n);
    }
    return 0;
}

dt_ticket dt_comm_reduce_scatter(struct dt_comm *comm, const struct dt_reduction *reduction)
{
    return dt_comm_submit(comm, (struct dt_operation){.name = "reduce-scatter",
                                                      .run = run_reduce_scatter,
                                                      .reduction = *reduction});
}

/* --- rounds of a reduce-scatter ------------------------------------------------------------------
 */

/* Leaves that a round has. */
static int leaves_of(const struct dt_round *r, int size)
{
    int64_t left = r->stack->total - r->first;
    return left < size ? (int)left : size;
}

/* A chunk of the round's leaves: of this rank's piece into staging, but for its own leaf. */
static int exchange_leaves(const struct dt_operation *op, struct dt_transfer *t, float *staging,
                           size_t from, struct dt_error *err)
{
    const struct dt_comm *c = op->comm;
    const struct dt_round *r = &op->round;
    int count = 0, leaves = leaves_of(r, c->size);
    size_t mine = r->offsets[c->rank + 1] - r->offsets[c->rank];
    for (int i = 1; i < c->size; i++) {
        int to = (c->rank + i) % c->size, source = (c->rank + c->size - i) % c->size;
        size_t n = chunk_of(r->offsets[to + 1] - r->offsets[to], REDUCE_CHUNK, from);
        if (c->rank < leaves)
            t[count++] = (struct dt_transfer){true, to, r->values + r->offsets[to] + from,
                                              n * sizeof(float), NULL};
        if (source < leaves)
            t[count++] =
                (struct dt_transfer){false, source, staging + (size_t)source * REDUCE_CHUNK,
                                     chunk_of(mine, REDUCE_CHUNK, from) * sizeof(float), NULL};
    }
    return exchange(op, t, count, err);
}

/* Pushes n floats of every leaf, which lie at from in the arrays of the stack. */
static void push_chunk(const struct dt_operation *op, const float *staging, size_t from, size_t n,
                       struct dt_tree_stack *stack, float **spares, int *spare_count)
{
    const struct dt_comm *c = op->comm;
    const struct dt_round *r = &op->round;
    for (int i = 0; i < stack->count; i++)
        stack->parts[i].values += from;
    for (int i = 0; i < *spare_count; i++)
        spares[i] += from;
    stack->n = n;
    for (int leaf = 0; leaf < leaves_of(r, c->size); leaf++) {
        const float *theirs = leaf == c->rank ? r->values + r->offsets[leaf] + from
                                              : staging + (size_t)leaf * REDUCE_CHUNK;
        float *values = spares[--*spare_count];
        memcpy(values, theirs, n * sizeof *values);
        *spare_count += dt_tree_push(stack, r->first + leaf, values, spares + *spare_count);
    }
}

/* Chunk by chunk from the same stack; what it has become in the end is the same for all. */
static int run_round(const struct dt_operation *op, struct dt_error *err)
{
    const struct dt_comm *c = op->comm;
    const struct dt_round *r = &op->round;
    size_t mine = r->offsets[c->rank + 1] - r->offsets[c->rank], size = (size_t)c->size;
    size_t most = longest_piece(r->offsets, c->size), whole = r->stack->n;
    int spare_count = *r->spare_count;
    size_t spares_bytes = (size_t)spare_count * sizeof(float *);
    char *scratch = dt_job_scratch(c->job, size * REDUCE_CHUNK * sizeof(float) +
                                               2 * size * sizeof(struct dt_transfer) +
                                               sizeof *r->stack + spares_bytes);
    struct dt_transfer *transfers =
        (struct dt_transfer *)(void *)(scratch + size * REDUCE_CHUNK * sizeof(float));
    struct dt_tree_stack *before = (struct dt_tree_stack *)(void *)(transfers + 2 * size);
    float **spares = (float **)(void *)(before + 1);
    *before = *r->stack;
    memcpy(spares, r->spares, spares_bytes);
    for (size_t from = 0; from < most || from == 0; from += REDUCE_CHUNK) {
        DT_TRY(exchange_leaves(op, transfers, (float *)(void *)scratch, from, err));
        *r->stack = *before;
        *r->spare_count = spare_count;
        memcpy(r->spares, spares, spares_bytes);
        size_t n = chunk_of(mine, REDUCE_CHUNK, from), at = n > 0 ? from : 0;
        push_chunk(op, (float *)(void *)scratch, at, n, r->stack, r->spares, r->spare_count);
        for (int i = 0; i < r->stack->count; i++)
            r->stack->parts[i].values -= at;
        for (int i = 0; i < *r->spare_count; i++)
            r->spares[i] -= at;
    }
    r->stack->n = whole;
    return 0;
}

dt_ticket dt_comm_reduce_round(struct dt_comm *comm, const struct dt_round *round)
{
    return dt_comm_submit(
        comm,
        (struct dt_operation){.name = "reduce-scatter round", .run = run_round, .round = *round});
}

/* --- barrier
 * --------------------------------------------------------------------------------------- */

/* Every rank's value, in the order of the ranks. */
static int gather_values(struct dt_comm *comm, uint64_t *values, struct dt_error *err)
{
    size_t size = (size_t)comm->size, *offsets = dt_alloc(size + 1, sizeof *offsets);
    for (size_t i = 0; i <= size; i++)
        offsets[i] = i * sizeof *values;
    int rc = dt_comm_wait(comm, dt_comm_all_gather(comm, values, offsets), err);
    free(offsets);
    return rc;
}

int dt_comm_barrier(struct dt_comm *comm, struct dt_error *err)
{
    uint64_t *signs = dt_alloc((size_t)comm->size, sizeof *signs);
    int rc = gather_values(comm, signs, err);
    free(signs);
    return rc;
}

int dt_comm_agree(struct dt_comm *comm, int rc, struct dt_error *err)
{
    size_t size = (size_t)comm->size, *offsets = dt_alloc(size + 1, sizeof *offsets);
    struct dt_error *all = dt_alloc(size, sizeof *all), failure;
    if (size == 1) /* nobody to tell */
        goto done;
    for (size_t i = 0; i <= size; i++)
        offsets[i] = i * sizeof *all;
    if (rc < 0)
        all[comm->rank] = *err;
    rc = dt_comm_wait(comm, dt_comm_all_gather(comm, all, offsets), err);
    for (int r = 0; rc == 0 && r < comm->size; r++)
        if (all[r].code < 0) {
            failure = all[r];
            rc = dt_fail(err, failure.code, "rank %d: %s", r, failure.text);
        }
done:
    free(offsets);
    free(all);
    return rc;
}

int dt_comm_neighbours(struct dt_comm *comm, int *count, struct dt_error *err)
{
    uint64_t *machines = dt_alloc((size_t)comm->size, sizeof *machines);
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    machines[comm->rank] = dt_hash(name, strlen(name));
    int rc = gather_values(comm, machines, err);
    *count = 0;
    for (int r = 0; r < comm->size; r++)
        *count += machines[r] == machines[comm->rank];
    free(machines);
    return rc;
}

int dt_comm_processors(struct dt_comm *comm, int *count, struct dt_error *err)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int neighbours;
    DT_TRY(dt_comm_neighbours(comm, &neighbours, err));
    *count = dt_processors();
    if (*count >= online)
        *count = *count / neighbours > 0 ? *count / neighbours : 1;
    return 0;
}
