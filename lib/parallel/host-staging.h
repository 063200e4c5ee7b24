/* SPDX-License-Identifier: MIT */
/*
 * Operations of replicas on memory of the device: where it lies, or, where the ranks cannot reach
 * it there (comm/comm.h), on a copy in the host's.
 *
 *     DT_TRY(dt_host_staging_all_reduce(&staging, values, n, err));
 *
 * They are behind all ops so far, and ops from now on are behind them.
 */
#ifndef DT_PARALLEL_HOST_STAGING_H
#define DT_PARALLEL_HOST_STAGING_H

#include "base/buffer.h"
#include "comm/comm.h"

struct dt_host_staging {
    struct dt_comm *comm; /* borrowed, as is this */
    struct dt_device *device;
    bool needed;
    struct dt_buffer host; /* the copies; as much as an operation has needed so far */
};

void dt_host_staging_release(struct dt_host_staging *staging);

/* As dt_comm_all_reduce, dt_comm_all_gather and dt_comm_all_to_all. */
int dt_host_staging_all_reduce(struct dt_host_staging *staging, float *values, int64_t n,
                               struct dt_error *err) DT_MUST_CHECK;
int dt_host_staging_all_gather(struct dt_host_staging *staging, void *data, const size_t *offsets,
                               struct dt_error *err) DT_MUST_CHECK;
int dt_host_staging_all_to_all(struct dt_host_staging *staging, const struct dt_piece *sends,
                               const struct dt_piece *receives, struct dt_error *err) DT_MUST_CHECK;

#endif
