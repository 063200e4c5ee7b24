/* SPDX-License-Identifier: MIT */
/*
 * What a file is, told by its first bytes and by its name. file-type.c has one table, and a row is
 * all that another format needs: who reads text asks here, so that no file of another kind
 * becomes a document.
 *
 *     const struct dt_file_type *what = dt_file_type_recognize(head, size);
 *     if (what && what->kind == DT_FILE_BINARY)
 *         return dt_file_type_refuse(what, path, NULL, err);
 */
#ifndef DT_IO_FILE_TYPE_H
#define DT_IO_FILE_TYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum dt_file_kind {
    DT_FILE_GZIP, /* decompressed by io/input.h */
    DT_FILE_ZSTD,
    DT_FILE_JSONL,
    DT_FILE_BINARY,    /* certainly no text, or text in another encoding than UTF-8 */
    DT_FILE_AMBIGUOUS, /* text or bytes that a reader takes only if it was told how */
};

struct dt_file_type {
    enum dt_file_kind kind;
    const char *name;   /* "a Parquet file" */
    const char *advice; /* "write it as JSON Lines: ..." */
    const char *filter; /* the command that does so with a file or its standard input; or NULL */
};

/* Bytes of a file that suffice. */
#define DT_FILE_TYPE_HEAD 4096

/* What begins with these bytes; NULL for text and for nothing. size is less than
 * DT_FILE_TYPE_HEAD only where the file is no longer. */
const struct dt_file_type *dt_file_type_recognize(const char *head, size_t size);
/* What text that nobody called text may be meant as: JSON Lines whose first line was altered or
 * preceded by another, or lines of other JSON; or NULL. For text that is not recognized. */
const struct dt_file_type *dt_file_type_suspect(const char *text, size_t size);
/* What the ending of the name promises, with or without that of a compressed file; or NULL. */
const struct dt_file_type *dt_file_type_named(const char *path);

/* DT_EFORMAT "PATH: is NAME, not plain text; ADVICE: FILTER FILE". Of a compressed file the filter
 * follows the command that decompresses it; otherwise decompress is NULL. */
int dt_file_type_refuse(const struct dt_file_type *what, const char *path, const char *decompress,
                        struct dt_error *err);

#endif
