/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/credentials.h"
#include "base/printable.h"

/* A truncated text may end inside a password: the password then extends to its end. */
static void hide_credentials(char *text)
{
    char *last = text + DT_ERROR_TEXT - 2, end = *last;
    bool cut = strlen(text) == DT_ERROR_TEXT - 1;
    if (cut)
        *last = '@';
    dt_credentials_hide(text);
    if (cut && *last == '@' && strlen(text) == DT_ERROR_TEXT - 1)
        *last = end;
}

static void make_one_line(char *text)
{
    hide_credentials(text);
    dt_printable_line(text, DT_ERROR_TEXT);
}

static void format(char *text, const char *fmt, va_list args)
{
    vsnprintf(text, DT_ERROR_TEXT, fmt, args);
}

static void append(struct dt_error *err, const char *more)
{
    size_t used = strlen(err->text);
    snprintf(err->text + used, DT_ERROR_TEXT - used, ": %s", more);
}

int dt_fail(struct dt_error *err, enum dt_code code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    format(err->text, fmt, args);
    va_end(args);
    make_one_line(err->text);
    err->code = code;
    err->agreed = false;
    return code;
}

int dt_fail_errno(struct dt_error *err, const char *fmt, ...)
{
    int saved = errno;
    va_list args;
    va_start(args, fmt);
    format(err->text, fmt, args);
    va_end(args);
    append(err, strerror(saved));
    make_one_line(err->text);
    err->code = saved == ENOMEM || saved == EMFILE || saved == ENFILE ? DT_ENOMEM : DT_EIO;
    err->agreed = false;
    return err->code;
}

int dt_fail_context(struct dt_error *err, const char *fmt, ...)
{
    char old[DT_ERROR_TEXT];
    memcpy(old, err->text, sizeof old);
    va_list args;
    va_start(args, fmt);
    format(err->text, fmt, args);
    va_end(args);
    append(err, old);
    make_one_line(err->text);
    return err->code;
}
