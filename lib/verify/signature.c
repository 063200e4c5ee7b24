/* SPDX-License-Identifier: MIT */
#include "verify/signature.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/child.h"
#include "base/file.h"

#define SSH      ".sig"
#define MINISIGN ".minisig"

bool dt_signature_is_named(const char *name, const char *manifest)
{
    size_t n = strlen(manifest);
    return strncmp(name, manifest, n) == 0 &&
           (strcmp(name + n, SSH) == 0 || strcmp(name + n, MINISIGN) == 0);
}

/* Runs a program with the file, if any, as its input. *line: what it prints, up to a line feed;
 * owned by the caller. */
static int run(const char *const *arguments, const char *file, char **line, struct dt_error *err)
{
    struct dt_child child = {0};
    struct dt_buffer text = DT_BUFFER_EMPTY;
    int input = file ? dt_file_open(file, err) : -1;
    if (file && input < 0)
        return input;
    int rc = dt_child_start(&child, arguments, input, true, err);
    char some[512];
    for (ssize_t n; rc == 0 && (n = read(child.output, some, sizeof some)) > 0;)
        if (text.size < sizeof some)
            dt_buffer_append(&text, some, (size_t)n);
    rc = rc < 0 ? rc : dt_child_finish(&child, err);
    if (input >= 0)
        close(input);
    *line = dt_strndup(text.data ? text.data : "", text.size);
    (*line)[strcspn(*line, "\n")] = '\0';
    dt_buffer_release(&text);
    return rc;
}

static int refuse(const char *manifest, const char *keys, const struct dt_error *why,
                  struct dt_error *err)
{
    if (why->code == DT_EMISSING) {
        *err = *why;
        return DT_EMISSING;
    }
    return dt_fail(err, DT_EFORMAT, "%s: is not signed by a key of '%s': %s", manifest, keys,
                   why->text);
}

/* The signer's name is that of its key in the file of keys. */
static int verify_ssh(const char *manifest, const char *signature, const char *keys,
                      struct dt_error *err)
{
    struct dt_error why;
    char *name, *said;
    const char *const find[] = {"ssh-keygen", "-Y", "find-principals", "-f",
                                keys,         "-s", signature,         NULL};
    int rc = run(find, NULL, &name, &why);
    if (rc == 0) {
        const char *const verify[] = {
            "ssh-keygen",           "-Y", "verify",  "-f", keys, "-I", name, "-n",
            DT_SIGNATURE_NAMESPACE, "-s", signature, NULL};
        rc = run(verify, manifest, &said, &why);
        free(said);
    }
    free(name);
    return rc < 0 ? refuse(manifest, keys, &why, err) : 0;
}

static int verify_minisign(const char *manifest, const char *signature, const char *keys,
                           struct dt_error *err)
{
    struct dt_error why;
    char *said;
    const char *const verify[] = {"minisign", "-V",     "-q", "-p",      keys,
                                  "-m",       manifest, "-x", signature, NULL};
    int rc = run(verify, NULL, &said, &why);
    free(said);
    return rc < 0 ? refuse(manifest, keys, &why, err) : 0;
}

int dt_signature_verify(const char *manifest, const char *keys, struct dt_error *err)
{
    char *ssh = dt_asprintf("%s" SSH, manifest), *minisign = dt_asprintf("%s" MINISIGN, manifest);
    int rc = dt_file_probe(ssh, err), other = rc == 0 ? dt_file_probe(minisign, err) : rc;
    if (rc > 0)
        rc = verify_ssh(manifest, ssh, keys, err);
    else if (other > 0)
        rc = verify_minisign(manifest, minisign, keys, err);
    else if (other == 0)
        rc = dt_fail(err, DT_EMISSING,
                     "%s: has no signature: '%s' does not exist, which ssh-keygen -Y sign "
                     "-n " DT_SIGNATURE_NAMESPACE " -f KEY makes",
                     manifest, ssh);
    else
        rc = other;
    free(ssh);
    free(minisign);
    return rc;
}
