/* SPDX-License-Identifier: MIT */
/*
 * The address of an MLflow server, and who we are to it.
 *
 *     DT_TRY(dt_server_parse(&server, "https://me:pass@host:5000/", err));
 *     DT_TRY(dt_server_log_in(&server, false, err));
 *     ... server.url is "https://host:5000"
 *     dt_server_release(&server);
 *
 * Only the URL without user and password is for messages and files.
 */
#ifndef DT_TRACK_SERVER_H
#define DT_TRACK_SERVER_H

#include "track/http.h"

struct dt_server {
    char *url; /* without user, password and closing '/' */
    struct dt_http_login login;
    bool encrypted; /* https */
};

/* DT_EINVALID if url is not http://HOST or https://HOST, with a port and a path if need be. */
int dt_server_parse(struct dt_server *server, const char *url, struct dt_error *err) DT_MUST_CHECK;

/* Takes token, or user and password, from the environment, as MLflow's own client does; they
 * replace those of the URL. DT_EINVALID where a secret would cross the network as plain text,
 * unless cleartext allows that. */
int dt_server_log_in(struct dt_server *server, bool cleartext, struct dt_error *err) DT_MUST_CHECK;

void dt_server_release(struct dt_server *server); /* all zero is fine */

#endif
