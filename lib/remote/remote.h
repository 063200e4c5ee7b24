/* SPDX-License-Identifier: MIT */
/*
 * The bytes of an object on another machine, as a stream:
 *
 *     http://HOST/PATH, https://HOST/PATH
 *     s3://BUCKET/KEY      Amazon S3, or a store of its protocol at $AWS_ENDPOINT_URL
 *
 *     DT_TRY(dt_remote_open(&remote, url, err));
 *     ... read dt_remote_descriptor(remote) to its end
 *     rc = dt_remote_finish(remote, err);
 *     dt_remote_close(remote);
 *
 * A thread receives while the caller works. A connection that fails is opened again, with pauses,
 * and continues at the byte that was reached; an object that changed in the meantime is an error,
 * as is one whose end cannot be told from a broken connection. Needs the plug-in http.so.
 *
 * Keys of S3 are those of $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and $AWS_SESSION_TOKEN, or of
 * the profile $AWS_PROFILE in ~/.aws/credentials; without keys the request is not signed. Keys go
 * to the endpoint only.
 */
#ifndef DT_REMOTE_REMOTE_H
#define DT_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct dt_remote;

/* Whether a name is a URL that dt_remote_open() takes. */
bool dt_remote_is_url(const char *name);

/* Begins to receive. Most errors come from dt_remote_finish(). DT_EMISSING without the plug-in,
 * DT_EINVALID for a URL that names no object. */
int dt_remote_open(struct dt_remote **remote, const char *url, struct dt_error *err) DT_MUST_CHECK;
/* The same from byte `first` of an object of `size` bytes; another size is an error. A server that
 * knows no ranges sends the bytes before, which are passed over. */
int dt_remote_open_at(struct dt_remote **remote, const char *url, uint64_t first, uint64_t size,
                      struct dt_error *err) DT_MUST_CHECK;
/* The bytes of an object, by the headers of an answer whose body is not received. DT_EINVALID if
 * the server does not tell. */
int dt_remote_measure(const char *url, uint64_t *size, struct dt_error *err) DT_MUST_CHECK;
/* The URL without user, password, query and fragment, any of which can hold secrets. */
const char *dt_remote_name(const struct dt_remote *remote);
/* A socket to read from, which ends after the last byte or at a failure. */
int dt_remote_descriptor(const struct dt_remote *remote);
/* After the end of the socket: 0 if that is the end of the object. DT_EMISSING if there is none. */
int dt_remote_finish(struct dt_remote *remote, struct dt_error *err) DT_MUST_CHECK;
/* Ends the transfer, and closes the socket; NULL is fine. */
void dt_remote_close(struct dt_remote *remote);

#endif
