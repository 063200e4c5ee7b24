/* SPDX-License-Identifier: MIT */
/* dt-verify files: compares files with the hashes that manifests and lineage state. */
#ifndef DT_VERIFY_FILES_H
#define DT_VERIFY_FILES_H

#include "verify/report.h"

/* Checks a run, a checkpoint, a set of shards, an export, or a file with a record; reports each
 * file that is missing, changed or not listed. An error only if path states no hashes.
 *
 * signers: keys of which one must have signed the manifest or record (verify/signature.h), which
 * then must state the SHA-256 of each file; NULL: no signature is needed. */
int dt_verify_files(const char *path, const char *signers, struct dt_verify_report *r,
                    struct dt_error *err) DT_MUST_CHECK;

#endif
