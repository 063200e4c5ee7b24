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

/* A file of ~/.aws, or where the variable says. Owned by the caller. */
static char *settings_path(const char *variable, const char *base)
{
    const char *home = environment("HOME"), *given = environment(variable);
    return given ? dt_strdup(given) : dt_asprintf("%s/.aws/%s", home ? home : ".", base);
}

/* Its text; "" if there is none. */
static char *read_settings(const char *path)
{
    struct dt_error ignored;
    char *text = NULL;
    size_t size;
    if (!dt_file_is_regular(path) || dt_file_read(path, MOST_FILE, &text, &size, &ignored) < 0)
        text = dt_strdup("");
    return text;
}

/* Keys of the environment; 0: it has none. */
static int find_own_keys(struct dt_remote_s3 *s3, struct dt_error *err)
{
    static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"};
    const char *values[] = {environment(names[0]), environment(names[1])};
    const char *session = environment("AWS_SESSION_TOKEN");
    const int missing = values[0] != NULL;
    if (!values[0] && !values[1])
        return 0;
    if (!values[0] || !values[1])
        return dt_fail(err, DT_EINVALID, "%s is set, and %s is not", names[1 - missing],
                       names[missing]);
    s3->key = dt_strdup(values[0]);
    s3->secret = dt_strdup(values[1]);
    s3->session = session ? dt_strdup(session) : NULL;
    return 1;
}

/* Those of the profile: if it is named, it must have some. */
static int find_keys(struct dt_remote_s3 *s3, struct dt_error *err)
{
    const char *named = environment("AWS_PROFILE"), *profile = named ? named : "default";
    int rc = find_own_keys(s3, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    char *path = settings_path("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    char *text = read_settings(path);
    s3->key = find_value(text, profile, "aws_access_key_id");
    s3->secret = find_value(text, profile, "aws_secret_access_key");
    s3->session = find_value(text, profile, "aws_session_token");
    if ((named || s3->key || s3->secret) && !(s3->key && s3->secret))
        rc = dt_fail(err, DT_EINVALID, "the profile '%s' of %s has no %s", profile, path,
                     s3->key ? "aws_secret_access_key" : "aws_access_key_id");
    free(text);
    free(path);
    return rc;
}

static void find_region(struct dt_remote_s3 *s3)
{
    const char *region = environment("AWS_REGION"), *profile = environment("AWS_PROFILE");
    region = region ? region : environment("AWS_DEFAULT_REGION");
    s3->region = region ? dt_strdup(region) : NULL;
    if (s3->region)
        return;
    char *path = settings_path("AWS_CONFIG_FILE", "config"), *text = read_settings(path);
    char *section = profile && strcmp(profile, "default") != 0 ? dt_asprintf("profile %s", profile)
                                                               : dt_strdup("default");
    s3->region = find_value(text, section, "region");
    if (s3->region == NULL)
        s3->region = dt_strdup("us-east-1");
    free(section);
    free(text);
    free(path);
}

/* The endpoint; NULL: Amazon's. */
static int find_endpoint(const char **endpoint, struct dt_error *err)
{
    static const char *const names[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"};
    const char *name = environment(names[0]) ? names[0] : names[1];
    *endpoint = environment(name);
    if (*endpoint && strncmp(*endpoint, "http://", 7) != 0 &&
        strncmp(*endpoint, "https://", 8) != 0)
        return dt_fail(err, DT_EINVALID, "%s: '%s' is not a URL: http:// or https:// is missing",
                       name, *endpoint);
    return 0;
}

/* Whether libcurl would take away a part of a path: "." or ".." between slashes. */
static bool has_dots(const char *key)
{
    for (size_t n; *key; key += n + (key[n] == '/')) {
        n = strcspn(key, "/");
        if ((n == 1 || n == 2) && strspn(key, ".") >= n)
            return true;
    }
    return false;
}

/* Whether a bucket can be a label of a host: without a dot, which no certificate covers, and
 * capitals and underscores, which old buckets have. */
static bool is_label(const char *bucket, size_t n)
{
    return strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-") >= n;
}

/* Regions of China are below another domain. */
static char *make_url(const struct dt_remote_s3 *s3, const char *endpoint, const char *bucket,
                      size_t n, const char *key)
{
    struct dt_buffer url = DT_BUFFER_EMPTY;
    const char *domain = strncmp(s3->region, "cn-", 3) == 0 ? "amazonaws.com.cn" : "amazonaws.com";
    size_t length = endpoint ? strlen(endpoint) : 0;
    while (length > 0 && endpoint[length - 1] == '/')
        length--;
    if (endpoint)
        dt_buffer_printf(&url, "%.*s/%.*s/", (int)length, endpoint, (int)n, bucket);
    else if (!is_label(bucket, n))
        dt_buffer_printf(&url, "https://s3.%s.%s/%.*s/", s3->region, domain, (int)n, bucket);
    else
        dt_buffer_printf(&url, "https://%.*s.s3.%s.%s/", (int)n, bucket, s3->region, domain);
    for (; *key; key++)
        if (isalnum((unsigned char)*key) || strchr("-_.~/", *key))
            dt_buffer_add_char(&url, *key);
        else
            dt_buffer_printf(&url, "%%%02X", (unsigned char)*key);
    return url.data;
}

int dt_remote_s3_find(struct dt_remote_s3 *s3, const char *url, struct dt_error *err)
{
    const char *bucket = url + strlen(S3), *endpoint;
    size_t n = strcspn(bucket, "/");
    *s3 = (struct dt_remote_s3){0};
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)bucket[i]) && !strchr("-._", bucket[i]))
            n = 0;
    if (n == 0 || bucket[n] == '\0' || bucket[n + 1] == '\0')
        return dt_fail(err, DT_EINVALID, "%s: expected s3://BUCKET/KEY", url);
    if (has_dots(bucket + n + 1))
        return dt_fail(err, DT_EINVALID,
                       "%s: dt cannot request a key with '.' or '..' between slashes", url);
    find_region(s3);
    if (find_endpoint(&endpoint, err) < 0 || find_keys(s3, err) < 0)
        return dt_fail_context(err, "%s", url);
    s3->url = make_url(s3, endpoint, bucket, n, bucket + n + 1);
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
