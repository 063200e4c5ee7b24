/* SPDX-License-Identifier: MIT */
/* Shared by the files of lib/remote. */
#ifndef DT_REMOTE_REMOTE_INTERNAL_H
#define DT_REMOTE_REMOTE_INTERNAL_H

#include <time.h>

#include "http/http.h"
#include "remote/remote.h"

/* How an object of S3 is requested; all owned by the caller. */
struct dt_remote_s3 {
    char *url; /* http or https */
    char *region;
    char *key, *secret, *session; /* NULL: not signed; session may be NULL */
};

int dt_remote_s3_find(struct dt_remote_s3 *s3, const char *url, struct dt_error *err) DT_MUST_CHECK;
void dt_remote_s3_release(struct dt_remote_s3 *s3);

/* Lines "Name: value" that sign a request; session may be NULL. */
struct dt_remote_headers {
    char *host, *date, *content, *session, *authorization;
};

/* A GET of s3->url at that time; s3 has keys. */
void dt_remote_s3_sign(const struct dt_remote_s3 *s3, time_t now,
                       struct dt_remote_headers *headers);
void dt_remote_headers_release(struct dt_remote_headers *headers);

#endif
