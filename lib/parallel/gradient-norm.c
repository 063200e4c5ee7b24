/* SPDX-License-Identifier: MIT */
#include "parallel/gradient-norm.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

/* This rank in its sharding group. */
static int owner_of(const struct dt_gradient_norm *s)
{
    return dt_comm_rank(s->group);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Sums of this rank's blocks: each excluded range cuts at most one more. */
static size_t count_pieces(const struct dt_gradient_norm *s)
{
    int64_t count = s->excluded_count;
    for (int b = 0; b < s->sharding->count; b++)
        count += dt_range_count(dt_sharding_owned_blocks(s->sharding, b, owner_of(s)));
    return (size_t)count;
}

/* Arrays that grow with the number of ranks, which a plan does not need. */
static void allocate_group_arrays(struct dt_gradient_norm *s)
{
    size_t owners = (size_t)s->sharding->owners;
    int64_t blocks = 0;
    s->partial_bytes = dt_alloc(owners + 1, sizeof *s->partial_bytes);
    s->cursors = dt_alloc(owners, sizeof *s->cursors);
    for (int r = 0; r < s->sharding->owners; r++)
        for (int b = 0; b < s->sharding->count; b++) {
            struct dt_range run = dt_sharding_owned_blocks(s->sharding, b, r);
            blocks += dt_range_count(run);
            s->partial_bytes[r + 1] = (size_t)blocks * sizeof *s->partial;
        }
    s->partial = dt_alloc((size_t)blocks, sizeof *s->partial);
    s->fetched = dt_alloc(count_pieces(s), sizeof *s->fetched);
}

void dt_gradient_norm_layout(struct dt_gradient_norm *s, struct dt_arena *arena)
{
    s->pieces = dt_arena_take(arena, count_pieces(s) * sizeof *s->pieces);
    if (arena->memory)
        allocate_group_arrays(s);
}

void dt_gradient_norm_release(struct dt_gradient_norm *s)
{
    free(s->excluded);
    free(s->fetched);
    free(s->partial);
    free(s->partial_bytes);
    free(s->cursors);
    *s = (struct dt_gradient_norm){0};
}

/* --- this rank's blocks ----------------------------------------------------------------------- */

/* The next elements of rest that are not excluded; rest then begins after them. */
static bool next_included(const struct dt_gradient_norm *s, struct dt_range *rest,
                          struct dt_range *next)
{
    *next = *rest;
    for (int i = 0; i < s->excluded_count; i++) {
        const struct dt_range *run = &s->excluded[i];
        if (run->end <= next->first || run->first >= next->end)
            continue;
        if (run->first > next->first)
            next->end = run->first;
        else
            next->first = run->end < next->end ? run->end : next->end;
    }
    rest->first = next->end;
    return next->first < next->end;
}

static struct dt_range own_block(const struct dt_gradient_norm *s, int bucket, int64_t first)
{
    int64_t end = dt_sharding_owned(s->sharding, bucket, owner_of(s)).end;
    int64_t size = dt_sharding_block_size(s->sharding, bucket);
    return (struct dt_range){first, end - first < size ? end : first + size};
}

/* Starts to square this rank's blocks of a bucket: consecutive blocks without excluded elements in
 * one call, the others range by range. Returns where the next bucket's sums go. */
static double *begin_bucket(const struct dt_gradient_norm *s, int bucket, const float *own,
                            double *to)
{
    struct dt_range run = dt_sharding_owned(s->sharding, bucket, owner_of(s)), next, whole;
    int64_t size = dt_sharding_block_size(s->sharding, bucket);
    const struct dt_ops *ops = s->device->ops;
    const float *x = own - run.first;
    whole = (struct dt_range){run.first, run.first};
    for (struct dt_range block; whole.end < run.end; whole.end = block.end) {
        block = own_block(s, bucket, whole.end);
        struct dt_range rest = block;
        bool included = next_included(s, &rest, &next);
        if (included && next.first == block.first && next.end == block.end)
            continue;
        ops->square_blocks(s->device, to, x + whole.first, dt_range_count(whole), size);
        to += dt_range_count(whole) / size;
        for (; included; included = next_included(s, &rest, &next))
            ops->square_blocks(s->device, to++, x + next.first, dt_range_count(next), size);
        whole.first = block.end;
    }
    ops->square_blocks(s->device, to, x + whole.first, dt_range_count(whole), size);
    return to + (dt_range_count(whole) + size - 1) / size;
}

/* Adds the sums of each block's ranges. Returns where the next bucket's sums are. */
static const double *end_bucket(const struct dt_gradient_norm *s, int bucket, const double *from,
                                double **partial)
{
    struct dt_range run = dt_sharding_owned(s->sharding, bucket, owner_of(s)), next;
    for (struct dt_range block; run.first < run.end; run.first = block.end) {
        block = own_block(s, bucket, run.first);
        double sum = 0;
        for (struct dt_range rest = block; next_included(s, &rest, &next);)
            sum += *from++;
        *(*partial)++ = sum;
    }
    return from;
}

static void square_own_blocks(const struct dt_gradient_norm *s, float *const *owned)
{
    double *partial = s->partial + s->partial_bytes[owner_of(s)] / sizeof *s->partial;
    double *end = s->pieces;
    for (int b = 0; b < s->sharding->count; b++)
        end = begin_bucket(s, b, owned[b], end);
    size_t count = (size_t)(end - s->pieces);
    const double *from = s->fetched;
    s->device->ops->download(s->device, s->fetched, s->pieces, count * sizeof *s->fetched);
    for (int b = 0; b < s->sharding->count; b++)
        from = end_bucket(s, b, from, &partial);
}

/* --- all blocks ------------------------------------------------------------------------------- */

/* Adds the blocks of each bucket in order, over all ranks. */
static void sum_all_blocks(struct dt_gradient_norm *s, double *sums)
{
    memcpy(s->cursors, s->partial_bytes, (size_t)s->sharding->owners * sizeof *s->cursors);
    for (int b = 0; b < s->sharding->count; b++) {
        sums[b] = 0;
        for (int r = 0; r < s->sharding->owners; r++) {
            struct dt_range run = dt_sharding_owned_blocks(s->sharding, b, r);
            const double *partial = s->partial + s->cursors[r] / sizeof *partial;
            for (int64_t i = 0; i < dt_range_count(run); i++)
                sums[b] += partial[i];
            s->cursors[r] += (size_t)dt_range_count(run) * sizeof *partial;
        }
    }
}

int dt_gradient_norm_squares(struct dt_gradient_norm *s, float *const *owned, double *sums,
                             struct dt_error *err)
{
    square_own_blocks(s, owned);
    DT_TRY(dt_comm_wait(s->group, dt_comm_all_gather(s->group, s->partial, s->partial_bytes), err));
    sum_all_blocks(s, sums);
    return 0;
}
