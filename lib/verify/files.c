/* SPDX-License-Identifier: MIT */
#include "verify/files.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "io/directory-manifest.h"
#include "io/lineage.h"
#include "io/sealed-json.h"
#include "shard/manifest.h"
#include "shard/shard.h"
#include "verify/signature.h"
#include "json/json.h"

#define CHECKPOINT_MANIFEST "trainer/manifest.json"

/* What a directory is checked against. */
struct listing {
    const char *directory;
    const char *manifest;      /* within the directory */
    const char *signers;       /* NULL: no signature is needed */
    struct json_object *files; /* an object: the listed names; owned */
    struct dt_verify_report *report;
    uint64_t agree, differ;
};

/* rc and reason: of one check. */
static int count(struct listing *l, int rc, const struct dt_error *reason, struct dt_error *err)
{
    if (rc >= 0) {
        l->agree++;
        l->report->agree++;
        return 0;
    }
    l->differ++;
    return dt_verify_report_differ(l->report, dt_strdup(reason->text), err);
}

/* --- what is not listed ----------------------------------------------------------------------- */

static int visit(struct listing *l, const char *below, struct dt_error *err);

static int visit_entry(struct listing *l, const char *name, struct dt_error *err)
{
    struct stat st;
    char *path = dt_path_join(l->directory, name);
    bool is_known = json_object_object_get_ex(l->files, name, NULL);
    int rc = lstat(path, &st) < 0 ? dt_fail_errno(err, "cannot look at '%s'", path) : 0;
    if (rc == 0 && S_ISDIR(st.st_mode))
        rc = visit(l, name, err);
    else if (rc == 0 && !is_known && strcmp(name, l->manifest) != 0 &&
             !dt_signature_is_named(name, l->manifest)) {
        l->differ++;
        rc = dt_verify_report_differ(l->report, dt_asprintf("%s: is not listed", path), err);
    }
    free(path);
    return rc;
}

static int is_entry(const struct dirent *e)
{
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

/* below: a directory within that of the listing; "": itself. */
static int visit(struct listing *l, const char *below, struct dt_error *err)
{
    struct dirent **names;
    char *path = *below ? dt_path_join(l->directory, below) : dt_strdup(l->directory);
    int found = scandir(path, &names, is_entry, alphasort);
    int rc = found < 0 ? dt_fail_errno(err, "cannot open directory '%s'", path) : 0;
    for (int i = 0; i < found; i++) {
        char *name = *below ? dt_path_join(below, names[i]->d_name) : dt_strdup(names[i]->d_name);
        rc = rc < 0 ? rc : visit_entry(l, name, err);
        free(name);
        free(names[i]);
    }
    if (found >= 0)
        free(names);
    free(path);
    return rc;
}

/* --- the manifest itself ---------------------------------------------------------------------- */

/* The signature, the seal, and the records if it has them. *root is owned by the caller, NULL if it
 * cannot be read. */
static int check_manifest(struct listing *l, struct json_object **root, struct dt_error *err)
{
    struct dt_error reason;
    struct json_object *records;
    char *path = dt_path_join(l->directory, l->manifest);
    *root = NULL;
    int rc = l->signers ? dt_signature_verify(path, l->signers, &reason) : 0;
    rc = rc < 0 ? rc : dt_sealed_json_check(path, &reason);
    rc = rc < 0 ? rc : dt_json_read(path, root, &reason);
    if (rc >= 0 && json_object_object_get_ex(*root, "lineage", &records))
        rc = dt_lineage_check(records, path, &reason);
    free(path);
    return count(l, rc, &reason, err);
}

static int finish(struct listing *l, struct dt_error *err)
{
    int rc = visit(l, "", err);
    json_object_put(l->files);
    if (rc < 0 || l->differ > 0)
        return rc;
    return dt_verify_report_say(
        l->report, dt_asprintf("%s: %llu files agree", l->directory, (unsigned long long)l->agree),
        err);
}

/* --- a directory with a list of files: a checkpoint, an export -------------------------------- */

/* A signature covers what its manifest states by SHA-256; the other hash can be forged. */
static int check_covered(const struct listing *l, const char *path, struct json_object *entry,
                         struct dt_error *err)
{
    bool covered = json_object_object_get_ex(entry, "sha256", NULL);
    return l->signers == NULL || covered
               ? 0
               : dt_fail(err, DT_EFORMAT, "%s: has no SHA-256 in the signed %s", path, l->manifest);
}

static int check_listed(struct listing *l, struct json_object *list, struct dt_error *err)
{
    int rc = 0;
    json_object_object_foreach(list, name, entry)
    {
        struct dt_error reason;
        char *path = dt_path_join(l->directory, name);
        int found = dt_path_check_inside(name, l->manifest, &reason);
        if (found == 0)
            found = check_covered(l, path, entry, &reason);
        if (found == 0)
            found = dt_directory_manifest_check(path, entry, &reason);
        rc = rc < 0 ? rc : count(l, found, &reason, err);
        free(path);
    }
    return rc;
}

static int check_list(const char *directory, const char *manifest, const char *signers,
                      struct dt_verify_report *r, struct dt_error *err)
{
    struct listing l = {
        .directory = directory, .manifest = manifest, .signers = signers, .report = r};
    struct json_object *root, *list;
    struct dt_error reason;
    DT_TRY(check_manifest(&l, &root, err));
    int rc = 0;
    if (root && dt_json_get(root, "files", json_type_object, manifest, &list, &reason) < 0) {
        rc = count(&l, reason.code, &reason, err);
        list = NULL;
    } else if (root) {
        l.files = json_object_get(list);
        rc = check_listed(&l, list, err);
    }
    json_object_put(root);
    if (l.files == NULL)
        return rc;
    return rc < 0 ? rc : finish(&l, err);
}

/* --- a set of shards -------------------------------------------------------------------------- */

/* Reads a shard of an earlier version, whose entry has no SHA-256, as a whole. */
static int read_shard(const char *path, const struct dt_manifest_shard *shard, struct dt_error *err)
{
    struct dt_shard_reader *reader;
    struct dt_ids ids = DT_IDS_EMPTY;
    int rc;
    DT_TRY(dt_shard_reader_open(&reader, path, err));
    while ((rc = dt_shard_read_frame(reader, &ids, err)) > 0)
        continue;
    if (rc == 0 && dt_shard_reader_info(reader)->hash != shard->hash)
        rc = dt_fail(err, DT_EFORMAT, "%s: was changed: its content is not that of index.json",
                     path);
    dt_ids_release(&ids);
    dt_shard_reader_close(reader);
    return rc;
}

static int check_shard(const struct listing *l, const char *path,
                       const struct dt_manifest_shard *shard, struct dt_error *err)
{
    char hex[DT_SHA256_HEX];
    uint64_t bytes;
    if (*shard->sha256 == '\0' && l->signers)
        return dt_fail(err, DT_EFORMAT, "%s: has no SHA-256 in the signed %s", path, l->manifest);
    if (*shard->sha256 == '\0')
        return read_shard(path, shard, err);
    DT_TRY(dt_sha256_file(path, &bytes, hex, err));
    if (bytes != shard->size)
        return dt_fail(err, DT_EFORMAT, "%s: has %llu bytes, index.json says %llu", path,
                       (unsigned long long)bytes, (unsigned long long)shard->size);
    return strcmp(hex, shard->sha256) == 0
               ? 0
               : dt_fail(err, DT_EFORMAT, "%s: was changed: its SHA-256 is not that of index.json",
                         path);
}

static int check_split(struct listing *l, const struct dt_manifest_split *split,
                       struct dt_error *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < split->count; i++) {
        struct dt_error reason;
        char *path = dt_path_join(l->directory, split->shards[i].file);
        dt_json_object_add(l->files, split->shards[i].file, dt_json_new_boolean(true));
        rc = count(l, check_shard(l, path, &split->shards[i], &reason), &reason, err);
        free(path);
    }
    return rc;
}

static int check_shards(const char *directory, const char *signers, struct dt_verify_report *r,
                        struct dt_error *err)
{
    struct listing l = {
        .directory = directory, .manifest = DT_MANIFEST_NAME, .signers = signers, .report = r};
    struct dt_manifest manifest = {0};
    struct json_object *root;
    struct dt_error reason;
    DT_TRY(check_manifest(&l, &root, err));
    json_object_put(root);
    if (dt_manifest_read(&manifest, directory, &reason) < 0) {
        dt_manifest_release(&manifest);
        return l.differ > 0 ? 0 : count(&l, reason.code, &reason, err);
    }
    int rc = 0;
    l.files = dt_json_new_object();
    for (int i = 0; rc == 0 && i < manifest.count; i++)
        rc = check_split(&l, &manifest.splits[i], err);
    dt_manifest_release(&manifest);
    return rc < 0 ? rc : finish(&l, err);
}

/* --- a file with its record beside it --------------------------------------------------------- */

static int check_beside(const char *path, const char *beside, const char *signers,
                        struct dt_verify_report *r, struct dt_error *err)
{
    struct listing l = {.directory = ".", .manifest = beside, .signers = signers, .report = r};
    struct json_object *root;
    struct dt_error reason;
    if (*beside == '/')
        l.directory = "/";
    DT_TRY(check_manifest(&l, &root, err));
    int rc = 0;
    if (root && l.differ == 0) {
        rc = check_covered(&l, path, root, &reason);
        rc = rc < 0 ? rc : dt_directory_manifest_check(path, root, &reason);
        rc = count(&l, rc, &reason, err);
    }
    json_object_put(root);
    return rc < 0 || l.differ > 0
               ? rc
               : dt_verify_report_say(r, dt_asprintf("%s: agrees with its record", path), err);
}

/* path is a file, or the record of one. */
static int check_file(const char *path, const char *signers, struct dt_verify_report *r,
                      struct dt_error *err)
{
    size_t n = strlen(path), suffix = strlen(DT_LINEAGE_SUFFIX);
    bool is_record = n > suffix && strcmp(path + n - suffix, DT_LINEAGE_SUFFIX) == 0;
    char *file = dt_strndup(path, is_record ? n - suffix : n);
    char *beside = dt_asprintf("%s" DT_LINEAGE_SUFFIX, file);
    int rc = dt_file_probe(beside, err);
    if (rc == 0)
        rc = dt_fail(err, DT_EMISSING,
                     "%s: has no record: '%s' does not exist; of a directory of shards or a "
                     "checkpoint, give the directory",
                     file, beside);
    else if (rc > 0)
        rc = check_beside(file, beside, signers, r, err);
    free(beside);
    free(file);
    return rc;
}

/* --- what a path is --------------------------------------------------------------------------- */

static int has(const char *directory, const char *name, struct dt_error *err)
{
    char *path = dt_path_join(directory, name);
    int rc = dt_file_probe(path, err);
    free(path);
    return rc;
}

static int is_checkpoint(const struct dirent *e)
{
    return strncmp(e->d_name, "step-", 5) == 0;
}

/* All checkpoints of a run. */
static int check_run(const char *path, const char *signers, struct dt_verify_report *r,
                     struct dt_error *err)
{
    struct dirent **names;
    int found = scandir(path, &names, is_checkpoint, alphasort), rc = 0;
    if (found < 0)
        return dt_fail_errno(err, "cannot open directory '%s'", path);
    for (int i = 0; i < found; i++) {
        char *checkpoint = dt_path_join(path, names[i]->d_name);
        rc = rc < 0 ? rc : check_list(checkpoint, CHECKPOINT_MANIFEST, signers, r, err);
        free(checkpoint);
        free(names[i]);
    }
    free(names);
    if (rc == 0 && found == 0)
        rc = dt_fail(err, DT_EMISSING, "%s: has no manifest, so its files cannot be checked", path);
    return rc;
}

int dt_verify_files(const char *path, const char *signers, struct dt_verify_report *r,
                    struct dt_error *err)
{
    static const char *const lists[] = {CHECKPOINT_MANIFEST, DT_LINEAGE_FILE, NULL};
    int found = dt_file_probe(path, err);
    DT_TRY(found);
    if (found == 0)
        return dt_fail(err, DT_EMISSING, "%s: does not exist", path);
    if (!dt_file_is_directory(path))
        return check_file(path, signers, r, err);
    for (int i = 0; lists[i]; i++) {
        DT_TRY(found = has(path, lists[i], err));
        if (found)
            return check_list(path, lists[i], signers, r, err);
    }
    DT_TRY(found = has(path, DT_MANIFEST_NAME, err));
    return found ? check_shards(path, signers, r, err) : check_run(path, signers, r, err);
}
