/* SPDX-License-Identifier: MIT */
/*
 * Links: what a communicator needs to exchange and add up memory of devices where it lies,
 * one device a rank. An engine may have them (struct dt_engine).
 *
 * Work on links is done in the order in which it is put there, beside the device's ops:
 *
 *     links->begin(dev);                          behind all ops so far
 *     DT_TRY(links->exchange(dev, transfers, count, err));
 *     links->add(dev, sum, x, n);
 *     ticket = links->end(dev);
 *     ...                                         ops that go on meanwhile
 *     links->join(dev, ticket);                   ops from now on are behind it
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

struct dt_link_transfer {
    bool sends;
    int peer; /* rank of all that are linked */
    void *data;
    size_t bytes;
};

struct dt_links {
    /* Finds what links are made of, its name and version, and what tells the device from others
     * of its machine. DT_EMISSING, with a line that says what is not there. */
    int (*find)(struct dt_device *, char name[DT_LINK_NAME], char device[DT_LINK_NAME],
                struct dt_error *);
    int (*make_id)(struct dt_device *, struct dt_link_id *, struct dt_error *);
    /* All ranks open together. patience: seconds that a call waits for others. */
    int (*open)(struct dt_device *, const struct dt_link_id *, int rank, int size, double patience,
                struct dt_error *);
    void (*close)(struct dt_device *);

    void (*begin)(struct dt_device *);
    /* Transfers that go on at the same time; those between two ranks meet in their order. */
    int (*exchange)(struct dt_device *, const struct dt_link_transfer *, int count,
                    struct dt_error *);
    /* sum += x, n floats. */
    void (*add)(struct dt_device *, float *sum, const float *x, size_t n);
    void (*copy)(struct dt_device *, void *to, const void *from, size_t bytes);
    /* Memory of the device until the next call, kept from one to the next; NULL: none left. */
    void *(*scratch)(struct dt_device *, size_t bytes);
    uint64_t (*end)(struct dt_device *);

    void (*join)(struct dt_device *, uint64_t ticket);
    /* 1: done, 0: not yet. */
    int (*test)(struct dt_device *, uint64_t ticket, struct dt_error *);
    /* Whatever is on links ends, done or not, and nothing is put there any more. */
    void (*abort)(struct dt_device *);
};

#endif
