/* SPDX-License-Identifier: MIT */
/*
 * A ledger: a directory with a JSON file per part of each stage of a job, which says what became of
 * it. dt-part(1) describes the files.
 *
 *     DT_TRY(dt_ledger_run("ledger", &part, &status, err));        runs a command, writes its file
 *     DT_TRY(dt_ledger_read(&summary, "ledger", NULL, 0, err));    all files, by stage
 */
#ifndef DT_PARTS_LEDGER_H
#define DT_PARTS_LEDGER_H

#include <signal.h>

#include "base/error.h"
#include "document/part.h"
#include "json/json.h"

struct dt_ledger_part {
    const char *stage; /* letters, digits, '-' and '_' */
    struct dt_document_part part;
    char *const *command;       /* ended by NULL */
    const char *const *outputs; /* [output_count] files or directories that the command writes */
    int output_count;
    const char *const *stats; /* [stats_count] JSON files that it writes, such as dt-clean's */
    int stats_count;
    const volatile sig_atomic_t *stop; /* nonzero: ends the command */
};

/* DT_EINVALID for a name that is not of letters, digits, '-' and '_'. */
int dt_ledger_check_stage(const char *stage, struct dt_error *err) DT_MUST_CHECK;

/* Runs the command and records it, atomically, before it starts and after it ends. The command ends
 * with this program, however that ends; while it runs, a second run of the part is refused
 * (DT_EINVALID). *status: its exit status; complaint: its last line on stderr. What the command
 * prints to stdout goes there when it ends. A command that cannot be started, or whose outputs or
 * statistics are missing or were there before and not written by it, is recorded as failed, and an
 * error. */
int dt_ledger_run(const char *ledger, const struct dt_ledger_part *part, int *status,
                  char complaint[256], struct dt_error *err) DT_MUST_CHECK;

/* Whether text names a stage, or one of a number of parts: "STAGE" or "STAGE/N". */
int dt_ledger_check_plan(const char *text, struct dt_error *err) DT_MUST_CHECK;
/* The stages in the order given, of N parts each if named so, or without names all of the ledger by
 * name, as an array:
 *
 *     [{"stage": "tokenize", "parts": 64, "done": 62, "failed": [RECORD, ...],
 *       "started": [RECORD, ...], "missing": [17], "attempts": 63, "seconds": 812.5,
 *       "cpu_seconds": 790.1, "documents": 100000, "tokens": 52000000, "bytes": 180000000,
 *       "stats": {...}, "other_plans": [16]}, ...]
 *
 * The numbers are sums over the parts that are done. other_plans: other numbers of parts that the
 * stage has records of, if any. *stages is owned by the caller. */
int dt_ledger_read(struct json_object **stages, const char *ledger, char *const *names, int count,
                   struct dt_error *err) DT_MUST_CHECK;
/* The number of parts of these stages that are not done. */
long dt_ledger_left(struct json_object *stages);
/* Appends a table of the stages, and a line for each part that is not done. */
void dt_ledger_print(struct json_object *stages, struct dt_buffer *text);

/* Adds the whole numbers of b to those of a, member by member and element by element; of other
 * values and of lists of different lengths those are kept that are equal. A sum beyond 64 bits is
 * left out. */
struct json_object *dt_ledger_add_stats(struct json_object *a, struct json_object *b);

#endif
