/* SPDX-License-Identifier: MIT */
/*
 * A manifest lists a directory's files with their sizes and hashes. It is written last, so a
 * directory that matches its manifest is complete.
 *
 *     {"files": {"model.safetensors": {"bytes": 496, "xxh3": "0123..."}, ...}}
 */
#ifndef DT_IO_DIRECTORY_MANIFEST_H
#define DT_IO_DIRECTORY_MANIFEST_H

#include "base/error.h"

/* Writes DIRECTORY/name, listing the files (paths inside the directory, ended by NULL). */
int dt_directory_manifest_write(const char *directory, const char *name, const char *const *files,
                                struct dt_error *err) DT_MUST_CHECK;
/* Reads DIRECTORY/name and every file that it lists; fails on the first that is
 * absent, outside of the directory, of another size, or of another hash. */
int dt_directory_manifest_verify(const char *directory, const char *name,
                                 struct dt_error *err) DT_MUST_CHECK;
/* DT_EFORMAT names the first of the files (ended by NULL) that DIRECTORY/name does not list. */
int dt_directory_manifest_require(const char *directory, const char *name, const char *const *files,
                                  struct dt_error *err) DT_MUST_CHECK;

#endif
