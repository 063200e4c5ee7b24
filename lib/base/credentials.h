/* SPDX-License-Identifier: MIT */
/*
 * Removes passwords and signatures from URLs, so that they are neither printed nor stored. Every
 * message (base/error.h) and every recorded command line (dt_command_line) passes through here.
 */
#ifndef DT_BASE_CREDENTIALS_H
#define DT_BASE_CREDENTIALS_H

#include <stddef.h>

/* The length of USER:PASSWORD where text, which follows "://", begins with USER:PASSWORD@; else 0.
 */
size_t dt_credentials_length(const char *text);

/* Replaces USER:PASSWORD in each URL of text, in place, by "***":
 * me:pass@host becomes ***@host. So is the query of a URL that is signed or has a token:
 * host/file?***. Text may be JSON, which stays valid. Returns the new length. */
size_t dt_credentials_hide(char *text);

#endif
