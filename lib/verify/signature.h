/* SPDX-License-Identifier: MIT */
/*
 * Signatures of manifests, verified by the program that made them: ssh-keygen(1) for
 * MANIFEST.sig, minisign(1) for MANIFEST.minisig. A manifest lists the SHA-256 of each file, so
 * its signature covers them.
 *
 *     ssh-keygen -Y sign -n dt -f KEY index.json
 *     minisign -S -m index.json
 */
#ifndef DT_VERIFY_SIGNATURE_H
#define DT_VERIFY_SIGNATURE_H

#include <stdbool.h>

#include "base/error.h"

#define DT_SIGNATURE_NAMESPACE "dt" /* of ssh-keygen -Y */

/* keys: allowed_signers of ssh-keygen(1), or the public key file of minisign(1). DT_EFORMAT if
 * none of them signed these bytes; DT_EMISSING without a signature, or without the program. */
int dt_signature_verify(const char *manifest, const char *keys, struct dt_error *err) DT_MUST_CHECK;

/* Whether name is that of a signature of manifest. */
bool dt_signature_is_named(const char *name, const char *manifest);

#endif
