/* SPDX-License-Identifier: MIT */
/*
 * Documents whose records end with a byte: a line of JSON, of text, text that ends with a NUL.
 *
 * The thread that asks for documents only reads: it cuts the input into blocks after delimiters.
 * The source's threads parse the blocks; documents, and what is wrong with the other records, come
 * in order.
 *
 *     read         [ block 0 ][ block 1 ][ block 2 ] ...    the caller: read(2), memrchr(3)
 *     parse           |          |          |              threads, each a block
 *     next         d d d d    d d x d    d ...              the caller
 *
 * Private to lib/io.
 */
#ifndef DT_DOCUMENT_LINES_H
#define DT_DOCUMENT_LINES_H

#include "document/reader.h"

/* What is read as a record. */
struct dt_line_format {
    char delimiter;
    bool passes_blank; /* blank records are none */
    unsigned times;    /* a record has at most times * (bytes of a document) + more bytes; */
    size_t more, more_of_stream; /* and that many, if it may have a mark of a document stream */
    /* Parses a record, which a 0 byte follows; whole: its delimiter was read. doc is empty. A
     * negative result says why it is not a document. Runs on any thread. */
    int (*parse)(const struct dt_document_source *source, const char *record, size_t size,
                 bool whole, struct dt_document *doc, struct dt_stream_mark *mark,
                 struct dt_error *err);
};

/* The functions of a struct dt_document_reader; open is called by its own. */
int dt_document_lines_open(void **state, const struct dt_document_source *source,
                           const struct dt_line_format *format, struct dt_error *err);
int dt_document_lines_next(void *state, struct dt_document *doc, struct dt_document_record *record,
                           struct dt_error *err);
int dt_document_lines_skip(void *state, struct dt_error *err);
void dt_document_lines_close(void *state);

#endif
