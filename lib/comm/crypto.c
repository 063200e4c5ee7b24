/* SPDX-License-Identifier: MIT */
#include "comm/crypto.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/program.h"

int dt_crypto_load(const struct dt_crypto **crypto, struct dt_error *err)
{
    char *path = dt_plugin_path("crypto");
    void *library = dt_file_exists(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    int rc = 0;
    if (!dt_file_exists(path))
        rc =
            dt_fail(err, DT_EMISSING,
                    "ranks that meet at distributed.rendezvous authenticate each other by OpenSSL, "
                    "and there is no %s: build it (libssl-dev, make), or start ranks by mpirun",
                    path);
    else if (library == NULL)
        rc =
            dt_fail(err, DT_EMISSING,
                    "ranks that meet at distributed.rendezvous authenticate each other by OpenSSL, "
                    "which cannot be loaded: %s",
                    dlerror());
    else if ((*crypto = dlsym(library, "dt_crypto")) == NULL || (*crypto)->abi != DT_CRYPTO_ABI)
        rc = dt_fail(err, DT_EFORMAT, "'%s' is not the cryptography of this version of dt", path);
    free(path);
    return rc;
}
