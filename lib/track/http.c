/* SPDX-License-Identifier: MIT */
#include "track/http.h"

#include "base/plugin.h"

int dt_http_load(const struct dt_http **http, struct dt_error *err)
{
    static const struct dt_plugin kind = {"HTTP client", "dt_http", DT_HTTP_ABI,
                                          ": built without libcurl (install "
                                          "libcurl4-openssl-dev, then make)"};
    return dt_plugin_load(&kind, "http", (const void **)http, err);
}
