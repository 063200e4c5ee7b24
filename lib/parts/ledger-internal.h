/* SPDX-License-Identifier: MIT */
/* The files of a ledger. Private to lib/parts. */
#ifndef DT_PARTS_LEDGER_INTERNAL_H
#define DT_PARTS_LEDGER_INTERNAL_H

#include <stdbool.h>

#include "base/error.h"

#define DT_LEDGER_STARTED "started"
#define DT_LEDGER_FAILED  "failed"
#define DT_LEDGER_DONE    "done"

/* LEDGER/STAGE-000003-of-000064.json, with that suffix; owned by the caller. Six digits suffice for
 * DT_DOCUMENT_PARTS. */
char *dt_ledger_path(const char *ledger, const char *stage, long part, long parts,
                     const char *suffix);

#define DT_LEDGER_TIME 32
#define DT_LEDGER_HOST 256
void dt_ledger_now(char text[DT_LEDGER_TIME]); /* in UTC */
void dt_ledger_host(char name[DT_LEDGER_HOST]);

/* A part that is being run: flock(2) on a file that names the process. The kernel releases it when
 * the process and its guard (experiment/child.h) have ended, on whichever machine. */
struct dt_ledger_lock {
    char *path;
    int fd;
};
/* DT_EINVALID "is being run by process 12 on HOST since TIME; ...". File systems without locks have
 * none. Release the lock also after a failure. */
int dt_ledger_lock_take(struct dt_ledger_lock *lock, const char *path,
                        struct dt_error *err) DT_MUST_CHECK;
/* held: it was taken. */
void dt_ledger_lock_release(struct dt_ledger_lock *lock, bool held);

#endif
