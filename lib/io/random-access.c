/* SPDX-License-Identifier: MIT */
#include "io/random-access.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "remote/remote.h"

static int read_file(const struct dt_random_access *a, uint64_t at, unsigned char *data,
                     size_t most, size_t *size, struct dt_error *err)
{
    ssize_t n;
    do {
        n = pread(a->fd, data, most, (off_t)at);
    } while (n < 0 && errno == EINTR);
    *size = n > 0 ? (size_t)n : 0;
    return n < 0 ? dt_fail_errno(err, "cannot read '%s'", a->name) : 0;
}

/* Goes on from the bytes that it has, or requests others. */
static int move_to(struct dt_random_access *a, uint64_t at, struct dt_error *err)
{
    if (a->data == NULL)
        a->data = dt_alloc(DT_RANDOM_ACCESS_BYTES, 1);
    if (a->remote == NULL || at < a->from || at > a->from + a->held) {
        dt_remote_close(a->remote);
        a->remote = NULL;
        a->held = 0;
        DT_TRY(dt_remote_open_at(&a->remote, a->url, at, a->size, err));
        a->from = at;
    }
    a->held -= (size_t)(at - a->from);
    memmove(a->data, a->data + (at - a->from), a->held);
    a->from = at;
    return 0;
}

static int read_url(struct dt_random_access *a, size_t most, struct dt_error *err)
{
    ssize_t n = 1;
    while (a->held < most && n > 0) {
        do {
            n = read(dt_remote_descriptor(a->remote), a->data + a->held, most - a->held);
        } while (n < 0 && errno == EINTR);
        a->held += n > 0 ? (size_t)n : 0;
    }
    if (n < 0)
        return dt_fail_errno(err, "cannot read '%s'", a->name);
    return n == 0 ? dt_remote_finish(a->remote, err) : 0;
}

int dt_random_access_read(struct dt_random_access *a, uint64_t at, unsigned char *data, size_t most,
                          size_t *size, struct dt_error *err)
{
    *size = 0;
    if (a->url == NULL)
        return read_file(a, at, data, most, size, err);
    if (at >= a->size)
        return 0;
    most = most < DT_RANDOM_ACCESS_BYTES ? most : DT_RANDOM_ACCESS_BYTES;
    DT_TRY(move_to(a, at, err));
    DT_TRY(read_url(a, most, err));
    *size = a->held < most ? a->held : most;
    memcpy(data, a->data, *size);
    return 0;
}

void dt_random_access_release(struct dt_random_access *a)
{
    dt_remote_close(a->remote);
    free(a->data);
    *a = (struct dt_random_access){.fd = -1};
}
