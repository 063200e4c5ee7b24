/* SPDX-License-Identifier: MIT */
/*
 * A format of documents is a row, struct dt_document_reader: how to read the next record of an
 * open file. Everything else is done for all formats by document/document.c: opening files and
 * decompressing them, recognizing their format, ids FILE:NUMBER, the limit of a document, bad
 * records (--on-error), document streams, lineage.
 *
 * A module above io defines a row too, and programs that read its format register it before they
 * parse options:
 *
 *     const struct dt_document_reader dt_warc_reader = {
 *         .name = "warc", .open = open_warc, .next = next_record, .close = close_warc};
 *
 *     dt_document_reader_register(&dt_warc_reader);
 *
 * Then --from warc selects it, and so does, with --from auto, a file whose row in io/file-type.c
 * has the format "warc". Without the registration such a file is refused by that row's advice.
 */
#ifndef DT_DOCUMENT_READER_H
#define DT_DOCUMENT_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "document/document.h"
#include "document/stream.h"
#include "io/input.h"

/* What a reader reads, borrowed while it is open. */
struct dt_document_source {
    struct dt_input *in; /* decompressed; at the first byte */
    const char *field;   /* name of the member or column with the text; NULL: none was given */
    const char *separator;
    size_t most;                /* bytes of a document's text; of a longer one a prefix is enough */
    bool guessed;               /* --from did not name the format */
    bool continued;             /* in is not at the beginning of its file */
    bool has_nan;               /* JSON with NaN, Infinity and -Infinity, which become strings */
    bool allow_special;         /* <|endoftext|> and the like are text */
    bool pages;                 /* a file of text is HTML */
    struct dt_threads *threads; /* that may parse */
};

/* What is known of a record besides its document; all zero before the first. */
struct dt_document_record {
    /* Set by the reader: */
    uint64_t line; /* where it is, for errors: FILE:LINE; 0: the number of the record */
    const struct dt_buffer *as; /* the bytes as read, for a quarantine file; NULL: the text */
    bool cut;                   /* above the limit: what was read is a prefix, see skip */
    bool unfinished;            /* the input ended inside it */
    struct dt_stream_mark mark;
    uint64_t separators; /* found so far */
    /* Set by the caller: */
    bool inside; /* between the marks of a document stream */
};

/* Result of next: the record is not a document; err says why, with DT_EMISSING where the field is
 * absent. */
#define DT_DOCUMENT_BAD 2

struct dt_document_reader {
    const char *name;   /* for --from */
    bool has_fields;    /* --field applies */
    bool cuts;          /* documents end at a separator */
    const char *ends;   /* records end with this byte, and it is in no record: document/part.h can
                           cut files; NULL: files are whole */
    const char *begins; /* records begin with these characters, and each frame of compressed data
                           with a record; NULL: this is not so */
    bool passes_blank;  /* a blank line is not a record */
    /* *state is released by close, also after a failure. */
    int (*open)(void **state, const struct dt_document_source *source, struct dt_error *err);
    /* Reads the next record: doc, which is empty, gets its text, its meta, and its id if it names
     * one. Returns 1; 0 at the end; DT_DOCUMENT_BAD; or an error that ends the program, with the
     * name of the file. */
    int (*next)(void *state, struct dt_document *doc, struct dt_document_record *record,
                struct dt_error *err);
    /* Passes over the rest of a record that was cut. NULL: a document above the limit is an error
     * whatever --on-error says. */
    int (*skip)(void *state, struct dt_error *err);
    void (*close)(void *state); /* NULL is fine */
};

/* Adds a format; one that is registered already is not added again. reader is borrowed. Not
 * thread-safe. */
void dt_document_reader_register(const struct dt_document_reader *reader);
/* NULL if no format has this name; name may be NULL. */
const struct dt_document_reader *dt_document_reader_named(const char *name);
/* The reader of dt_document_formats[format]; NULL for auto. */
const struct dt_document_reader *dt_document_reader_at(int format);

#endif
