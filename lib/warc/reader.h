/* SPDX-License-Identifier: MIT */
/*
 * WARC as a format of documents (document/reader.h).
 *
 *     dt_document_reader_register(&dt_warc_reader_texts);
 */
#ifndef DT_WARC_READER_H
#define DT_WARC_READER_H

#include "document/reader.h"

/* The conversion records of WET files are documents, with url and date in meta; records of
 * responses are an error that advises dt-extract(1); others are passed over. */
extern const struct dt_document_reader dt_warc_reader_texts;

/* For dt-extract(1): all records. The text is the block; meta is not JSON, but begins with the name
 * of the type and a line feed, and continues with the record's fields, as lines
 * (dt_warc_field()). */
extern const struct dt_document_reader dt_warc_reader_records;

/* Appends ,"NAME":"VALUE" to a JSON object that begins with a brace, without the comma after it.
 * What is not UTF-8 becomes U+FFFD. */
void dt_warc_reader_add_member(struct dt_buffer *json, const char *name, const char *value,
                               size_t size);

#endif
