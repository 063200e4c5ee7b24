/* SPDX-License-Identifier: MIT */
/*
 * Options of all programs that read documents: the policy for bad lines, incomplete streams and
 * documents that are too long.
 *
 *     static struct { struct dt_reading_options reading; } opt = {{DT_READING_OPTIONS_DEFAULT}};
 *     static const struct dt_option options[] = {DT_READING_OPTIONS(opt.reading), {NULL}};
 *
 *     dt_reading_options_check(&opt.reading, &documents_options);
 *     dt_reading_options_files(&opt.reading, &command, &files, &count);
 *     ... read to the end, and then
 *     dt_reading_options_report(documents);
 */
#ifndef DT_DOCUMENT_OPTIONS_H
#define DT_DOCUMENT_OPTIONS_H

#include "document/document.h"
#include "options/options.h"

struct dt_reading_options {
    const char *on_error;
    long max_errors;   /* -1: not given */
    long max_document; /* 0: not given */
    bool partial;
    const char *part;       /* NULL: not given */
    const char *files_from; /* NULL: not given */
};

/* clang-format off */
#define DT_READING_OPTIONS_DEFAULT {.max_errors = -1}

#define DT_READING_OPTIONS(o)                                                                      \
    {"on-error", 0, DT_OPTION_STRING, &(o).on_error, "stop|skip|quarantine=FILE",                     \
     "at a line that is not a document: stop (default), skip it, or move it to FILE",               \
     .writes = "quarantine="},                                                                     \
    {"max-errors", 0, DT_OPTION_INT, &(o).max_errors, "N",                                            \
     "skip at most N such lines, and fail at the next (default: any number)",                      \
     .min = 0, .max = 1e15},                                                                       \
    {"partial", 0, DT_OPTION_FLAG, &(o).partial, NULL,                                                \
     "take a document stream that was cut or changed on its way"},                                 \
    {"part", 0, DT_OPTION_STRING, &(o).part, "I/N",                                                   \
     "read only part I of N of the files, counted from 0"},                                        \
    {"files-from", 0, DT_OPTION_STRING, &(o).files_from, "FILE",                                      \
     "also read the files that FILE names, one a line or ended by NUL bytes", .reads = true},       \
    {"max-document", 0, DT_OPTION_INT, &(o).max_document, "N",                                        \
     "a document of more than N bytes is a bad line (default: 128M)", .min = 1, .max = 1e15}
/* clang-format on */

/* Fills documents from the options; invalid values and combinations are usage errors. */
void dt_reading_options_check(const struct dt_reading_options *o,
                              struct dt_documents_options *documents);
/* Replaces the operands by the files to read: a name with *, ? or [ that no file has by the files
 * that it matches, in the order of their bytes; after them those of --files-from. The program ends
 * with status 1 if a pattern matches none, or the list cannot be read or is empty. The names live
 * as long as the program. */
void dt_reading_options_files(const struct dt_reading_options *o, const struct dt_command *command,
                              char ***files, int *count);
/* Prints to stderr what was skipped, which stream was incomplete, and that a separator was never
 * found; prints nothing unless all inputs were read. Call it also if the program fails after
 * that. NULL is allowed. */
void dt_reading_options_report(const struct dt_documents *documents);

#endif
