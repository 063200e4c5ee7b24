/* SPDX-License-Identifier: MIT */
/*
 * HTTP requests. The client is the plug-in http.so, built if libcurl is installed. Without it
 * dt_http_load fails and says what to install.
 *
 *     DT_TRY(dt_http_load(&http, err));
 *     DT_TRY(http->open(&state, &login, err));
 *     DT_TRY(http->request(state, &(struct dt_http_request){"GET", url}, &answer, err));
 */
#ifndef DT_TRACK_HTTP_H
#define DT_TRACK_HTTP_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"

#define DT_HTTP_ABI 2

/* Credentials. */
struct dt_http_login {
    char *token;           /* bearer token, or NULL */
    char *user, *password; /* used without a token; may be NULL */
    bool direct;           /* the server is on this machine: use no proxy */
};

struct dt_http_request {
    const char *method, *url;
    const char *type; /* content type of the body; NULL: no body */
    const void *body;
    size_t size;
    double patience; /* timeout in seconds; 0: 30 */
};

struct dt_http_answer {
    long status; /* 200, 404, ... */
    struct dt_buffer body;
};

struct dt_http {
    int abi;
    /* login is borrowed until close. */
    int (*open)(void **state, const struct dt_http_login *, struct dt_error *);
    void (*close)(void *state);
    /* Replaces *answer. Follows no redirection, which could carry the login to another server.
     * DT_EIO if no answer came: the server may or may not have acted; DT_EINVALID if it is too
     * large. */
    int (*request)(void *state, const struct dt_http_request *, struct dt_http_answer *answer,
                   struct dt_error *);
};

/* The plug-in's table, exported as "dt_http"; DT_EMISSING if it was not built. */
int dt_http_load(const struct dt_http **http, struct dt_error *err) DT_MUST_CHECK;

#endif
