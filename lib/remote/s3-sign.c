/* SPDX-License-Identifier: MIT */
/* AWS Signature Version 4 of a GET without a query and a body. libcurl's own crashes where memory
 * for OpenSSL is exhausted, and is missing before libcurl 7.75. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "hash/sha256.h"
#include "remote/remote-internal.h"

#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void hash_text(const char *text, char hex[DT_SHA256_HEX])
{
    struct dt_sha256 s;
    dt_sha256_init(&s);
    dt_sha256_add(&s, text, strlen(text));
    dt_sha256_finish(&s, hex);
}

/* The key of a day, a region and the service. */
static void derive_key(const struct dt_remote_s3 *s3, const char *day, uint8_t key[DT_SHA256])
{
    const char *const scope[] = {day, s3->region, "s3", "aws4_request"};
    char *secret = dt_asprintf("AWS4%s", s3->secret);
    dt_sha256_hmac(secret, strlen(secret), scope[0], key);
    for (int i = 1; i < 4; i++)
        dt_sha256_hmac(key, DT_SHA256, scope[i], key);
    explicit_bzero(secret, strlen(secret));
    free(secret);
}

/* What is signed, of the headers that are sent: their names, too. */
static char *canonical_request(const struct dt_remote_s3 *s3, const struct dt_remote_headers *h,
                               const char *path, const char *names)
{
    const char *session = s3->session ? s3->session : "";
    return dt_asprintf("GET\n%s\n\nhost:%s\nx-amz-content-sha256:" EMPTY_SHA256
                       "\nx-amz-date:%s\n%s%s%s\n%s\n" EMPTY_SHA256,
                       path, h->host + strlen("Host: "), h->date + strlen("x-amz-date: "),
                       s3->session ? "x-amz-security-token:" : "", session, s3->session ? "\n" : "",
                       names);
}

static void sign(const struct dt_remote_s3 *s3, struct dt_remote_headers *h, const char *path)
{
    const char *date = h->date + strlen("x-amz-date: ");
    const char *names = s3->session ? "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
                                    : "host;x-amz-content-sha256;x-amz-date";
    char hash[DT_SHA256_HEX], hex[DT_SHA256_HEX];
    uint8_t key[DT_SHA256];
    char *day = dt_strndup(date, 8), *request = canonical_request(s3, h, path, names);
    char *scope = dt_asprintf("%s/%s/s3/aws4_request", day, s3->region);
    hash_text(request, hash);
    char *text = dt_asprintf("AWS4-HMAC-SHA256\n%s\n%s\n%s", date, scope, hash);
    derive_key(s3, day, key);
    dt_sha256_hmac(key, sizeof key, text, key);
    h->authorization = dt_asprintf(
        "Authorization: AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s", s3->key,
        scope, names, dt_sha256_hex(key, hex));
    free(day);
    free(request);
    free(scope);
    free(text);
}

void dt_remote_s3_sign(const struct dt_remote_s3 *s3, time_t now, struct dt_remote_headers *h)
{
    const char *host = strstr(s3->url, "://") + 3, *path = host + strcspn(host, "/");
    char date[32];
    struct tm tm;
    strftime(date, sizeof date, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
    *h = (struct dt_remote_headers){
        .host = dt_asprintf("Host: %.*s", (int)(path - host), host),
        .date = dt_asprintf("x-amz-date: %s", date),
        .content = dt_strdup("x-amz-content-sha256: " EMPTY_SHA256),
        .session = s3->session ? dt_asprintf("x-amz-security-token: %s", s3->session) : NULL};
    sign(s3, h, path);
}

void dt_remote_headers_release(struct dt_remote_headers *h)
{
    free(h->host);
    free(h->date);
    free(h->content);
    free(h->session);
    free(h->authorization);
}
