/* SPDX-License-Identifier: MIT */
/*
 * What the first of the ranks that meet at a path leaves there: a file of one line, which says
 * where it listens, and the job's key, by which ranks authenticate each other.
 *
 * The file is its user's alone: whoever can read it could be a rank. One process at a time has it,
 * by flock(2). What a killed one leaves is harmless: its lock went with it, and the next first rank
 * writes its own line there.
 */
#ifndef DT_COMM_RENDEZVOUS_FILE_H
#define DT_COMM_RENDEZVOUS_FILE_H

#include <stdint.h>

#include "base/error.h"
#include "comm/crypto.h"

/* Where a rank listens, in the order of the network. */
struct dt_rank_address {
    uint32_t port, address; /* port 0: nowhere */
};

struct dt_notice {
    uint8_t key[DT_KEY];
    struct dt_rank_address place;
};

/* Makes the file, or takes one that nobody has; *file is it, until it is removed, or -1 where
 * another process has it. A file that other users may read, or own, is no place for a key: one
 * that a user has left so is replaced, another is refused. */
int dt_notice_take(const char *path, int *file, struct dt_error *err) DT_MUST_CHECK;
int dt_notice_write(const char *path, int file, const struct dt_notice *notice,
                    struct dt_error *err) DT_MUST_CHECK;
/* *notice is all 0 while there is none, or its line is not whole, or other users may have written
 * it. A file that is none of ours is refused, as by dt_notice_take; and where there could be none,
 * for want of a folder, rights or room, each finds that by itself, and waits for no first rank. */
int dt_notice_read(const char *path, struct dt_notice *notice, struct dt_error *err) DT_MUST_CHECK;
/* Removes what dt_notice_take took. */
void dt_notice_remove(const char *path, int file);

#endif
