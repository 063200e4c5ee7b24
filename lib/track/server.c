/* SPDX-License-Identifier: MIT */
#include "track/server.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/credentials.h"

/* --- the address ----------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

/* Percent-decodes text. */
static char *decode(const char *text, size_t size)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&b, "");
    for (size_t i = 0; i < size; i++) {
        int high = i + 2 < size && text[i] == '%' ? hex_digit(text[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
        dt_buffer_add_char(&b, low >= 0 ? (char)(16 * high + low) : text[i]);
        i += low >= 0 ? 2 : 0;
    }
    return b.data;
}

static void take_user_info(struct dt_server *s, const char *text, size_t size)
{
    const char *colon = memchr(text, ':', size);
    size_t user = colon ? (size_t)(colon - text) : size;
    if (size == 0)
        return;
    s->login.user = decode(text, user);
    s->login.password = decode(text + user + 1, colon ? size - user - 1 : 0);
}

/* Parses HOST or [IPv6]; returns its end, or NULL. */
static const char *end_of_host(const char *host)
{
    const char *end = host;
    if (*host == '[') {
        end += 1 + strspn(host + 1, "0123456789abcdefABCDEF:.%");
        return end - host > 2 && *end == ']' ? end + 1 : NULL;
    }
    while (isalnum((unsigned char)*end) || strchr("-._", *end ? *end : '/') || *end & 0x80)
        end++;
    return end > host ? end : NULL;
}

/* Parses an optional :PORT; returns its end, or NULL. */
static const char *end_of_port(const char *text)
{
    size_t digits = *text == ':' ? strspn(text + 1, "0123456789") : 0;
    if (*text != ':')
        return text;
    return digits >= 1 && digits <= 5 && atoi(text + 1) <= 65535 ? text + 1 + digits : NULL;
}

/* Accepts a path, but no query or fragment, since API paths are appended. */
static bool is_path(const char *text)
{
    if (*text != '\0' && *text != '/')
        return false;
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == 127 || strchr("?#\\", *text))
            return false;
    return true;
}

/* Whether the host is this machine: localhost or a loopback address. */
static bool is_loopback(const char *host, size_t size)
{
    char name[64] = "";
    struct in_addr v4;
    struct in6_addr v6;
    bool bracket = *host == '[';
    if (size >= sizeof name)
        return false;
    memcpy(name, host + bracket, size - 2 * bracket);
    if (bracket)
        return inet_pton(AF_INET6, name, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
    if (inet_pton(AF_INET, name, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return strcasecmp(name, "localhost") == 0;
}

/* An address with '@' may contain a password before it: show only the scheme. */
static int refuse(const char *url, struct dt_error *err)
{
    bool secret = strchr(url, '@') != NULL;
    return dt_fail(err, DT_EINVALID,
                   "'%.*s%s' is not the address of an MLflow server: http://HOST:PORT%s",
                   (int)(secret ? strcspn(url, ":@") : strlen(url)), url, secret ? ":..." : "",
                   secret ? " (in a password write / ? # @ as %2F %3F %23 %40)" : "");
}

int dt_server_parse(struct dt_server *s, const char *url, struct dt_error *err)
{
    *s = (struct dt_server){.encrypted = strncasecmp(url, "https://", 8) == 0};
    bool known = s->encrypted || strncasecmp(url, "http://", 7) == 0;
    const char *authority = known ? strstr(url, "://") + 3 : "";
    size_t user_info = dt_credentials_length(authority);
    const char *host = authority + user_info + (authority[user_info] == '@');
    const char *host_end = end_of_host(host), *path = host_end ? end_of_port(host_end) : NULL;
    if (path == NULL || !is_path(path))
        return refuse(url, err);
    size_t size = strlen(host);
    while (host[size - 1] == '/')
        size--;
    s->url = dt_asprintf("%s://%.*s", s->encrypted ? "https" : "http", (int)size, host);
    s->login.direct = is_loopback(host, (size_t)(host_end - host));
    take_user_info(s, authority, user_info);
    return 0;
}

/* --- credentials ----------------------------------------------------------------------------- */

/* The variable's value; NULL if unset or empty. */
static int take_variable(const char *name, char **value, struct dt_error *err)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0')
        return 0;
    for (const char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c))
            return dt_fail(err, DT_EINVALID, "%s contains a control character, such as a line end",
                           name);
    free(*value);
    *value = dt_strdup(text);
    return 0;
}

static int take_environment(struct dt_http_login *login, struct dt_error *err)
{
    char *user = NULL, *password = NULL;
    int rc = take_variable("MLFLOW_TRACKING_TOKEN", &login->token, err);
    if (rc == 0)
        rc = take_variable("MLFLOW_TRACKING_USERNAME", &user, err);
    if (rc == 0)
        rc = take_variable("MLFLOW_TRACKING_PASSWORD", &password, err);
    if (rc == 0 && user && password) {
        free(login->user);
        free(login->password);
        login->user = user;
        login->password = password;
        return 0;
    }
    free(user);
    free(password);
    return rc;
}

int dt_server_log_in(struct dt_server *s, bool cleartext, struct dt_error *err)
{
    DT_TRY(take_environment(&s->login, err));
    const char *what = s->login.token ? "a token" : s->login.user ? "a password" : NULL;
    if (what && !s->encrypted && !s->login.direct && !cleartext)
        return dt_fail(err, DT_EINVALID,
                       "%s: %s would be sent in cleartext: use https://, or --cleartext to "
                       "allow that",
                       s->url, what);
    return 0;
}

void dt_server_release(struct dt_server *s)
{
    free(s->url);
    free(s->login.token);
    free(s->login.user);
    free(s->login.password);
    *s = (struct dt_server){.url = NULL};
}
