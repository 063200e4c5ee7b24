/* SPDX-License-Identifier: MIT */
/*
 * Logs a run to an MLflow server (REST API 2.0), each point exactly once.
 *
 *     dt_mlflow_open(&m, http, &options);
 *     while (dt_mlflow_room(m) && next(&point))
 *         dt_mlflow_add(m, &point);
 *     rc = dt_mlflow_send(m, err);     DT_EIO: unreachable, retry later
 *     rc = dt_mlflow_set_status(m, "FINISHED", err);
 *
 * Points are sent in order, and the server holds the state: at the start, and after every request
 * without a response, the client queries its last step per metric and skips points up to that.
 * Only the run id is kept on disk; the metrics file is the queue. A run is created with a unique
 * key as a tag, by which it is found again if the response to its creation is lost.
 */
#ifndef DT_TRACK_MLFLOW_H
#define DT_TRACK_MLFLOW_H

#include "http/http.h"
#include "track/points.h"

struct dt_mlflow_options {
    const char *url; /* such as http://host:5000, without a password */
    const struct dt_http_login *login;
    const char *experiment;   /* name of the experiment */
    const char *run_name;     /* NULL: chosen by the server */
    const char *key;          /* unique key of the run */
    const char *run_id;       /* of an existing run, or NULL */
    int64_t start;            /* start of the run, Unix time in milliseconds */
    struct json_object *tags; /* name: text; may be NULL */
};

struct dt_mlflow;

/* options is borrowed until dt_mlflow_close. */
int dt_mlflow_open(struct dt_mlflow **m, const struct dt_http *http,
                   const struct dt_mlflow_options *options, struct dt_error *err) DT_MUST_CHECK;
void dt_mlflow_close(struct dt_mlflow *m); /* may be NULL */

/* Whether the buffer has space for another line: fewer points than one request. */
bool dt_mlflow_room(const struct dt_mlflow *m);
void dt_mlflow_add(struct dt_mlflow *m, const struct dt_point *point);

/* Sends the buffered points; creates experiment and run first if needed. After DT_EIO (no response,
 * or a temporary error) call it again. Other errors are final: the server refuses, or its response
 * is malformed. */
int dt_mlflow_send(struct dt_mlflow *m, struct dt_error *err) DT_MUST_CHECK;
/* Sends settings {name: text} as parameters. Parameters are immutable: changed values become tags.
 */
int dt_mlflow_send_settings(struct dt_mlflow *m, struct json_object *settings,
                            struct dt_error *err) DT_MUST_CHECK;
/* Uploads the contents of a file as an artifact; DT_EMISSING if the server does not accept uploads.
 */
int dt_mlflow_send_file(struct dt_mlflow *m, const char *data, size_t size, const char *name,
                        struct dt_error *err) DT_MUST_CHECK;
/* Sets the status: RUNNING; or FINISHED, KILLED, FAILED, with now as end time. */
int dt_mlflow_set_status(struct dt_mlflow *m, const char *status,
                         struct dt_error *err) DT_MUST_CHECK;

const char *dt_mlflow_run_id(const struct dt_mlflow *m); /* NULL before the run exists */

#endif
