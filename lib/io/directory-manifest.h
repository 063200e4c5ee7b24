/* SPDX-License-Identifier: MIT */
/*
 * A manifest lists a directory's files with their sizes and hashes. It is written last, so a
 * directory that matches its manifest is complete.
 *
 *     {"files": {"model.safetensors": {"bytes": 496, "xxh3": "0123...", "sha256": "4567..."}, ...},
 *      "seal": ...}
 *
 * Programs that read the directory compare XXH3, dt-verify both.
 */
#ifndef DT_IO_DIRECTORY_MANIFEST_H
#define DT_IO_DIRECTORY_MANIFEST_H

#include "base/error.h"
#include "json/json.h"

/* Writes DIRECTORY/name, listing the files (paths inside the directory, ended by NULL). */
int dt_directory_manifest_write(const char *directory, const char *name, const char *const *files,
                                struct dt_error *err) DT_MUST_CHECK;
/* Reads DIRECTORY/name and every file that it lists; fails on the first that is
 * absent, outside of the directory, of another size, or of another hash. */
int dt_directory_manifest_verify(const char *directory, const char *name,
                                 struct dt_error *err) DT_MUST_CHECK;
/* Compares a file with its entry in a list of files: the size, and each hash that the entry states,
 * SHA-256 included. DT_EFORMAT also if it states none. */
int dt_directory_manifest_check(const char *path, struct json_object *entry,
                                struct dt_error *err) DT_MUST_CHECK;
/* DT_EFORMAT names the first of the files (ended by NULL) that DIRECTORY/name does not list. */
int dt_directory_manifest_require(const char *directory, const char *name, const char *const *files,
                                  struct dt_error *err) DT_MUST_CHECK;

#endif
