/* SPDX-License-Identifier: MIT */
#include "http/http.h"

#include <string.h>
#include <strings.h>

#include "base/plugin.h"

int dt_http_load(const struct dt_http **http, struct dt_error *err)
{
    static const struct dt_plugin kind = {"HTTP client", "dt_http", DT_HTTP_ABI,
                                          ": built without libcurl (install "
                                          "libcurl4-openssl-dev, then make)"};
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
        return dt_strndup(value, size - (size_t)(value - line));
    }
    return NULL;
}

void dt_http_answer_release(struct dt_http_answer *a)
{
    dt_buffer_release(&a->body);
    dt_buffer_release(&a->headers);
}
