/* SPDX-License-Identifier: MIT */
/*
 * Requests over HTTP. The client is a plug-in, http.so, that is built where libcurl is:
 * dt starts without, and says what is missing when it is asked for.
 *
 *     DT_TRY(dt_http_load(&http, err));
 *     DT_TRY(http->open(&state, err));
 *     DT_TRY(http->request(state, &(struct dt_http_request){"GET", url}, &answer, err));
 */
#ifndef DT_TRACK_HTTP_H
#define DT_TRACK_HTTP_H

#include "base/buffer.h"
#include "base/error.h"

#define DT_HTTP_ABI 1

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
    int (*open)(void **state, struct dt_error *);
    void (*close)(void *state);
    /* Replaces *answer. DT_EIO if no answer came: the server may or may not have acted. */
    int (*request)(void *state, const struct dt_http_request *, struct dt_http_answer *answer,
                   struct dt_error *);
};

/* The plug-in's table, which it exports as "dt_http"; DT_EMISSING where it was not built. */
int dt_http_load(const struct dt_http **http, struct dt_error *err) DT_MUST_CHECK;

#endif
