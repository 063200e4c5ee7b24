/* SPDX-License-Identifier: MIT */
#include "parallel/host-staging.h"

#include <stdlib.h>

void dt_host_staging_release(struct dt_host_staging *s)
{
    dt_buffer_release(&s->host);
}

/* The memory that an operation uses for data: data itself, or host memory. */
static void *staging_for(struct dt_host_staging *s, void *data, size_t bytes)
{
    if (!s->needed)
        return data;
    dt_buffer_reserve(&s->host, bytes);
    return s->host.data;
}

static void copy_out(const struct dt_host_staging *s, void *to, const void *from, size_t bytes)
{
    if (to != from)
        s->device->ops->download(s->device, to, from, bytes);
}

static void copy_back(const struct dt_host_staging *s, void *to, const void *from, size_t bytes)
{
    if (to != from)
        s->device->ops->upload(s->device, to, from, bytes);
}

int dt_host_staging_all_reduce(struct dt_host_staging *s, float *values, int64_t n,
                               struct dt_error *err)
{
    size_t bytes = (size_t)n * sizeof *values;
    float *there = staging_for(s, values, bytes);
    copy_out(s, there, values, bytes);
    DT_TRY(dt_comm_finish_ops(s->comm, s->device, err));
    DT_TRY(dt_comm_all_reduce(s->comm, there, n, err));
    copy_back(s, values, there, bytes);
    return 0;
}

int dt_host_staging_all_gather(struct dt_host_staging *s, void *data, const size_t *offsets,
                               struct dt_error *err)
{
    size_t bytes = offsets[dt_comm_size(s->comm)];
    const size_t *own = offsets + dt_comm_rank(s->comm);
    char *there = staging_for(s, data, bytes);
    copy_out(s, there + own[0], (char *)data + own[0], own[1] - own[0]);
    DT_TRY(dt_comm_finish_ops(s->comm, s->device, err));
    DT_TRY(dt_comm_wait(s->comm, dt_comm_all_gather(s->comm, there, offsets), err));
    copy_back(s, data, there, bytes);
    return 0;
}

/* Moves the other ranks' pieces to `there`, one after the other, if staging is needed. */
static char *move_pieces(const struct dt_host_staging *s, const struct dt_piece *pieces,
                         struct dt_piece *moved, char *there)
{
    for (int r = 0; r < dt_comm_size(s->comm); r++) {
        bool moves = s->needed && r != dt_comm_rank(s->comm);
        moved[r] = (struct dt_piece){moves ? there : pieces[r].data, pieces[r].bytes};
        if (moves)
            there += pieces[r].bytes;
    }
    return there;
}

int dt_host_staging_all_to_all(struct dt_host_staging *s, const struct dt_piece *sends,
                               const struct dt_piece *receives, struct dt_error *err)
{
    size_t size = (size_t)dt_comm_size(s->comm), bytes = 0;
    struct dt_piece *out = dt_alloc(2 * size, sizeof *out), *in = out + size;
    for (size_t r = 0; r < size; r++)
        bytes += sends[r].bytes + receives[r].bytes;
    char *there = staging_for(s, NULL, bytes);
    (void)move_pieces(s, receives, in, move_pieces(s, sends, out, there));
    for (size_t r = 0; r < size; r++)
        copy_out(s, out[r].data, sends[r].data, out[r].bytes);
    int rc = dt_comm_finish_ops(s->comm, s->device, err);
    rc = rc < 0 ? rc : dt_comm_wait(s->comm, dt_comm_all_to_all(s->comm, out, in), err);
    for (size_t r = 0; r < size && rc == 0; r++)
        copy_back(s, receives[r].data, in[r].data, in[r].bytes);
    free(out);
    return rc;
}
