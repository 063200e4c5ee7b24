/* SPDX-License-Identifier: MIT */
/*
 * Requests over HTTP. The client is a plug-in, http.so, that is built where libcurl is:
 * dt starts without, and says what is missing when it is asked for.
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

/* Who we are to the server. */
struct dt_http_login {
    char *token;           /* bearer token; NULL for none */
    char *user, *password; /* where there is no token; NULL for none */
    bool direct;           /* the server is on this machine: no proxy stands between */
};

struct dt_http_request {
    const char *method, *url;
    const char *type; /* of the body; NULL without one */
    const void *body;
    size_t size;
    double patience; /* seconds that it may take; 0: 30 */
};

struct dt_http_answer {
    long status; /* 200, 404, ... */
    struct dt_buffer body;
};

struct dt_http {
    int abi;
    /* The login is borrowed and lives as long. */
    int (*open)(void **state, const struct dt_http_login *, struct dt_error *);
    void (*close)(void *state);
    /* Replaces *answer. Follows no redirection, which could carry the login to another server.
     * DT_EIO if no answer came: the server may or may not have acted; DT_EINVALID if it is too
     * large. */
    int (*request)(void *state, const struct dt_http_request *, struct dt_http_answer *answer,
                   struct dt_error *);
};

/* The plug-in's table, which it exports as "dt_http"; DT_EMISSING where it was not built. */
int dt_http_load(const struct dt_http **http, struct dt_error *err) DT_MUST_CHECK;

#endif
