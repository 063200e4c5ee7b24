/* SPDX-License-Identifier: MIT */
/*
 * The end of a document stream, marked by its writer and checked by its reader.
 *
 * A pipe ends in the same way whether its writer finished, failed or was killed. So the documents
 * in a pipe carry two marks, in the member "dt_stream" of a line of JSON: the first document has
 * "begin", and the last one the end record, the number of documents and a hash of their texts. A
 * reader that sees the first mark requires the second. A stream without documents is two line
 * feeds, so that it differs from that of a writer that failed. Files carry no mark: they are atomic
 * (base/file.h). A file named .gz or .zst is compressed, one named .parquet a table.
 *
 *     struct dt_document_writer w = dt_document_writer_to(&out, DT_DOCUMENT_OUTPUT_JSONL);
 *     for (each document)
 *         DT_TRY(dt_document_writer_add(&w, &doc, &scratch, err));
 *     DT_TRY(dt_document_writer_end(&w, err));
 *     dt_document_writer_release(&w);
 *     DT_TRY(dt_output_commit(&out, err));
 *
 * dt-documents(5) describes the records.
 */
#ifndef DT_DOCUMENT_STREAM_H
#define DT_DOCUMENT_STREAM_H

#include "document/document.h"
#include "hash/hash.h"
#include "io/lineage.h"

#define DT_STREAM_MEMBER "dt_stream"
#define DT_STREAM_EMPTY  "\n\n" /* blank to other programs, and to $(...) of shells */

struct dt_document_writer {
    struct dt_output *out; /* borrowed */
    enum dt_document_output format;
    bool marked;                   /* JSON Lines into a pipe or socket */
    uint64_t documents, hash;      /* of what was added, where it is marked */
    struct dt_lineage *lineage;    /* goes into the end record; borrowed, or NULL */
    struct dt_output_codec *codec; /* of a file named .gz, .zst or .parquet */
    bool begun;                    /* codec was looked for */
    bool may_be_empty;             /* without documents it is a finished stream, not a failure */
};

struct dt_document_writer dt_document_writer_to(struct dt_output *out,
                                                enum dt_document_output format);
/* Writes a document; scratch is overwritten. */
int dt_document_writer_add(struct dt_document_writer *w, const struct dt_document *doc,
                           struct dt_buffer *scratch, struct dt_error *err) DT_MUST_CHECK;
/* The same in two steps, so that threads can format: takes the result of dt_document_write() and
 * dt_hash() of the text, which only a marked stream uses. */
int dt_document_writer_add_line(struct dt_document_writer *w, const char *line, size_t size,
                                uint64_t text_hash, struct dt_error *err) DT_MUST_CHECK;
/* Writes the end record, or the end of compressed data. A writer that fails before leaves a stream
 * without one. */
int dt_document_writer_end(struct dt_document_writer *w, struct dt_error *err) DT_MUST_CHECK;
void dt_document_writer_release(struct dt_document_writer *w); /* fine on an all-zero one */

struct dt_stream_mark {
    enum dt_stream_mark_kind { DT_STREAM_MARK_NONE, DT_STREAM_MARK_BEGIN, DT_STREAM_MARK_END } kind;
    uint64_t documents;     /* of an end record */
    char xxh3[DT_HASH_HEX]; /* of an end record, as text */
    const char *json;       /* of an end record: its text, of size bytes; borrowed */
    size_t size;
};

/* Parses the value of the member "dt_stream"; false if it is not a mark. json is borrowed. */
bool dt_stream_mark_parse(const char *json, size_t size, struct dt_stream_mark *mark);
/* The records in an end record, which are owned by the caller; NULL if it has none. */
int dt_stream_mark_lineage(const struct dt_stream_mark *mark, struct json_object **records,
                           struct dt_error *err) DT_MUST_CHECK;

/* A reader's state in the current stream; all zero before the first document. */
struct dt_stream_check {
    bool inside;        /* between its two marks */
    uint64_t documents; /* since the last mark */
    uint64_t hash;
};

/* Checks one document; DT_EFORMAT if its mark contradicts the stream so far. The check may
 * continue after an error. */
int dt_stream_check_add(struct dt_stream_check *check, const struct dt_stream_mark *mark,
                        const struct dt_buffer *text, struct dt_error *err) DT_MUST_CHECK;
/* At the end of a file: DT_EFORMAT inside a stream. */
int dt_stream_check_end(struct dt_stream_check *check, struct dt_error *err) DT_MUST_CHECK;
/* Whether an input is the mark of a stream without documents. */
bool dt_stream_is_empty(const char *input, size_t size);
/* DT_EFORMAT: a pipe without a byte. */
int dt_stream_fail_absent(struct dt_error *err) DT_MUST_CHECK;

#endif
