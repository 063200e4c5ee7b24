/* SPDX-License-Identifier: MIT */
/*
 * The address of an MLflow server, and the credentials for it.
 *
 *     DT_TRY(dt_server_parse(&server, "https://me:pass@host:5000/", err));
 *     DT_TRY(dt_server_log_in(&server, false, err));
 *     ... server.url is "https://host:5000"
 *     dt_server_release(&server);
 *
 * Messages and files contain only the URL without user and password.
 */
#ifndef DT_TRACK_SERVER_H
#define DT_TRACK_SERVER_H

#include "http/http.h"

struct dt_server {
    char *url; /* without user, password and trailing '/' */
    struct dt_http_login login;
    bool encrypted; /* https */
};

/* DT_EINVALID unless url is http:// or https://HOST[:PORT][/PATH]. */
int dt_server_parse(struct dt_server *server, const char *url, struct dt_error *err) DT_MUST_CHECK;

/* Takes a token, or user and password, from the environment, like MLflow's client; they replace
 * those of the URL. DT_EINVALID if a secret would be sent unencrypted, unless cleartext allows it.
 */
int dt_server_log_in(struct dt_server *server, bool cleartext, struct dt_error *err) DT_MUST_CHECK;

void dt_server_release(struct dt_server *server); /* may be all zero */

#endif
