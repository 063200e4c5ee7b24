/* SPDX-License-Identifier: MIT */
/*
 * An HTTP response as a WARC record keeps it: status, headers, and the body without its transfer
 * and content codings (RFC 9112, RFC 9110).
 *
 *     struct dt_warc_response response;
 *     if (dt_warc_response_parse(block, size, &response))
 *         problem = dt_warc_response_decode(&response, limit, &body);
 *
 * Crawlers often store a body decoded and leave the headers as they were. So a body that is not
 * chunked or not compressed, against its headers, is taken as it is.
 */
#ifndef DT_WARC_RESPONSE_H
#define DT_WARC_RESPONSE_H

#include <stdbool.h>

#include "base/buffer.h"

/* Pointers into the block that was parsed. */
struct dt_warc_response {
    int status;
    const char *headers; /* lines, for dt_warc_field() */
    size_t headers_size;
    const char *body;
    size_t body_size;
};

/* False unless the block begins as an HTTP response with a whole header. */
bool dt_warc_response_parse(const char *block, size_t size, struct dt_warc_response *response);

enum dt_warc_body {
    DT_WARC_BODY_DECODED,
    DT_WARC_BODY_CUT,       /* it ends early; what there was is decoded */
    DT_WARC_BODY_DAMAGED,   /* it cannot be decoded */
    DT_WARC_BODY_TOO_LONG,  /* more than the limit */
    DT_WARC_BODY_NO_BROTLI, /* br, and the plug-in brotli.so was not built */
    DT_WARC_BODY_UNKNOWN    /* of another coding */
};

/* Replaces *body by the decoded body, of at most `most` bytes. */
enum dt_warc_body dt_warc_response_decode(const struct dt_warc_response *response, size_t most,
                                          struct dt_buffer *body);

#endif
