/* SPDX-License-Identifier: MIT */
#include "train/tensor-norms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

enum { PARAMETER, GRADIENT, UPDATE, KINDS };

void dt_tensor_norms_init(struct dt_tensor_norms *n, const struct dt_state_hash *owned)
{
    size_t elements = 0;
    for (size_t i = 0; i < owned->block_count; i++)
        elements += (size_t)(owned->blocks[i].rows * owned->blocks[i].columns);
    *n = (struct dt_tensor_norms){.owned = owned};
    n->before = dt_alloc(elements + 1, sizeof *n->before);
    n->squares = dt_alloc((size_t)owned->count * KINDS, sizeof *n->squares);
    n->norms = dt_alloc((size_t)owned->count, sizeof *n->norms);
}

void dt_tensor_norms_release(struct dt_tensor_norms *n)
{
    free(n->before);
    free(n->squares);
    free(n->norms);
    *n = (struct dt_tensor_norms){0};
}

static void download(const struct dt_tensor_norms *n, const struct dt_hashed_block *b, int64_t row,
                     float *values)
{
    struct dt_device *dev = n->owned->state->model->device;
    dev->ops->download(dev, values, b->device + row * b->pitch,
                       (size_t)b->columns * sizeof *values);
}

void dt_tensor_norms_before(struct dt_tensor_norms *n, double factor)
{
    struct dt_device *dev = n->owned->state->model->device;
    float *before = n->before;
    memset(n->squares, 0, (size_t)n->owned->count * KINDS * sizeof *n->squares);
    for (size_t i = 0; i < n->owned->block_count; i++) {
        const struct dt_hashed_block *b = &n->owned->blocks[i];
        const float *gradients = dt_state_hash_gradients(n->owned, b);
        for (int64_t row = 0; row < b->rows; row++, before += b->columns) {
            n->squares[b->tensor * KINDS + GRADIENT] +=
                dev->ops->sum_squares(dev, gradients + row * b->pitch, b->columns) /
                (factor * factor);
            download(n, b, row, before);
        }
    }
}

/* Adds the squares of the parameters and of what the update added to them. */
static void add_row(double *squares, const float *after, const float *before, int64_t columns)
{
    for (int64_t c = 0; c < columns; c++) {
        double change = (double)after[c] - (double)before[c];
        squares[PARAMETER] += (double)after[c] * (double)after[c];
        squares[UPDATE] += change * change;
    }
}

static void add_own(struct dt_tensor_norms *n)
{
    const float *before = n->before;
    for (size_t i = 0; i < n->owned->block_count; i++) {
        const struct dt_hashed_block *b = &n->owned->blocks[i];
        float *after = dt_alloc((size_t)b->columns + 1, sizeof *after);
        for (int64_t row = 0; row < b->rows; row++, before += b->columns) {
            download(n, b, row, after);
            add_row(n->squares + b->tensor * KINDS, after, before, b->columns);
        }
        free(after);
    }
}

int dt_tensor_norms_after(struct dt_tensor_norms *n, struct dt_comm *comm, struct dt_error *err)
{
    const size_t size = (size_t)dt_comm_size(comm), count = (size_t)n->owned->count * KINDS;
    add_own(n);
    double *all = dt_alloc(size * count, sizeof *all);
    memcpy(all + (size_t)dt_comm_rank(comm) * count, n->squares, count * sizeof *all);
    int rc = dt_comm_share(comm, all, count * sizeof *all, err);
    for (size_t i = 0; rc == 0 && i < (size_t)n->owned->count; i++) {
        double sums[KINDS] = {0};
        for (size_t r = 0; r < size; r++)
            for (int k = 0; k < KINDS; k++)
                sums[k] += all[r * count + i * KINDS + (size_t)k];
        n->norms[i] = (struct dt_tensor_norm){sqrt(sums[PARAMETER]), sqrt(sums[GRADIENT]),
                                              sqrt(sums[UPDATE])};
    }
    free(all);
    return rc;
}
