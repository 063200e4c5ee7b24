/* SPDX-License-Identifier: MIT */
/* Where objects of S3 are, and the keys to them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "remote/remote-internal.h"

#define S3        "s3://"
#define MOST_FILE ((size_t)1 << 20)

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The value of a key in a section of an INI file; NULL: none. Owned by the caller. */
static char *find_value(const char *text, const char *section, const char *name)
{
    size_t n = strlen(name);
    bool inside = false;
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += strspn(line, " \t\r\n");
        size_t size = strcspn(line, "\r\n");
        if (*line == '[') {
            size_t length = strlen(section);
            inside = size >= length + 2 && strncmp(line + 1, section, length) == 0 &&
                     line[length + 1] == ']';
        } else if (inside && size > n && strncmp(line, name, n) == 0) {
            const char *value = line + n + strspn(line + n, " \t");
            if (*value != '=')
                continue;
            value += 1 + strspn(value + 1, " \t");
            size = strcspn(value, " \t\r\n");
            return dt_strndup(value, size);
        }
    }
    return NULL;
}

/* A file of ~/.aws, or where the variable says; "" if there is none. */
static char *read_settings(const char *variable, const char *base)
{
    const char *home = environment("HOME"), *given = environment(variable);
    char *path = given ? dt_strdup(given) : dt_asprintf("%s/.aws/%s", home ? home : ".", base);
    struct dt_error ignored;
    char *text = NULL;
    size_t size;
    if (!dt_file_is_regular(path) || dt_file_read(path, MOST_FILE, &text, &size, &ignored) < 0)
        text = dt_strdup("");
    free(path);
    return text;
}

static void find_keys(struct dt_remote_s3 *s3)
{
    const char *key = environment("AWS_ACCESS_KEY_ID"), *profile = environment("AWS_PROFILE");
    const char *secret = environment("AWS_SECRET_ACCESS_KEY");
    const char *session = environment("AWS_SESSION_TOKEN");
    if (key && secret) {
        s3->key = dt_strdup(key);
        s3->secret = dt_strdup(secret);
        s3->session = session ? dt_strdup(session) : NULL;
        return;
    }
    char *text = read_settings("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    profile = profile ? profile : "default";
    s3->key = find_value(text, profile, "aws_access_key_id");
    s3->secret = find_value(text, profile, "aws_secret_access_key");
    s3->session = find_value(text, profile, "aws_session_token");
    free(text);
}

static void find_region(struct dt_remote_s3 *s3)
{
    const char *region = environment("AWS_REGION"), *profile = environment("AWS_PROFILE");
    region = region ? region : environment("AWS_DEFAULT_REGION");
    s3->region = region ? dt_strdup(region) : NULL;
    if (s3->region)
        return;
    char *text = read_settings("AWS_CONFIG_FILE", "config");
    char *section = profile ? dt_asprintf("profile %s", profile) : dt_strdup("default");
    s3->region = find_value(text, section, "region");
    if (s3->region == NULL)
        s3->region = dt_strdup("us-east-1");
    free(section);
    free(text);
}

/* Buckets with a dot are in the path, since no certificate has their host. */
static char *make_url(const struct dt_remote_s3 *s3, const char *bucket, size_t n, const char *key)
{
    const char *endpoint = environment("AWS_ENDPOINT_URL_S3");
    struct dt_buffer url = DT_BUFFER_EMPTY;
    endpoint = endpoint ? endpoint : environment("AWS_ENDPOINT_URL");
    size_t length = endpoint ? strlen(endpoint) : 0;
    while (length > 0 && endpoint[length - 1] == '/')
        length--;
    if (endpoint)
        dt_buffer_printf(&url, "%.*s/%.*s/", (int)length, endpoint, (int)n, bucket);
    else if (memchr(bucket, '.', n))
        dt_buffer_printf(&url, "https://s3.%s.amazonaws.com/%.*s/", s3->region, (int)n, bucket);
    else
        dt_buffer_printf(&url, "https://%.*s.s3.%s.amazonaws.com/", (int)n, bucket, s3->region);
    for (; *key; key++)
        if (isalnum((unsigned char)*key) || strchr("-_.~/", *key))
            dt_buffer_add_char(&url, *key);
        else
            dt_buffer_printf(&url, "%%%02X", (unsigned char)*key);
    return url.data;
}

int dt_remote_s3_find(struct dt_remote_s3 *s3, const char *url, struct dt_error *err)
{
    const char *bucket = url + strlen(S3);
    size_t n = strcspn(bucket, "/");
    *s3 = (struct dt_remote_s3){0};
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)bucket[i]) && !strchr("-._", bucket[i]))
            n = 0;
    if (n == 0 || bucket[n] == '\0' || bucket[n + 1] == '\0')
        return dt_fail(err, DT_EINVALID, "%s: expected s3://BUCKET/KEY", url);
    find_region(s3);
    find_keys(s3);
    s3->url = make_url(s3, bucket, n, bucket + n + 1);
    return 0;
}

static void forget(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void dt_remote_s3_release(struct dt_remote_s3 *s3)
{
    forget(s3->secret);
    forget(s3->session);
    free(s3->key);
    free(s3->region);
    free(s3->url);
    *s3 = (struct dt_remote_s3){0};
}
