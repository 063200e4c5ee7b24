/* SPDX-License-Identifier: MIT */
/* Collective operations. Every rank sends directly to every other rank; the bytes per rank equal
 * those of a bandwidth-optimal ring. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/fault.h"
#include "comm/comm-internal.h"

#define GATHER_CHUNK ((size_t)16 << 20) /* bytes of a rank's piece in flight at a time */

static size_t chunk_of(size_t size, size_t chunk, size_t from)
{
    return from >= size ? 0 : size - from < chunk ? size - from : chunk;
}

/* Enqueues the transfers on linked devices; otherwise returns after they have completed. */
static int exchange(const struct dt_operation *op, struct dt_transfer *transfers, int count,
                    struct dt_error *err)
{
    if (op->comm->is_on_device)
        return dt_link_exchange(op, transfers, count, err);
    DT_TRY(dt_exchange_begin(op, transfers, count, err));
    return dt_exchange_end(op, transfers, count, err);
}

static void put(const struct dt_operation *op, float *to, const float *from, size_t n)
{
    struct dt_device *dev = op->comm->job->linked;
    if (from == to)
        return;
    if (op->comm->is_on_device)
        dev->engine->links->copy(dev, to, from, n * sizeof *to);
    else
        memcpy(to, from, n * sizeof *to);
}

static void add_on_links(void *context, float *sum, const float *x, size_t n)
{
    struct dt_device *dev = context;
    dev->engine->links->add(dev, sum, x, n);
}

static struct dt_tree_adder adder_of(const struct dt_operation *op)
{
    return op->comm->is_on_device ? (struct dt_tree_adder){add_on_links, op->comm->job->linked}
                                  : (struct dt_tree_adder){0};
}

/* --- all-gather ------------------------------------------------------------------------------- */

static size_t longest_piece(const size_t *offsets, int size)
{
    size_t most = 0;
    for (int r = 0; r < size; r++)
        most = offsets[r + 1] - offsets[r] > most ? offsets[r + 1] - offsets[r] : most;
    return most;
}

/* The transfer of a chunk of a piece; 0 bytes after its end. */
static struct dt_transfer transfer_of(bool sends, int peer, const struct dt_piece *piece,
                                      size_t from)
{
    size_t bytes = chunk_of(piece->bytes, GATHER_CHUNK, from);
    return (struct dt_transfer){sends, peer, bytes ? (char *)piece->data + from : NULL, bytes,
                                NULL};
}

/* A rank's piece: by the offsets, or the same number of bytes for every rank. */
static struct dt_piece piece_of(const struct dt_operation *op, int rank)
{
    size_t from = op->offsets ? op->offsets[rank] : (size_t)rank * op->bytes;
    size_t bytes = op->offsets ? op->offsets[rank + 1] - from : op->bytes;
    return (struct dt_piece){(char *)op->data + from, bytes};
}

static int run_all_gather(const struct dt_operation *op, struct dt_error *err)
{
    const struct dt_comm *c = op->comm;
    struct dt_transfer *t = dt_operation_lists(op, (size_t)(2 * c->size) * sizeof *t);
    struct dt_piece mine = piece_of(op, c->rank);
    size_t most = op->offsets ? longest_piece(op->offsets, c->size) : op->bytes;
    for (size_t from = 0; from < most; from += GATHER_CHUNK) {
        int count = 0;
        for (int i = 1; i < c->size; i++) {
            int to = (c->rank + i) % c->size, source = (c->rank + c->size - i) % c->size;
            struct dt_piece theirs = piece_of(op, source);
            t[count++] = transfer_of(true, to, &mine, from);
            t[count++] = transfer_of(false, source, &theirs, from);
        }
        DT_TRY(exchange(op, t, count, err));
    }
    return 0;
}

dt_comm_request dt_comm_all_gather(struct dt_comm *comm, void *data, const size_t *offsets)
{
    bool library = comm->channel == DT_LINK_DATA;
    return dt_comm_submit(comm,
                          (struct dt_operation){.name = "all-gather",
                                                .total = offsets[comm->size],
                                                .run = library ? dt_link_collect : run_all_gather,
                                                .channel = comm->channel,
                                                .peer = DT_LINK_BYTES,
                                                .data = data,
                                                .offsets = offsets});
}

int dt_comm_share(struct dt_comm *comm, void *all, size_t bytes, struct dt_error *err)
{
    dt_comm_request done =
        dt_comm_submit(comm, (struct dt_operation){.name = "all-gather",
                                                   .total = bytes * (size_t)comm->size,
                                                   .run = run_all_gather,
                                                   .data = all,
                                                   .bytes = bytes});
    return dt_comm_wait(comm, done, err);
}

/* --- all-to-all ------------------------------------------------------------------------------- */

static size_t longest_of(const struct dt_piece *pieces, const struct dt_comm *c)
{
    size_t most = 0;
    for (int r = 0; r < c->size; r++)
        most = r != c->rank && pieces[r].bytes > most ? pieces[r].bytes : most;
    return most;
}

static int run_all_to_all(const struct dt_operation *op, struct dt_error *err)
{
    const struct dt_comm *c = op->comm;
    struct dt_transfer *t = dt_operation_lists(op, (size_t)(2 * c->size) * sizeof *t);
    size_t sent = longest_of(op->sends, c), received = longest_of(op->receives, c);
    if (dt_fault_injected(DT_FAULT_SKIP_EXCHANGE, (long)op->number))
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

dt_comm_request dt_comm_all_to_all(struct dt_comm *comm, const struct dt_piece *sends,
                                   const struct dt_piece *receives)
{
    size_t total = 0;
    for (int r = 0; r < comm->size; r++)
        total += r == comm->rank ? 0 : sends[r].bytes + receives[r].bytes;
    return dt_comm_submit(comm, (struct dt_operation){.name = "all-to-all",
                                                      .total = total,
                                                      .run = run_all_to_all,
                                                      .sends = sends,
                                                      .receives = receives});
}

/* --- broadcast -------------------------------------------------------------------------------- */

static int run_broadcast(const struct dt_operation *op, struct dt_error *err)
{
    const struct dt_comm *c = op->comm;
    struct dt_transfer *t = dt_operation_lists(op, (size_t)c->size * sizeof *t);
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

dt_comm_request dt_comm_broadcast(struct dt_comm *comm, void *data, size_t bytes, int root)
{
    return dt_comm_submit(comm, (struct dt_operation){.name = "broadcast",
                                                      .total = bytes,
                                                      .run = run_broadcast,
                                                      .data = data,
                                                      .bytes = bytes,
                                                      .peer = root});
}

/* --- reduce-scatter --------------------------------------------------------------------------- */

/* Ranks that reduce their parts together: each reduces one piece, chunk by chunk. */
struct level {
    int base, stride;      /* rank i of the level is rank base + i * stride of the communicator */
    int size, own;         /* own: this rank's index in the level */
    const int64_t *firsts; /* the leaves of rank i begin at firsts[i * stride] */
    int64_t leaves;        /* of the tree */
    int64_t *first;        /* the parts of rank i are first[i] .. first[i + 1] - 1 */
    struct dt_tree_part *all; /* all parts of a chunk of this rank's piece, in order of leaves */
    struct dt_transfer *transfers;
    size_t chunk;   /* floats at a time */
    float *staging; /* receive buffer: a chunk for each part of the other ranks */
};

/* The ranks of this group, or of all groups with the same piece. */
static struct level level_of(const struct dt_operation *op, bool within)
{
    const struct dt_comm *c = op->comm;
    const struct dt_reduction *r = &op->reduction;
    int groups = r->groups > 1 ? r->groups : 1, size = c->size / groups;
    int own = c->rank % size, group = c->rank / size;
    return (struct level){
        .base = within ? group * size : own,
        .stride = within ? 1 : size,
        .size = within ? size : groups,
        .own = within ? own : group,
        .firsts = r->firsts + (within ? group * size : 0),
        .leaves = r->firsts[c->size],
    };
}

static int cover(const struct level *l, int i, struct dt_tree_node *nodes)
{
    return dt_tree_cover(l->firsts[i * l->stride], l->firsts[(i + 1) * l->stride], l->leaves,
                         nodes);
}

static size_t count_parts(const struct level *l)
{
    struct dt_tree_node nodes[DT_TREE_NODES];
    int count = 0;
    for (int i = 0; i < l->size; i++)
        count += cover(l, i, nodes);
    return (size_t)count;
}

/* Parts of the group with the most, so that all groups use the same chunk size. */
static size_t most_parts(const struct dt_operation *op, const struct level *within)
{
    size_t most = 0;
    struct level l = *within;
    l.firsts = op->reduction.firsts;
    for (int group = 0; group < op->comm->size / l.size; group++, l.firsts += l.size) {
        size_t count = count_parts(&l);
        most = count > most ? count : most;
    }
    return most;
}

/* Upper bound for a chunk of the reduce-scatter and of the all-gather. */
static size_t most_transfers(const struct level *l)
{
    struct dt_tree_node nodes[DT_TREE_NODES];
    return count_parts(l) + (size_t)(l->size * (cover(l, l->own, nodes) + 2));
}

static size_t list_bytes(const struct level *l)
{
    return count_parts(l) * sizeof *l->all + most_transfers(l) * sizeof *l->transfers +
           ((size_t)l->size + 1) * sizeof *l->first;
}

/* Places the lists in list_bytes bytes at lists; returns the end of the staging memory used. */
static float *open_level(struct level *l, char *lists, float *staging)
{
    size_t count = count_parts(l);
    l->staging = staging;
    l->all = (struct dt_tree_part *)(void *)lists;
    l->transfers = (struct dt_transfer *)(void *)(l->all + count);
    l->first = (int64_t *)(void *)(l->transfers + most_transfers(l));
    l->first[0] = 0;
    for (int i = 0; i < l->size; i++) {
        struct dt_tree_node nodes[DT_TREE_NODES];
        int some = cover(l, i, nodes);
        for (int j = 0; j < some; j++)
            l->all[l->first[i] + j].node = nodes[j];
        l->first[i + 1] = l->first[i] + some;
    }
    return staging + count * l->chunk;
}

static int peer_of(const struct level *l, int i)
{
    return l->base + i * l->stride;
}

/* Sends a chunk of every other rank's piece, receives a chunk of this rank's piece. */
static int exchange_chunk(const struct dt_operation *op, const struct level *l,
                          const struct dt_tree_part *own, const size_t *offsets, size_t from,
                          struct dt_error *err)
{
    int count = 0, parts = (int)(l->first[l->own + 1] - l->first[l->own]);
    for (int i = 1; i < l->size; i++) {
        int to = (l->own + i) % l->size;
        size_t n = chunk_of(offsets[to + 1] - offsets[to], l->chunk, from);
        for (int j = 0; j < parts; j++)
            l->transfers[count++] = (struct dt_transfer){
                true, peer_of(l, to), own[j].values + offsets[to] + from, n * sizeof(float), NULL};
    }
    size_t n = chunk_of(offsets[l->own + 1] - offsets[l->own], l->chunk, from);
    for (int i = 0; i < l->size; i++)
        for (int64_t j = l->first[i]; j < l->first[i + 1]; j++) {
            struct dt_tree_part *part = &l->all[j];
            part->values = l->staging + (size_t)j * l->chunk;
            if (i == l->own)
                part->values = own[j - l->first[i]].values + offsets[i] + from;
            else
                l->transfers[count++] = (struct dt_transfer){false, peer_of(l, i), part->values,
                                                             n * sizeof(float), NULL};
        }
    return exchange(op, l->transfers, count, err);
}

/* All-reduce between groups of n floats, from the nodes of each group in parts. */
static int add_groups(const struct dt_operation *op, const struct level *l,
                      const struct dt_tree_part *parts, size_t *group_offsets, size_t n, float *sum,
                      struct dt_error *err)
{
    int count = 0;
    for (int i = 0; i <= l->size; i++)
        group_offsets[i] = n * (size_t)i / (size_t)l->size;
    DT_TRY(exchange_chunk(op, l, parts, group_offsets, 0, err));
    size_t first = group_offsets[l->own], own = group_offsets[l->own + 1] - first;
    put(op, sum + first, dt_tree_sum(l->all, (int)l->first[l->size], l->leaves, own, adder_of(op)),
        own);
    for (int i = 1; i < l->size; i++) {
        int to = (l->own + i) % l->size, source = (l->own + l->size - i) % l->size;
        l->transfers[count++] =
            (struct dt_transfer){true, peer_of(l, to), sum + first, own * sizeof *sum, NULL};
        l->transfers[count++] = (struct dt_transfer){
            false, peer_of(l, source), sum + group_offsets[source],
            (group_offsets[source + 1] - group_offsets[source]) * sizeof *sum, NULL};
    }
    return exchange(op, l->transfers, count, err);
}

/* group_offsets: memory for the groups' offsets in a chunk. */
static int open_levels(const struct dt_operation *op, struct level *within, struct level *across,
                       size_t **group_offsets, struct dt_error *err)
{
    size_t inner = list_bytes(within), outer = list_bytes(across);
    float *staging;
    char *lists =
        dt_operation_lists(op, inner + outer + ((size_t)across->size + 1) * sizeof **group_offsets);
    DT_TRY(dt_operation_staging(op, most_parts(op, within) + count_parts(across), &within->chunk,
                                &staging, err));
    across->chunk = within->chunk;
    float *rest = open_level(within, lists, staging);
    open_level(across, lists + inner, rest);
    *group_offsets = (size_t *)(void *)(lists + inner + outer);
    return 0;
}

static int run_reduce_scatter(const struct dt_operation *op, struct dt_error *err)
{
    const struct dt_reduction *r = &op->reduction;
    struct level within = level_of(op, true), across = level_of(op, false);
    size_t most = longest_piece(r->offsets, within.size);
    struct dt_tree_part sums[DT_TREE_NODES]; /* nodes of the group's leaves */
    size_t first = r->offsets[within.own], mine = r->offsets[within.own + 1] - first,
           *group_offsets;
    float *sum = (r->sum ? r->sum : r->parts[0].values) + first;
    DT_TRY(open_levels(op, &within, &across, &group_offsets, err));
    assert(within.first[within.own + 1] - within.first[within.own] == r->count);
    for (size_t from = 0; from < most; from += within.chunk) {
        size_t n = chunk_of(mine, within.chunk, from);
        DT_TRY(exchange_chunk(op, &within, r->parts, r->offsets, from, err));
        if (n == 0)
            continue;
        dt_tree_merge(within.all, (int)within.first[within.size], within.leaves, n, adder_of(op),
                      sums);
        if (across.size > 1)
            DT_TRY(add_groups(op, &across, sums, group_offsets, n, sum + from, err));
        else
            put(op, sum + from, sums[0].values, n);
    }
    return 0;
}

dt_comm_request dt_comm_reduce_scatter(struct dt_comm *comm, const struct dt_reduction *reduction)
{
    int owners = comm->size / (reduction->groups > 1 ? reduction->groups : 1);
    return dt_comm_submit(comm,
                          (struct dt_operation){.name = "reduce-scatter",
                                                .total = reduction->offsets[owners] * sizeof(float),
                                                .run = run_reduce_scatter,
                                                .reduction = *reduction});
}

dt_comm_request dt_comm_library_reduce_scatter(struct dt_comm *comm, void *data, enum dt_dtype type,
                                               const size_t *offsets)
{
    assert(comm->channel == DT_LINK_DATA && type != DT_DTYPE_F16);
    return dt_comm_submit(
        comm, (struct dt_operation){
                  .name = "reduce-scatter",
                  .total = offsets[comm->size] * (type == DT_DTYPE_F32 ? sizeof(float) : 2),
                  .run = dt_link_collect,
                  .channel = DT_LINK_DATA,
                  .peer = type == DT_DTYPE_F32 ? DT_LINK_F32_SUMS : DT_LINK_BF16_SUMS,
                  .data = data,
                  .offsets = offsets});
}

/* --- rounds of a reduce-scatter --------------------------------------------------------------- */

/* The number of leaves of a round. */
static int leaves_of(const struct dt_round *r, int size)
{
    int64_t left = r->end - r->first;
    return left < size ? (int)left : size;
}

/* Exchanges a chunk of the round's leaves; those of other ranks arrive in staging. */
static int exchange_leaves(const struct dt_operation *op, struct dt_transfer *t, float *staging,
                           size_t chunk, size_t from, struct dt_error *err)
{
    const struct dt_comm *c = op->comm;
    const struct dt_round *r = &op->round;
    int count = 0, leaves = leaves_of(r, c->size);
    size_t mine = r->offsets[c->rank + 1] - r->offsets[c->rank];
    for (int i = 1; i < c->size; i++) {
        int to = (c->rank + i) % c->size, source = (c->rank + c->size - i) % c->size;
        size_t n = chunk_of(r->offsets[to + 1] - r->offsets[to], chunk, from);
        if (c->rank < leaves)
            t[count++] = (struct dt_transfer){true, to, r->values + r->offsets[to] + from,
                                              n * sizeof(float), NULL};
        if (source < leaves)
            t[count++] = (struct dt_transfer){false, source, staging + (size_t)source * chunk,
                                              chunk_of(mine, chunk, from) * sizeof(float), NULL};
    }
    return exchange(op, t, count, err);
}

/* Pushes n floats of every leaf, at offset from of the arrays of the stack. */
static void push_chunk(const struct dt_operation *op, const float *staging, size_t chunk,
                       size_t from, size_t n, struct dt_tree_stack *stack, float **spares,
                       int *spare_count)
{
    const struct dt_comm *c = op->comm;
    const struct dt_round *r = &op->round;
    for (int i = 0; i < stack->count; i++)
        stack->parts[i].values += from;
    for (int i = 0; i < *spare_count; i++)
        spares[i] += from;
    stack->n = n;
    for (int leaf = 0; leaf < leaves_of(r, c->size); leaf++) {
        const float *theirs =
            leaf == c->rank ? r->values + r->offsets[leaf] + from : staging + (size_t)leaf * chunk;
        float *values = spares[--*spare_count];
        put(op, values, theirs, n);
        *spare_count += dt_tree_push(stack, r->first + leaf, values, spares + *spare_count);
    }
}

/* Each chunk starts from the same stack, and ends with the same one. */
static int run_round(const struct dt_operation *op, struct dt_error *err)
{
    const struct dt_comm *c = op->comm;
    const struct dt_round *r = &op->round;
    size_t mine = r->offsets[c->rank + 1] - r->offsets[c->rank], size = (size_t)c->size;
    size_t most = longest_piece(r->offsets, c->size), whole = r->stack->n;
    int spare_count = *r->spare_count;
    size_t spares_bytes = (size_t)spare_count * sizeof(float *);
    struct dt_transfer *transfers =
        dt_operation_lists(op, 2 * size * sizeof *transfers + sizeof *r->stack + spares_bytes);
    float *staging;
    size_t chunk;
    DT_TRY(dt_operation_staging(op, size, &chunk, &staging, err));
    struct dt_tree_stack *before = (struct dt_tree_stack *)(void *)(transfers + 2 * size);
    float **spares = (float **)(void *)(before + 1);
    r->stack->adder = adder_of(op);
    *before = *r->stack;
    memcpy(spares, r->spares, spares_bytes);
    for (size_t from = 0; from < most || from == 0; from += chunk) {
        DT_TRY(exchange_leaves(op, transfers, staging, chunk, from, err));
        *r->stack = *before;
        *r->spare_count = spare_count;
        memcpy(r->spares, spares, spares_bytes);
        size_t n = chunk_of(mine, chunk, from), at = n > 0 ? from : 0;
        push_chunk(op, staging, chunk, at, n, r->stack, r->spares, r->spare_count);
        for (int i = 0; i < r->stack->count; i++)
            r->stack->parts[i].values -= at;
        for (int i = 0; i < *r->spare_count; i++)
            r->spares[i] -= at;
    }
    r->stack->n = whole;
    return 0;
}

dt_comm_request dt_comm_reduce_round(struct dt_comm *comm, const struct dt_round *round)
{
    return dt_comm_submit(comm,
                          (struct dt_operation){.name = "reduce-scatter round",
                                                .total = round->offsets[comm->size] * sizeof(float),
                                                .run = run_round,
                                                .round = *round});
}

/* --- all-reduce, barrier, agreement --------------------------------------------------------- */

int dt_comm_all_reduce(struct dt_comm *comm, float *values, int64_t n, struct dt_error *err)
{
    size_t size = (size_t)comm->size, *offsets = dt_alloc(2 * (size + 1), sizeof *offsets);
    size_t *bytes = offsets + size + 1;
    int64_t *firsts = dt_alloc(size + 1, sizeof *firsts);
    struct dt_tree_part part = {{0, comm->rank}, values};
    for (size_t r = 0; r <= size; r++) {
        offsets[r] = (size_t)n * r / size;
        bytes[r] = offsets[r] * sizeof *values;
        firsts[r] = (int64_t)r;
    }
    struct dt_reduction how = {offsets, firsts, &part, 1, values};
    int rc = dt_comm_wait(comm, dt_comm_reduce_scatter(comm, &how), err);
    rc = rc < 0 ? rc : dt_comm_wait(comm, dt_comm_all_gather(comm, values, bytes), err);
    free(offsets);
    free(firsts);
    return rc;
}

int dt_comm_barrier(struct dt_comm *comm, struct dt_error *err)
{
    char *signs = dt_alloc((size_t)comm->size, 1);
    int rc = dt_comm_share(comm, signs, 1, err);
    free(signs);
    return rc;
}

/* The first rank's error; without its rank if all have the same error. */
static int choose_error(const struct dt_error *all, int size, struct dt_error *err)
{
    int first = 0, same = 0;
    while (first < size && all[first].code == DT_OK)
        first++;
    if (first == size)
        return 0;
    for (int r = 0; r < size; r++)
        same += strcmp(all[r].text, all[first].text) == 0;
    if (same == size)
        *err = all[first];
    else
        dt_fail(err, all[first].code, "rank %d: %s", first, all[first].text);
    err->agreed = true;
    return err->code;
}

int dt_comm_agree(struct dt_comm *comm, int rc, struct dt_error *err)
{
    struct dt_error *all = dt_alloc((size_t)comm->size, sizeof *all);
    if (rc < 0)
        all[comm->rank] = *err;
    rc = dt_comm_share(comm, all, sizeof *all, err);
    rc = rc < 0 ? rc : choose_error(all, comm->size, err);
    free(all);
    return rc;
}
