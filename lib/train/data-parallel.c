/* SPDX-License-Identifier: MIT */
#include "train/data-parallel.h"

#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"

#define BLOCK_LEAST ((int64_t)1 << 16) /* floats of a block, but for the last */
#define BLOCKS_MOST 1024
#define ALIGNMENT   16  /* floats */
#define COUNTED     256 /* micro-batches up to which the arrays needed are counted, not bounded */

static int64_t block_size(const struct dt_parallel *p)
{
    int64_t even = (p->elements + BLOCKS_MOST - 1) / BLOCKS_MOST;
    int64_t size = even > BLOCK_LEAST ? even : BLOCK_LEAST;
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int64_t block_count(const struct dt_parallel *p)
{
    return (p->elements + block_size(p) - 1) / block_size(p);
}

/* Where part number i of count parts of total begins. */
static int64_t share(int64_t total, int64_t i, int64_t count)
{
    return total * i / count;
}

static void cut_up(struct dt_parallel *p)
{
    int size = dt_comm_size(p->comm);
    int64_t blocks = block_count(p);
    for (int r = 0; r <= size; r++) {
        int64_t block = share(blocks, r, size), floats = block * block_size(p);
        p->norms[r] = (size_t)block * sizeof *p->partial;
        p->pieces[r] = (size_t)(floats < p->elements ? floats : p->elements);
        p->piece_bytes[r] = p->pieces[r] * sizeof(float);
    }
}

/* Gradient arenas that a rank has in use at a time, in any step of up to most micro-batches. */
static int arrays_needed(const struct dt_parallel *p, int64_t most)
{
    int size = dt_comm_size(p->comm), rank = dt_comm_rank(p->comm), needed = 1;
    if (!p->invariant)
        return 1;
    if (most > COUNTED) {
        for (int64_t own = (most + size - 1) / size; own > 1; own /= 2)
            needed += 2;
        return needed + 1;
    }
    for (int64_t batches = size; batches <= most; batches++) {
        int64_t first = share(batches, rank, size), end = share(batches, rank + 1, size);
        int arrays = dt_tree_arrays(first, end, batches);
        needed = arrays > needed ? arrays : needed;
    }
    return needed;
}

int dt_parallel_init(struct dt_parallel *p, struct dt_comm *comm, struct dt_device *device,
                     int64_t elements, const struct dt_settings *settings, struct dt_error *err)
{
    size_t size = (size_t)dt_comm_size(comm);
    long most = settings->training.gradient_accumulation_steps;
    long least =
        settings->training.batch_ramp_tokens > 0 ? settings->training.batch_ramp_start : most;
    *p = (struct dt_parallel){.comm = comm,
                              .device = device,
                              .elements = elements,
                              .invariant = settings->distributed.invariant};
    if (least < (long)size)
        return dt_fail(
            err, DT_EINVALID, "a step of %ld micro-batch%s cannot be shared by %zu ranks: raise %s",
            least, least == 1 ? "" : "es", size,
            least < most ? "training.batch_ramp_start" : "training.gradient_accumulation_steps");
    p->pieces = dt_alloc(size + 1, sizeof *p->pieces);
    p->piece_bytes = dt_alloc(size + 1, sizeof *p->piece_bytes);
    p->firsts = dt_alloc(size + 1, sizeof *p->firsts);
    p->norms = dt_alloc(size + 1, sizeof *p->norms);
    p->shared = dt_alloc(size + 1, sizeof *p->shared);
    p->partial = dt_alloc((size_t)block_count(p), sizeof *p->partial);
    p->buffer_count = arrays_needed(p, most);
    p->buffers = dt_alloc((size_t)p->buffer_count, sizeof *p->buffers);
    p->spares = dt_alloc((size_t)p->buffer_count, sizeof *p->spares);
    cut_up(p);
    return 0;
}

void dt_parallel_layout(struct dt_parallel *p, struct dt_arena *arena)
{
    for (int i = 0; i < p->buffer_count; i++)
        p->buffers[i] = dt_arena_take(arena, (size_t)p->elements * sizeof(float));
    p->gradients = p->buffers[0];
}

void dt_parallel_release(struct dt_parallel *p)
{
    free(p->pieces);
    free(p->piece_bytes);
    free(p->firsts);
    free(p->norms);
    free(p->shared);
    free(p->partial);
    free(p->buffers);
    free(p->spares);
    *p = (struct dt_parallel){0};
}

#define ROW ((int64_t)1 << 16)

/* A flat arena as a matrix of full rows, and what is left. */
static void rows_of(float *x, int64_t n, struct dt_tensor *rows, struct dt_tensor *rest)
{
    *rows = dt_matrix(x, n / ROW, ROW);
    *rest = dt_matrix(x + n / ROW * ROW, 1, n % ROW);
}

static void zero(struct dt_device *dev, float *x, int64_t n)
{
    struct dt_tensor rows, rest;
    rows_of(x, n, &rows, &rest);
    dev->ops->zero(dev, &rows);
    dev->ops->zero(dev, &rest);
}

static void add(void *context, float *sum, const float *x, size_t n)
{
    struct dt_device *dev = context;
    struct dt_tensor to[2], from[2];
    rows_of(sum, (int64_t)n, &to[0], &to[1]);
    rows_of((float *)(uintptr_t)x, (int64_t)n, &from[0], &from[1]);
    for (int i = 0; i < 2; i++)
        dev->ops->combine(dev, &to[i], 1, &from[i], 1);
}

void dt_parallel_part(const struct dt_parallel *p, int64_t count, int64_t *first, int64_t *end)
{
    int size = dt_comm_size(p->comm), rank = dt_comm_rank(p->comm);
    *first = share(count, rank, size);
    *end = share(count, rank + 1, size);
}

void dt_parallel_begin(struct dt_parallel *p, int64_t batches)
{
    int size = dt_comm_size(p->comm), rank = dt_comm_rank(p->comm);
    dt_parallel_part(p, batches, &p->first, &p->end);
    for (int r = 0; r <= size; r++)
        p->firsts[r] = p->invariant ? share(batches, r, size) : r;
    p->stack = (struct dt_tree_stack){
        .total = p->firsts[size], .n = (size_t)p->elements, .add = add, .context = p->device};
    p->spare_count = 0;
    for (int i = p->buffer_count - 1; i >= 0; i--) /* the first comes first */
        p->spares[p->spare_count++] = p->buffers[i];
    if (!p->invariant) {
        p->stack.parts[p->stack.count++] = (struct dt_tree_part){{0, rank}, p->gradients};
        zero(p->device, p->gradients, p->elements);
    }
}

float *dt_parallel_gradients(struct dt_parallel *p)
{
    if (!p->invariant)
        return p->gradients;
    float *gradients = p->spares[p->spare_count - 1];
    zero(p->device, gradients, p->elements);
    return gradients;
}

void dt_parallel_add(struct dt_parallel *p, int64_t batch)
{
    if (!p->invariant)
        return;
    float *gradients = p->spares[--p->spare_count];
    p->spare_count += dt_tree_push(&p->stack, batch, gradients, p->spares + p->spare_count);
}

/* Of this rank's blocks. */
static void square_blocks(struct dt_parallel *p)
{
    int rank = dt_comm_rank(p->comm);
    int64_t size = block_size(p), end = (int64_t)p->pieces[rank + 1];
    size_t block = p->norms[rank] / sizeof *p->partial;
    for (int64_t from = (int64_t)p->pieces[rank]; from < end; from += size)
        p->partial[block++] = p->device->ops->sum_squares(p->device, p->gradients + from,
                                                          end - from < size ? end - from : size);
}

int dt_parallel_sum(struct dt_parallel *p, double *norm, struct dt_error *err)
{
    struct dt_reduction how = {p->pieces, p->firsts, p->stack.parts, p->stack.count, p->gradients};
    double squares = 0;
    DT_TRY(p->device->ops->synchronize(p->device, err));
    DT_TRY(dt_comm_wait(p->comm, dt_comm_reduce_scatter(p->comm, &how), err));
    dt_ticket gathered = dt_comm_all_gather(p->comm, p->gradients, p->piece_bytes);
    square_blocks(p); /* meanwhile */
    DT_TRY(dt_comm_wait(p->comm, dt_comm_all_gather(p->comm, p->partial, p->norms), err));
    DT_TRY(dt_comm_wait(p->comm, gathered, err));
    for (int64_t i = 0; i < block_count(p); i++)
        squares += p->partial[i];
    *norm = sqrt(squares);
    return 0;
}

int dt_parallel_share(struct dt_parallel *p, double *values, int64_t count, int64_t each,
                      struct dt_error *err)
{
    int size = dt_comm_size(p->comm);
    for (int r = 0; r <= size; r++)
        p->shared[r] = (size_t)(share(count, r, size) * each) * sizeof *values;
    return dt_comm_wait(p->comm, dt_comm_all_gather(p->comm, values, p->shared), err);
}
