/* SPDX-License-Identifier: MIT */
/*
 * Bytes at any place of a file, or of a URL by ranges.
 *
 *     struct dt_random_access a = {.fd = fd, .name = name};
 *     DT_TRY(dt_random_access_read(&a, at, data, most, &size, err));
 *     dt_random_access_release(&a);
 */
#ifndef DT_IO_RANDOM_ACCESS_H
#define DT_IO_RANDOM_ACCESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define DT_RANDOM_ACCESS_BYTES ((size_t)1 << 18) /* the most that is read at once */

struct dt_random_access {
    int fd;           /* of a file; borrowed, as the names are */
    const char *name; /* for errors */
    const char *url;  /* instead of the file, and its size; or NULL */
    uint64_t size;
    struct dt_remote *remote; /* where the bytes after those of data come from, or NULL */
    unsigned char *data;      /* the bytes from .. from + held - 1 of the URL */
    uint64_t from;
    size_t held;
};

/* Fewer than most bytes only at the end. */
int dt_random_access_read(struct dt_random_access *a, uint64_t at, unsigned char *data, size_t most,
                          size_t *size, struct dt_error *err) DT_MUST_CHECK;
void dt_random_access_release(struct dt_random_access *a);

#endif
