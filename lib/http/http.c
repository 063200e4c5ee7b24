/* SPDX-License-Identifier: MIT */
#include "http/http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/plugin.h"

int dt_http_load(const struct dt_http **http, struct dt_error *err)
{
    DT_PLUGIN(kind, http, "HTTP client", DT_HTTP_ABI,
              ": built without libcurl (make deps-track, or install libcurl4-openssl-dev; then "
              "make)");
    return dt_plugin_load(&kind, "http", (const void **)http, err);
}

char *dt_http_header(const struct dt_http_answer *a, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = a->headers.data, *next; line && *line; line = next) {
        size_t size = strcspn(line, "\r\n");
        next = line + size + strspn(line + size, "\r\n");
        if (size <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
            continue;
        const char *value = line + n + 1;
        value += strspn(value, " \t");
        while (line + size > value && strchr(" \t", line[size - 1]))
            size--;
        return dt_strndup(value, size - (size_t)(value - line));
    }
    return NULL;
}

/* Whether a reference begins with a scheme: its query may have another URL. */
static bool is_absolute(const char *location)
{
    return strncmp(location + strcspn(location, ":/?#"), "://", 3) == 0;
}

char *dt_http_redirection(const struct dt_http_answer *a, const char *url)
{
    bool moved = a->status == 301 || a->status == 302 || a->status == 303 || a->status == 307 ||
                 a->status == 308;
    char *location = moved ? dt_http_header(a, "Location") : NULL, *target;
    if (location == NULL || is_absolute(location))
        return location;
    const char *scheme = strstr(url, "://");
    const char *host = scheme ? scheme + 3 : url, *path = host + strcspn(host, "/?#");
    const char *query = path + strcspn(path, "?#"), *end = query;
    while (*location != '?' && end > path && end[-1] != '/')
        end--;
    if (strncmp(location, "//", 2) == 0)
        target = dt_asprintf("%.*s%s", scheme ? (int)(scheme + 1 - url) : 0, url, location);
    else if (*location == '/')
        target = dt_asprintf("%.*s%s", (int)(path - url), url, location);
    else
        target = dt_asprintf("%.*s%s%s", (int)(end - url), url, end == path ? "/" : "", location);
    free(location);
    return target;
}

void dt_http_answer_release(struct dt_http_answer *a)
{
    dt_buffer_release(&a->body);
    dt_buffer_release(&a->headers);
}
