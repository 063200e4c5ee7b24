/* SPDX-License-Identifier: MIT */
/*
 * Errors of the library: a code for the program and a sentence for the user.
 *
 * A function that can fail returns int: 0, or a negative enum dt_code, and
 * fills the caller's struct dt_error. The library never prints, exits or
 * aborts because of its input; assert() guards against our own bugs only.
 *
 *     struct dt_error err;
 *     if (dt_reader_open(&r, path, &err) < 0)
 *         return dt_program_report(&err);
 */
#ifndef DT_BASE_ERROR_H
#define DT_BASE_ERROR_H

#include <stdbool.h>

#include "base/platform.h"

#define DT_ERROR_TEXT 512

enum dt_code {
    DT_OK = 0,
    DT_EIO = -1,      /* a system call failed: open, read, write, rename */
    DT_EFORMAT = -2,  /* a file or stream is malformed */
    DT_EINVALID = -3, /* an argument or a combination of settings is impossible */
    DT_ENOMEM = -4,   /* memory, or another limit of the process, is exhausted */
    DT_EMISSING = -5, /* something asked for by name does not exist */
    DT_ESTOP = -6,    /* stopped on request; not a failure */
    DT_ESTALLED = -7  /* another rank did not respond in time */
};

struct dt_error {
    enum dt_code code;
    char text[DT_ERROR_TEXT]; /* one line, lower case, no full stop */
    bool agreed;              /* every rank has this error: dt_comm_agree */
};

#define DT_MUST_CHECK   __attribute__((warn_unused_result))
#define DT_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Fills *err with code and the formatted text; returns code. Text beyond DT_ERROR_TEXT is cut.
 * Control characters are escaped (base/printable.h), so that file names and data cannot break
 * the line or send commands to a terminal; a password in a URL becomes "***"
 * (base/credentials.h). */
int dt_fail(struct dt_error *err, enum dt_code code, const char *fmt, ...) DT_PRINTF(3, 4);

/* As dt_fail with DT_EIO, or DT_ENOMEM if memory or descriptors are exhausted, and appends ": " and
 * the text of errno. */
int dt_fail_errno(struct dt_error *err, const char *fmt, ...) DT_PRINTF(2, 3);

/* Puts "formatted text: " before the text already in *err; returns its code. */
int dt_fail_context(struct dt_error *err, const char *fmt, ...) DT_PRINTF(2, 3);

/* Returns the error of a failed call to the caller. */
#define DT_TRY(call)                                                                               \
    do {                                                                                           \
        int dt_try_rc_ = (call);                                                                   \
        if (dt_try_rc_ < 0)                                                                        \
            return dt_try_rc_;                                                                     \
    } while (0)

#endif
