/* SPDX-License-Identifier: MIT */
#include "bench/collective-bench.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "base/clock.h"

const char *const dt_collective_names[] = {"reduce-scatter", "all-gather", "broadcast"};

#define FLOATS_IN_ALL ((size_t)64 << 20)
#define REPEATS_MOST  1000

/* Buffers and offsets of the operations. */
struct bench {
    struct dt_comm *comm;
    float *data;
    size_t floats, *offsets,
        *bytes; /* size + 1: offset of each rank's piece, in floats and bytes */
    int64_t *firsts;
    struct dt_tree_part part;
};

static void open_bench(struct bench *b, struct dt_comm *comm, size_t floats)
{
    size_t size = (size_t)dt_comm_size(comm);
    *b = (struct bench){.comm = comm, .floats = floats};
    b->data = dt_alloc(floats, sizeof *b->data);
    b->offsets = dt_alloc(size + 1, sizeof *b->offsets);
    b->bytes = dt_alloc(size + 1, sizeof *b->bytes);
    b->firsts = dt_alloc(size + 1, sizeof *b->firsts);
    for (size_t r = 0; r <= size; r++) {
        b->offsets[r] = floats * r / size;
        b->bytes[r] = b->offsets[r] * sizeof *b->data;
        b->firsts[r] = (int64_t)r;
    }
    b->part = (struct dt_tree_part){{0, dt_comm_rank(comm)}, b->data};
}

static void close_bench(struct bench *b)
{
    free(b->data);
    free(b->offsets);
    free(b->bytes);
    free(b->firsts);
}

static int run(struct bench *b, enum dt_collective what, struct dt_error *err)
{
    struct dt_reduction sum = {b->offsets, b->firsts, &b->part, 1, b->data};
    switch (what) {
    case DT_COLLECTIVE_REDUCE_SCATTER:
        return dt_comm_wait(b->comm, dt_comm_reduce_scatter(b->comm, &sum), err);
    case DT_COLLECTIVE_ALL_GATHER:
        return dt_comm_wait(b->comm, dt_comm_all_gather(b->comm, b->data, b->bytes), err);
    case DT_COLLECTIVE_BROADCAST:
    case DT_COLLECTIVE_COUNT:
        break;
    }
    size_t bytes = b->floats * sizeof *b->data;
    return dt_comm_wait(b->comm, dt_comm_broadcast(b->comm, b->data, bytes, 0), err);
}

static int repeat(struct bench *b, enum dt_collective what, struct dt_collective_speed *speed,
                  struct dt_error *err)
{
    size_t fit = FLOATS_IN_ALL / b->floats;
    size_t repeats = fit < 3 ? 3 : fit > REPEATS_MOST ? REPEATS_MOST : fit;
    for (size_t i = 0; i < repeats; i++) {
        DT_TRY(dt_comm_barrier(b->comm, err));
        uint64_t before = dt_comm_bytes_sent(b->comm);
        double start = dt_clock_now();
        DT_TRY(run(b, what, err));
        double seconds = dt_clock_now() - start;
        speed->seconds = i == 0 || seconds < speed->seconds ? seconds : speed->seconds;
        speed->sent = dt_comm_bytes_sent(b->comm) - before;
    }
    return 0;
}

int dt_collective_bench(struct dt_comm *comm, enum dt_collective what, size_t floats,
                        struct dt_collective_speed *speed, struct dt_error *err)
{
    struct bench b;
    open_bench(&b, comm, floats);
    int rc = repeat(&b, what, speed, err);
    close_bench(&b);
    return rc;
}
