/* SPDX-License-Identifier: MIT */
#include "track/http.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/program.h"

int dt_http_load(const struct dt_http **http, struct dt_error *err)
{
    char *path = dt_plugin_path("http");
    void *library = dt_file_exists(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    int rc = 0;
    if (!dt_file_exists(path))
        rc = dt_fail(err, DT_EMISSING,
                     "built without libcurl: there is no %s (install libcurl4-openssl-dev, then "
                     "make)",
                     path);
    else if (library == NULL)
        rc = dt_fail(err, DT_EMISSING, "cannot load the HTTP client: %s", dlerror());
    else if ((*http = dlsym(library, "dt_http")) == NULL || (*http)->abi != DT_HTTP_ABI)
        rc = dt_fail(err, DT_EFORMAT, "'%s' is not an HTTP client of this version of dt", path);
    free(path);
    return rc;
}
