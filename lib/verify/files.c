/* SPDX-License-Identifier: MIT */
#include "verify/files.h"

#include <stdlib.h>

#include "base/path.h"
#include "io/directory-manifest.h"

#define CHECKPOINT_MANIFEST "trainer/manifest.json"

int dt_verify_files(const char *path, struct dt_verify_report *r, struct dt_error *err)
{
    char *manifest = dt_path_join(path, CHECKPOINT_MANIFEST);
    int found = dt_file_probe(manifest, err);
    free(manifest);
    if (found < 0)
        return found;
    if (found == 0)
        return dt_fail(err, DT_EMISSING, "%s: has no manifest, so its files cannot be checked",
                       path);
    struct dt_error reason;
    if (dt_directory_manifest_verify(path, CHECKPOINT_MANIFEST, &reason) == 0) {
        r->agree++;
        return dt_verify_report_say(r, dt_asprintf("%s: all files agree", path), err);
    }
    return dt_verify_report_differ(r, dt_strdup(reason.text), err);
}
