/* SPDX-License-Identifier: MIT */
/*
 * The common part of all dt programs: messages, exit status, numbers in text, and where the
 * program's files are. Its options are in options/options.h.
 */
#ifndef DT_BASE_PROGRAM_H
#define DT_BASE_PROGRAM_H

#include "base/error.h"

#define DT_PROGRAM_MAX_INT 0x1p53 /* whole numbers up to here are exact in a double */

/* First call of a program: sets the name that messages begin with (borrowed), lets a write beyond
 * the limit of a file's size fail with EFBIG, and keeps files from the numbers of standard
 * descriptors that are closed. */
void dt_program_begin(const char *name);

/* "PROGRAM: text" to stderr; returns 1, the exit status of a failed program. */
int dt_program_report(const struct dt_error *err);
/* Prints text to stdout; on a terminal control characters are escaped (base/printable.h). */
void dt_program_print(const char *text);
/* Flushes stdout. Returns the exit status: 0, or 1 after a line on stderr if a write failed. */
int dt_finish_stdout(void);
/* "PROGRAM: text" to stderr. */
void dt_program_warn(const char *fmt, ...) DT_PRINTF(1, 2);
/* "PROGRAM: text" and a hint at --help to stderr; exits with status 2. */
void dt_program_usage(const char *fmt, ...) DT_PRINTF(1, 2) __attribute__((noreturn));
/* dt_program_usage waits this long before it prints: of several ranks only the first prints, and
 * the launcher ends the others. */
void dt_program_delay_usage(unsigned seconds);

/* Parses "123", "64k", "10M", "1e6" into a number; -1 on anything else and above 2^53. */
int dt_program_parse_int(const char *text, long *value);
/* The same for a whole number of any size. */
int dt_program_parse_whole(const char *text, double *value);
int dt_program_parse_real(const char *text, double *value);

/* The directory PART ("lib/dt", "share/dt") of the installation, relative to the executable, so
 * that both build/ and PREFIX work. Owned by the caller. */
char *dt_program_installed_path(const char *part);

/* For a library: FILE, in PREFIX/lib or PREFIX/lib/TRIPLET, takes the place of the executable in
 * dt_program_installed_path; NULL ends that. */
void dt_program_set_location(const char *file);

/* The name in names (ended by NULL) closest to word by edit distance; NULL if none is close: a
 * difference for each 4 characters. */
const char *dt_program_did_you_mean(const char *word, const char *const *names);

#endif
