/* SPDX-License-Identifier: MIT */
#include "io/directory-manifest.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "hash/hash.h"
#include "hash/sha256.h"
#include "io/sealed-json.h"
#include "json/json.h"

/* sha256: as text; NULL: not computed. */
static int hash_file(const char *path, uint64_t *bytes, uint64_t *hash, char *sha256,
                     struct dt_error *err)
{
    struct stat st;
    int fd = dt_file_open(path, err);
    if (fd < 0)
        return fd;
    void *data = NULL;
    if (fstat(fd, &st) == 0 && st.st_size > 0)
        data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int rc = data == MAP_FAILED ? dt_fail_errno(err, "cannot read '%s'", path) : 0;
    close(fd);
    if (rc < 0)
        return rc;
    *bytes = data ? (uint64_t)st.st_size : 0;
    *hash = dt_hash(data ? data : "", *bytes);
    if (sha256) {
        struct dt_sha256 s;
        dt_sha256_init(&s);
        dt_sha256_add(&s, data ? data : "", *bytes);
        dt_sha256_finish(&s, sha256);
    }
    if (data)
        munmap(data, (size_t)st.st_size);
    return 0;
}

static int list_file(struct json_object *list, const char *directory, const char *name,
                     struct dt_error *err)
{
    uint64_t bytes, hash;
    char hex[DT_HASH_HEX], sha256[DT_SHA256_HEX];
    char *path = dt_path_join(directory, name);
    int rc = hash_file(path, &bytes, &hash, sha256, err);
    free(path);
    DT_TRY(rc);
    struct json_object *entry = dt_json_new_object();
    dt_json_object_add(entry, "bytes", dt_json_new_int((int64_t)bytes));
    dt_json_object_add(entry, "xxh3", dt_json_new_string(dt_hash_hex(hash, hex)));
    dt_json_object_add(entry, "sha256", dt_json_new_string(sha256));
    dt_json_object_add(list, name, entry);
    return 0;
}

int dt_directory_manifest_write(const char *directory, const char *name, const char *const *files,
                                struct dt_error *err)
{
    struct json_object *manifest = dt_json_new_object(), *list = dt_json_new_object();
    dt_json_object_add(manifest, "files", list);
    int rc = 0;
    for (; rc == 0 && *files; files++)
        rc = list_file(list, directory, *files, err);
    char *path = dt_path_join(directory, name);
    rc = rc < 0 ? rc : dt_sealed_json_write(path, manifest, err);
    free(path);
    json_object_put(manifest);
    return rc;
}

static int verify_file(const char *path, struct json_object *entry, struct dt_error *err)
{
    int64_t want_bytes;
    const char *want_hash;
    uint64_t bytes, hash;
    char hex[DT_HASH_HEX];
    DT_TRY(dt_json_get_int(entry, "bytes", path, &want_bytes, err));
    DT_TRY(dt_json_get_string(entry, "xxh3", path, &want_hash, err));
    DT_TRY(hash_file(path, &bytes, &hash, NULL, err));
    if (bytes != (uint64_t)want_bytes)
        return dt_fail(err, DT_EFORMAT, "%s: has %llu bytes, its manifest says %lld", path,
                       (unsigned long long)bytes, (long long)want_bytes);
    if (strcmp(dt_hash_hex(hash, hex), want_hash) != 0)
        return dt_fail(err, DT_EFORMAT, "%s: is damaged: its hash is not the manifest's", path);
    return 0;
}

int dt_directory_manifest_check(const char *path, struct json_object *entry, struct dt_error *err)
{
    bool has_xxh3 = json_object_object_get_ex(entry, "xxh3", NULL);
    const char *wanted;
    char hex[DT_SHA256_HEX];
    int64_t size;
    uint64_t bytes;
    if (has_xxh3)
        DT_TRY(verify_file(path, entry, err));
    if (has_xxh3 && !json_object_object_get_ex(entry, "sha256", NULL))
        return 0; /* of an earlier version */
    DT_TRY(dt_json_get_int(entry, "bytes", path, &size, err));
    DT_TRY(dt_json_get_string(entry, "sha256", path, &wanted, err));
    DT_TRY(dt_sha256_file(path, &bytes, hex, err));
    if (bytes != (uint64_t)size)
        return dt_fail(err, DT_EFORMAT, "%s: has %llu bytes, its record says %lld", path,
                       (unsigned long long)bytes, (long long)size);
    if (strcmp(hex, wanted) != 0)
        return dt_fail(err, DT_EFORMAT, "%s: was changed: its SHA-256 is not that of its record",
                       path);
    return 0;
}

int dt_directory_manifest_verify(const char *directory, const char *name, struct dt_error *err)
{
    struct json_object *manifest, *list;
    char *path = dt_path_join(directory, name);
    int rc = dt_json_read(path, &manifest, err);
    if (rc == 0 && (rc = dt_json_get(manifest, "files", json_type_object, path, &list, err)) == 0) {
        json_object_object_foreach(list, file, entry)
        {
            char *file_path = dt_path_join(directory, file);
            rc = rc < 0 ? rc : dt_path_check_inside(file, path, err);
            rc = rc < 0 ? rc : verify_file(file_path, entry, err);
            free(file_path);
        }
    }
    json_object_put(manifest);
    free(path);
    return rc;
}

int dt_directory_manifest_require(const char *directory, const char *name, const char *const *files,
                                  struct dt_error *err)
{
    struct json_object *manifest, *list;
    char *path = dt_path_join(directory, name);
    int rc = dt_json_read(path, &manifest, err);
    rc = rc < 0 ? rc : dt_json_get(manifest, "files", json_type_object, path, &list, err);
    for (; rc == 0 && *files; files++)
        if (!json_object_object_get_ex(list, *files, NULL))
            rc =
                dt_fail(err, DT_EFORMAT, "%s: does not list '%s', which is required", path, *files);
    json_object_put(manifest);
    free(path);
    return rc;
}
