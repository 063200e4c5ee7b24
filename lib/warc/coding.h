/* SPDX-License-Identifier: MIT */
/*
 * Content codings of HTTP: gzip, deflate, zstd, and br by the plug-in brotli.so, which is built if
 * libbrotli is installed.
 *
 *     enum dt_warc_body rc = dt_coding_decode("gzip", 4, data, size, limit, &decoded);
 */
#ifndef DT_WARC_CODING_H
#define DT_WARC_CODING_H

#include "warc/response.h"

/* Replaces *out by the decoded bytes. name is compared without regard to case; "identity" copies.
 * Data that does not begin as its coding does is copied. */
enum dt_warc_body dt_coding_decode(const char *name, size_t name_size, const char *data,
                                   size_t size, size_t most, struct dt_buffer *out);

#define DT_BROTLI_ABI 1

/* The table of brotli.so, exported as "dt_brotli". */
struct dt_brotli {
    int abi;
    enum dt_warc_body (*decode)(const char *data, size_t size, size_t most, struct dt_buffer *out);
};

#endif
