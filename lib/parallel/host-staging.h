/* SPDX-License-Identifier: MIT */
/*
 * Blocking collectives on device memory. Without a device communicator (comm/comm.h) the data is
 * copied to host memory and back.
 *
 *     DT_TRY(dt_host_staging_all_reduce(&staging, values, n, err));
 *
 * They run after all ops queued so far; ops queued later see the result.
 */
#ifndef DT_PARALLEL_HOST_STAGING_H
#define DT_PARALLEL_HOST_STAGING_H

#include "base/buffer.h"
#include "comm/comm.h"

struct dt_host_staging {
    struct dt_comm *comm; /* borrowed, as is the device */
    struct dt_device *device;
    bool needed;           /* ranks cannot access device memory */
    struct dt_buffer host; /* grows to the largest operation so far */
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
