/* SPDX-License-Identifier: MIT */
/* The files of a ledger. Private to lib/parts. */
#ifndef DT_PARTS_LEDGER_INTERNAL_H
#define DT_PARTS_LEDGER_INTERNAL_H

#define DT_LEDGER_STARTED "started"
#define DT_LEDGER_FAILED  "failed"
#define DT_LEDGER_DONE    "done"

/* LEDGER/STAGE-000003-of-000064.json; owned by the caller. Six digits suffice for
 * DT_DOCUMENT_PARTS. */
char *dt_ledger_path(const char *ledger, const char *stage, long part, long parts);

#endif
