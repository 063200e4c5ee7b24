/* SPDX-License-Identifier: MIT */
/*
 * Documents: the unit of dt-clean, dt-dedup and dt-tokenize.
 *
 * Between programs a document is a line of JSON, {"id": string, "text": string, "meta": object}.
 * Plain text is read too: one document per file, line, separator or NUL. Other members are moved
 * into "meta", whose content is copied byte for byte. dt-documents(5) has the details.
 *
 *     struct dt_documents *docs;
 *     struct dt_document doc = DT_DOCUMENT_EMPTY;
 *     DT_TRY(dt_documents_open(&docs, files, count, &options, err));
 *     while ((rc = dt_documents_next(docs, &doc, err)) > 0)
 *         use(&doc);
 */
#ifndef DT_DOCUMENT_DOCUMENT_H
#define DT_DOCUMENT_DOCUMENT_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/progress.h"
#include "document/errors.h"
#include "document/part.h"

enum dt_document_format {
    DT_DOCUMENT_FORMAT_AUTO, /* by the type of the file (io/file-type.h), else text */
    DT_DOCUMENT_FORMAT_TEXT, /* one document per file */
    DT_DOCUMENT_FORMAT_LINES,
    DT_DOCUMENT_FORMAT_SEPARATOR, /* lines up to one that equals the separator */
    DT_DOCUMENT_FORMAT_NUL,
    DT_DOCUMENT_FORMAT_JSONL,
    DT_DOCUMENT_FORMAT_SPLIT, /* text up to the separator, anywhere in a line */
    DT_DOCUMENT_FORMAT_CSV,   /* RFC 4180, with a header */
    DT_DOCUMENT_FORMAT_TSV,
    DT_DOCUMENT_FORMAT_JSON,    /* values over any lines: objects, arrays of them */
    DT_DOCUMENT_FORMAT_PARQUET, /* through duckdb */
    DT_DOCUMENT_FORMAT_ARROW,   /* IPC file, stream or Feather, through Python's pyarrow */
};
/* Names for the option table, in the order above: auto text lines sep nul jsonl split csv tsv
 * json parquet arrow; then those of other modules (document/reader.h). */
extern const char *dt_document_formats[];

struct dt_document {
    struct dt_buffer id;   /* "FILE:NUMBER" where the input names none */
    struct dt_buffer text; /* raw bytes; not UTF-8 until dt-clean checked them */
    struct dt_buffer meta; /* a JSON object as text, or empty for {} */
};
/* clang-format off */
#define DT_DOCUMENT_EMPTY {DT_BUFFER_EMPTY, DT_BUFFER_EMPTY, DT_BUFFER_EMPTY}
/* clang-format on */

void dt_document_release(struct dt_document *doc);

/* Appends the id of a document that has none: the base name of its file, or its name as given if
 * shared: another file of the command has that base name; and its number in the file. */
void dt_document_number(const char *name, bool shared, uint64_t number, struct dt_buffer *id);
/* For each path whether that is so; owned by the caller (free). */
bool *dt_document_shared_names(char *const *paths, int count);

/* The default limit of a document in bytes. */
#define DT_DOCUMENT_BYTES 128000000

/* The field of documents whose members, in meta, are what is read. */
#define DT_DOCUMENT_RECORD ""

struct dt_lineage;
struct dt_documents_options {
    enum dt_document_format format;
    const char *separator; /* for DT_DOCUMENT_FORMAT_SEPARATOR and DT_DOCUMENT_FORMAT_SPLIT, without
                              a newline; with DT_DOCUMENT_FORMAT_AUTO, text is cut at lines that
                              equal it, and one that has it inside a line is an error */
    size_t most;           /* bytes of a document, of which its line of JSON may have four times
                              as many; 0 is DT_DOCUMENT_BYTES; a longer one is an error */
    bool allow_special;    /* DT_DOCUMENT_FORMAT_AUTO takes <|endoftext|> and the like as text */
    bool pages;            /* files of text are pages of HTML: an empty one is a document, and
                              DT_DOCUMENT_FORMAT_AUTO refuses one without a tag; bad_lines
                              applies to files that cannot be read as a page */
    const char *field; /* member that holds the text, or a path a.b, or a column; NULL is "text",
                          and DT_DOCUMENT_RECORD too, but then a record may be without it;
                          DT_DOCUMENT_FORMAT_JSON also takes a list and a member: a.b[].c */
    bool field_is_optional; /* formats without fields are read as well, not refused */
    struct dt_bad_line_policy bad_lines;
    bool partial;                 /* accept truncated and altered document streams */
    struct dt_document_part part; /* the documents to read */
    struct dt_lineage *lineage;   /* gets each input when it was read; borrowed, or NULL */
    const char *list;             /* the file that named the inputs, for lineage; or NULL */
    int threads;                  /* that parse and, above 1, one that hashes; 0 is 1 */
};

/* Checks the options --from and --separator together: the usage error, or NULL. */
const char *dt_documents_check(int format, const char *separator);

struct dt_documents;

/* Reads the named files one after the other; none is stdin. paths are borrowed
 * and must outlive the reader. */
int dt_documents_open(struct dt_documents **docs, char *const *paths, int count,
                      const struct dt_documents_options *options,
                      struct dt_error *err) DT_MUST_CHECK;
/* Reads the next document into doc. Returns 1; 0 at the end; or an error "FILE:LINE: reason",
 * also for a stream without its end record (document/stream.h). */
int dt_documents_next(struct dt_documents *docs, struct dt_document *doc,
                      struct dt_error *err) DT_MUST_CHECK;
/* The threads that parse, for pools of the program, which must be freed before docs. */
struct dt_threads *dt_documents_threads(const struct dt_documents *docs);
/* Bytes read of the part of all inputs, and their number (0 if unknown). */
void dt_documents_position(const struct dt_documents *docs, uint64_t *taken, uint64_t *total);
/* Shows how much is read, in percent if the total is known, and the number of documents. */
void dt_documents_show_progress(const struct dt_documents *docs, uint64_t documents,
                                struct dt_progress *progress);

/* What was read without an error but not returned as a document. */
struct dt_documents_losses {
    bool ended;                    /* all inputs were read */
    uint64_t skipped;              /* lines */
    const char *first_skipped;     /* "FILE:LINE: reason", or NULL; borrowed, as the others */
    uint64_t files;                /* that were skipped */
    const char *first_file;        /* "FILE: reason" of the first, or NULL */
    const char *first_partial;     /* the same of streams that were cut or changed */
    const char *undivided;         /* a compressed file that is not divided among parts, or NULL */
    uint64_t html;                 /* files of HTML that were read as text, without --from text */
    const char *first_html;        /* the name of the first, or NULL */
    const char *missing_separator; /* separator that no input contains, or NULL */
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
