/* SPDX-License-Identifier: MIT */
#include "remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/credentials.h"
#include "remote/remote-internal.h"

#define ATTEMPTS       5 /* without a byte between them */
#define MOST_REDIRECTS 10
#define MOST_HEADERS   7 /* and NULL */
#define BUFFER         (1 << 20)

struct dt_remote {
    char *name; /* without secrets */
    char *url;
    struct dt_remote_s3 s3;
    const struct dt_http *http;
    int ends[2]; /* the caller's and the thread's */
    pthread_t thread;
    bool started;
    atomic_bool closed;
    int rc; /* the thread's result, and its error */
    struct dt_error err;
    /* The thread's: */
    struct dt_http_answer answer;
    char *tag;         /* ETag or Last-Modified of the first answer, for If-Range; or NULL */
    uint64_t first;    /* byte that the caller begins with */
    uint64_t at, size; /* bytes before the next one to send; of the object, if known */
    uint64_t expected; /* size, or 0 */
    bool known;        /* size is */
    bool measures;     /* no byte of the object is needed */
    bool judged;       /* the headers of this answer were looked at */
    uint64_t skip;     /* bytes at the start of this answer that the caller has */
};

bool dt_remote_is_url(const char *name)
{
    return strncmp(name, "http://", 7) == 0 || strncmp(name, "https://", 8) == 0 ||
           strncmp(name, "s3://", 5) == 0;
}

/* --- one answer ------------------------------------------------------------------------------- */

static bool has_header(const struct dt_http_answer *a, const char *name)
{
    char *value = dt_http_header(a, name);
    free(value);
    return value != NULL;
}

static char *tag_of(const struct dt_http_answer *a)
{
    char *etag = dt_http_header(a, "ETag");
    if (etag && strncmp(etag, "W/", 2) != 0)
        return etag;
    free(etag);
    return dt_http_header(a, "Last-Modified");
}

/* The end of the answer is known: by its length, its chunks, or its frames. A Transfer-Encoding
 * "identity" has neither. */
static bool has_end(const struct dt_http_answer *a)
{
    const char *version = a->headers.data ? a->headers.data : "";
    char *encoding = dt_http_header(a, "Transfer-Encoding");
    bool chunked = encoding && strcasestr(encoding, "chunked");
    free(encoding);
    return has_header(a, "Content-Length") || chunked || strncmp(version, "HTTP/2", 6) == 0 ||
           strncmp(version, "HTTP/3", 6) == 0;
}

static int changed(const struct dt_remote *r, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "%s: was changed while it was read, at byte %llu", r->name,
                   (unsigned long long)r->at);
}

static int judge_first(struct dt_remote *r, long status, struct dt_error *err)
{
    bool whole = status == 200;
    unsigned long long from = 0, to, size = 0;
    char *length = dt_http_header(&r->answer, whole ? "Content-Length" : "Content-Range");
    r->known = length && (whole ? sscanf(length, "%llu", &size) == 1
                                : sscanf(length, "bytes %llu-%llu/%llu", &from, &to, &size) == 3);
    r->size = size;
    r->skip = whole ? r->at : 0;
    free(r->tag);
    r->tag = tag_of(&r->answer);
    free(length);
    if (r->expected > 0 && (!r->known || r->size != r->expected || (!whole && from != r->at)))
        return changed(r, err);
    if (!has_end(&r->answer))
        return dt_fail(err, DT_EFORMAT,
                       "%s: the server does not say where it ends, so that a broken connection "
                       "could pass for its end: download it first",
                       r->name);
    return 0;
}

/* The answer continues the object where the last one ended, or is the whole again. */
static int judge_next(struct dt_remote *r, long status, struct dt_error *err)
{
    char *tag = tag_of(&r->answer), *range = dt_http_header(&r->answer, "Content-Range");
    char *length = dt_http_header(&r->answer, "Content-Length");
    unsigned long long from = 0, to, size = 0;
    bool whole = status == 200;
    bool same = tag && r->tag && strcmp(tag, r->tag) == 0;
    if (whole && length)
        same &= !r->known || strtoull(length, NULL, 10) == r->size;
    else if (!whole)
        same &= range && sscanf(range, "bytes %llu-%llu/%llu", &from, &to, &size) >= 2 &&
                from == r->at && (size == 0 || !r->known || size == r->size);
    r->skip = whole ? r->at : 0;
    free(tag);
    free(range);
    free(length);
    return same ? 0 : changed(r, err);
}

static int judge(struct dt_remote *r, long status, struct dt_error *err)
{
    return r->at == r->first ? judge_first(r, status, err) : judge_next(r, status, err);
}

static int send_all(struct dt_remote *r, const char *data, size_t size, struct dt_error *err)
{
    while (size > 0) {
        ssize_t n = send(r->ends[1], data, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) /* the caller closed it */
            return dt_fail(err, DT_EINVALID, "%s: closed", r->name);
        data += n;
        size -= (size_t)n;
        r->at += (uint64_t)n;
    }
    return 0;
}

static int take(void *context, long status, const void *data, size_t size, struct dt_error *err)
{
    struct dt_remote *r = context;
    if (!r->judged)
        DT_TRY(judge(r, status, err));
    r->judged = true;
    if (r->measures)
        return dt_fail(err, DT_EINVALID, "%s: closed", r->name);
    size_t had = size < r->skip ? size : (size_t)r->skip;
    r->skip -= had;
    return send_all(r, (const char *)data + had, size - had, err);
}

/* The caller waits for the thread. */
static bool is_closed(void *context)
{
    struct dt_remote *r = context;
    return atomic_load(&r->closed);
}

/* --- requests --------------------------------------------------------------------------------- */

static int refuse(const struct dt_remote *r, struct dt_error *err)
{
    long status = r->answer.status;
    bool s3 = r->s3.url != NULL;
    char *region = s3 ? dt_http_header(&r->answer, "x-amz-bucket-region") : NULL;
    int rc = 0;
    if (status == 404 || status == 410)
        rc = dt_fail(err, DT_EMISSING, "%s: does not exist: the server answers %ld", r->name,
                     status);
    else if (region && strcmp(region, r->s3.region) != 0)
        rc = dt_fail(err, DT_EINVALID, "%s: its bucket is in another region: set AWS_REGION=%s",
                     r->name, region);
    else if (status == 401 || status == 403)
        rc = dt_fail(err, DT_EINVALID, "%s: the server answers %ld: %s", r->name, status,
                     !s3         ? "it needs credentials, or does not allow access"
                     : r->s3.key ? "the keys of AWS_ACCESS_KEY_ID or ~/.aws/credentials have "
                                   "no access, or it does not exist"
                                 : "it needs keys: set AWS_ACCESS_KEY_ID and "
                                   "AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials");
    else
        rc = dt_fail(err, status >= 500 || status == 429 || status == 408 ? DT_EIO : DT_EFORMAT,
                     "%s: the server answers %ld", r->name, status);
    free(region);
    return rc;
}

/* Requests url, and then what it redirects to: each attempt from the first URL on, since those
 * after it are often signed for a time. */
static int follow(struct dt_remote *r, void *client, const char *const *headers,
                  struct dt_error *err)
{
    char *url = dt_strdup(r->url), *target;
    int rc = 0;
    for (int i = 0; rc == 0; i++, url = target) {
        r->judged = false;
        const struct dt_http_request request = {.method = "GET",
                                                .url = url,
                                                .sink = take,
                                                .context = r,
                                                .stopped = is_closed,
                                                .from = r->at,
                                                .headers = headers};
        rc = r->http->request(client, &request, &r->answer, err);
        target = rc < 0 || r->s3.url ? NULL : dt_http_redirection(&r->answer, url);
        if (target == NULL)
            break;
        bool open = strncmp(url, "https", 5) == 0 && strncmp(target, "https", 5) != 0;
        if (i == MOST_REDIRECTS || open)
            rc = dt_fail(err, DT_EFORMAT, "%s: redirects %s", r->name,
                         open ? "from https to http" : "too often");
        free(url);
    }
    free(url);
    return rc;
}

/* Requests what the caller does not have. */
static int request(struct dt_remote *r, void *client, struct dt_error *err)
{
    const char *headers[MOST_HEADERS] = {NULL};
    char *if_range = r->at > 0 && r->tag ? dt_asprintf("If-Range: %s", r->tag) : NULL;
    struct dt_remote_headers s3 = {NULL};
    int n = 0;
    if (r->s3.key)
        dt_remote_s3_sign(&r->s3, time(NULL), &s3);
    char *const lines[] = {if_range, s3.host, s3.date, s3.content, s3.session, s3.authorization};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (lines[i])
            headers[n++] = lines[i];
    int rc = follow(r, client, headers, err);
    free(if_range);
    dt_remote_headers_release(&s3);
    return rc;
}

/* One attempt to receive the rest. DT_EIO: another may succeed. */
static int receive(struct dt_remote *r, void *client, struct dt_error *err)
{
    DT_TRY(request(r, client, err));
    long status = r->answer.status;
    if (status == 416 && r->at > 0)
        return changed(r, err);
    if (status != 200 && status != 206)
        return refuse(r, err);
    if (!r->judged) /* an empty object */
        DT_TRY(judge(r, status, err));
    if (r->known && r->at != r->size)
        return dt_fail(err, DT_EIO, "%s: ends after %llu of %llu bytes", r->name,
                       (unsigned long long)r->at, (unsigned long long)r->size);
    return 0;
}

/* Sleeps, unless the caller closes. */
static void wait_before(struct dt_remote *r, int attempt)
{
    const struct timespec moment = {0, 50000000};
    for (int i = 0; i < 2 << attempt && !atomic_load(&r->closed); i++)
        nanosleep(&moment, NULL);
}

static int receive_all(struct dt_remote *r, void *client, struct dt_error *err)
{
    int rc = DT_EIO;
    for (int attempt = 0; rc == DT_EIO && attempt < ATTEMPTS && !atomic_load(&r->closed);
         attempt++) {
        uint64_t before = r->at;
        if (attempt > 0)
            wait_before(r, attempt);
        rc = receive(r, client, err);
        if (r->at > before)
            attempt = 0;
        if (rc == DT_EIO && r->at > r->first && r->tag == NULL)
            return dt_fail(err, DT_EFORMAT,
                           "%s: the connection broke at byte %llu, and the server names neither "
                           "ETag nor date by which it could be continued: download it first",
                           r->name, (unsigned long long)r->at);
    }
    return rc;
}

static int transfer(struct dt_remote *r, struct dt_error *err)
{
    bool local = strstr(r->url, "//127.0.0.1") || strstr(r->url, "//localhost");
    struct dt_http_login login = {.direct = local};
    void *client = NULL;
    int rc = r->http->open(&client, &login, err);
    if (rc == 0) {
        rc = receive_all(r, client, err);
        r->http->close(client);
    }
    return rc;
}

static void *run(void *context)
{
    struct dt_remote *r = context;
    r->rc = transfer(r, &r->err);
    shutdown(r->ends[1], SHUT_WR);
    return NULL;
}

/* --- the caller ------------------------------------------------------------------------------- */

static char *make_name(const char *url)
{
    const char *host = strstr(url, "://") + 3;
    size_t secret = dt_credentials_length(host);
    const char *rest = secret ? host + secret + 1 : host;
    size_t size = strncmp(url, "s3://", 5) == 0 ? strlen(rest) : strcspn(rest, "?#");
    return dt_asprintf("%.*s%.*s", (int)(host - url), url, (int)size, rest);
}

/* Without a connection; closed also after a failure. */
static int prepare(struct dt_remote **remote, const char *url, struct dt_error *err)
{
    struct dt_remote *r = *remote = dt_alloc(1, sizeof *r);
    r->name = make_name(url);
    r->ends[0] = r->ends[1] = -1;
    int rc = strncmp(url, "s3://", 5) == 0 ? dt_remote_s3_find(&r->s3, url, err) : 0;
    r->url = dt_strdup(r->s3.url ? r->s3.url : url);
    if (rc == 0 && (rc = dt_http_load(&r->http, err)) < 0)
        dt_fail_context(err, "%s", r->name);
    return rc;
}

int dt_remote_open(struct dt_remote **remote, const char *url, struct dt_error *err)
{
    return dt_remote_open_at(remote, url, 0, 0, err);
}

int dt_remote_measure(const char *url, uint64_t *size, struct dt_error *err)
{
    struct dt_remote *r;
    int rc = prepare(&r, url, err);
    r->measures = true;
    rc = rc < 0 ? rc : transfer(r, err);
    if (r->judged || rc == 0)
        rc = r->known ? 0
                      : dt_fail(err, DT_EINVALID,
                                "%s: the server does not say how long it is, which parts need: "
                                "download it first",
                                r->name);
    *size = r->size;
    dt_remote_close(r);
    return rc;
}

int dt_remote_open_at(struct dt_remote **remote, const char *url, uint64_t first,
                      uint64_t object_size, struct dt_error *err)
{
    struct dt_remote *r;
    int size = BUFFER, rc = prepare(&r, url, err);
    *remote = NULL;
    r->first = r->at = first;
    r->expected = object_size;
    if (rc == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, r->ends) < 0)
        rc = dt_fail_errno(err, "cannot open a socket");
    if (rc == 0) {
        setsockopt(r->ends[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        errno = pthread_create(&r->thread, NULL, run, r);
        r->started = errno == 0;
        rc = r->started ? 0 : dt_fail_errno(err, "cannot start a thread");
    }
    if (rc < 0)
        dt_remote_close(r);
    else
        *remote = r;
    return rc;
}

const char *dt_remote_name(const struct dt_remote *r)
{
    return r->name;
}

int dt_remote_descriptor(const struct dt_remote *r)
{
    return r->ends[0];
}

int dt_remote_finish(struct dt_remote *r, struct dt_error *err)
{
    if (r->started)
        pthread_join(r->thread, NULL);
    r->started = false;
    if (r->rc < 0)
        *err = r->err;
    return r->rc;
}

void dt_remote_close(struct dt_remote *r)
{
    if (r == NULL)
        return;
    atomic_store(&r->closed, true);
    if (r->ends[0] >= 0)
        shutdown(r->ends[0], SHUT_RDWR);
    if (r->started)
        pthread_join(r->thread, NULL);
    for (int i = 0; i < 2; i++)
        if (r->ends[i] >= 0)
            close(r->ends[i]);
    dt_remote_s3_release(&r->s3);
    dt_http_answer_release(&r->answer);
    free(r->tag);
    free(r->url);
    free(r->name);
    free(r);
}
