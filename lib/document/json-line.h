/* SPDX-License-Identifier: MIT */
/*
 * Parses a line of JSON into a document in one pass: no objects are built, and "meta" is copied
 * byte for byte. JSON is RFC 8259 without extensions, except that bytes in strings need not be
 * UTF-8.
 */
#ifndef DT_DOCUMENT_JSON_LINE_H
#define DT_DOCUMENT_JSON_LINE_H

#include <stddef.h>

#include "base/error.h"
#include "document/stream.h"

/* Replaces doc's contents by those of line, which must be followed by a 0 byte.
 * field names the member that holds the text, or the path to it ("a.b": member b of
 * the object a, whose other members go to "meta"), or "a.b" itself; of several the last counts.
 * With DT_DOCUMENT_RECORD it is "text", which may be absent. doc->id is empty where the line names
 * none. The mark of a stream is not a part of the document, and goes to *mark. Returns DT_EFORMAT
 * with "byte N: reason" where the line is not JSON, and DT_EMISSING where field is absent. */
int dt_json_line_read(const char *line, size_t size, const char *field, struct dt_document *doc,
                      struct dt_stream_mark *mark, struct dt_error *err) DT_MUST_CHECK;

#endif
