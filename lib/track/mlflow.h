/* SPDX-License-Identifier: MIT */
/*
 * A run at an MLflow server, over its REST API 2.0, each point exactly once.
 *
 *     dt_mlflow_open(&m, http, &options);
 *     while (dt_mlflow_room(m) && next(&point))
 *         dt_mlflow_add(m, &point);
 *     rc = dt_mlflow_send(m, err);     DT_EIO: the server is away, try again later
 *     rc = dt_mlflow_set_status(m, "FINISHED", err);
 *
 * Points go out in order, and the server is what knows how far they got: after any
 * request whose answer did not come, and at the start, its last step of each name is
 * asked for, and older points are left out. So nothing is kept on disk but which run
 * it is, and the file that points come from is their spool. A run is made under a tag
 * with a key of ours, by which it is found again if that answer is lost.
 */
#ifndef DT_TRACK_MLFLOW_H
#define DT_TRACK_MLFLOW_H

#include "track/http.h"
#include "track/points.h"

struct dt_mlflow_options {
    const char *url; /* of the server, as http://host:5000, without a password */
    const struct dt_http_login *login;
    const char *experiment;   /* its name */
    const char *run_name;     /* NULL: the server gives one */
    const char *key;          /* that no other run has */
    const char *run_id;       /* of a run made before, or NULL */
    int64_t start;            /* of the run, milliseconds since 1970 */
    struct json_object *tags; /* name: text; may be NULL */
};

struct dt_mlflow;

/* The options are borrowed and live as long. */
int dt_mlflow_open(struct dt_mlflow **m, const struct dt_http *http,
                   const struct dt_mlflow_options *options, struct dt_error *err) DT_MUST_CHECK;
void dt_mlflow_close(struct dt_mlflow *m); /* NULL is fine */

/* Whether a point can be added before the next dt_mlflow_send. */
bool dt_mlflow_room(const struct dt_mlflow *m);
void dt_mlflow_add(struct dt_mlflow *m, const struct dt_point *point);

/* Sends what was added, and makes experiment and run before if need be. All or, after
 * DT_EIO (no answer, or one that says "later"), to be called again. Other errors are
 * final: the server refuses, or does not answer as MLflow does. */
int dt_mlflow_send(struct dt_mlflow *m, struct dt_error *err) DT_MUST_CHECK;
/* Sends settings, name: text, as parameters. Parameters cannot change: those of other
 * values than before become tags. */
int dt_mlflow_send_settings(struct dt_mlflow *m, struct json_object *settings,
                            struct dt_error *err) DT_MUST_CHECK;
/* Uploads a file under a name; DT_EMISSING if the server keeps artifacts elsewhere. */
int dt_mlflow_send_file(struct dt_mlflow *m, const char *path, const char *name,
                        struct dt_error *err) DT_MUST_CHECK;
/* The status of the run: RUNNING, or FINISHED, KILLED, FAILED and its end, now. */
int dt_mlflow_set_status(struct dt_mlflow *m, const char *status,
                         struct dt_error *err) DT_MUST_CHECK;

const char *dt_mlflow_run_id(const struct dt_mlflow *m); /* NULL before there is one */

#endif
