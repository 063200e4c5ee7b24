/* SPDX-License-Identifier: MIT */
/*
 * The rendezvous file, which rank 0 writes: one line with the address on which it listens and the
 * job's key, with which ranks authenticate each other.
 *
 * Only its user may read the file, since a process that can read it could join as a rank. One
 * process at a time owns it, by flock(2). A file left by a killed process does no harm: the lock is
 * gone, and the next rank 0 overwrites it.
 */
#ifndef DT_COMM_RENDEZVOUS_FILE_H
#define DT_COMM_RENDEZVOUS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "comm/crypto.h"

/* Where a rank listens, in network byte order. */
struct dt_rank_address {
    uint32_t port, address; /* port 0: it does not listen */
};

struct dt_notice {
    uint8_t key[DT_KEY];
    struct dt_rank_address endpoint;
    uint64_t generation; /* of an elastic job (elastic/membership.h); otherwise 0 */
};

/* Creates the file, or takes over one without an owner. *file: its descriptor, until
 * dt_notice_remove, or -1 if another process owns it. A file that other users may read is replaced;
 * a file of another user is an error. */
int dt_notice_take(const char *path, int *file, struct dt_error *err) DT_MUST_CHECK;
int dt_notice_write(const char *path, int file, const struct dt_notice *notice,
                    struct dt_error *err) DT_MUST_CHECK;
/* *notice is all 0 if the file is missing, incomplete or writable by other users. Another kind of
 * file is an error, as for dt_notice_take. So is a path where no file can be created (directory,
 * permissions, space): each rank checks that itself instead of waiting for rank 0. */
int dt_notice_read(const char *path, struct dt_notice *notice, struct dt_error *err) DT_MUST_CHECK;
/* Whether the file that dt_notice_take took is still the one at the path. */
bool dt_notice_is_held(const char *path, int file);
/* Removes what dt_notice_take took. */
void dt_notice_remove(const char *path, int file);
/* Removes the file of a process that has stopped, which still holds its lock, unless it has another
 * content by now: one process at a time does so, by a lock beside it. */
void dt_notice_discard(const char *path, const struct dt_notice *notice);

#endif
