/* SPDX-License-Identifier: MIT */
/*
 * Links: what a communicator needs to exchange and add up memory of devices where it lies,
 * one device a rank. An engine may have them (struct dt_engine).
 *
 * Work on links goes in lanes, beside the device's ops and the other lanes; that of one lane is
 * done in the order in which it is put there:
 *
 *     links->begin(dev, lane);                    behind all ops so far
 *     DT_TRY(links->exchange(dev, lane, transfers, count, err));
 *     links->add(dev, sum, x, n);
 *     ticket = links->end(dev, lane);
 *     ...                                         ops that go on meanwhile
 *     links->join(dev, lane, ticket);             ops from now on are behind it
 *
 * Functions return before the work is done. All are called by the thread that calls ops, but
 * for test and abort, which any thread may call while links are open.
 */
#ifndef DT_DEVICE_LINKS_H
#define DT_DEVICE_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dt_device;

#define DT_LINK_NAME 64

/* What the first rank makes and all are given. */
struct dt_link_id {
    unsigned char bytes[128];
};

/* The first is of all ranks. The others are messages one way, between this rank and the next one
 * of some group, or the one before: a lane to a rank is its lane from this one. */
enum dt_link_channel {
    DT_LINK_ALL,
    DT_LINK_TO_NEXT,
    DT_LINK_FROM_BEFORE,
    DT_LINK_TO_BEFORE,
    DT_LINK_FROM_NEXT,
    DT_LINK_LANES
};

struct dt_link_end {
    enum dt_link_channel lane;
    struct dt_link_id id;
    int rank, size; /* of those that the lane has; of two, the one that sends is the first */
};

struct dt_link_transfer {
    bool sends;
    int peer; /* rank of those that the lane has */
    void *data;
    size_t bytes;
};

struct dt_links {
    /* Finds what links are made of, its name and version, and what tells the device from others
     * of its machine. DT_EMISSING, with a line that says what is not there. */
    int (*find)(struct dt_device *, char name[DT_LINK_NAME], char device[DT_LINK_NAME],
                struct dt_error *);
    int (*make_id)(struct dt_device *, struct dt_link_id *, struct dt_error *);
    /* All ranks of these lanes open them together, and in any order. patience: seconds that a call
     * waits for others. */
    int (*open)(struct dt_device *, const struct dt_link_end *, int count, double patience,
                struct dt_error *);
    void (*close)(struct dt_device *); /* all lanes, where any was opened */

    void (*begin)(struct dt_device *, enum dt_link_channel);
    /* Transfers that go on at the same time; those between two ranks meet in their order. */
    int (*exchange)(struct dt_device *, enum dt_link_channel, const struct dt_link_transfer *,
                    int count, struct dt_error *);
    /* sum += x, n floats; this and copy in the lane of all. */
    void (*add)(struct dt_device *, float *sum, const float *x, size_t n);
    void (*copy)(struct dt_device *, void *to, const void *from, size_t bytes);
    uint64_t (*end)(struct dt_device *, enum dt_link_channel);

    void (*join)(struct dt_device *, enum dt_link_channel, uint64_t ticket);
    /* 1: done, 0: not yet. */
    int (*test)(struct dt_device *, enum dt_link_channel, uint64_t ticket, struct dt_error *);
    /* Whatever is on links ends, done or not, and nothing is put there any more. */
    void (*abort)(struct dt_device *);
};

#endif
