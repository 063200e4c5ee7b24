/* SPDX-License-Identifier: MIT */
#include "comm/crypto.h"

#include "base/plugin.h"

int dt_crypto_load(const struct dt_crypto **crypto, struct dt_error *err)
{
    static _Atomic(const struct dt_crypto *) loaded;
    *crypto = loaded;
    if (*crypto)
        return 0;
    DT_PLUGIN(kind, crypto, "cryptography", DT_CRYPTO_ABI,
              ": build it (libssl-dev, make), or start ranks by mpirun");
    if (dt_plugin_load(&kind, "crypto", (const void **)crypto, err) < 0)
        return dt_fail_context(err, "ranks that meet at distributed.rendezvous authenticate each "
                                    "other by OpenSSL");
    loaded = *crypto;
    return 0;
}
