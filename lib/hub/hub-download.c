/* SPDX-License-Identifier: MIT */
/* Requests to the hub. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha1.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "base/progress.h"
#include "hash/sha256.h"
#include "hub/hub-internal.h"

#define ENDPOINT       "https://huggingface.co"
#define MOST_REDIRECTS 10
#define ATTEMPTS       5

/* --- the connection ---------------------------------------------------------------------------*/

/* The token without line ends and the blanks around it, as Python takes it; NULL if nothing is
 * left. Frees text, which may be NULL. */
static char *clean_token(char *text)
{
    size_t size = 0;
    char *from = text;
    for (const char *p = text; p && *p; p++)
        if (*p != '\r' && *p != '\n')
            text[size++] = *p;
    while (size > 0 && strchr(" \t", text[size - 1]))
        size--;
    for (; size > 0 && strchr(" \t", *from); from++)
        size--;
    char *token = size > 0 ? dt_strndup(from, size) : NULL;
    free(text);
    return token;
}

/* The token, of the environment or of the file that `hf auth login` writes; NULL: none. */
static char *find_token(void)
{
    struct dt_error ignored;
    const char *names[] = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"};
    char *text = NULL, *token = NULL;
    size_t size;
    for (int i = 0; i < 2 && token == NULL; i++)
        if (getenv(names[i]))
            token = clean_token(dt_strdup(getenv(names[i])));
    if (token)
        return token;
    const char *given = getenv("HF_TOKEN_PATH");
    char *home = dt_hub_home(), *path = given ? dt_strdup(given) : dt_path_join(home, "token");
    free(home);
    if (!dt_file_is_regular(path) || dt_file_read(path, 4096, &text, &size, &ignored) < 0)
        text = NULL;
    free(path);
    return clean_token(text);
}

int dt_hub_open(struct dt_hub *h, struct dt_error *err)
{
    const char *endpoint = getenv("HF_ENDPOINT");
    *h = (struct dt_hub){.endpoint = dt_strdup(endpoint && *endpoint ? endpoint : ENDPOINT)};
    for (size_t n = strlen(h->endpoint); n > 0 && h->endpoint[n - 1] == '/'; n--)
        h->endpoint[n - 1] = '\0';
    bool local = strstr(h->endpoint, "//127.0.0.1") || strstr(h->endpoint, "//localhost");
    h->login = (struct dt_http_login){.token = find_token(), .direct = local};
    h->none = (struct dt_http_login){.direct = local};
    DT_TRY(dt_http_load(&h->http, err));
    DT_TRY(h->http->open(&h->own, &h->login, err));
    return h->http->open(&h->other, &h->none, err);
}

void dt_hub_close(struct dt_hub *h)
{
    if (h->own)
        h->http->close(h->own);
    if (h->other)
        h->http->close(h->other);
    free(h->login.token);
    free(h->endpoint);
}

/* Whether a URL is of the endpoint's scheme, host and port. */
static bool is_own(const struct dt_hub *h, const char *url)
{
    const char *scheme = strstr(h->endpoint, "://");
    size_t n = scheme ? (size_t)(scheme + 3 - h->endpoint) : 0;
    n += strcspn(h->endpoint + n, "/");
    return strncmp(url, h->endpoint, n) == 0 && (url[n] == '/' || url[n] == '\0');
}

static bool is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Follows redirects; the token goes to the endpoint only. A HEAD ends at the first answer that has
 * the file's hash. */
static int request(struct dt_hub *h, const struct dt_http_request *r, struct dt_http_answer *a,
                   struct dt_error *err)
{
    struct dt_http_request next = *r;
    char *url = dt_strdup(r->url);
    int rc = 0;
    for (int i = 0; rc == 0; i++) {
        next.url = url;
        rc = h->http->request(is_own(h, url) ? h->own : h->other, &next, a, err);
        char *linked =
            rc < 0 || strcmp(r->method, "HEAD") != 0 ? NULL : dt_http_header(a, "X-Linked-Etag");
        char *target = rc < 0 || linked ? NULL : dt_http_redirection(a, url);
        free(linked);
        if (target == NULL)
            break;
        if (i == MOST_REDIRECTS)
            rc = dt_fail(err, DT_EINVALID, "%s: redirects more than %d times", r->url,
                         MOST_REDIRECTS);
        free(url);
        url = target;
    }
    free(url);
    return rc;
}

/* Appends text with the characters that a URL may hold; slash: which is also kept. */
static void add_escaped(struct dt_buffer *b, const char *text, bool slash)
{
    for (; *text; text++)
        if (isalnum((unsigned char)*text) || strchr("-_.~", *text) || (slash && *text == '/'))
            dt_buffer_add_char(b, *text);
        else
            dt_buffer_printf(b, "%%%02X", (unsigned char)*text);
}

/* What to do about a status that is not success. */
static int refuse(const struct dt_hub *h, const struct dt_hub_name *n, const char *what,
                  const struct dt_http_answer *a, struct dt_error *err)
{
    char *code = dt_http_header(a, "X-Error-Code");
    const char *kind = n->data ? "datasets/" : "";
    int rc;
    if (a->status == 401 || a->status == 403)
        rc = dt_fail(err, DT_EINVALID,
                     "hf://%s%s: the hub answers %ld: it does not exist, is private, or asks to "
                     "accept its terms at %s/%s%s; %s",
                     kind, n->repository, a->status, h->endpoint, kind, n->repository,
                     h->login.token ? "the token has no access"
                                    : "set HF_TOKEN, or run: hf auth login");
    else if (a->status == 404)
        rc = dt_fail(err, DT_EMISSING, "hf://%s%s@%s: %s", kind, n->repository, n->revision,
                     code && strcmp(code, "RevisionNotFound") == 0 ? "has no such revision"
                     : what                                        ? "has no such file"
                                                                   : "does not exist");
    else /* DT_EFORMAT would discard what is here of a file */
        rc = dt_fail(
            err, a->status >= 500 || a->status == 429 || a->status == 408 ? DT_EIO : DT_EINVALID,
            "hf://%s%s: the hub answers %ld", kind, n->repository, a->status);
    free(code);
    return rc < 0 && what ? dt_fail_context(err, "%s", what) : rc;
}

int dt_hub_describe(struct dt_hub *h, const struct dt_hub_name *n, struct json_object **description,
                    struct dt_error *err)
{
    struct dt_buffer url = DT_BUFFER_EMPTY;
    struct dt_http_answer a = {0};
    *description = NULL;
    dt_buffer_printf(&url, "%s/api/%s/%s/revision/", h->endpoint, n->data ? "datasets" : "models",
                     n->repository);
    add_escaped(&url, n->revision, false);
    int rc = request(h, &(struct dt_http_request){.method = "GET", .url = url.data}, &a, err);
    if (rc == 0 && a.status != 200)
        rc = refuse(h, n, NULL, &a, err);
    if (rc == 0)
        rc = dt_json_parse(a.body.data, a.body.size, url.data, description, err);
    dt_buffer_release(&url);
    dt_http_answer_release(&a);
    return rc;
}

/* --- a file -----------------------------------------------------------------------------------*/

struct download {
    const char *name; /* of the file, for messages */
    char *url, *etag, *blob, *part;
    int64_t size; /* -1: unknown */
    int fd;
    uint64_t at;
    bool begun;
    struct dt_progress progress;
};

/* A hash without quotes and the mark of a weak one; NULL if it cannot name a file. */
static char *plain_etag(char *etag)
{
    if (etag == NULL)
        return NULL;
    char *from = strncmp(etag, "W/", 2) == 0 ? etag + 2 : etag;
    from += *from == '"';
    char *plain = dt_strndup(from, strcspn(from, "\""));
    free(etag);
    if (*plain && strlen(plain) <= 128 && plain[strspn(plain, "0123456789abcdefABCDEF-")] == '\0')
        return plain;
    free(plain);
    return NULL;
}

/* Asks for the file's hash and size. */
static int look_up(struct dt_hub *h, const struct dt_hub_name *n, struct download *d,
                   struct dt_error *err)
{
    struct dt_http_answer a = {0};
    int rc = request(h, &(struct dt_http_request){.method = "HEAD", .url = d->url}, &a, err);
    if (rc == 0 && a.status != 200 && !is_redirect(a.status))
        rc = refuse(h, n, d->name, &a, err);
    if (rc == 0) {
        char *linked = dt_http_header(&a, "X-Linked-Etag");
        char *size = dt_http_header(&a, linked ? "X-Linked-Size" : "Content-Length");
        d->etag = plain_etag(linked ? linked : dt_http_header(&a, "ETag"));
        d->size = size ? atoll(size) : -1;
        free(size);
    }
    dt_http_answer_release(&a);
    if (rc == 0 && d->etag == NULL)
        rc = dt_fail(err, DT_EFORMAT, "%s: the hub names no hash of it", d->url);
    return rc;
}

static int write_part(void *context, long status, const void *data, size_t size,
                      struct dt_error *err)
{
    struct download *d = context;
    char done[DT_PROGRESS_BYTES], whole[DT_PROGRESS_BYTES];
    if (!d->begun && status == 200 && d->at > 0) { /* the server sends the whole */
        d->at = 0;
        if (ftruncate(d->fd, 0) < 0)
            return dt_fail_errno(err, "cannot write '%s'", d->part);
    }
    d->begun = true;
    for (size_t n = 0; n < size;) {
        ssize_t some = pwrite(d->fd, (const char *)data + n, size - n, (off_t)(d->at + n));
        if (some < 0 && errno != EINTR)
            return dt_fail_errno(err, "cannot write '%s'", d->part);
        n += some > 0 ? (size_t)some : 0;
    }
    d->at += size;
    if (d->size >= 0 && d->at > (uint64_t)d->size)
        return dt_fail(err, DT_EFORMAT, "%s: the hub sends more than its %lld bytes", d->name,
                       (long long)d->size);
    if (dt_progress_due(&d->progress))
        dt_progress_show(&d->progress, "%s: %s of %s", d->name,
                         dt_progress_bytes((double)d->at, done),
                         dt_progress_bytes((double)d->size, whole));
    return 0;
}

/* One attempt, from where the part ends. */
static int transfer(struct dt_hub *h, const struct dt_hub_name *n, struct download *d,
                    struct dt_error *err)
{
    struct dt_http_answer a = {0};
    struct stat st;
    if (fstat(d->fd, &st) < 0)
        return dt_fail_errno(err, "cannot read '%s'", d->part);
    d->at = (uint64_t)st.st_size;
    d->begun = false;
    if (d->size >= 0 && d->at == (uint64_t)d->size)
        return 0;
    int rc = request(
        h,
        &(struct dt_http_request){
            .method = "GET", .url = d->url, .sink = write_part, .context = d, .from = d->at},
        &a, err);
    if (rc == 0 && a.status == 416 && d->at > 0)
        rc = ftruncate(d->fd, 0) < 0 ? dt_fail_errno(err, "cannot write '%s'", d->part)
                                     : dt_fail(err, DT_EIO, "%s: cannot be continued", d->name);
    else if (rc == 0 && a.status != 200 && a.status != 206)
        rc = refuse(h, n, d->name, &a, err);
    else if (rc == 0 && d->size >= 0 && d->at < (uint64_t)d->size)
        rc = dt_fail(err, DT_EIO, "%s: ends after %llu of %lld bytes", d->name,
                     (unsigned long long)d->at, (long long)d->size);
    dt_http_answer_release(&a);
    return rc;
}

/* git's hash of a file: SHA-1 of "blob SIZE", a zero byte and the data. */
static int hash_as_git(const char *path, uint64_t *bytes, char hex[41], struct dt_error *err)
{
    struct sha1_ctx state;
    uint8_t digest[SHA1_DIGEST_SIZE];
    char *data, start[32];
    size_t size;
    DT_TRY(dt_file_read(path, (size_t)1 << 31, &data, &size, err));
    int n = snprintf(start, sizeof start, "blob %zu", size);
    sha1_init(&state);
    sha1_update(&state, (size_t)n + 1, (const uint8_t *)start);
    sha1_update(&state, size, (const uint8_t *)data);
    sha1_digest(&state, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    *bytes = size;
    free(data);
    return 0;
}

/* The part has the size and, where the hub names it by one, the hash. */
static int verify(const struct download *d, struct dt_error *err)
{
    char hex[DT_SHA256_HEX];
    uint64_t bytes;
    size_t n = strlen(d->etag);
    if (n == 40)
        DT_TRY(hash_as_git(d->part, &bytes, hex, err));
    else
        DT_TRY(dt_sha256_file(d->part, &bytes, hex, err));
    bool known = n == 40 || n == 64;
    if ((known && strcasecmp(hex, d->etag) != 0) || (d->size >= 0 && bytes != (uint64_t)d->size))
        return dt_fail(err, DT_EFORMAT,
                       "%s: what the hub sent has another hash than it names: it was discarded",
                       d->name);
    return 0;
}

static void wait_before(int attempt)
{
    const struct timespec pause = {attempt > 1 ? 1 << (attempt - 2) : 0, 100000000};
    nanosleep(&pause, NULL);
}

static int fill_part(struct dt_hub *h, const struct dt_hub_name *n, struct download *d,
                     struct dt_error *err)
{
    int rc = DT_EIO;
    d->fd = open(d->part, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (d->fd < 0)
        return dt_fail_errno(err, "cannot create '%s'", d->part);
    for (int attempt = 0; rc == DT_EIO && attempt < ATTEMPTS; attempt++) {
        if (attempt > 0)
            wait_before(attempt);
        rc = transfer(h, n, d, err);
    }
    if (rc == 0 && fsync(d->fd) < 0)
        rc = dt_fail_errno(err, "cannot write '%s'", d->part);
    close(d->fd);
    dt_progress_clear(&d->progress);
    rc = rc < 0 ? rc : verify(d, err);
    if (rc == DT_EFORMAT)
        remove(d->part);
    if (rc == 0 && rename(d->part, d->blob) < 0)
        rc = dt_fail_errno(err, "cannot rename '%s'", d->part);
    return rc;
}

static int get_blob(struct dt_hub *h, const struct dt_hub_name *n, struct download *d,
                    struct dt_error *err)
{
    char *directory = dt_hub_cache_directory(n), *blobs = dt_path_join(directory, "blobs");
    d->blob = dt_path_join(blobs, d->etag);
    d->part = dt_asprintf("%s.incomplete", d->blob);
    int rc = dt_file_make_directories(blobs, err);
    int lock = rc < 0 ? rc : dt_hub_cache_lock(n, d->etag, err);
    rc = lock < 0 ? lock : 0;
    if (rc == 0 && !dt_file_is_regular(d->blob))
        rc = fill_part(h, n, d, err);
    if (lock >= 0)
        close(lock);
    free(blobs);
    free(directory);
    return rc;
}

int dt_hub_download(struct dt_hub *h, const struct dt_hub_name *n, const char *commit,
                    const char *file, struct dt_error *err)
{
    struct download d = {.name = file};
    struct dt_buffer url = DT_BUFFER_EMPTY;
    char *path = dt_hub_cache_path(n, commit, file);
    bool there = dt_file_is_regular(path);
    free(path);
    if (there)
        return 0;
    dt_buffer_printf(&url, "%s/%s%s/resolve/%s/", h->endpoint, n->data ? "datasets/" : "",
                     n->repository, commit);
    add_escaped(&url, file, true);
    d.url = url.data;
    dt_progress_init(&d.progress, false);
    int rc = look_up(h, n, &d, err);
    rc = rc < 0 ? rc : get_blob(h, n, &d, err);
    rc = rc < 0 ? rc : dt_hub_cache_link(n, commit, file, d.etag, err);
    free(d.etag);
    free(d.blob);
    free(d.part);
    dt_buffer_release(&url);
    return rc;
}
