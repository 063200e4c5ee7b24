/* SPDX-License-Identifier: MIT */
/*
 * HTTP requests. The client is the plug-in http.so, built if libcurl is installed. Without it
 * dt_http_load fails and says what to install.
 *
 *     DT_TRY(dt_http_load(&http, err));
 *     DT_TRY(http->open(&state, &login, err));
 *     DT_TRY(http->request(state, &(struct dt_http_request){"GET", url}, &answer, err));
 */
#ifndef DT_HTTP_HTTP_H
#define DT_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

#define DT_HTTP_ABI 6

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
    /* A download: the body of an answer with status 200 or 206 goes to sink, of any size; it ends
     * with DT_EIO if nothing came for patience seconds. from: of a range, in bytes; sink learns the
     * status before the first byte, and a failure of it (err filled) ends the request. */
    int (*sink)(void *context, long status, const void *data, size_t size, struct dt_error *err);
    void *context;
    /* Whether to end the request, with DT_EIO; asked each second; or NULL. */
    bool (*stopped)(void *context);
    uint64_t from;
    const char *const *headers; /* more of them, "Name: value", ended by NULL; or NULL */
};

struct dt_http_answer {
    long status; /* 200, 404, ... */
    struct dt_buffer body;
    struct dt_buffer headers; /* lines "Name: value" */
};

/* The value of a header of an answer, without case; NULL if absent. Owned by the caller. */
char *dt_http_header(const struct dt_http_answer *answer, const char *name);
/* The URL that an answer to a request of url redirects to; NULL if it does not. Owned by the
 * caller.
 */
char *dt_http_redirection(const struct dt_http_answer *answer, const char *url);
void dt_http_answer_release(struct dt_http_answer *answer);

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
