/* SPDX-License-Identifier: MIT */
/*
 * Documents: the unit of the text half of dt.
 *
 * Between programs a document is a line of JSON, {"id": string, "text":
 * string, "meta": object}. From outside come also plain text: a document a
 * file, a line, a separator line, or a NUL. Members other than these three are
 * kept inside "meta", and what "meta" holds passes byte for byte.
 * dt-documents(5) has the details.
 *
 *     struct dt_documents *docs;
 *     struct dt_document doc = DT_DOCUMENT_EMPTY;
 *     DT_TRY(dt_documents_open(&docs, files, count, &options, err));
 *     while ((rc = dt_documents_next(docs, &doc, err)) > 0)
 *         use(&doc);
 */
#ifndef DT_IO_DOCUMENT_H
#define DT_IO_DOCUMENT_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "io/document-errors.h"

enum dt_document_format {
    DT_DOCUMENT_FORMAT_AUTO, /* JSONL if a file begins as a JSON object does ({"), else text; what
                     may be something else (io/file-type.h) is an error */
    DT_DOCUMENT_FORMAT_TEXT, /* a file is a document */
    DT_DOCUMENT_FORMAT_LINES,
    DT_DOCUMENT_FORMAT_SEPARATOR, /* lines up to one that equals the separator */
    DT_DOCUMENT_FORMAT_NUL,
    DT_DOCUMENT_FORMAT_JSONL,
    DT_DOCUMENT_FORMAT_SPLIT /* text up to the separator, wherever it stands */
};
/* Names for the option table, in the order above: auto text lines sep nul jsonl split. */
extern const char *const dt_document_formats[];

struct dt_document {
    struct dt_buffer id;   /* "FILE:NUMBER" where the input names none */
    struct dt_buffer text; /* bytes as they came; nothing promises UTF-8 before dt-clean */
    struct dt_buffer meta; /* a JSON object as text, or empty for {} */
};
/* clang-format off */
#define DT_DOCUMENT_EMPTY {DT_BUFFER_EMPTY, DT_BUFFER_EMPTY, DT_BUFFER_EMPTY}
/* clang-format on */

void dt_document_release(struct dt_document *doc);

/* Bytes of a document where the options do not say otherwise. */
#define DT_DOCUMENT_BYTES 128000000

struct dt_documents_options {
    enum dt_document_format format;
    const char *separator; /* for DT_DOCUMENT_FORMAT_SEPARATOR and DT_DOCUMENT_FORMAT_SPLIT, without
                              a newline; with DT_DOCUMENT_FORMAT_AUTO, text is cut at lines that
                              equal it, and one that has it inside a line is an error */
    size_t most;           /* bytes of a document, of which its line of JSON may have four times
                              as many; 0 is DT_DOCUMENT_BYTES; a longer one is an error */
    bool allow_special; /* <|endoftext|> and its like are text for DT_DOCUMENT_FORMAT_AUTO, too */
    const char *field;  /* JSON member that holds the text, or a path a.b; NULL is "text" */
    bool field_is_optional; /* other formats, which have none, are read too; otherwise refused */
    struct dt_bad_line_policy bad_lines;
    bool partial; /* a document stream that was cut or changed on its way is no error */
};

/* For programs with options --from and --separator: what is wrong with the two together, for a
 * usage message, or NULL. */
const char *dt_documents_check(int format, const char *separator);

struct dt_documents;

/* Reads the named files one after the other; none is stdin. paths are borrowed
 * and must outlive the reader. */
int dt_documents_open(struct dt_documents **docs, char *const *paths, int count,
                      const struct dt_documents_options *options,
                      struct dt_error *err) DT_MUST_CHECK;
/* 1 and the next document, replacing doc's contents; 0 at the end; or an error
 * "FILE:LINE: reason", which a document stream without its end (io/document-stream.h) is too. */
int dt_documents_next(struct dt_documents *docs, struct dt_document *doc,
                      struct dt_error *err) DT_MUST_CHECK;
/* Bytes of all inputs taken so far, and their sizes together (0 if not known). */
void dt_documents_position(const struct dt_documents *docs, uint64_t *taken, uint64_t *total);

/* What of the inputs did not become documents, though they were read without an error. */
struct dt_documents_losses {
    bool ended;                    /* all inputs were read, so that nothing can follow */
    uint64_t skipped;              /* lines */
    const char *first_skipped;     /* "FILE:LINE: reason", or NULL; borrowed, as the next */
    const char *first_partial;     /* the same of streams that were cut or changed */
    const char *missing_separator; /* that no input has, or NULL: each file was one document */
};
struct dt_documents_losses dt_documents_losses(const struct dt_documents *docs);
void dt_documents_close(struct dt_documents *docs); /* NULL is fine */

/* Appends the document as a line of JSON. */
void dt_document_to_json(const struct dt_document *doc, struct dt_buffer *line);

enum dt_document_output {
    DT_DOCUMENT_OUTPUT_JSONL,
    DT_DOCUMENT_OUTPUT_TEXT, /* the text, and a line feed if it does not end with one */
    DT_DOCUMENT_OUTPUT_NUL   /* the text and a NUL */
};
/* Names for the option table, in the order above: jsonl text nul. */
extern const char *const dt_document_outputs[];
void dt_document_write(enum dt_document_output format, const struct dt_document *doc,
                       struct dt_buffer *out);

#endif
