/* SPDX-License-Identifier: MIT */
/*
 * Recognizes a file's type by its first bytes and its name. To add a format, add a row to the table
 * in file-type.c. Readers of text call this, so that files of other types do not become documents.
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
    DT_FILE_COMPRESSED, /* decompressed by io/input.h */
    DT_FILE_UTF16,      /* with a byte order mark: converted by io/input.h */
    DT_FILE_JSONL,
    DT_FILE_BINARY,    /* not text, or text in another encoding */
    DT_FILE_AMBIGUOUS, /* text or bytes that need an explicit --from */
};

struct dt_file_type {
    enum dt_file_kind kind;
    const char *name;   /* "a Parquet file" */
    const char *advice; /* "write it as JSON Lines: ..." */
    const char *filter; /* command that converts a file or stdin; or NULL */
    /* The codec of what is compressed (io/codec.h), "utf-16le", "utf-16be", or the reader of its
     * documents (document/reader.h); or NULL. */
    const char *format;
};

/* Bytes of a file that are enough. */
#define DT_FILE_TYPE_HEAD 4096

/* The type of data that begins with these bytes; NULL for text and for no data. size is below
 * DT_FILE_TYPE_HEAD only for shorter files. */
const struct dt_file_type *dt_file_type_recognize(const char *head, size_t size);
/* What unrecognized text may be meant as when --from does not say: JSON Lines with a damaged or
 * preceding first line, or lines of other JSON; or NULL. */
const struct dt_file_type *dt_file_type_suspect(const char *text, size_t size);
/* Whether text is a page of HTML, by a document type or the element html at its beginning. */
bool dt_file_type_is_html(const char *text, size_t size);
/* The type that the file name's suffix indicates, before .gz and the like; or NULL. */
const struct dt_file_type *dt_file_type_named(const char *path);
/* The codec (io/codec.h) that the file name's suffix indicates, .gz .zst .xz .bz2 .lz4; or NULL. */
const char *dt_file_type_codec(const char *path);

/* DT_EFORMAT "PATH: is NAME, not plain text; ADVICE: FILTER FILE". Of a compressed file the filter
 * follows the command that decompresses it; otherwise decompress is NULL. */
int dt_file_type_refuse(const struct dt_file_type *what, const char *path, const char *decompress,
                        struct dt_error *err);

#endif
