/* SPDX-License-Identifier: MIT */
/*
 * Links: transfers and reductions between the devices of ranks (NCCL), one device per rank. An
 * engine may support them (struct dt_engine).
 *
 * Each channel is a stream of its work, concurrent with the device's ops and the other channels;
 * work of one channel runs in the order of submission:
 *
 *     links->begin(dev, channel);                 after all ops so far
 *     DT_TRY(links->exchange(dev, channel, transfers, count, err));
 *     links->add(dev, sum, x, n);
 *     request = links->end(dev, channel);
 *     ...                                         ops that run concurrently
 *     links->join(dev, channel, request);         later ops run after it
 *
 * Functions are asynchronous. Only the thread that calls ops may call them, except test and abort,
 * which any thread may call while links are open.
 */
#ifndef DT_DEVICE_LINKS_H
#define DT_DEVICE_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dt_device;

#define DT_LINK_NAME 64

/* The identifier of a channel, which its first rank creates and broadcasts (ncclUniqueId). */
struct dt_link_id {
    unsigned char bytes[128];
};

/* DT_LINK_ALL connects all ranks, DT_LINK_DATA those of a group whose collectives the library runs.
 * The others carry messages in one direction, to or from the next or previous rank: a rank's
 * TO_NEXT is the next rank's FROM_BEFORE. */
enum dt_link_channel {
    DT_LINK_ALL,
    DT_LINK_DATA,
    DT_LINK_TO_NEXT,
    DT_LINK_FROM_BEFORE,
    DT_LINK_TO_BEFORE,
    DT_LINK_FROM_NEXT,
    DT_LINK_LANES
};

struct dt_link_end {
    enum dt_link_channel lane;
    struct dt_link_id id;
    int rank, size; /* within the channel; of two ranks, the sender is rank 0 */
};

struct dt_link_transfer {
    bool sends;
    int peer; /* rank within the channel */
    void *data;
    size_t bytes;
};

/* A collective operation of the library, in place. data has a piece of count elements for each rank
 * of the channel, in their order, and then rest elements more, which are the last rank's, too. */
struct dt_link_collective {
    enum dt_link_elements {
        DT_LINK_BYTES,     /* all-gather: each rank contributes its piece */
        DT_LINK_F32_SUMS,  /* reduce-scatter: each rank's piece becomes the sum, in an order and */
        DT_LINK_BF16_SUMS, /* with roundings that are the library's; other pieces are undefined */
    } elements;
    void *data;
    size_t count, rest;
};

struct dt_links {
    /* Finds the library: its name and version, and the identity of the device on its machine.
     * DT_EMISSING, with an error that names what is missing. */
    int (*find)(struct dt_device *, char name[DT_LINK_NAME], char device[DT_LINK_NAME],
                struct dt_error *);
    int (*make_id)(struct dt_device *, struct dt_link_id *, struct dt_error *);
    /* Opens channels; all their ranks call it together, in any order. patience: timeout in
     * seconds. */
    int (*open)(struct dt_device *, const struct dt_link_end *, int count, double patience,
                struct dt_error *);
    void (*close)(struct dt_device *); /* all open channels */

    void (*begin)(struct dt_device *, enum dt_link_channel);
    /* Concurrent transfers; those between two ranks match in their order. */
    int (*exchange)(struct dt_device *, enum dt_link_channel, const struct dt_link_transfer *,
                    int count, struct dt_error *);
    /* On DT_LINK_DATA. NULL: not supported. */
    int (*collect)(struct dt_device *, const struct dt_link_collective *, struct dt_error *);
    /* sum += x, n floats; add and copy use DT_LINK_ALL. */
    void (*add)(struct dt_device *, float *sum, const float *x, size_t n);
    void (*copy)(struct dt_device *, void *to, const void *from, size_t bytes);
    uint64_t (*end)(struct dt_device *, enum dt_link_channel);

    void (*join)(struct dt_device *, enum dt_link_channel, uint64_t request);
    /* 1: done, 0: not yet. */
    int (*test)(struct dt_device *, enum dt_link_channel, uint64_t request, struct dt_error *);
    /* Cancels all work on links; no work is accepted afterwards. */
    void (*abort)(struct dt_device *);
};

#endif
