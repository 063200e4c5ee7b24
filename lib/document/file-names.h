/* SPDX-License-Identifier: MIT */
/*
 * Names of files, and those that match a pattern.
 *
 *     struct dt_file_names names = {.items = NULL};
 *     DT_TRY(dt_file_names_match(&names, "crawl-*" "/part-?.jsonl", err));
 *     use(names.items, names.count);
 *     dt_file_names_release(&names);
 */
#ifndef DT_DOCUMENT_FILE_NAMES_H
#define DT_DOCUMENT_FILE_NAMES_H

#include <stddef.h>

#include "base/error.h"

struct dt_file_names {
    char **items; /* owned */
    size_t count, capacity;
};

void dt_file_names_add(struct dt_file_names *n, const char *name);
/* Appends the names that match, as of glob(7), in the order of their bytes: of directories, too.
 * DT_EIO if a directory cannot be read. One that does not exist has none. (glob(3) of glibc frees
 * twice where memory is exhausted.) */
int dt_file_names_match(struct dt_file_names *n, const char *pattern,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_file_names_release(struct dt_file_names *n);

#endif
